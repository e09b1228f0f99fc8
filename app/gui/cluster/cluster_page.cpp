// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/cluster/cluster_page.h"

#include <QDropEvent>
#include <QEvent>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "app/gui/cluster/canvas.h"
#include "app/gui/cluster/cluster_actions.h"
#include "app/gui/cluster/cluster_inspector.h"
#include "app/gui/cluster/cluster_problems.h"
#include "app/gui/cluster/cluster_text.h"
#include "app/gui/cluster/machine_palette.h"
#include "app/gui/cluster/matrix_model.h"
#include "app/gui/cluster/outline_view.h"
#include "app/gui/theme/theme.h"
#include "app/gui/widgets/empty_state.h"
#include "app/gui/widgets/heading.h"

namespace evenkeel::gui {
namespace {

constexpr const char* kDemo = "1x2:cpu@0.5,1x2:cpu@0.25";  // two unlike machines that this computer can play
constexpr int kLeftWidth = 250, kEmptyWidth = 420;
constexpr int kMostInLegend = 5;

QLabel* panelHeading(const QString& words) {
  QLabel* label = heading(words);
  label->setContentsMargins(8, 6, 8, 2);
  return label;
}

}  // namespace

ClusterPage::ClusterPage(Workspace& workspace, QWidget* parent)
    : Page(workspace, parent),
      canvas_(new Canvas(workspace)),
      actions_(new ClusterActions(workspace, *canvas_, this)),
      inspector_(new ClusterInspector(workspace)) {
  setObjectName(QStringLiteral("clusterPage"));
  auto* tabs = new QTabWidget;
  tabs->setObjectName(QStringLiteral("clusterTabs"));
  tabs->setDocumentMode(true);
  tabs->addTab(makeDrawing(), tr("Drawing"));
  tabs->addTab(makeMatrix(), tr("Bandwidth matrix"));
  auto* split = new QSplitter;
  split->addWidget(makeLeft());
  split->addWidget(tabs);
  split->setStretchFactor(1, 1);
  split->setSizes({kLeftWidth, 10 * kLeftWidth});
  split->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(split);
  setFocusProxy(canvas_);
  canvas_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(canvas_, &QWidget::customContextMenuRequested, this, [this](const QPoint& at) {
    if (CanvasScene::nameOf(canvas_->itemAt(at)).empty()) workspace_.selection.clear();
    QMenu menu;
    actions_->fillMenu(menu);
    menu.exec(canvas_->viewport()->mapToGlobal(at));
  });
  connect(&workspace_.document, &ProjectDocument::changed, this, &ClusterPage::refresh);
  connect(actions_, &ClusterActions::findMachinesRequested, this, &ClusterPage::findMachinesRequested);
  refresh(Part::Cluster);
}

ClusterPage::~ClusterPage() {
  if (inspector_ != nullptr && inspector_->parent() == nullptr) delete inspector_;  // no dock has taken it
}

QWidget* ClusterPage::inspector() { return inspector_; }

QWidget* ClusterPage::makeLeft() {
  auto* palette = new MachinePalette;
  connect(palette, &MachinePalette::chosen, this,
          [this](const QString& words) { actions_->insertText(words, canvas_->insertionPoint()); });
  connect(palette, &MachinePalette::machineChanged, actions_, &ClusterActions::setMachine);
  auto* outline = new QWidget;
  auto* column = new QVBoxLayout(outline);
  column->setContentsMargins(8, 0, 8, 8);
  column->setSpacing(2);
  QLabel* title = panelHeading(tr("Outline"));
  title->setContentsMargins(0, 6, 0, 2);
  column->addWidget(title);
  column->addWidget(new OutlineView(workspace_), 1);
  auto* left = new QSplitter(Qt::Vertical);
  left->addWidget(palette);
  left->addWidget(outline);
  left->setChildrenCollapsible(false);
  left->setSizes({3, 2});
  left->setStretchFactor(0, 3);
  left->setStretchFactor(1, 2);
  left->setMinimumWidth(kLeftWidth - 40);
  return left;
}

QWidget* ClusterPage::makeToolBar() {
  auto* bar = new QToolBar;
  bar->setObjectName(QStringLiteral("clusterToolBar"));
  bar->setIconSize({18, 18});
  bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  bar->addActions({actions_->newMachine, actions_->newSwitch, actions_->linkTool, actions_->findMachines});
  bar->addSeparator();
  bar->addActions({actions_->duplicate, actions_->remove, actions_->arrange});
  auto* space = new QWidget;
  space->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  bar->addWidget(space);
  auto* zoom = new QLabel;
  zoom->setObjectName(QStringLiteral("zoomLabel"));
  zoom->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  zoom->setMinimumWidth(zoom->fontMetrics().horizontalAdvance(QStringLiteral("400 % ")));
  const auto showZoom = [zoom](double value) { zoom->setText(QStringLiteral("%1\u2009% ").arg(qRound(100 * value))); };
  showZoom(canvas_->zoom());
  connect(canvas_, &Canvas::zoomChanged, zoom, showZoom);
  bar->addWidget(zoom);
  bar->addActions({actions_->zoomOut, actions_->zoomIn, actions_->fit});
  for (QAction* action : {actions_->duplicate, actions_->remove, actions_->zoomOut, actions_->zoomIn, actions_->fit}) {
    if (auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(action)))
      button->setToolButtonStyle(Qt::ToolButtonIconOnly);
  }
  return bar;
}

