// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/window/mode_bar.h"

#include <QActionGroup>
#include <QCoreApplication>
#include <QEvent>
#include <QPainter>
#include <algorithm>
#include <array>

#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

struct ModeInfo {
  Mode mode;
  const char* icon;
  const char* title;
  int key;  // with Ctrl; 0: none
};
constexpr std::array<ModeInfo, 6> kModes = {{{Mode::Start, "start", QT_TRANSLATE_NOOP("ModeBar", "Start"), 0},
                                             {Mode::Cluster, "cluster", QT_TRANSLATE_NOOP("ModeBar", "Cluster"), Qt::Key_1},
                                             {Mode::Model, "model", QT_TRANSLATE_NOOP("ModeBar", "Model"), Qt::Key_2},
                                             {Mode::Plan, "plan", QT_TRANSLATE_NOOP("ModeBar", "Plan"), Qt::Key_3},
                                             {Mode::Compare, "compare", QT_TRANSLATE_NOOP("ModeBar", "Compare"), Qt::Key_4},
                                             {Mode::Run, "run", QT_TRANSLATE_NOOP("ModeBar", "Run"), Qt::Key_5}}};

}  // namespace

QString titleOf(Mode mode) { return QCoreApplication::translate("ModeBar", kModes[static_cast<std::size_t>(mode)].title); }

ModeBar::ModeBar(QWidget* parent) : QToolBar(tr("Modes"), parent) {
  setObjectName(QStringLiteral("modeBar"));
  setAccessibleName(windowTitle());
  setMovable(false);
  setOrientation(Qt::Vertical);
  setToolButtonStyle(Qt::ToolButtonTextUnderIcon);
  setIconSize({28, 28});
  setContextMenuPolicy(Qt::PreventContextMenu);
  auto* group = new QActionGroup(this);
  for (const ModeInfo& info : kModes) {
    QAction* action = addAction(titleOf(info.mode));
    action->setObjectName(QStringLiteral("mode") + QString::fromLatin1(info.title));
    action->setCheckable(true);
    if (info.key != 0) action->setShortcut(QKeySequence(Qt::CTRL | static_cast<Qt::Key>(info.key)));
    group->addAction(action);
    connect(action, &QAction::triggered, this, [this, mode = info.mode] {
      mode_ = mode;
      emit modeChosen(mode);
    });
    actions_[info.mode] = action;
    setMissing(info.mode, {});
  }
  actions_.at(Mode::Start)->setChecked(true);
  refreshIcons();
  int widest = 0;
  for (const auto& [mode, action] : actions_) widest = std::max(widest, widgetForAction(action)->sizeHint().width());
  for (const auto& [mode, action] : actions_) widgetForAction(action)->setFixedWidth(widest);
}

void ModeBar::setMode(Mode mode) {
  mode_ = mode;
  actions_.at(mode)->setChecked(true);
}

void ModeBar::setMissing(Mode mode, const QString& missing) {
  QAction* action = actions_.at(mode);
  action->setEnabled(missing.isEmpty());
  const QString key = action->shortcut().isEmpty() ? QString() : QStringLiteral(" (%1)").arg(action->shortcut().toString(QKeySequence::NativeText));
  action->setToolTip(missing.isEmpty() ? titleOf(mode) + key : missing);
}

void ModeBar::refreshIcons() {
  for (const ModeInfo& info : kModes) actions_.at(info.mode)->setIcon(icon(info.icon, palette()));
}

/// Flat: the style would shade it from one side to the other.
void ModeBar::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Window));
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawLine(rect().topRight(), rect().bottomRight());
}

void ModeBar::changeEvent(QEvent* event) {
  QToolBar::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) refreshIcons();
}

}  // namespace evenkeel::gui
