// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <functional>
#include <vector>

#include "app/gui/cluster/cluster_edits.h"
#include "app/gui/window/page.h"

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QSpinBox;

namespace evenkeel::gui {

class NumberField;
class TextField;

/// The fields of the selected machines.
class MachineForm final : public QWidget {
  Q_OBJECT

 public:
  explicit MachineForm(Workspace& workspace, QWidget* parent = nullptr);
  /// How many machines are among the items; hides itself if there are none.
  int show(const Items& items);

 private:
  using Nodes = std::vector<const Node*>;
  using Get = std::function<double(const Node&)>;
  using Set = std::function<void(Node&, double)>;

  void addDevices(QFormLayout& form);
  void addFigures(QFormLayout& form);
  void addLinks(QFormLayout& form);
  void addReach(QFormLayout& form);
  /// A number of each machine; `usual`, if given, is what it has by its type, and `figure` the name of that in the catalogue's
  /// sources.
  void addNumber(QFormLayout& form, const QString& name, const QString& title, const QString& unit, double least, const Get& get,
                 const Set& set, const Get& usual, const char* figure);
  void addSshText(QFormLayout& form, const QString& name, const QString& title, const QString& placeholder,
                  std::string SshTarget::*member);
  void change(const QString& what, const std::function<void(Node&)>& change);
  void changeDevices(const std::vector<struct DeviceGroup>& groups);
  [[nodiscard]] const DeviceType& firstType(const Node& node) const;

  Workspace& workspace_;
  Items items_;
  std::vector<std::function<void(const Nodes&)>> refreshers_;
  bool isRefreshing_ = false;
};

/// Title, date and address of a figure's source, and whether someone has checked it; what the type says itself if it is not of
/// the catalogue.
[[nodiscard]] QString sourceText(const DeviceType& type, const char* figure);

}  // namespace evenkeel::gui
