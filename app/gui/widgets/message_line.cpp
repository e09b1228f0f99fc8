// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/widgets/message_line.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QToolButton>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {

namespace {

QColor colourOf(MessageLine::Kind kind, const QPalette& palette) {
  const Colours& c = colours(palette);
  return kind == MessageLine::Kind::Error ? c.error : kind == MessageLine::Kind::Warning ? c.warning : c.information;
}

}  // namespace

MessageLine::MessageLine(QWidget* parent) : QFrame(parent), sign_(new QLabel), text_(new QLabel), buttons_(new QHBoxLayout) {
  setObjectName(QStringLiteral("messageLine"));
  setAccessibleName(tr("Message"));
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

void MessageLine::settle() {
  if (kind_ == Kind::Error && buttons_->isEmpty()) hide();
}

QString MessageLine::text() const { return isHidden() ? QString() : text_->text(); }

void MessageLine::restyle() {
  const QColor colour = colourOf(kind_, palette());
  sign_->setText(kind_ == Kind::Error ? QStringLiteral("✕") : kind_ == Kind::Warning ? QStringLiteral("⚠") : QStringLiteral("i"));
  QPalette signPalette;  // only this role: the others follow the scheme
  signPalette.setColor(QPalette::WindowText, colour);
  sign_->setPalette(signPalette);
  update();
}

void MessageLine::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  paintMessageGround(painter, rect(), colourOf(kind_, palette()), palette());
}

void MessageLine::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) restyle();
}

void paintMessageGround(QPainter& painter, const QRect& area, QColor colour, const QPalette& palette) {
  constexpr int kBarWidth = 4;
  painter.fillRect(area.left(), area.top(), kBarWidth, area.height(), colour);
  colour.setAlpha(isDark(palette) ? 50 : 28);
  painter.fillRect(area.adjusted(kBarWidth, 0, 0, 0), colour);
}

}  // namespace evenkeel::gui