QWidget* ClusterPage::makeDrawing() {
  empty_ = new EmptyState(tr("No machines yet"), tr("Drag a machine here, press N, or paste 2x8:A100-80-SXM"),
                          {{tr("New machine"),
                            [this] {
                              actions_->newMachine->trigger();
                              canvas_->setFocus();
                            }},
                           {tr("Find machines…"), [this] { actions_->findMachines->trigger(); }},
                           {tr("Start from the demo"), [this] {
                              actions_->insertText(QString::fromLatin1(kDemo), canvas_->insertionPoint());
                              workspace_.selection.clear();
                              canvas_->setFocus();
                            }}});
  empty_->setObjectName(QStringLiteral("emptyCluster"));
  empty_->setMinimumWidth(kEmptyWidth);
  empty_->setAcceptDrops(true);  // it lies over the canvas, and what is dropped on it is meant for that
  empty_->installEventFilter(this);
  problem_ = new QWidget;
  problem_->setObjectName(QStringLiteral("clusterProblem"));
  problem_->setAutoFillBackground(true);
  problemText_ = new QLabel;
  problemText_->setObjectName(QStringLiteral("clusterProblemText"));
  problemText_->setWordWrap(true);
  problemText_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  join_ = new QPushButton;
  join_->setObjectName(QStringLiteral("joinUnreached"));
  connect(join_, &QPushButton::clicked, this, &ClusterPage::joinUnreached);
  auto* show = new QPushButton(tr("Show"));
  connect(show, &QPushButton::clicked, this, [this] {
    const auto problems = clusterProblems(workspace_.document.project().cluster);
    if (problems.empty()) return;
    workspace_.selection.setItems({problems.front().item});
    canvas_->fit();
  });
  auto* line = new QHBoxLayout(problem_);
  line->setContentsMargins(12, 4, 8, 4);
  line->addWidget(problemText_, 1);
  line->addWidget(join_);
  line->addWidget(show);
  legend_ = new QLabel;  // names the colours, also where cards are too small for text
  legend_->setObjectName(QStringLiteral("clusterLegend"));
  legend_->setAccessibleName(tr("Device types of the drawing"));
  legend_->setAttribute(Qt::WA_TransparentForMouseEvents);
  legend_->setWordWrap(true);
  legend_->setContentsMargins(12, 4, 12, 4);

  auto* drawing = new QWidget;
  auto* layout = new QGridLayout(drawing);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(makeToolBar(), 0, 0);
  layout->addWidget(canvas_, 1, 0);
  layout->addWidget(empty_, 1, 0, Qt::AlignCenter);
  layout->addWidget(legend_, 1, 0, Qt::AlignBottom);
  layout->addWidget(problem_, 2, 0);
  layout->setRowStretch(1, 1);
  return drawing;
}

