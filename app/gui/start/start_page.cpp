// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/start/start_page.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>

#include "app/gui/start/examples.h"
#include "app/gui/window/main_window.h"

namespace evenkeel::gui {
namespace {

constexpr int kColumnWidth = 860, kNameWidth = 280, kGap = 18;

QLabel* heading(const QString& text, double scale) {
  auto* label = new QLabel(text);
  QFont font = label->font();
  font.setPointSizeF(font.pointSizeF() * scale);
  font.setBold(scale < 1.5);
  label->setFont(font);
  return label;
}

QPushButton* linkButton(const QString& text) {
  auto* button = new QPushButton(text);
  button->setFlat(true);
  button->setCursor(Qt::PointingHandCursor);
  button->setStyleSheet(QStringLiteral("QPushButton { text-align: left; padding: 3px 6px; }"));
  return button;
}

QLabel* dim(const QString& text) {
  auto* label = new QLabel(text);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

/// Names at the left, what they are at the right; the same columns in all lists.
void setUp(QGridLayout& list) {
  list.setVerticalSpacing(0);
  list.setHorizontalSpacing(12);
  list.setColumnStretch(1, 1);
  list.setColumnMinimumWidth(0, kNameWidth);
}

void addHeading(QGridLayout& list, const QString& text) {
  QLabel* label = heading(text, 1.0);
  label->setContentsMargins(0, list.count() == 0 ? 0 : kGap, 0, 2);
  list.addWidget(label, list.rowCount(), 0, 1, 3);
}

}  // namespace

StartPage::StartPage(Workspace& workspace, StartLinks links, QWidget* parent)
    : Page(workspace, parent), links_(std::move(links)), examples_(new QGridLayout) {
  setObjectName(QStringLiteral("startPage"));
  auto* create = new QPushButton(tr("New cluster"));
  create->setObjectName(QStringLiteral("startNew"));
  create->setDefault(true);
  auto* open = new QPushButton(tr("Open…"));
  open->setObjectName(QStringLiteral("startOpen"));
  connect(create, &QPushButton::clicked, this, [this] { links_.startFrom({}); });
  connect(open, &QPushButton::clicked, this, [this] {
    const QString path = QFileDialog::getOpenFileName(this, tr("Open a project"), {}, QStringLiteral("Evenkeel projects (*.evenkeel)"));
    if (!path.isEmpty()) links_.openFile(path);
  });
  auto* buttons = new QHBoxLayout;
  for (QPushButton* button : {create, open}) {
    button->setMinimumWidth(button->sizeHint().width() + 20);
    buttons->addWidget(button);
  }
  buttons->addSpacing(10);
  buttons->addWidget(dim(tr("or drop a project here")));
  buttons->addStretch();

  setUp(*examples_);
  addHeading(*examples_, tr("Examples"));
  int number = 0;
  for (const Example& example : examples()) {
    QPushButton* button = linkButton(example.title);
    button->setObjectName(QStringLiteral("startExample%1").arg(number++));
    connect(button, &QPushButton::clicked, this, [this, project = example.project] { links_.startFrom(project); });
    const int row = examples_->rowCount();
    examples_->addWidget(button, row, 0);
    examples_->addWidget(dim(example.summary), row, 1);
  }

  auto* column = new QWidget;
  column->setMaximumWidth(kColumnWidth);
  auto* rows = new QVBoxLayout(column);
  rows->addStretch(2);
  rows->addWidget(heading(tr("Plan and run training on unlike accelerators"), 1.9));
  rows->addSpacing(14);
  rows->addLayout(buttons);
  rows->addSpacing(kGap + 4);
  lists_ = new QWidget;
  rows->addWidget(lists_);
  rows->addLayout(examples_);
  rows->addStretch(3);
  auto* content = new QWidget;
  auto* middle = new QHBoxLayout(content);
  middle->addStretch(1);
  middle->addWidget(column, 100);
  middle->addStretch(1);
  auto* scroll = new QScrollArea;  // many recent files on a small screen
  scroll->setWidget(content);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
}

void StartPage::showEvent(QShowEvent* event) {
  fill();
  Page::showEvent(event);
}

void StartPage::fill() {
  auto* fresh = new QWidget;
  auto* list = new QGridLayout(fresh);
  list->setContentsMargins(0, 0, 0, kGap);
  setUp(*list);
  addRunning(*list);
  addRecovered(*list);
  addRecent(*list);
  delete lists_->parentWidget()->layout()->replaceWidget(lists_, fresh);  // the item, not the widget
  lists_->hide();
  lists_->deleteLater();  // a button of it may be what led here
  lists_ = fresh;
}

void StartPage::addRunning(QGridLayout& list) {
  const auto running = links_.running();
  if (running.empty()) return;
  addHeading(list, tr("Still running"));
  for (const RunningRun& run : running) {
    QPushButton* attach = linkButton(tr("Attach to %1").arg(run.title));
    attach->setObjectName(QStringLiteral("startAttach"));
    connect(attach, &QPushButton::clicked, this, run.attach);
    list.addWidget(attach, list.rowCount(), 0, 1, 3);
  }
}

void StartPage::addRecovered(QGridLayout& list) {
  const auto recovered = workspace_.document.recoverable();
  if (recovered.isEmpty()) return;
  addHeading(list, tr("Unsaved work of a window that ended"));
  for (const auto& entry : recovered) {
    const QString name = entry.originalPath.isEmpty() ? tr("Untitled") : QFileInfo(entry.originalPath).completeBaseName();
    QPushButton* restore = linkButton(tr("Restore “%1”").arg(name));
    restore->setObjectName(QStringLiteral("startRestore"));
    connect(restore, &QPushButton::clicked, this, [this, entry] {
      if (auto taken = workspace_.document.recover(entry); !taken) workspace_.messages.showError(taken.error());
      else workspace_.goTo(Mode::Cluster);
    });
    QPushButton* discard = linkButton(tr("Discard"));
    discard->setObjectName(QStringLiteral("startDiscard"));
    connect(discard, &QPushButton::clicked, this, [this, entry] {
      ProjectDocument::discard(entry);
      fill();
    });
    const int row = list.rowCount();
    list.addWidget(restore, row, 0);
    list.addWidget(dim(QLocale().toString(entry.written, QLocale::ShortFormat)), row, 1);
    list.addWidget(discard, row, 2);
  }
}

void StartPage::addRecent(QGridLayout& list) {
  addHeading(list, tr("Recent"));
  const QStringList files = recentFiles();
  if (files.isEmpty()) list.addWidget(dim(tr("Projects that you save or open stand here.")), list.rowCount(), 0, 1, 3);
  for (const QString& path : files) {
    const bool exists = QFileInfo::exists(path);
    QPushButton* button = linkButton(QFileInfo(path).completeBaseName());
    button->setEnabled(exists);
    connect(button, &QPushButton::clicked, this, [this, path] { links_.openFile(path); });
    const int row = list.rowCount();
    list.addWidget(button, row, 0);
    list.addWidget(dim(exists ? path : tr("%1: the file is gone").arg(path)), row, 1, 1, 2);
  }
}

}  // namespace evenkeel::gui
