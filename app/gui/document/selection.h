// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <optional>
#include <set>
#include <string>

namespace evenkeel::gui {

/// A stage of one of the project's plans.
struct StageRef {
  std::string plan;  // its name
  int pipeline = 0, stage = 0;
  auto operator<=>(const StageRef&) const = default;
};

/// What is selected, once for all views of a window: machines and switches by name, links by their two ends ("a|b"), and a stage.
class Selection final : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  [[nodiscard]] const std::set<std::string>& items() const { return items_; }
  [[nodiscard]] const std::optional<StageRef>& stage() const { return stage_; }
  [[nodiscard]] bool contains(const std::string& item) const { return items_.contains(item); }

  void setItems(std::set<std::string> items);
  /// Selecting a stage selects the machines of its devices too; the caller knows them.
  void setStage(std::optional<StageRef> stage, std::set<std::string> machines);
  void clear();

 signals:
  void changed();

 private:
  std::set<std::string> items_;
  std::optional<StageRef> stage_;
};

}  // namespace evenkeel::gui
