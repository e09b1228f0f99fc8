// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <filesystem>

#include "app/gui/window/main_window.h"

namespace evenkeel::gui {

/// Where the whole window keeps and finds things.
struct Folders {
  QString data;                    // ours, for clusters and plans that shown commands name
  std::filesystem::path programs;  // of evenkeel-agent and evenkeel-worker
};

/// The folders of the running program: its own, and the person's $XDG_DATA_HOME/evenkeel.
[[nodiscard]] Folders usualFolders();

/// Gives the window its six pages and enters Start. Once, before show().
void addAllPages(MainWindow& window, const Folders& folders);

}  // namespace evenkeel::gui
