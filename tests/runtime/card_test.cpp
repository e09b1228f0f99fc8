// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two cards of one node and a core of another.
Plan planWithCards() {
  return planOf(*parseClusterShorthand("1x2:A100-80-SXM,1x1:cpu"), *modelFromArgument("tiny-gpt"),
                {{8, 2, {"a100-80-sxm-0/1", "cpu-0/0"}, {0, 9, 18}}, {8, 2, {"a100-80-sxm-0/0"}, {0, 18}}});
}

Variables given(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(CardVariables, NameTheCardByItsNumberInTheOrderOfTheBus) {
  const Plan plan = planWithCards();
  EXPECT_EQ(*cardVariables(plan, {0, 1}, given({})), (CardVariables{.visible = "1", .order = "PCI_BUS_ID"}));
}

TEST(CardVariables, NameTheCardByItsUuidWhereThePlanHasOne) {
  Plan plan = planWithCards();
  plan.cluster.nodes[0].devices[1].uuid = "GPU-5e2";
  EXPECT_EQ(cardVariables(plan, {0, 1}, given({{"CUDA_VISIBLE_DEVICES", "7"}}))->visible, "GPU-5e2");
}

TEST(CardVariables, CountAmongTheCardsThatTheProcessWasGiven) {
  const Plan plan = planWithCards();
  const auto second = cardVariables(plan, {0, 1}, given({{"CUDA_VISIBLE_DEVICES", "4,GPU-6"}, {"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}}));
  EXPECT_EQ(*second, (CardVariables{.visible = "GPU-6", .order = "FASTEST_FIRST"}));
  const auto none = cardVariables(plan, {0, 1}, given({{"CUDA_VISIBLE_DEVICES", "4"}}));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text(), HasSubstr("a100-80-sxm-0/1: there is no card 1: CUDA_VISIBLE_DEVICES is \"4\""));
}

TEST(RanksOnCards, AreThoseWhoseTypeIsNoCore) { EXPECT_THAT(ranksOnCards(planWithCards()), ElementsAre(true, true, false)); }

}  // namespace
}  // namespace evenkeel
