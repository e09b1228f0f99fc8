// SPDX-License-Identifier: GPL-3.0-or-later
// The commands print exactly the fields that scripts rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/plan/plan.h"
#include "tests/support/program.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> demo(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"--cluster", "1x2:cpu@0.5,1x2:cpu@0.25", "--model", "tiny-gpt", "--global-batch", "13"};
  more.insert(more.begin() + 1, arguments.begin(), arguments.end());
  return more;
}

Json without(Json json, const std::string& key) {
  json.erase(key);
  return json;
}

TEST(Devices, ListTheCatalogueWithSources) {
  const Json devices = Cli().run({"devices", "--json"}).json();
  ASSERT_GE(devices.size(), 25U);
  for (const Json& device : devices) {
    EXPECT_TRUE(device.contains("name") && device.contains("memory_gib") && device.contains("peak_tflops")) << device.dump();
    EXPECT_EQ(device["sources"].size(), 5U) << device["name"];
  }
  EXPECT_EQ(devices[0]["name"], "cpu");
  EXPECT_EQ(devices[0]["runs"], "runs here");
  EXPECT_THAT(Cli().run({"devices"}).out, HasSubstr("Ascend-910B2"));
}

TEST(Models, ListExactParameters) {
  const Json models = Cli().run({"models", "--json"}).json();
  ASSERT_EQ(models.size(), 14U);
  for (const Json& model : models) {
    if (model["name"] == "llama2-7b") {
      EXPECT_EQ(model["parameters"], 6'738'415'616);
    }
    EXPECT_TRUE(model.contains("layers") && model.contains("hidden")) << model.dump();
  }
  EXPECT_THAT(Cli().run({"models"}).out, HasSubstr("tiny-gpt"));
}

TEST(PlanCommand, PrintsAWholePlanAsOneDocument) {
  const ProgramResult result = Cli().run(demo({"plan", "--json"}));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const auto plan = parsePlan(result.json(), "stdout");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_TRUE(plan->predicted);
  EXPECT_EQ(plan->search["planner"], "optimal");
  for (const char* key : {"options", "seed", "seconds", "evaluated", "pruned", "stopped", "incumbents"}) EXPECT_TRUE(plan->search.contains(key)) << key;
  EXPECT_EQ(plan->inputsSha256, inputsHash(plan->cluster, plan->model, plan->training));
  EXPECT_THAT(result.err, HasSubstr("assumed: sequence 128, fp32, ZeRO-1"));
}

TEST(PlanCommand, SaysWhyWhatTheRunTakesAndStartsFromTheLastPlan) {
  const Cli cli;
  const ProgramResult text = cli.run(demo({"plan", "--explain", "--steps", "1000", "--out", "plan.json"}));
  ASSERT_EQ(text.exitCode, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("is the slowest"));
  EXPECT_THAT(text.out, HasSubstr("1000 steps"));
  const ProgramResult again = cli.run(demo({"plan", "--explain", "--steps", "1000", "--start", "plan.json", "--json"}));
  ASSERT_EQ(again.exitCode, 0) << again.err;
  EXPECT_FALSE(again.json()["explanation"].empty());
  EXPECT_EQ(again.json()["search"]["run"]["steps"], 1000);
  EXPECT_THAT(again.err, HasSubstr("last plan"));
  EXPECT_EQ(cli.run(demo({"plan", "--objective", "joy"})).exitCode, 2);
  EXPECT_EQ(cli.run(demo({"plan", "--objective", "cost"})).exitCode, 2);  // no node has a price
  EXPECT_EQ(cli.run(demo({"plan", "--planner-option", "pipelines=9"})).exitCode, 2);
}

TEST(PlanCommand, WritesWhatItFoundAndTheEventsOfTheSearch) {
  const Cli cli;
  const ProgramResult result = cli.run(demo({"plan", "--out", "plan.json", "--events", "events.jsonl"}));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("/iteration"));
  const auto plan = loadPlan(cli.folder().path() / "plan.json");
  ASSERT_TRUE(plan) << plan.error().text();
  std::ifstream events(cli.folder().path() / "events.jsonl");
  std::string line;
  double best = 1e300;
  int incumbents = 0;
  while (std::getline(events, line)) {
    const auto event = parseJson(line, "events");
    ASSERT_TRUE(event) << line;
    if ((*event)["event"] != "incumbent") continue;
    ++incumbents;
    EXPECT_LT((*event)["iteration_ms"].get<double>(), best) << "an incumbent is faster than the one before";
    best = (*event)["iteration_ms"].get<double>();
  }
  EXPECT_GE(incumbents, 1);
  EXPECT_NEAR(best, milliseconds(plan->predicted->iteration), 1e-9 * best);
}

TEST(PlanCommand, GivesTheSameBytesForAnyThreadCount) {
  const auto planned = [](const std::string& threads) { return without(Cli().run(demo({"plan", "--json", "--threads", threads})).json(), "search").dump(); };
  const std::string first = planned("1");
  EXPECT_EQ(planned("1"), first);
  EXPECT_EQ(planned("2"), first);
  EXPECT_EQ(planned("5"), first);
}

