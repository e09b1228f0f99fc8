// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/cluster_actions.h"

#include <QClipboard>
#include <QGuiApplication>

#include "app/gui/cluster/cluster_text.h"
#include "app/gui/theme/theme.h"

namespace evenkeel::gui {
namespace {

/// The top left corner of a thing with its middle at `at`.
CanvasPoint cornerOf(CanvasPoint at, CanvasSize size) { return {at.x - size.width / 2, at.y - size.height / 2}; }

constexpr CanvasSize kMachineSize{kMachineWidth, kMachineHeight}, kSwitchSize{kSwitchWidth, kSwitchHeight};

}  // namespace

ClusterActions::ClusterActions(Workspace& workspace, Canvas& canvas, QObject* parent)
    : QObject(parent), workspace_(workspace), canvas_(canvas) {
  newMachine = add(QStringLiteral("newMachine"), tr("New machine"), {QKeySequence(Qt::Key_N)}, [this] {
    edit(tr("Add a machine"), [this](Project& project) -> Result<Items> {
      auto name = addMachine(project, machine_.type, machine_.count, cornerOf(canvas_.insertionPoint(), kMachineSize));
      if (!name) return std::move(name).error();
      return Items{*name};
    });
  });
  newSwitch = add(QStringLiteral("newSwitch"), tr("New switch"), {QKeySequence(Qt::Key_S)},
                  [this] { insertText(QStringLiteral("switch"), canvas_.insertionPoint()); });
  linkTool = add(QStringLiteral("linkTool"), tr("Link"), {QKeySequence(Qt::Key_L)},
                 [this] { canvas_.setTool(linkTool->isChecked() ? Canvas::Tool::Link : Canvas::Tool::Select); });
  linkTool->setCheckable(true);
  findMachines = add(QStringLiteral("findMachines"), tr("Find machines…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F)}, [this] { emit findMachinesRequested(); });
  findMachines->setToolTip(tr("Look at hosts over SSH and draw what they have (Ctrl+Shift+F)"));
  duplicate = add(QStringLiteral("duplicateItems"), tr("Duplicate"), {QKeySequence(Qt::CTRL | Qt::Key_D)}, [this] {
    edit(tr("Duplicate"), [this](Project& project) { return gui::duplicate(project, workspace_.selection.items()); });
  });
  remove = add(QStringLiteral("removeItems"), tr("Delete"), {QKeySequence(Qt::Key_Delete), QKeySequence(Qt::Key_Backspace)},
               [this] { removeSelection(tr("Delete")); });
  copy = add(QStringLiteral("copyItems"), tr("Copy"), {QKeySequence(Qt::CTRL | Qt::Key_C)}, [this] { copySelection(); });
  cut = add(QStringLiteral("cutItems"), tr("Cut"), {QKeySequence(Qt::CTRL | Qt::Key_X)}, [this] {
    copySelection();
    removeSelection(tr("Cut"));
  });
  paste = add(QStringLiteral("pasteItems"), tr("Paste"), {QKeySequence(Qt::CTRL | Qt::Key_V)},
              [this] { insertText(QGuiApplication::clipboard()->text(), canvas_.insertionPoint()); });
  selectAll = add(QStringLiteral("selectAllItems"), tr("Select all"), {QKeySequence(Qt::CTRL | Qt::Key_A)},
                  [this] { workspace_.selection.setItems(allItems(workspace_.document.project().cluster)); });
  rename = add(QStringLiteral("renameItem"), tr("Rename"), {QKeySequence(Qt::Key_F2)}, [this] {
    for (const std::string& item : workspace_.selection.items()) {
      if (canvas_.drawing().box(item) != nullptr) return canvas_.beginRename(item);
    }
  });
  arrange = add(QStringLiteral("arrangeItems"), tr("Arrange"), {QKeySequence(Qt::CTRL | Qt::Key_L)}, [this] {
    workspace_.document.edit(tr("Arrange"), [](Project& project) { gui::arrange(project); });
    workspace_.selection.clear();
    canvas_.fit();
  });
  fit = add(QStringLiteral("fitView"), tr("Fit"), {QKeySequence(Qt::Key_F)}, [this] { canvas_.fit(); });
  fullSize = add(QStringLiteral("fullSize"), tr("100 %"), {QKeySequence(Qt::CTRL | Qt::Key_0)},
                 [this] { canvas_.zoomTo(1, canvas_.viewport()->rect().center()); });
  zoomIn = add(QStringLiteral("zoomIn"), tr("Zoom in"),
               {QKeySequence(Qt::CTRL | Qt::Key_Plus), QKeySequence(Qt::CTRL | Qt::Key_Equal)}, [this] { canvas_.zoomBy(1.25); });
  zoomOut =
      add(QStringLiteral("zoomOut"), tr("Zoom out"), {QKeySequence(Qt::CTRL | Qt::Key_Minus)}, [this] { canvas_.zoomBy(0.8); });

  connect(&canvas_, &Canvas::dropped, this, &ClusterActions::insertText);
  connect(&canvas_, &Canvas::toolChanged, this, [this](Canvas::Tool tool) { linkTool->setChecked(tool == Canvas::Tool::Link); });
  connect(&workspace_.selection, &Selection::changed, this, &ClusterActions::refresh);
  connect(&workspace_.document, &ProjectDocument::changed, this, &ClusterActions::refresh);
  setMachine(machine_);
  refreshIcons(canvas_.palette());
  refresh();
}

QAction* ClusterActions::add(const QString& name, const QString& text, std::initializer_list<QKeySequence> keys,
                             const std::function<void()>& run) {
  auto* action = new QAction(text, this);
  action->setObjectName(name);
  action->setShortcuts(QList<QKeySequence>(keys));
  action->setShortcutContext(Qt::WidgetShortcut);
  action->setToolTip(QStringLiteral("%1 (%2)").arg(text, keys.begin()->toString(QKeySequence::NativeText)));
  connect(action, &QAction::triggered, this, run);
  canvas_.addAction(action);
  return action;
}

void ClusterActions::refreshIcons(const QPalette& palette) {
  for (const auto& [action, name] : {std::pair{newMachine, "machine"},
                                     {newSwitch, "switch"},
                                     {linkTool, "link"},
                                     {duplicate, "duplicate"},
                                     {remove, "delete"},
                                     {arrange, "arrange"},
                                     {fit, "fit"},
                                     {zoomIn, "zoom-in"},
                                     {zoomOut, "zoom-out"}}) {
    action->setIcon(icon(name, palette));
  }
}

void ClusterActions::setMachine(DeviceGroup machine) {
  machine_ = std::move(machine);
  newMachine->setToolTip(tr("New machine with %1 × %2 (N)").arg(machine_.count).arg(text(machine_.type)));
}

void ClusterActions::refresh() {
  const Items& items = workspace_.selection.items();
  bool anyBox = false;
  for (const std::string& item : items) anyBox = anyBox || canvas_.drawing().box(item) != nullptr;
  for (QAction* action : {duplicate, copy, cut, rename}) action->setEnabled(anyBox);
  remove->setEnabled(!items.empty());
  arrange->setEnabled(!workspace_.document.project().cluster.nodes.empty());
}

void ClusterActions::edit(const QString& text, const std::function<Result<Items>(Project&)>& change) {
  Items items;
  workspace_.document.edit(text, [&](Project& project) {
    auto changed = change(project);
    if (changed) items = *std::move(changed);
    else workspace_.messages.showError(changed.error());
  });
  if (!items.empty()) workspace_.selection.setItems(std::move(items));
}

void ClusterActions::insertText(const QString& words, CanvasPoint at) {
  const std::string given = words.trimmed().toStdString();
  if (given == "switch")
    return edit(tr("Add a switch"),
                [&](Project& project) -> Result<Items> { return Items{addSwitch(project, cornerOf(at, kSwitchSize))}; });
  const bool isDevices = given.find_first_of(":{") == std::string::npos && !given.empty() && given.size() < 200;
  if (!isDevices)
    return edit(tr("Paste"), [&](Project& project) { return pasteText(project, given, cornerOf(at, kMachineSize)); });
  edit(tr("Add a machine"), [&](Project& project) -> Result<Items> {
    const auto groups = parseDevices(given);
    if (!groups) return groups.error();
    auto name = addMachine(project, groups->front().type, groups->front().count, cornerOf(at, kMachineSize));
    if (!name) return std::move(name).error();
    if (groups->size() > 1) {
      if (auto set = setDevices(project.cluster, {*name}, *groups); !set) {
        removeItems(project, {*name});
        return set.error();
      }
    }
    return Items{*name};
  });
}

void ClusterActions::copySelection() {
  QGuiApplication::clipboard()->setText(
      QString::fromStdString(copyText(workspace_.document.project(), workspace_.selection.items())));
}

void ClusterActions::removeSelection(const QString& text) {
  const Items items = workspace_.selection.items();
  workspace_.document.edit(text, [&](Project& project) { removeItems(project, items); });
}

void ClusterActions::fillMenu(QMenu& menu) const {
  if (workspace_.selection.items().empty()) {
    menu.addActions({newMachine, newSwitch, paste});
    menu.addSeparator();
    menu.addActions({selectAll, arrange, fit});
    return;
  }
  menu.addActions({rename, duplicate, copy, cut, remove});
  menu.addSeparator();
  menu.addActions({linkTool, fit});
}

}  // namespace evenkeel::gui
