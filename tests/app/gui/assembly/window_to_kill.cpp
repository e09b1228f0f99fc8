// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window with somebody who edits in it for ever; killed_window_test.cpp ends it. Says what it has done, a line an edit:
// its number, which is the document's global batch, and the milliseconds of the steady clock.
#include <QApplication>
#include <chrono>
#include <cstdio>

#include "tests/app/gui/assembly/whole_window.h"

int main(int argc, char** argv) {
  using namespace evenkeel;
  using namespace evenkeel::gui;
  QApplication application(argc, argv);
  WholeWindow shown(application.arguments().at(1));
  shown.document().edit(QStringLiteral("draw"), [](Project& p) { p.cluster = *parseClusterShorthand("8x8:A100-80-SXM"); });
  shown.window().enter(Mode::Model);
  QTimer timer;
  int number = 0;
  QObject::connect(&timer, &QTimer::timeout, [&] {
    ++number;
    shown.document().edit(QStringLiteral("batch"), [&](Project& p) { p.training.globalBatch = number; });
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
    std::printf("%d %lld\n", number, static_cast<long long>(now.count()));
    std::fflush(stdout);
  });
  timer.start(20);
  return QApplication::exec();
}