TEST(CompareCommand, SetsThePlannersSideBySide) {
  const Cli cli;
  const ProgramResult result = cli.run(demo({"compare", "--planners", "eth,uniform", "--csv", "c.csv", "--out-dir", "plans", "--json"}));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json rows = result.json()["rows"];
  ASSERT_EQ(rows.size(), 2U);
  for (const Json& row : rows) {
    for (const char* key : {"planner", "feasible", "reason", "plan", "predicted", "search_seconds", "deviations"}) EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_TRUE(row["feasible"].get<bool>());
    const auto plan = loadPlan(cli.folder().path() / "plans" / (row["planner"].get<std::string>() + ".json"));
    EXPECT_TRUE(plan.ok());
  }
  EXPECT_LE(rows[0]["predicted"]["iteration_ms"].get<double>(), rows[1]["predicted"]["iteration_ms"].get<double>());
  EXPECT_THAT(*readFile(cli.folder().path() / "c.csv"), HasSubstr("uniform,yes,"));
  EXPECT_THAT(cli.run(demo({"compare"})).out, HasSubstr("against best"));
}

TEST(CompareCommand, WritesAReportOfAllPlannersAndTheCommandThatMadeIt) {
  const Cli cli;
  const ProgramResult result = cli.run(demo({"compare", "--planners", "all", "--html", "r.html"}));
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const std::string html = *readFile(cli.folder().path() / "r.html");
  for (const char* part : {"optimal", "hexiscale", "best-type", "<svg", "evenkeel-cli compare"}) EXPECT_THAT(html, HasSubstr(part));
}

TEST(CompareCommand, ShowsTheBubblesThatEvaluateShows) {
  const Cli cli;
  const Json row = cli.run(demo({"compare", "--planners", "hexiscale", "--out-dir", "plans", "--json"})).json()["rows"][0];
  const Json evaluated = cli.run({"evaluate", "plans/hexiscale.json", "--json"}).json()["plans"][0];
  EXPECT_DOUBLE_EQ(row["bubble_fraction"].get<double>(), evaluated["bubble_fraction"].get<double>());
  EXPECT_EQ(row["state"], "planned");
}

TEST(CompareCommand, CallsAPlannerThatRanOutOfTimeStopped) {
  const Cli cli;
  const ProgramResult result = cli.run({"compare", "--cluster", "8x8:A100-80-SXM,8x8:V100-32-SXM2", "--model", "gpt3-13b", "--planners", "uniform",
                                        "--time-limit", "1e-6", "--json"});
  EXPECT_EQ(result.exitCode, 1) << result.err;
  EXPECT_EQ(result.json()["rows"][0]["state"], "stopped");
}

TEST(CompareCommand, HandsAnOptionToThePlannersThatKnowIt) {
  const Cli cli;
  EXPECT_EQ(cli.run(demo({"compare", "--planners", "metis,uniform", "--planner-option", "permute=3"})).exitCode, 0);
  EXPECT_EQ(cli.run(demo({"compare", "--planners", "eth,uniform", "--planner-option", "permute=3"})).exitCode, 2);
}

class OnAPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cli_.run(demo({"plan", "--out", "plan.json"})).exitCode, 0);
    plan_ = *readJsonFile(cli_.folder().path() / "plan.json");
  }
  Cli cli_;
  Json plan_;
};

TEST_F(OnAPlan, CheckAcceptsAPlannersPlanAndNamesWhatIsBroken) {
  EXPECT_EQ(cli_.run({"check", "plan.json"}).exitCode, 0);
  EXPECT_TRUE(cli_.run({"check", "plan.json", "--json"}).json()["valid"].get<bool>());
  plan_["pipelines"][0]["local_batch"] = plan_["pipelines"][0]["local_batch"].get<int>() + 1;
  cli_.folder().file("broken.json", plan_.dump());
  const ProgramResult text = cli_.run({"check", "broken.json"});
  EXPECT_EQ(text.exitCode, 1);
  EXPECT_THAT(text.err, HasSubstr("trains 14 of 13 samples"));
  const ProgramResult json = cli_.run({"check", "broken.json", "--json"});
  EXPECT_EQ(json.exitCode, 1);
  const Json document = json.json();
  EXPECT_FALSE(document["valid"].get<bool>());
  EXPECT_EQ(document["violations"][0]["what"], "trains 14 of 13 samples");
  EXPECT_TRUE(document["violations"][0].contains("where") && document["violations"][0].contains("remedy"));
}

TEST_F(OnAPlan, EvaluateGivesTheNumbersOfThePlannerAgain) {
  const Json answer = cli_.run({"evaluate", "plan.json", "--json"}).json()["plans"][0];
  EXPECT_TRUE(answer["valid"].get<bool>());
  EXPECT_NEAR(answer["iteration_ms"].get<double>(), plan_["predicted"]["iteration_ms"].get<double>(), 1e-9 * answer["iteration_ms"].get<double>());
  for (const char* key : {"violations", "closed_form_ms", "sync_ms", "optimizer_ms", "bubble_fraction", "mfu", "peak_bytes"}) EXPECT_TRUE(answer.contains(key)) << key;
  EXPECT_FALSE(answer["peak_bytes"].empty());
}

