// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/window/main_window.h"

#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QLabel>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QSettings>
#include <QStatusBar>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "app/gui/theme/theme.h"
#include "app/gui/widgets/elided_label.h"
#include "app/gui/widgets/quantity_text.h"
#include "app/gui/widgets/stack.h"
#include "app/gui/window/mode_bar.h"

namespace evenkeel::gui {
namespace {

constexpr int kLayoutVersion = 1;  // a layout of another version is not restored
constexpr int kMostRecent = 10;
constexpr int kCommandWidth = 230, kJobWidth = 300;
const QString kFilter = QStringLiteral("Evenkeel projects (*.evenkeel)");

QDockWidget* makeDock(const QString& name, const QString& title, QWidget* content, QMainWindow* window, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, window);
  dock->setObjectName(name);
  dock->setWidget(content);
  window->addDockWidget(area, dock);
  return dock;
}

QTreeWidget* makeList(const QString& name, const QString& title, const QStringList& columns) {
  auto* list = new QTreeWidget;
  list->setObjectName(name);
  list->setAccessibleName(title);
  list->setHeaderLabels(columns);
  list->setRootIsDecorated(false);
  list->setAlternatingRowColors(true);
  return list;
}

}  // namespace

QStringList recentFiles() { return QSettings().value(QStringLiteral("recentFiles")).toStringList(); }

MainWindow::MainWindow(ProjectDocument& document)
    : document_(document), messages_(new MessageLine), workspace_(std::make_unique<Workspace>(document, selection_, *messages_)), modes_(new ModeBar(this)),
      stack_(new Stack) {
  setObjectName(QStringLiteral("mainWindow"));
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  addToolBar(Qt::LeftToolBarArea, modes_);
  auto* centre = new QWidget;
  auto* layout = new QVBoxLayout(centre);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(messages_);
  layout->addWidget(stack_, 1);
  setCentralWidget(centre);
  makePanels();
  makeMenus();
  makeStatusBar();
  connect(modes_, &ModeBar::modeChosen, this, &MainWindow::enter);
  connect(workspace_.get(), &Workspace::modeRequested, this, &MainWindow::enter);
  connect(&document_, &ProjectDocument::changed, this, &MainWindow::refresh);
  connect(&document_, &ProjectDocument::pathChanged, this, &MainWindow::refresh);
  connect(&document_.undoStack(), &QUndoStack::cleanChanged, this, &MainWindow::refresh);
  refresh();
}

MainWindow::~MainWindow() = default;

void MainWindow::addPage(Mode mode, std::unique_ptr<Page> page) {
  Page* taken = page.release();  // the stack owns it from here
  stack_->addWidget(taken);
  pages_[mode] = taken;
  refresh();
}

Page* MainWindow::page(Mode mode) const {
  const auto found = pages_.find(mode);
  return found == pages_.end() ? nullptr : found->second;
}

void MainWindow::enter(Mode mode) {
  Page* next = page(mode);
  if (next == nullptr) return;
  if (const QString missing = next->missing(); !missing.isEmpty()) return messages_->show(MessageLine::Kind::Information, missing + QLatin1Char('.'));
  messages_->settle();
  modes_->setMode(mode);
  stack_->setCurrentWidget(next);
  QWidget* inspector = next->inspector();
  if (inspector != nullptr) inspector_->setWidget(inspector);
  inspector_->setVisible(inspector != nullptr);
  next->setFocus();
}

