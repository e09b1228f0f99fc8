// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/run_list.h"

#include <QDateTime>
#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "app/gui/theme/theme.h"
#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

enum Column { Started, State, Steps, Id };

QString timeOf(double seconds) {
  const QDateTime time = QDateTime::fromSecsSinceEpoch(static_cast<qint64>(seconds));
  const bool isToday = time.date() == QDate::currentDate();
  return time.toString(isToday ? QStringLiteral("hh:mm:ss") : QStringLiteral("yyyy-MM-dd hh:mm"));
}

}  // namespace

QString stateText(JobState state) {
  switch (state) {
    case JobState::Preparing: return RunList::tr("… preparing");
    case JobState::Running: return RunList::tr("▶ running");
    case JobState::Finished: return RunList::tr("✓ finished");
    case JobState::Failed: return RunList::tr("✕ failed");
    case JobState::Stopped: return RunList::tr("■ stopped");
  }
  return {};
}

QColor stateColour(JobState state, const QPalette& palette) {
  const Colours& c = colours(palette);
  switch (state) {
    case JobState::Preparing: return c.subtle;
    case JobState::Running: return c.information;
    case JobState::Finished: return c.good;
    case JobState::Failed: return c.error;
    case JobState::Stopped: return c.warning;
  }
  return c.subtle;
}

RunList::RunList(QWidget* parent)
    : QWidget(parent), list_(new QTreeWidget), note_(new QLabel), open_(new QPushButton(tr("Open"))) {
  list_->setObjectName(QStringLiteral("runList"));
  list_->setAccessibleName(tr("Runs"));
  list_->setHeaderLabels({tr("Started"), tr("State"), tr("Steps"), tr("Run")});
  list_->setRootIsDecorated(false);
  list_->setAlternatingRowColors(true);
  list_->setUniformRowHeights(true);
  list_->headerItem()->setTextAlignment(Steps, Qt::AlignRight | Qt::AlignVCenter);
  note_->setWordWrap(true);
  note_->setForegroundRole(QPalette::PlaceholderText);
  open_->setObjectName(QStringLiteral("runOpen"));
  open_->setToolTip(tr("Follow a run that goes on, or look at the curves of one that ended"));
  auto* title = new QHBoxLayout;
  auto* heading = new QLabel(tr("Runs"));
  QFont bold = heading->font();
  bold.setBold(true);
  heading->setFont(bold);
  title->addWidget(heading);
  title->addStretch();
  title->addWidget(open_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addLayout(title);
  layout->addWidget(list_, 1000);
  layout->addWidget(note_);
  layout->addStretch(1);  // all the room while the list is hidden
  const auto openCurrent = [this] {
    if (const QTreeWidgetItem* item = list_->currentItem()) emit opened(item->text(Id).toStdString());
  };
  connect(open_, &QPushButton::clicked, this, openCurrent);
  connect(list_, &QTreeWidget::itemActivated, this, openCurrent);
  connect(list_, &QTreeWidget::currentItemChanged, this, [this] { open_->setEnabled(list_->currentItem() != nullptr); });
}

void RunList::reload() {
  background_.run(
      [] {
        auto launcher = Launcher::open();
        return launcher ? launcher->runs() : Result<std::vector<RunRow>>(launcher.error());
      },
      [this](const Result<std::vector<RunRow>>& rows) { take(rows); });
}

void RunList::take(const Result<std::vector<RunRow>>& rows) {
  if (rows) {
    note_->setText(rows->empty() ? tr("No run yet on this machine. What you launch here or with evenkeel-cli appears here.")
                                 : QString());
    if (*rows != rows_) {
      rows_ = *rows;
      fill();
    }
  } else {
    note_->setText(tr("✕ The history of runs cannot be read: %1").arg(QString::fromStdString(rows.error().text())));
  }
  note_->setVisible(!note_->text().isEmpty());
  list_->setVisible(!rows_.empty());
  open_->setVisible(!rows_.empty());
  open_->setEnabled(list_->currentItem() != nullptr);
  emit reloaded();
}

void RunList::setOwn(std::vector<std::string> own) {
  if (own == own_) return;
  own_ = std::move(own);
  fill();
}

void RunList::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) fill();
}

void RunList::fill() {
  const QString current = list_->currentItem() == nullptr ? QString() : list_->currentItem()->text(Id);
  list_->clear();
  for (const RunRow& row : rows_) {
    auto* item = new QTreeWidgetItem(
        list_, {timeOf(row.started), stateText(row.state), exactText(row.steps), QString::fromStdString(row.run)});
    item->setTextAlignment(Steps, Qt::AlignRight | Qt::AlignVCenter);
    item->setForeground(State, stateColour(row.state, palette()));
    const bool isOwn = std::ranges::find(own_, row.run) != own_.end();
    item->setToolTip(Id, isOwn ? tr("%1, started from this project").arg(item->text(Id)) : item->text(Id));
    QFont font = list_->font();
    font.setBold(isOwn);
    item->setFont(Started, font);
    if (item->text(Id) == current) list_->setCurrentItem(item);
  }
  for (const int column : {Started, State, Steps}) list_->resizeColumnToContents(column);
}

}  // namespace evenkeel::gui