TEST_F(OnAPlan, EvaluateReadsAFileOfManyPlans) {
  Json broken = plan_;
  broken["pipelines"][0]["stages"][0]["units"] = {0, 1};
  cli_.folder().file("plans.jsonl", plan_.dump() + "\n" + broken.dump() + "\n");
  const ProgramResult result = cli_.run({"evaluate", "plans.jsonl", "--json"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json plans = result.json()["plans"];
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_TRUE(plans[0]["valid"].get<bool>());
  EXPECT_FALSE(plans[1]["valid"].get<bool>());
  EXPECT_TRUE(plans[1]["iteration_ms"].is_null());
}

TEST_F(OnAPlan, EvaluateNeedsNoPredictionsInAPlanWrittenByHand) {
  Json byHand = without(without(without(plan_, "predicted"), "search"), "inputs_sha256");
  for (Json& pipeline : byHand["pipelines"]) {
    for (Json& stage : pipeline["stages"]) {
      for (const char* key : {"predicted", "shares", "recompute"}) stage.erase(key);
    }
    pipeline.erase("predicted");
  }
  cli_.folder().file("hand.json", byHand.dump());
  EXPECT_EQ(cli_.run({"check", "hand.json"}).exitCode, 0);
  EXPECT_EQ(cli_.run({"evaluate", "hand.json", "--json"}).json()["plans"][0]["iteration_ms"], cli_.run({"evaluate", "plan.json", "--json"}).json()["plans"][0]["iteration_ms"]);
}

TEST_F(OnAPlan, SimulateWritesATraceThatPerfettoReads) {
  const ProgramResult result = cli_.run({"simulate", "plan.json", "--trace", "trace.json", "--json"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json stages = result.json()["stages"];
  ASSERT_FALSE(stages.empty());
  for (const Json& stage : stages) {
    for (const char* key : {"pipeline", "stage", "busy_ms", "waiting_ms", "send_ms"}) EXPECT_TRUE(stage.contains(key)) << key;
  }
  const auto trace = readJsonFile(cli_.folder().path() / "trace.json");
  ASSERT_TRUE(trace) << trace.error().text();
  int complete = 0;
  for (const Json& event : (*trace)["traceEvents"]) {
    ASSERT_TRUE(event.contains("ph") && event.contains("pid")) << event.dump();
    if (event["ph"] != "X") continue;
    ++complete;
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  EXPECT_GT(complete, 13);
}

TEST_F(OnAPlan, SimulateShowsLikePipelinesOnce) {
  ASSERT_EQ(cli_.run({"plan", "--cluster", "1x6:cpu", "--model", "tiny-gpt", "--global-batch", "9", "--planner", "uniform", "--out", "six.json"}).exitCode, 0);
  Json plan = *readJsonFile(cli_.folder().path() / "six.json");
  const auto pipeline = [](int batch, int device) {
    const auto stage = [](int index, int first, int last) {
      return Json{{"devices", {"cpu-0/" + std::to_string(index)}}, {"tp", 1}, {"dp", 1}, {"units", {first, last}}};
    };
    return Json{{"local_batch", batch}, {"micro_batch", 1}, {"stages", {stage(device, 0, 9), stage(device + 1, 9, 18)}}};
  };
  plan["pipelines"] = {pipeline(4, 0), pipeline(4, 2), pipeline(1, 4)};
  const std::string file = cli_.folder().file("like.json", without(without(plan, "predicted"), "idle_devices").dump());
  const ProgramResult result = cli_.run({"simulate", file});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  std::vector<std::string> begins;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("cpu-0/") != std::string::npos) begins.push_back(line.substr(0, line.find("cpu-0/") + 7));
  }
  EXPECT_THAT(begins, ::testing::ElementsAre("0 to 1, each      0  cpu-0/0", "0 to 1, each      1  cpu-0/1", "           2      0  cpu-0/4", "           2      1  cpu-0/5")) << result.out;
  EXPECT_EQ(cli_.run({"simulate", file, "--json"}).json()["stages"].size(), 6U) << "programs get them all";
}

TEST_F(OnAPlan, SimulateRefusesAnInvalidPlan) {
  plan_["pipelines"][0]["stages"][0]["units"] = {0, 1};
  cli_.folder().file("broken.json", plan_.dump());
  const ProgramResult result = cli_.run({"simulate", "broken.json"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("are in no stage"));
}

// Anything outside of the runtime's features is refused in words.
TEST(LaunchCommand, RefusesAPlanForDevicesThatAreOnlyPlanned) {
  const Cli cli;
  ASSERT_EQ(cli.run({"plan", "--cluster", "1x2:A100-80-SXM", "--model", "gpt3-350m", "--global-batch", "8", "--out", "plan.json"}).exitCode, 0);
  const std::string text = cli.folder().file("text.txt", std::string(4096, 'a'));
  const ProgramResult result = cli.run({"launch", "plan.json", "--local", "--data", text, "--steps", "1"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("A100-80-SXM is plan only"));
}

}  // namespace
}  // namespace evenkeel