void MainWindow::makePanels() {
  inspector_ = makeDock(QStringLiteral("inspectorDock"), tr("Inspector"), new QWidget, this, Qt::RightDockWidgetArea);
  problems_ = makeList(QStringLiteral("problemsList"), tr("Problems"), {tr("Where"), tr("What"), tr("Way out")});
  log_ = new QPlainTextEdit;
  log_->setObjectName(QStringLiteral("logText"));
  log_->setAccessibleName(tr("Log"));
  log_->setReadOnly(true);
  log_->setMaximumBlockCount(20'000);
  log_->setPlaceholderText(tr("What Evenkeel does, with the command that does the same."));
  jobs_ = makeList(QStringLiteral("jobsList"), tr("Jobs"), {tr("Job"), tr("Progress")});
  QDockWidget* problems = makeDock(QStringLiteral("problemsDock"), tr("Problems"), problems_, this, Qt::BottomDockWidgetArea);
  QDockWidget* log = makeDock(QStringLiteral("logDock"), tr("Log"), log_, this, Qt::BottomDockWidgetArea);
  QDockWidget* jobs = makeDock(QStringLiteral("jobsDock"), tr("Jobs"), jobs_, this, Qt::BottomDockWidgetArea);
  tabifyDockWidget(problems, log);
  tabifyDockWidget(log, jobs);
  for (QDockWidget* dock : {problems, log, jobs}) dock->hide();

  connect(workspace_.get(), &Workspace::commandShown, this, &MainWindow::showCommand);
  connect(workspace_.get(), &Workspace::logged, log_, &QPlainTextEdit::appendPlainText);
  connect(messages_, &MessageLine::shown, this, [this](int kind, const QString& text) {
    if (kind != static_cast<int>(MessageLine::Kind::Information)) new QTreeWidgetItem(problems_, {QString(), text, QString()});
    log_->appendPlainText(text);
  });
}

void MainWindow::makeMenus() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  const auto add = [this](QMenu* menu, const QString& name, const QString& text, const QKeySequence& keys, auto&& run) {
    QAction* action = menu->addAction(text, this, run);
    action->setObjectName(name);
    action->setShortcut(keys);
    return action;
  };
  add(file, QStringLiteral("fileNew"), tr("&New"), QKeySequence(Qt::CTRL | Qt::Key_N), [this] { startFrom({}); });
  add(file, QStringLiteral("fileOpen"), tr("&Open…"), QKeySequence(Qt::CTRL | Qt::Key_O), [this] {
    const QString path = QFileDialog::getOpenFileName(this, tr("Open a project"), QFileInfo(document_.path()).path(), kFilter);
    if (!path.isEmpty()) openFile(path);
  });
  recent_ = file->addMenu(tr("Open &recent"));
  connect(recent_, &QMenu::aboutToShow, this, &MainWindow::fillRecent);
  file->addSeparator();
  add(file, QStringLiteral("fileSave"), tr("&Save"), QKeySequence(Qt::CTRL | Qt::Key_S), [this] { save(); });
  add(file, QStringLiteral("fileSaveAs"), tr("Save &as…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), [this] { saveAs(); });
  file->addSeparator();
  add(file, QStringLiteral("fileQuit"), tr("&Quit"), QKeySequence(Qt::CTRL | Qt::Key_Q), [this] { close(); });

  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  QAction* undo = document_.undoStack().createUndoAction(this, tr("Undo"));
  undo->setObjectName(QStringLiteral("editUndo"));
  undo->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Z));
  QAction* redo = document_.undoStack().createRedoAction(this, tr("Redo"));
  redo->setObjectName(QStringLiteral("editRedo"));
  redo->setShortcuts({QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), QKeySequence(Qt::CTRL | Qt::Key_Y)});
  edit->addActions({undo, redo});

  view_ = menuBar()->addMenu(tr("&View"));
  QMenu* scheme = view_->addMenu(tr("&Colours"));
  for (const auto& [text, value] : {std::pair{tr("As the system"), ColourScheme::System}, std::pair{tr("Light"), ColourScheme::Light}, std::pair{tr("Dark"), ColourScheme::Dark}}) {
    scheme->addAction(text, this, [value = value] {
      QSettings().setValue(QStringLiteral("colourScheme"), static_cast<int>(value));
      applyTheme(*qApp, value);
    });
  }
  view_->addSeparator();
  int key = Qt::Key_1;
  for (const char* name : {"problemsDock", "logDock", "jobsDock"}) {
    QAction* toggle = findChild<QDockWidget*>(QString::fromLatin1(name))->toggleViewAction();
    toggle->setShortcut(QKeySequence(Qt::ALT | static_cast<Qt::Key>(key++)));
    view_->addAction(toggle);
  }
  view_->addAction(inspector_->toggleViewAction());
}

