// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/comm/wait_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semaphore>

namespace evenkeel {
namespace {

using Ranks = std::vector<int>;

/// Counts what is told; each counter can be waited for.
struct Told {
  std::counting_semaphore<> isLong{0}, isOver{0}, isStuck{0};
  Ranks peers;

  WaitWatch::Rules rules(Seconds longAfter, Seconds stuckAfter) {
    return {.longAfter = longAfter,
            .stuckAfter = stuckAfter,
            .onLong =
                [this](const Ranks& ranks) {
                  peers = ranks;
                  isLong.release();
                },
            .onLongOver = [this] { isOver.release(); },
            .onStuck = [this](const Ranks&) { isStuck.release(); }};
  }
};

TEST(WaitWatch, TellsLongWaitsAndTheirEnd) {
  Told told;
  WaitWatch watch(told.rules(Seconds{0.01}, Seconds{3600}));
  watch.begin({3, 4});
  told.isLong.acquire();
  EXPECT_EQ(told.peers, (Ranks{3, 4}));
  watch.end();
  told.isOver.acquire();
  EXPECT_FALSE(told.isStuck.try_acquire());
}

TEST(WaitWatch, TellsWaitsThatNeverEnd) {
  Told told;
  WaitWatch watch(told.rules(Seconds{0.01}, Seconds{0.02}));
  watch.begin({1});
  told.isStuck.acquire();
  watch.giveUp();
  watch.begin({2});
  told.isStuck.acquire();
  watch.giveUp();
  EXPECT_FALSE(told.isOver.try_acquire()) << "what was given up stays told";
}

TEST(WaitWatch, SaysNothingOfShortWaits) {
  Told told;
  {
    WaitWatch watch(told.rules(Seconds{3600}, Seconds{7200}));
    for (int i = 0; i < 1000; ++i) {
      watch.begin({1});
      watch.end();
    }
  }
  EXPECT_FALSE(told.isLong.try_acquire() || told.isOver.try_acquire() || told.isStuck.try_acquire());
}

}  // namespace
}  // namespace evenkeel
