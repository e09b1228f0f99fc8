// SPDX-License-Identifier: GPL-3.0-or-later
// What is exported is read back: Megatron-Bridge #1880, a layout string that failed after a reload (field-faults).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/plan/plan.h"
#include "tests/support/program.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

class Export : public ::testing::Test {
 protected:
  Plan planned(const std::string& cluster, const std::string& model, const std::string& planner) {
    const ProgramResult result = cli_.run({"plan", "--cluster", cluster, "--model", model, "--global-batch", "16", "--planner", planner, "--out", "plan.json"});
    EXPECT_EQ(result.exitCode, 0) << result.err;
    return *loadPlan(cli_.folder().path() / "plan.json");
  }
  Cli cli_;
};

TEST_F(Export, ToMegatronHasTheLayoutOfThePlan) {
  const Plan plan = planned("1x8:V100-32-SXM2", "gpt3-6.7b", "uniform");
  const ProgramResult result = cli_.run({"export", "plan.json", "--to", "megatron"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  std::vector<std::string> words;
  std::istringstream stream(result.out);
  for (std::string word; stream >> word;) words.push_back(word);
  const auto valueOf = [&](const std::string& option) {
    const auto found = std::ranges::find(words, option);
    return found == words.end() ? std::string("absent") : *(found + 1);
  };
  EXPECT_EQ(valueOf("--num-layers"), std::to_string(plan.model.layers));
  EXPECT_EQ(valueOf("--global-batch-size"), "16");
  EXPECT_EQ(valueOf("--micro-batch-size"), std::to_string(plan.pipelines[0].microBatch));
  EXPECT_EQ(valueOf("--tensor-model-parallel-size"), std::to_string(plan.pipelines[0].stages[0].tp));
  // Stages of the layout, counted again, are those of the plan.
  std::string layout = valueOf("--pipeline-model-parallel-layout");
  std::erase_if(layout, [](char c) { return c == '\''; });
  std::istringstream stages(layout);
  std::size_t s = 0;
  for (std::string stage; std::getline(stages, stage, '|'); ++s) {
    ASSERT_LT(s, plan.pipelines[0].stages.size());
    const UnitRange units = plan.pipelines[0].stages[s].units;
    const auto layers = std::min(units.last, plan.model.unitCount() - 1) - std::max(units.first, 1);
    EXPECT_EQ(std::ranges::count(stage, 't'), layers / 2);
    EXPECT_EQ(stage.starts_with('E'), units.first == 0);
    EXPECT_EQ(stage.ends_with('L'), units.last == plan.model.unitCount());
  }
  EXPECT_EQ(s, plan.pipelines[0].stages.size());
}

TEST_F(Export, ToMegatronSaysWhatItCannotExpress) {
  planned("1x2:cpu@0.5,1x2:cpu@0.25", "tiny-gpt", "eth");
  const ProgramResult result = cli_.run({"export", "plan.json", "--to", "megatron"});
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_THAT(result.err, HasSubstr("Megatron-LM cannot express this plan"));
  EXPECT_EQ(result.out, "");
}

TEST_F(Export, ToTraceTableAndPage) {
  const Plan plan = planned("1x2:cpu@0.5,1x2:cpu@0.25", "tiny-gpt", "eth");
  EXPECT_FALSE(cli_.run({"export", "plan.json", "--to", "trace"}).json()["traceEvents"].empty());
  const ProgramResult table = cli_.run({"export", "plan.json", "--to", "csv", "--out", "plan.csv"});
  ASSERT_EQ(table.exitCode, 0) << table.err;
  const std::string text = *readFile(cli_.folder().path() / "plan.csv");
  std::size_t stages = 0;
  for (const Pipeline& pipeline : plan.pipelines) stages += pipeline.stages.size();
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), stages + 1);
  const ProgramResult page = cli_.run({"export", "plan.json", "--to", "html"});
  EXPECT_THAT(page.out, HasSubstr("<svg"));
  EXPECT_EQ(cli_.run({"export", "plan.json", "--to", "pdf"}).exitCode, 2);
  EXPECT_EQ(cli_.run({"export", "missing.json", "--to", "csv"}).exitCode, 2);
}

}  // namespace
}  // namespace evenkeel
