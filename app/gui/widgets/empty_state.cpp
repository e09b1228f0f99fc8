// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/widgets/empty_state.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace evenkeel::gui {

EmptyState::EmptyState(const QString& title, const QString& text, std::vector<std::pair<QString, std::function<void()>>> actions, QWidget* parent)
    : QWidget(parent) {
  auto* heading = new QLabel(title);
  QFont font = heading->font();
  font.setPointSizeF(font.pointSizeF() * 1.5);
  heading->setFont(font);
  heading->setAlignment(Qt::AlignHCenter);
  auto* body = new QLabel(text);
  body->setAlignment(Qt::AlignHCenter);
  body->setWordWrap(true);
  body->setForegroundRole(QPalette::PlaceholderText);
  auto* buttons = new QHBoxLayout;
  buttons->addStretch();
  for (auto& [label, run] : actions) {
    auto* button = new QPushButton(label);
    connect(button, &QPushButton::clicked, this, std::move(run));
    buttons->addWidget(button);
  }
  buttons->addStretch();
  auto* layout = new QVBoxLayout(this);
  layout->addStretch();
  layout->addWidget(heading);
  layout->addSpacing(6);
  layout->addWidget(body);
  layout->addSpacing(12);
  layout->addLayout(buttons);
  layout->addStretch();
}

}  // namespace evenkeel::gui
