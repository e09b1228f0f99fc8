// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/job/job.h"
#include "tests/support/plans.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel::gui {

/// Real short jobs on this machine; whatever still runs is stopped at the end of the test.
class RealJobs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker"))
      GTEST_SKIP() << "built without LibTorch";
    ::setenv("XDG_DATA_HOME", (directory_.path() / "data").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", (directory_.path() / "cache").c_str(), 1);
    std::ofstream text(directory_.path() / "text.txt");
    for (int i = 0; i < 400; ++i) text << "the quick brown fox " << i * i % 97 << " jumps over the lazy dog\n";
  }
  void TearDown() override {
    auto launcher = Launcher::open();
    if (!launcher) return;
    const auto rows = launcher->runs();
    if (!rows) return;
    for (const RunRow& row : *rows) {
      if (!hasEnded(row.state)) (void)launcher->stopJob(row.run);
    }
  }

  [[nodiscard]] std::filesystem::path data() const { return directory_.path() / "text.txt"; }
  /// tiny-gpt on two cores of this machine, a pipeline of two stages.
  [[nodiscard]] static Plan plan() {
    Plan plan =
        planOf(*parseClusterShorthand("1x2:cpu"), *modelFromArgument("tiny-gpt"), {{4, 2, {"cpu-0/0", "cpu-0/1"}, {0, 9, 18}}});
    plan.training.sequenceLength = 16;
    return plan;
  }
  [[nodiscard]] LaunchRequest request(std::int64_t steps) const {
    LaunchRequest request;
    request.plan = plan();
    request.run.steps = steps;
    request.run.train = {data().string()};
    request.local = true;
    request.programs = EVENKEEL_BIN_DIR;
    return request;
  }

  TemporaryDirectory directory_;
};

}  // namespace evenkeel::gui
