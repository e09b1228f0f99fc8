// SPDX-License-Identifier: GPL-3.0-or-later
// What others measured, through the command line: import, --profile, --explain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/profile/profile_table.h"
#include "tests/support/program.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

/// A Metis profile of gpt3-350m on an A100: 24 layers of 3 ms, embedding 1 ms, head 5 ms.
std::string metisProfile() {
  std::string layers = "1.0";
  for (int layer = 0; layer < 24; ++layer) layers += ", 3.0";
  return R"({"execution_time": {"layer_compute_total_ms": [)" + layers + ", 5.0]}}";
}

struct Imported {
  Cli cli;
  ProgramResult result;
  Imported() {
    std::filesystem::create_directory(cli.folder().path() / "metis");
    cli.folder().file("metis/DeviceType.A100_tp1_bs1.json", metisProfile());
    result = cli.run({"import", "metis", "metis", "--model", "gpt3-350m", "--precision", "fp16", "--out", "a100.json"});
  }
};

TEST(ImportCommand, WritesAProfileThatPlansAreMadeOf) {
  const Imported imported;
  ASSERT_EQ(imported.result.exitCode, 0) << imported.result.err;
  EXPECT_THAT(imported.result.out, HasSubstr("A100-40-SXM"));
  const auto profile = loadProfile(imported.cli.folder().path() / "a100.json");
  ASSERT_TRUE(profile) << profile.error().text();

  const std::vector<std::string> problem = {"plan",           "--cluster", "1x1:A100-40-SXM", "--model", "gpt3-350m",
                                            "--global-batch", "1",         "--precision",     "fp16",    "--planner",
                                            "uniform",        "--out",     "plan.json",       "--json"};
  std::vector<std::string> withProfile = problem;
  withProfile.insert(withProfile.end(), {"--profile", "a100.json"});
  const ProgramResult planned = imported.cli.run(withProfile);
  ASSERT_EQ(planned.exitCode, 0) << planned.err;
  const Json predicted = planned.json()["predicted"];
  EXPECT_NEAR(predicted["pipeline_ms"].get<double>(), 1 + 24 * 3 + 5, 1e-6);
  EXPECT_NEAR(predicted["error"].get<double>(), 0.042, 1e-9);

  const ProgramResult explained =
      imported.cli.run({"evaluate", "plan.json", "--profile", "metis", "--explain"});  // the folder itself
  ASSERT_EQ(explained.exitCode, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("apportioned"));
  EXPECT_THAT(explained.out, HasSubstr("+- 4 %"));
  const Json json = imported.cli.run({"evaluate", "plan.json", "--profile", "a100.json", "--explain", "--json"}).json();
  EXPECT_EQ(json["plans"][0]["explanation"][0]["what"], "iteration");
  EXPECT_NEAR(json["plans"][0]["error"].get<double>(), 0.042, 1e-9);
}

TEST(ImportCommand, RefusesWhatIsNoProfile) {
  const Cli cli;
  const ProgramResult result = cli.run({"import", "metis", ".", "--model", "gpt3-350m", "--out", "p.json"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("no profile of Metis"));
  EXPECT_EQ(cli.run({"import", "hostfile", ".", "--model", "gpt3-350m"}).exitCode, 2);
}

TEST(ImportCommand, MakesAModelOfAHuggingFaceConfig) {
  const Cli cli;
  cli.folder().file("config.json",
                    R"({"model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 128, "_name_or_path": "small"})");
  const ProgramResult result = cli.run({"import", "hf-config", "config.json", "--out", "model.json"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("small"));
  EXPECT_EQ(cli.run({"plan", "--cluster", "1x1:A100-40-SXM", "--model", "model.json", "--global-batch", "2"}).exitCode, 0);
}

TEST(ProfileOption, RefusesAProfileOfAnotherPrecision) {
  const Imported imported;
  const ProgramResult result = imported.cli.run({"plan", "--cluster", "1x1:A100-40-SXM", "--model", "gpt3-350m", "--global-batch",
                                                 "1", "--precision", "bf16", "--profile", "a100.json"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("precision fp16"));
}

}  // namespace
}  // namespace evenkeel
