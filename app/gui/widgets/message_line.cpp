// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/widgets/message_line.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {

MessageLine::MessageLine(QWidget* parent) : QFrame(parent), sign_(new QLabel), text_(new QLabel), buttons_(new QHBoxLayout) {
  setObjectName(QStringLiteral("messageLine"));
  setAccessibleName(tr("Message"));
  setAutoFillBackground(true);
  text_->setObjectName(QStringLiteral("messageText"));
  text_->setWordWrap(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  text_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  auto* close = new QToolButton;
  close->setText(QStringLiteral("×"));
  close->setAutoRaise(true);
  close->setAccessibleName(tr("Dismiss the message"));
  close->setToolTip(close->accessibleName());
  close->setFocusPolicy(Qt::NoFocus);
  connect(close, &QToolButton::clicked, this, &MessageLine::dismiss);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(12, 6, 6, 6);
  layout->setSpacing(10);
  layout->addWidget(sign_);
  layout->addWidget(text_, 1);
  layout->addLayout(buttons_);
  layout->addWidget(close);
  hide();
}

void MessageLine::show(Kind kind, const QString& text, std::vector<Action> actions) {
  kind_ = kind;
  text_->setText(text);
  while (QLayoutItem* item = buttons_->takeAt(0)) {
    item->widget()->deleteLater();
    delete item;
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(2, actions.size()); ++i) {
    auto* button = new QPushButton(actions[i].first);
    button->setFocusPolicy(Qt::TabFocus);
    connect(button, &QPushButton::clicked, this, [this, run = std::move(actions[i].second)] {
      dismiss();
      run();
    });
    buttons_->addWidget(button);
  }
  restyle();
  QFrame::show();
  emit shown(static_cast<int>(kind), text);
}

void MessageLine::showError(const Error& error, std::vector<Action> actions) {
  show(Kind::Error, QString::fromStdString(error.text()), std::move(actions));
}

void MessageLine::dismiss() { hide(); }

QString MessageLine::text() const { return isHidden() ? QString() : text_->text(); }

void MessageLine::restyle() {
  const Colours& c = colours(palette());
  const QColor colour = kind_ == Kind::Error ? c.error : kind_ == Kind::Warning ? c.warning : c.information;
  sign_->setText(kind_ == Kind::Error ? QStringLiteral("✕") : kind_ == Kind::Warning ? QStringLiteral("⚠") : QStringLiteral("i"));
  QPalette signPalette = sign_->palette();
  signPalette.setColor(QPalette::WindowText, colour);
  sign_->setPalette(signPalette);
  QColor tint = colour;
  tint.setAlpha(isDark(palette()) ? 50 : 28);
  setStyleSheet(QStringLiteral("#messageLine { background: rgba(%1,%2,%3,%4); border: 0; border-left: 4px solid %5; }")
                    .arg(tint.red()).arg(tint.green()).arg(tint.blue()).arg(tint.alpha()).arg(colour.name()));
}

void MessageLine::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || isRestyling_) return;
  isRestyling_ = true;  // a style sheet changes the palette itself
  restyle();
  isRestyling_ = false;
}

}  // namespace evenkeel::gui