QWidget* ClusterPage::makeMatrix() {
  auto* view = new QTableView;
  view->setObjectName(QStringLiteral("bandwidthMatrix"));
  view->setAccessibleName(tr("Bandwidth between machines in GB/s"));
  view->setModel(new MatrixModel(workspace_.document, view));
  view->horizontalHeader()->setDefaultSectionSize(108);
  view->verticalHeader()->setDefaultSectionSize(26);
  view->verticalHeader()->setTextElideMode(Qt::ElideMiddle);
  view->verticalHeader()->setMaximumWidth(160);
  view->setFrameShape(QFrame::NoFrame);
  auto* hint =
      new QLabel(tr("GB/s that one flow gets between two machines, inside a machine on the diagonal. Bold: a drawn link. "
                    "Write a number to draw one, erase it to remove it."));
  hint->setWordWrap(true);
  hint->setContentsMargins(12, 8, 12, 8);
  hint->setForegroundRole(QPalette::PlaceholderText);
  auto* matrix = new QWidget;
  auto* layout = new QVBoxLayout(matrix);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(hint);
  layout->addWidget(view, 1);
  return matrix;
}

void ClusterPage::refresh(Parts parts) {
  if (!parts.testFlag(Part::Cluster)) return;
  const Cluster& cluster = workspace_.document.project().cluster;
  empty_->setVisible(cluster.nodes.empty() && cluster.switches.empty());
  // What is gone cannot stay selected.
  const Items existing = allItems(cluster);
  Items selected = workspace_.selection.items();
  if (std::erase_if(selected, [&](const std::string& item) { return !existing.contains(item); }) > 0)
    workspace_.selection.setItems(std::move(selected));
  showLegend();
  showProblem();
}

void ClusterPage::showLegend() {
  const Cluster& cluster = workspace_.document.project().cluster;
  std::vector<int> counts(cluster.deviceTypes.size());
  for (const Node& node : cluster.nodes) {
    for (const Device& device : node.devices) ++counts[static_cast<std::size_t>(device.type)];
  }
  QStringList entries;
  for (std::size_t type = 0; type < counts.size(); ++type) {
    if (counts[type] == 0) continue;
    entries << QStringLiteral("<span style='color:%1'>■</span>&nbsp;%2&nbsp;×&nbsp;%3")
                   .arg(deviceColour(static_cast<int>(type)).name())
                   .arg(counts[type])
                   .arg(text(cluster.deviceTypes[type].name).toHtmlEscaped());
  }
  legend_->setText(entries.mid(0, kMostInLegend).join(QStringLiteral(" &nbsp; ")) +
                   (entries.size() > kMostInLegend ? tr(" and others") : QString()));
  legend_->setVisible(!entries.isEmpty());
}

void ClusterPage::joinUnreached() {
  workspace_.document.edit(tr("Join machines to a switch"), [](Project& project) {
    for (const ClusterProblem& problem : clusterProblems(project.cluster)) {
      if (findMachine(project.cluster, problem.item) != nullptr)
        (void)connectItems(project, project.cluster.switches.front().name, problem.item);
    }
  });
}

void ClusterPage::showProblem() {
  const Cluster& cluster = workspace_.document.project().cluster;
  const auto problems = clusterProblems(cluster);
  problem_->setVisible(!problems.empty());
  if (problems.empty()) return;
  const auto unreached = std::ranges::count_if(
      problems, [&](const ClusterProblem& problem) { return findMachine(cluster, problem.item) != nullptr; });
  join_->setVisible(unreached > 0);
  if (unreached > 0)
    join_->setText((unreached == 1 ? tr("Join it to %1") : tr("Join all to %1")).arg(text(cluster.switches.front().name)));
  const QString more = problems.size() > 1 ? tr(" (and %1 more)").arg(problems.size() - 1) : QString();
  problemText_->setText(QStringLiteral("⚠  ") + text(problems.front().text) + more);
  QPalette warning = palette();
  warning.setColor(QPalette::WindowText, colours(palette()).warning);
  problemText_->setPalette(warning);
}

bool ClusterPage::eventFilter(QObject* watched, QEvent* event) {
  const QEvent::Type type = event->type();
  if (watched != empty_ || (type != QEvent::DragEnter && type != QEvent::DragMove && type != QEvent::Drop))
    return Page::eventFilter(watched, event);
  auto& drop = static_cast<QDropEvent&>(*event);  // the base of all three
  if (!Canvas::takes(*drop.mimeData())) return false;
  drop.acceptProposedAction();
  if (type == QEvent::Drop)
    canvas_->take(*drop.mimeData(), canvas_->viewport()->mapFrom(this, empty_->mapTo(this, drop.position().toPoint())));
  return true;
}

void ClusterPage::changeEvent(QEvent* event) {
  Page::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  actions_->refreshIcons(palette());
  showProblem();
}

}  // namespace evenkeel::gui
