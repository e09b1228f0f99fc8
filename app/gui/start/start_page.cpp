// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/start/start_page.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/gui/window/main_window.h"

namespace evenkeel::gui {
namespace {

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

}  // namespace

StartPage::StartPage(Workspace& workspace, std::function<void(const QString&)> openFile, QWidget* parent)
    : Page(workspace, parent), openFile_(std::move(openFile)), lists_(new QVBoxLayout) {
  setObjectName(QStringLiteral("startPage"));
  auto* create = new QPushButton(tr("New cluster"));
  create->setObjectName(QStringLiteral("startNew"));
  auto* open = new QPushButton(tr("Open…"));
  open->setObjectName(QStringLiteral("startOpen"));
  connect(create, &QPushButton::clicked, this, [this] {
    workspace_.document.startNew();
    workspace_.goTo(Mode::Cluster);
  });
  connect(open, &QPushButton::clicked, this, [this] {
    const QString path = QFileDialog::getOpenFileName(this, tr("Open a project"), {}, QStringLiteral("Evenkeel projects (*.evenkeel)"));
    if (!path.isEmpty()) openFile_(path);
  });
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(create);
  buttons->addWidget(open);
  buttons->addStretch();

  auto* column = new QVBoxLayout;
  column->addStretch(2);
  column->addWidget(heading(tr("Plan and run training on unlike accelerators"), 1.9));
  column->addSpacing(14);
  column->addLayout(buttons);
  column->addSpacing(22);
  column->addLayout(lists_);
  column->addStretch(3);
  auto* layout = new QHBoxLayout(this);
  layout->addStretch(1);
  layout->addLayout(column, 3);
  layout->addStretch(1);
}

void StartPage::showEvent(QShowEvent* event) {
  fill();
  Page::showEvent(event);
}

void StartPage::fill() {
  while (QLayoutItem* item = lists_->takeAt(0)) {
    if (item->widget() != nullptr) item->widget()->deleteLater();
    delete item;
  }
  addRecovered();
  addRecent();
}

void StartPage::addRecovered() {
  const auto recovered = workspace_.document.recoverable();
  if (recovered.isEmpty()) return;
  lists_->addWidget(heading(tr("Unsaved work of a window that ended"), 1.0));
  for (const auto& entry : recovered) {
    const QString name = entry.originalPath.isEmpty() ? tr("Untitled") : QFileInfo(entry.originalPath).completeBaseName();
    QPushButton* restore = linkButton(tr("Restore “%1”, %2").arg(name, QLocale().toString(entry.written, QLocale::ShortFormat)));
    connect(restore, &QPushButton::clicked, this, [this, entry] {
      if (auto taken = workspace_.document.recover(entry); !taken) workspace_.messages.showError(taken.error());
      else workspace_.goTo(Mode::Cluster);
    });
    lists_->addWidget(restore);
  }
  lists_->addSpacing(12);
}

void StartPage::addRecent() {
  lists_->addWidget(heading(tr("Recent"), 1.0));
  const QStringList files = recentFiles();
  if (files.isEmpty()) {
    auto* none = new QLabel(tr("Projects that you save or open stand here."));
    none->setForegroundRole(QPalette::PlaceholderText);
    lists_->addWidget(none);
  }
  for (const QString& path : files) {
    const bool exists = QFileInfo::exists(path);
    QPushButton* button = linkButton(QFileInfo(path).completeBaseName() + QStringLiteral("   ") + (exists ? path : tr("the file is gone")));
    button->setEnabled(exists);
    connect(button, &QPushButton::clicked, this, [this, path] { openFile_(path); });
    lists_->addWidget(button);
  }
}

}  // namespace evenkeel::gui
