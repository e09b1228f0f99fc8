// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <deque>
#include <set>

#include "app/gui/run/job_session.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;

namespace evenkeel::gui {

/// What the ranks say: all of them or one, filtered by a word, following the end unless a person looks elsewhere.
class RunLog final : public QWidget {
  Q_OBJECT

 public:
  explicit RunLog(QWidget* parent = nullptr);
  void append(const std::vector<LogEntry>& entries);
  void clear();
  /// The text that is shown now.
  [[nodiscard]] QString text() const;

 private:
  void addRank(int rank, const std::string& node);
  void refill();
  void write(const std::vector<const LogEntry*>& entries);
  void showCount();
  [[nodiscard]] bool isShown(const LogEntry& entry) const;

  std::deque<LogEntry> entries_;
  std::set<std::pair<int, std::string>> ranks_;
  std::size_t dropped_ = 0, shown_ = 0;
  QComboBox* rank_;
  QLineEdit* filter_;
  QCheckBox* follow_;
  QLabel* count_;
  QPlainTextEdit* text_;
};

}  // namespace evenkeel::gui
