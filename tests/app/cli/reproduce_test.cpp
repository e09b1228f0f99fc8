// SPDX-License-Identifier: GPL-3.0-or-later
// The quick variants of the paper's figures: every one has its tables and pictures, and says where it leaves the paper's range.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.h"
#include "tests/support/program.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* figure;
  std::vector<const char*> files;  // besides .json and .html
  std::size_t claims;
};

class Reproduce : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Figures, Reproduce,
    ::testing::Values(Case{"fig2", {"model-size.csv", "model-size-latency.svg", "mismatch.csv", "mismatch-idle.svg"}, 7},
                      Case{"fig9", {"speed-up.csv", "search.csv", "B2-B4.svg"}, 4},
                      Case{"fig10", {"compute.csv", "compute.svg", "bubbles.svg"}, 4},
                      Case{"fig11", {"devices.csv", "batch.csv", "sequence.csv", "sequence.svg"}, 2},
                      Case{"fig12", {"recompute.csv", "memory.svg"}, 1},
                      Case{"fig13", {"alpha.csv", "sync.csv", "variance.csv", "variance.svg"}, 2},
                      Case{"table3", {"plan.csv", "timeline.svg"}, 0}),
    [](const auto& test) { return test.param.figure; });

TEST_P(Reproduce, MakesTablesPicturesAndSaysWhereItLeavesThePapersRange) {
  const Cli cli;
  const std::string name = GetParam().figure;
  const ProgramResult result = cli.run({"reproduce", name, "--quick", "--json", "--out", "out"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json json = result.json();
  EXPECT_EQ(json["figure"], name);
  ASSERT_FALSE(json["tables"].empty());
  for (const Json& table : json["tables"]) EXPECT_FALSE(table["rows"].empty()) << table["name"];
  ASSERT_EQ(json["against_paper"].size(), GetParam().claims);
  for (const Json& claim : json["against_paper"]) {
    const std::string verdict = claim["verdict"];
    if (claim["ours"].is_null()) {
      EXPECT_THAT(verdict, HasSubstr("no number"));
    } else if (claim["ours"][0] >= claim["paper"][0] && claim["ours"][1] <= claim["paper"][1]) {
      EXPECT_THAT(verdict, HasSubstr("inside"));
    } else {
      EXPECT_THAT(verdict, HasSubstr("it by up to")) << claim["what"];
    }
  }
  std::vector<std::string> files = {name + ".json", name + ".html"};
  for (const char* file : GetParam().files) files.push_back(name + "-" + file);
  for (const std::string& file : files) {
    const auto text = readFile(cli.folder().path() / "out" / file);
    ASSERT_TRUE(text) << file;
    EXPECT_GT(text->size(), 100U) << file;
    if (!file.ends_with(".csv") && !file.ends_with(".json")) {
      EXPECT_THAT(*text, HasSubstr("prefers-color-scheme: dark")) << file;
    }
    EXPECT_THAT(*text, Not(HasSubstr("<script"))) << file;
  }
}

TEST(ReproduceCommand, ListsTheFiguresThatItKnows) {
  const ProgramResult result = Cli().run({"reproduce", "fig1"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("fig2, fig9, fig10, fig11, fig12, fig13, table3"));
}

}  // namespace
}  // namespace evenkeel
