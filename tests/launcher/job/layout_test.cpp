// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// accelerate #1291, #2780: 2+3+3 or 8+2 devices were impossible.
TEST(Layout, NumbersTheUsedDevicesNodeByNode) {
  const Plan plan = planOf(*parseClusterShorthand("1x3:cpu,1x2:cpu@0.5,1x1:cpu@0.25"), *modelFromArgument("tiny-gpt"),
                           {{4, 1, {"cpu-2/0", "cpu-0/2", "cpu-0/0"}, {0, 5, 10, 18}}});
  const auto layouts = layoutOf(plan);
  ASSERT_EQ(layouts.size(), 2U);  // the node in between has nothing to do
  EXPECT_EQ(layouts[0].name, "cpu-0");
  EXPECT_THAT(layouts[0].ranks, ElementsAre(NodeJob::Rank{0, 0, "cpu-0/0"}, NodeJob::Rank{1, 1, "cpu-0/2"}));
  EXPECT_EQ(layouts[1].node, 2);
  EXPECT_THAT(layouts[1].ranks, ElementsAre(NodeJob::Rank{2, 0, "cpu-2/0"}));
}

TEST(RunId, TellsItsTimeAndIsUnique) { EXPECT_THAT(newRunId(), MatchesRegex("[0-9]{8}-[0-9]{6}-[0-9a-f]{4}")); }

// dstack #2010: nodes behind a head node.
TEST(ConnectTo, NamesTheJumpHostThatIsNotThere) {
  const auto host = connectTo({.host = "b3", .proxyJump = "head.invalid"}, "b3", std::chrono::seconds(1));
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().text(), HasSubstr("b3, jump host head.invalid: cannot find the address of head.invalid"));
}

}  // namespace
}  // namespace evenkeel
