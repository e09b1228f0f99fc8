// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/schedule/regroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/base/random.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;

StageSide side(const Stage& stage, int firstRank, int microBatch) {
  std::vector<int> ranks(static_cast<std::size_t>(stage.tp * stage.dp));
  std::iota(ranks.begin(), ranks.end(), firstRank);
  return {.stage = stage, .ranks = std::move(ranks), .microBatch = microBatch};
}

TEST(Regroup, SendsEachReplicaTheSamplesThatItShares) {
  const Stage a{.tp = 1, .dp = 2, .shares = {4, 1}}, b{.tp = 2, .dp = 2, .shares = {2, 3}};
  const StageSide from = side(a, 0, 5), to = side(b, 10, 5);
  EXPECT_THAT(portionsToSend(from, to, 5, 0, 0),
              ElementsAre(Portion{10, 0, 2}, Portion{11, 0, 2}, Portion{12, 2, 2}, Portion{13, 2, 2}));
  EXPECT_THAT(portionsToSend(from, to, 5, 1, 0), ElementsAre(Portion{12, 0, 1}, Portion{13, 0, 1}));
  EXPECT_THAT(portionsToReceive(from, to, 5, 1, 1), ElementsAre(Portion{0, 0, 2}, Portion{1, 2, 1}));
  EXPECT_THAT(portionsToSend(from, to, 1, 1, 0), ElementsAre()) << "the one sample of a smaller micro-batch is not his";
}

TEST(Regroup, GivesEveryRankAllOfItsSamplesOnce) {
  const CounterRandom random(4, "regroup");
  std::uint64_t next = 0;
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random.below(next++, static_cast<std::uint64_t>(most - least + 1)));
  };
  for (int i = 0; i < 300; ++i) {
    const int microBatch = between(1, 9), samples = between(1, microBatch);
    const Stage a{.tp = between(1, 4), .dp = between(1, 4)}, b{.tp = between(1, 4), .dp = between(1, 4)};
    const StageSide from = side(a, 0, microBatch), to = side(b, 100, microBatch);
    std::map<std::pair<int, int>, int> sent, received;  // (from, to) -> samples
    for (int r = 0; r < a.dp * a.tp; ++r) {
      for (const Portion& portion : portionsToSend(from, to, samples, r / a.tp, r % a.tp))
        EXPECT_TRUE(sent.emplace(std::pair{r, portion.peer}, portion.count).second) << "one message a pair";
    }
    for (int r = 0; r < b.dp * b.tp; ++r) {
      int next_ = 0;
      for (const Portion& portion : portionsToReceive(from, to, samples, r / b.tp, r % b.tp)) {
        EXPECT_EQ(portion.first, next_);
        next_ += portion.count;
        received[{portion.peer, 100 + r}] = portion.count;
      }
      EXPECT_EQ(next_, replicaShares(b, microBatch, samples)[static_cast<std::size_t>(r / b.tp)]);
    }
    EXPECT_EQ(sent, received);
  }
}

}  // namespace
}  // namespace evenkeel