void MainWindow::makeStatusBar() {
  summary_ = new ElidedLabel;
  summary_->setObjectName(QStringLiteral("summary"));
  summary_->setContentsMargins(10, 0, 0, 0);
  jobTitle_ = new QLabel;
  jobBar_ = new QProgressBar;
  jobBar_->setFixedWidth(120);
  jobBar_->setTextVisible(false);
  jobCancel_ = new QToolButton;
  jobCancel_->setObjectName(QStringLiteral("jobCancel"));
  jobCancel_->setText(tr("Cancel"));
  command_ = new QToolButton;
  command_->setObjectName(QStringLiteral("newestCommand"));
  command_->setAccessibleName(tr("Copy the command that does the same"));
  command_->setAutoRaise(true);
  command_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  command_->hide();
  connect(command_, &QToolButton::clicked, this, [this] {
    QGuiApplication::clipboard()->setText(command_->property("command").toString());
    log_->appendPlainText(tr("The command is in the clipboard."));
  });
  statusBar()->addWidget(summary_, 1);
  statusBar()->addPermanentWidget(command_);
  for (QWidget* widget : {static_cast<QWidget*>(jobTitle_), static_cast<QWidget*>(jobBar_), static_cast<QWidget*>(jobCancel_)}) {
    statusBar()->addPermanentWidget(widget);
    widget->hide();
  }
  connect(jobCancel_, &QToolButton::clicked, this, [this] {
    if (!running_.empty() && running_.back().cancel) running_.back().cancel();
  });
  connect(workspace_.get(), &Workspace::jobStarted, this, [this](int id, const QString& title, const std::function<void()>& cancel) {
    running_.push_back({id, title, {}, -1, cancel});
    showJob();
  });
  connect(workspace_.get(), &Workspace::jobProgressed, this, [this](int id, double fraction, const QString& text) {
    for (Job& job : running_) {
      if (job.id != id) continue;
      job.fraction = fraction;
      job.text = text;
    }
    showJob();
  });
  connect(workspace_.get(), &Workspace::jobEnded, this, [this](int id) {
    std::erase_if(running_, [id](const Job& job) { return job.id == id; });
    showJob();
  });
}

void MainWindow::showCommand(const QString& command) {
  log_->appendPlainText(QStringLiteral("$ ") + command);
  command_->setText(QStringLiteral("$ ") + command_->fontMetrics().elidedText(command, Qt::ElideRight, kCommandWidth));
  command_->setToolTip(tr("The command that does the same; a click copies it:\n%1").arg(command));
  command_->setProperty("command", command);
  command_->show();
}

void MainWindow::showJob() {
  const bool any = !running_.empty();
  jobTitle_->setVisible(any);
  jobBar_->setVisible(any);
  jobCancel_->setVisible(any && running_.back().cancel != nullptr);
  jobs_->clear();
  for (const Job& job : running_) new QTreeWidgetItem(jobs_, {job.title, job.text});
  if (!any) return;
  const Job& job = running_.back();
  const QString title = job.text.isEmpty() ? job.title : job.title + QStringLiteral("  ") + job.text;
  jobTitle_->setText(jobTitle_->fontMetrics().elidedText(title, Qt::ElideRight, kJobWidth));
  jobTitle_->setToolTip(title);
  jobBar_->setRange(0, job.fraction < 0 ? 0 : 1000);
  if (job.fraction < 0) return;
  jobBar_->setUpdatesEnabled(false);  // else it paints, with all that waits to be painted, before it returns
  jobBar_->setValue(static_cast<int>(job.fraction * 1000));
  jobBar_->setUpdatesEnabled(true);
}

