// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/run/run_log.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QVBoxLayout>

#include "app/gui/widgets/quantity_text.h"

namespace evenkeel::gui {
namespace {

constexpr std::size_t kMostEntries = 50'000;  // older ones are dropped, and the count says so
constexpr int kAllRanks = -2;

QString rankText(int rank, const std::string& node) {
  return rank < 0 ? RunLog::tr("agent on %1").arg(QString::fromStdString(node))
                  : RunLog::tr("rank %1 on %2").arg(rank).arg(QString::fromStdString(node));
}

QString lineOf(const LogEntry& entry) {
  return rankText(entry.rank, entry.node) + (entry.isWarning ? QStringLiteral("  ⚠ ") : QStringLiteral("  ")) +
         QString::fromStdString(entry.text);
}

}  // namespace

RunLog::RunLog(QWidget* parent)
    : QWidget(parent),
      rank_(new QComboBox),
      filter_(new QLineEdit),
      follow_(new QCheckBox(tr("Follow"))),
      count_(new QLabel),
      text_(new QPlainTextEdit) {
  rank_->setObjectName(QStringLiteral("logRank"));
  rank_->setAccessibleName(tr("Whose log"));
  filter_->setObjectName(QStringLiteral("logFilter"));
  filter_->setPlaceholderText(tr("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(220);
  follow_->setObjectName(QStringLiteral("logFollow"));
  follow_->setToolTip(tr("Keep the newest line in sight"));
  follow_->setChecked(true);
  count_->setForegroundRole(QPalette::PlaceholderText);
  text_->setObjectName(QStringLiteral("runLogText"));
  text_->setAccessibleName(tr("Log of the run"));
  text_->setReadOnly(true);
  text_->setLineWrapMode(QPlainTextEdit::NoWrap);
  text_->setPlaceholderText(tr("The ranks have said nothing."));
  QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  font.setPointSizeF(this->font().pointSizeF());
  text_->setFont(font);

  auto* bar = new QHBoxLayout;
  auto* heading = new QLabel(tr("Log"));
  QFont bold = heading->font();
  bold.setBold(true);
  heading->setFont(bold);
  bar->addWidget(heading);
  bar->addWidget(rank_);
  bar->addWidget(filter_, 1);
  bar->addWidget(follow_);
  bar->addStretch(1);
  bar->addWidget(count_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addLayout(bar);
  layout->addWidget(text_, 1);
  clear();

  connect(rank_, &QComboBox::currentIndexChanged, this, &RunLog::refill);
  connect(filter_, &QLineEdit::textChanged, this, &RunLog::refill);
  connect(follow_, &QCheckBox::toggled, this, [this](bool follows) {
    if (follows) text_->verticalScrollBar()->setValue(text_->verticalScrollBar()->maximum());
  });
  // Looking up is not following; back at the end is.
  connect(text_->verticalScrollBar(), &QScrollBar::actionTriggered, this, [this] {
    const QScrollBar* scroll = text_->verticalScrollBar();
    follow_->setChecked(scroll->sliderPosition() >= scroll->maximum());
  });
}

void RunLog::clear() {
  entries_.clear();
  ranks_.clear();
  dropped_ = shown_ = 0;
  const QSignalBlocker blocker(rank_);
  rank_->clear();
  rank_->addItem(tr("all ranks"), kAllRanks);
  text_->clear();
  showCount();
}

void RunLog::addRank(int rank, const std::string& node) {
  if (!ranks_.insert({rank, node}).second) return;
  const QSignalBlocker blocker(rank_);
  const auto place = static_cast<int>(std::distance(ranks_.begin(), ranks_.find({rank, node})));
  rank_->insertItem(place + 1, rankText(rank, node), rank);
  rank_->setItemData(place + 1, QString::fromStdString(node), Qt::UserRole + 1);
}

bool RunLog::isShown(const LogEntry& entry) const {
  const int rank = rank_->currentData().toInt();
  if (rank != kAllRanks &&
      (entry.rank != rank || QString::fromStdString(entry.node) != rank_->currentData(Qt::UserRole + 1).toString()))
    return false;
  return filter_->text().isEmpty() || lineOf(entry).contains(filter_->text(), Qt::CaseInsensitive);
}

void RunLog::append(const std::vector<LogEntry>& entries) {
  if (entries.empty()) return;
  std::vector<const LogEntry*> shown;
  for (const LogEntry& entry : entries) {
    addRank(entry.rank, entry.node);
    entries_.push_back(entry);
    if (isShown(entry)) shown.push_back(&entry);
  }
  const bool tooMany = entries_.size() > kMostEntries + kMostEntries / 10;
  while (tooMany && entries_.size() > kMostEntries) {
    entries_.pop_front();
    ++dropped_;
  }
  if (tooMany) return refill();
  write(shown);
}

void RunLog::refill() {
  std::vector<const LogEntry*> shown;
  for (const LogEntry& entry : entries_) {
    if (isShown(entry)) shown.push_back(&entry);
  }
  text_->clear();
  shown_ = 0;
  text_->setPlaceholderText(entries_.empty() ? tr("The ranks have said nothing.") : tr("No line fits the filter."));
  write(shown);
}

void RunLog::write(const std::vector<const LogEntry*>& entries) {
  if (!entries.empty()) {
    QStringList lines;
    for (const LogEntry* entry : entries) lines << lineOf(*entry);
    const int place = text_->verticalScrollBar()->value();
    text_->appendPlainText(lines.join(QLatin1Char('\n')));
    text_->verticalScrollBar()->setValue(follow_->isChecked() ? text_->verticalScrollBar()->maximum() : place);
  }
  shown_ += entries.size();
  showCount();
}

void RunLog::showCount() {
  if (entries_.empty()) return count_->clear();
  const auto number = [](std::size_t count) { return exactText(static_cast<std::int64_t>(count)); };
  QString text = shown_ == entries_.size() ? tr("%1 lines").arg(number(shown_))
                                           : tr("%1 of %2 lines").arg(number(shown_), number(entries_.size()));
  if (dropped_ > 0) text += tr(" · %1 older ones dropped").arg(number(dropped_));
  count_->setText(text);
}

QString RunLog::text() const { return text_->toPlainText(); }

}  // namespace evenkeel::gui
