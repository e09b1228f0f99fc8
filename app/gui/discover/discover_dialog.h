// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <memory>
#include <mutex>
#include <thread>

#include "app/gui/run/login_desk.h"
#include "app/gui/window/page.h"
#include "launcher/discover/discover.h"

class QCheckBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QTimer;
class QTreeWidget;
class QTreeWidgetItem;

namespace evenkeel::gui {

class LoginDialog;

/// Looks at machines over SSH, read-only, and puts those that a person ticks into the project, pinned by their cards' uuids. A row a
/// machine as soon as it has answered, with what it has and what is wrong with it; busy and unknown devices come unticked and say why.
class DiscoverDialog final : public QDialog {
  Q_OBJECT

 public:
  explicit DiscoverDialog(Workspace& workspace, QWidget* parent = nullptr);
  ~DiscoverDialog() override;
  /// How hosts are reached; replaced in tests.
  void setConnector(HostConnector connect) { connect_ = std::move(connect); }

 private:
  void look();
  void stopLooking();
  void poll();
  void addRow(const FoundHost& found);
  void refresh();
  void addToProject();
  [[nodiscard]] std::vector<FoundHost> ticked() const;

  struct Arrived {
    std::mutex mutex;  // of what follows
    std::vector<FoundHost> hosts;
    bool isOver = false;
  };

  Workspace& workspace_;
  std::shared_ptr<LoginDesk> desk_;
  HostConnector connect_;
  std::shared_ptr<Arrived> arrived_;  // of the search that runs or ran last
  std::vector<FoundHost> found_;      // a row each
  std::size_t asked_ = 0;
  QLineEdit* hosts_;
  QCheckBox* local_;
  QPushButton* look_;
  QLabel* state_;
  QTreeWidget* rows_;
  QPushButton* add_;
  QTimer* poll_;
  LoginDialog* login_ = nullptr;
  std::jthread thread_;
};

}  // namespace evenkeel::gui