void MainWindow::refresh() {
  setWindowTitle(QStringLiteral("%1[*] — Evenkeel").arg(document_.title()));
  setWindowModified(document_.isModified());
  for (const auto& [mode, page] : pages_) modes_->setMissing(mode, page->missing());
  const Cluster& cluster = document_.project().cluster;
  double flops = 0;
  Bytes memory{};
  const std::size_t types = cluster.deviceTypes.size();
  for (const DeviceId device : cluster.devices()) {
    const DeviceType& type = cluster.typeOf(device);
    double best = 0;
    for (const auto& [precision, peak] : type.peak) best = std::max(best, tflops(peak) * type.speed);
    flops += best * 1e12;
    memory = memory + type.memory;
  }
  const int count = cluster.deviceCount();
  summary_->setText(
      count == 0 ? tr("No devices yet")
                 : (count == 1 ? tr("1 device")
                               : tr("%1 devices of %2").arg(count).arg(types == 1 ? tr("1 type") : tr("%1 types").arg(types))) +
                       tr(" · %1 · peak %2flop/s (dense)").arg(bytesText(memory), countText(flops)));
}

bool MainWindow::maySwitchDocument() {
  if (!document_.isModified()) return true;
  const auto answer = QMessageBox::question(this, tr("Save changes?"), tr("%1 has unsaved changes.").arg(document_.title()),
                                            QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
  if (answer == QMessageBox::Save) save();
  return answer == QMessageBox::Discard || (answer == QMessageBox::Save && !document_.isModified());
}

void MainWindow::startFrom(Project project) {
  if (!maySwitchDocument()) return;
  document_.startNew(std::move(project));
  enter(Mode::Cluster);
}

void MainWindow::openFile(const QString& path) {
  if (!maySwitchDocument()) return;
  if (auto opened = document_.open(path); !opened) {
    messages_->showError(opened.error());
    return;
  }
  rememberFile(path);
  enter(document_.project().cluster.nodes.empty() ? Mode::Cluster : document_.project().plans.empty() ? Mode::Cluster : Mode::Plan);
}

void MainWindow::save() {
  if (document_.path().isEmpty()) return saveAs();
  if (document_.isChangedOnDisk())
    return messages_->show(MessageLine::Kind::Warning, tr("%1 has been changed since it was opened here, perhaps in another window. To save over it would lose that.").arg(document_.path()),
                           {{tr("Save as…"), [this] { saveAs(); }}, {tr("Save over it"), [this] { saveHere(); }}});
  saveHere();
}

void MainWindow::saveHere() {
  if (auto saved = document_.saveAs(document_.path()); !saved) messages_->showError(saved.error(), {{tr("Save as…"), [this] { saveAs(); }}});
}

void MainWindow::saveAs() {
  QString path = QFileDialog::getSaveFileName(this, tr("Save the project"), document_.path(), kFilter);
  if (path.isEmpty()) return;
  if (!path.endsWith(QStringLiteral(".evenkeel"))) path += QStringLiteral(".evenkeel");
  if (auto saved = document_.saveAs(path); !saved) messages_->showError(saved.error());
  else rememberFile(path);
}

void MainWindow::rememberFile(const QString& path) {
  QStringList files = recentFiles();
  files.removeAll(path);
  files.prepend(path);
  QSettings().setValue(QStringLiteral("recentFiles"), files.mid(0, kMostRecent));
}

void MainWindow::fillRecent() {
  recent_->clear();
  for (const QString& path : recentFiles()) {
    QAction* action = recent_->addAction(path, this, [this, path] { openFile(path); });
    action->setEnabled(QFileInfo::exists(path));
  }
  if (recent_->isEmpty()) recent_->addAction(tr("No files yet"))->setEnabled(false);
}

void MainWindow::restoreLayout() {
  const QSettings settings;
  if (!restoreGeometry(settings.value(QStringLiteral("geometry")).toByteArray())) resize(1440, 900);
  restoreState(settings.value(QStringLiteral("layout")).toByteArray(), kLayoutVersion);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!maySwitchDocument()) {
    event->ignore();
    return;
  }
  QSettings settings;
  settings.setValue(QStringLiteral("geometry"), saveGeometry());
  settings.setValue(QStringLiteral("layout"), saveState(kLayoutVersion));
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  const auto urls = event->mimeData()->urls();
  if (urls.size() == 1 && urls.front().isLocalFile() && urls.front().toLocalFile().endsWith(QStringLiteral(".evenkeel"))) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) { openFile(event->mimeData()->urls().front().toLocalFile()); }

}  // namespace evenkeel::gui
