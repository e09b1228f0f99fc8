// SPDX-License-Identifier: GPL-3.0-or-later
// Bad input ends with 2 (or 3: right, but no solution), a message that names the place, and never with a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::vector<std::string> arguments;
  int exitCode;
  std::string says;
};

void expectRefusals(const Cli& cli, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    std::string line;
    for (const std::string& argument : c.arguments) line += argument.substr(0, 60) + " ";
    const ProgramResult result = cli.run(c.arguments);
    EXPECT_EQ(result.exitCode, c.exitCode) << line << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.says)) << line;
    EXPECT_EQ(result.out, "") << line;
  }
}

TEST(BadInput, InTheCommandLineIsNamed) {
  expectRefusals(Cli(), {
    {{}, 2, "error"},
    {{"paln"}, 2, "error"},
    {{"plan"}, 2, "--cluster"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--frobnicate"}, 2, "--frobnicate"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--global-batch", "0"}, 2, "--global-batch: is 0"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--global-batch", "-5"}, 2, "--global-batch: is -5"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--global-batch", "ten"}, 2, "--global-batch"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--global-batch", "99999999999999999999"}, 2, "--global-batch"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--sequence-length", "4096"}, 2, "learned positions"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--precision", "fp8"}, 2, "expected one of: fp32, bf16, fp16"},
    {{"plan", "--cluster", "1x8:V100-32-SXM2", "--model", "gpt3-1.3b", "--precision", "bf16"}, 2, "bf16 does not exist on V100-32-SXM2"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--planner", "best"}, 2, "eth"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--planner-option", "speed=11"}, 2, "speed"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--planner-option", "x"}, 2, "expected K=V"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--time-limit", "nan"}, 2, "--time-limit"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--time-limit", "-1"}, 2, "--time-limit"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--profile", "p.json"}, 2, "p.json"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--out", "/nonexistent/plan.json"}, 2, "cannot be written"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--out", "/tmp"}, 2, "is a folder"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--out", "same.json", "--events", "./same.json"}, 2, "is also the file of --out"},
  });
}

// Some commands ended with 1, and some only after all their work. Where root may do all, /proc still takes no files.
TEST(BadInput, APlaceThatCannotBeWrittenIsWrongInEveryCommand) {
  const Cli cli;
  const std::string text = cli.folder().file("text.txt", std::string(5000, 'x'));
  const std::string hosts = cli.folder().file("hosts", "a slots=2\n");
  ASSERT_EQ(cli.run({"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--global-batch", "2", "--out", "plan.json"}).exitCode, 0);
  for (const std::string& place : {std::string("/proc/evenkeel"), text + "/below"}) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> commands = {
        {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt"}, "--out"},
        {{"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt"}, "--events"},
        {{"compare", "--cluster", "1x1:cpu", "--model", "tiny-gpt"}, "--out-dir"},
        {{"compare", "--cluster", "1x1:cpu", "--model", "tiny-gpt"}, "--csv"},
        {{"reproduce", "fig2", "--quick"}, "--out"},
        {{"export", "plan.json", "--to", "csv"}, "--out"},
        {{"simulate", "plan.json"}, "--trace"},
        {{"import", "hostfile", hosts}, "--out"},
        {{"discover", "--local"}, "--out"},
        {{"profile", "--cluster", "1x1:cpu", "--model", "tiny-gpt"}, "--out"},
        {{"tokenize", "train", text}, "--out"},
        {{"weights", "import", "."}, "--out"},
        {{"weights", "export", "."}, "--out"},
        {{"launch", "plan.json", "--local", "--data", text, "--steps", "1"}, "--tensorboard"},
    };
    for (auto [command, option] : commands) {
      command.insert(command.end(), {option, place});
      expectRefusals(cli, {{command, 2, option + " " + place}});
    }
  }
}

TEST(BadInput, OfTheTokenizerIsNamed) {
  const Cli cli;
  const std::string text = cli.folder().file("text.txt", "the quick brown fox jumps over the lazy dog\n");
  const std::string bytes = cli.folder().file("bytes", "good\xc3\xa9 bad \xff");
  const std::string letters = cli.folder().file("letters", "abcdefghijklmnopqrstuvwxyz0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  expectRefusals(cli, {
    {{"tokenize", "train", letters, "--vocab", "260", "--out", "m"}, 2, "--vocab 260: is too small: the letters of this text, 256 bytes and 3 marks are"},
    {{"tokenize", "train", text, "--vocab", "8000", "--out", "m"}, 2, "--vocab 8000: is too large"},
  });
  ASSERT_EQ(cli.run({"tokenize", "train", text, "--vocab", "290", "--out", "good.model"}).exitCode, 0);
  std::filesystem::create_directory(cli.folder().path() / "taken");
  expectRefusals(cli, {
    {{"tokenize", "encode", bytes, "--model", "good.model", "--out", "o"}, 2, "bytes: is no UTF-8 text: byte 11"},
    {{"tokenize", "encode", text, "--model", "good.model", "--out", "taken"}, 2, "--out taken: is a folder"},
  });
  EXPECT_EQ(cli.run({"tokenize", "encode", text, "--model", "good.model", "--out", "o.bin"}).exitCode, 0);
  EXPECT_TRUE(std::filesystem::exists(cli.folder().path() / "o.idx"));
}

TEST(BadInput, ATraceOfAStepThatNeverComesIsRefusedAtOnce) {
  const Cli cli;
  const std::string text = cli.folder().file("text.txt", std::string(5000, 'x'));
  ASSERT_EQ(cli.run({"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--global-batch", "2", "--out", "plan.json"}).exitCode, 0);
  expectRefusals(cli, {
    {{"launch", "plan.json", "--local", "--data", text, "--steps", "6", "--trace-step", "7"}, 2, "--trace-step 7: the run ends with step 6"},
    {{"launch", "plan.json", "--local", "--data", text, "--steps", "6", "--trace-step", "0"}, 2, "not in range"},
  });
}

TEST(BadInput, EventsThatCannotBeWrittenAreSaid) {
  const ProgramResult result = Cli().run({"plan", "--cluster", "1x1:cpu", "--model", "tiny-gpt", "--global-batch", "2", "--events", "/dev/full"});
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_THAT(result.err, HasSubstr("--events: cannot be written to its end"));
  EXPECT_THAT(result.out, HasSubstr("optimal")) << "the plan is shown all the same";
}

// A full disk used to look like success where text was printed.
TEST(BadInput, AFullStandardOutputIsNoSuccess) {
  const Cli cli;
  for (const char* command : {"devices", "models --json"}) {
    const ProgramResult result = Program({"/bin/sh", "-c", "exec \"$0\" " + std::string(command) + " >/dev/full", EVENKEEL_BIN_DIR "/evenkeel-cli"},
                                         cli.variables(), cli.folder().path()).finish();
    EXPECT_EQ(result.exitCode, 1) << command;
    EXPECT_THAT(result.err, HasSubstr("No space left on device")) << command;
  }
}

// A closed or full stderr used to abort a search and a launch.
TEST(BadInput, NobodyNeedsToListen) {
  const Cli cli;
  for (const char* stderrTo : {"2>&-", "2>/dev/full"}) {
    const ProgramResult result =
        Program({"/bin/sh", "-c", "exec \"$0\" plan --cluster 1x1:cpu --model tiny-gpt --json " + std::string(stderrTo),
                 EVENKEEL_BIN_DIR "/evenkeel-cli"},
                cli.variables(), cli.folder().path())
            .finish();
    EXPECT_EQ(result.exitCode, 0) << stderrTo;
    EXPECT_TRUE(result.json().contains("pipelines")) << stderrTo;
  }
}

TEST(BadInput, InAClusterShorthandIsNamed) {
  for (const char* cluster : {"1x1:A1000", "0x1:cpu", "-1x1:cpu", "1x-1:cpu", "999999999x1:cpu", "1x1:cpu@0", "1x1:cpu@nan", "1x1:cpu@-2", "1x:cpu", "x", ":", ","}) {
    expectRefusals(Cli(), {{{"plan", "--cluster", cluster, "--model", "tiny-gpt"}, 2, "error: "}});
  }
}

// DeepSpeed #2612: a missing hostfile trained locally (field-faults).
TEST(BadInput, InAFileIsNamedWithFileAndPlace) {
  const Cli cli;
  const TemporaryDirectory& folder = cli.folder();
  const std::string broken = folder.file("broken.json", "{\n  \"format\": \"evenkeel.cluster/1\",\n  \"nodes\": [}\n");
  const std::string binary = folder.file("binary.json", std::string("\x7f""ELF\0\0\0", 7));
  const std::string empty = folder.file("empty.json", "");
  const std::string other = folder.file("other.json", R"({"format": "evenkeel.plan/1", "nodes": []})");
  const std::string unknown = folder.file("unknown.json", R"({"format": "evenkeel.cluster/1", "nodes": [{"name": "a", "devices": {"type": "A1000", "count": 1}}]})");
  const std::string huge = folder.file("huge.json", R"({"format": "evenkeel.cluster/1", "nodes": [{"name": "a", "devices": {"type": "cpu", "count": 99999999999}}]})");
  const std::string deep = folder.file("deep.json", std::string(200'000, '['));
  const auto plan = [](const std::string& file) { return std::vector<std::string>{"plan", "--cluster", file, "--model", "tiny-gpt"}; };
  expectRefusals(cli, {
    {plan(broken), 2, "broken.json:3:"},
    {plan(binary), 2, "binary.json: is a binary file"},
    {plan(empty), 2, "empty.json: is empty"},
    {plan(folder.path().string()), 2, "is a folder"},
    {plan("missing.json"), 2, "missing.json: no such file"},
    {plan(other), 2, "expected \"evenkeel.cluster/1\""},
    {plan(unknown), 2, "unknown.json /nodes/0/devices/type"},
    {plan(huge), 2, "/nodes/0/devices/count: is 99999999999"},
    {plan(deep), 2, "nests deeper"},
    {{"plan", "--cluster", "1x1:cpu", "--model", broken}, 2, "broken.json:3:"},
    {{"plan", "--cluster", "1x1:cpu", "--model", "gpt9"}, 2, "known models"},
    {{"check", broken}, 2, "broken.json:3:"},
    {{"check", "missing.json"}, 2, "no such file"},
    {{"evaluate", other}, 2, "other.json"},
    {{"simulate", binary}, 2, "is a binary file"},
    {{"launch", "missing.json", "--data", "/usr/share", "--steps", "1"}, 2, "no such file"},
  });
}

TEST(BadInput, OfACommandOnARunIsNamed) {
  const Cli cli;
  for (const char* command : {"status", "attach", "stop", "logs", "trace"}) {
    expectRefusals(cli, {{{command, "20991231-000000-none"}, 2, "20991231-000000-none"}, {{command}, 2, "error"}});
  }
}

TEST(BadInput, OfLaunchIsNamedBeforeAnythingStarts) {
  const Cli cli;
  const TemporaryDirectory& folder = cli.folder();
  const std::string plan = (folder.path() / "plan.json").string();
  ASSERT_EQ(cli.run({"plan", "--cluster", "1x2:cpu", "--model", "tiny-gpt", "--global-batch", "5", "--out", plan}).exitCode, 0);
  const std::string empty = folder.file("empty.txt", "");
  const std::string text = folder.file("text.txt", std::string(4096, 'a'));
  const std::string tooShort = folder.file("short.txt", "nine byte");
  const std::string badRun = folder.file("run.json", R"({"format": "evenkeel.run/1", "steps": -1})");
  std::filesystem::create_directories(folder.path() / "nothing");
  expectRefusals(
      cli,
      {
          {{"launch", plan, "--local", "--steps", "1"}, 2, "--data"},
          {{"launch", plan, "--local", "--data", text}, 2, "--steps"},
          {{"launch", plan, "--local", "--data", "missing.txt", "--steps", "1"}, 2, "missing.txt"},
          {{"launch", plan, "--local", "--data", empty, "--steps", "1"}, 2, "empty"},
          {{"launch", plan, "--local", "--data", tooShort, "--steps", "1"}, 2, "short.txt: has 9 bytes, fewer than the 129 of one sample"},
          {{"launch", plan, "--local", "--data", text, "--validation", tooShort, "--evaluate-every", "1", "--steps", "1"}, 2, "short.txt: has 9 bytes"},
          {{"launch", plan, "--local", "--data", (folder.path() / "nothing").string(), "--steps", "1"}, 2, "nothing"},
          {{"launch", plan, "--local", "--data", text, "--steps", "0"}, 2, "/steps"},
          {{"launch", plan, "--local", "--data", text, "--run", badRun}, 2, "run.json /steps: is -1"},
          {{"launch", plan, "--data", text, "--steps", "1", "--rehearse"}, 2, "add --local"},
          {{"launch", plan, "--local", "--data", text, "--steps", "1", "--time-scale", "2"}, 2, "add --rehearse"},
          {{"launch", plan, "--local", "--data", text, "--steps", "1", "--on-failure", "resume"}, 2, "add --checkpoint-every"},
          {{"launch", plan, "--local", "--data", text, "--steps", "1", "--checkpoint-every", "-1"}, 2, "/checkpoint/every"},
          {{"launch", plan, "--local", "--data", text, "--steps", "1", "--on-failure", "replan"}, 2, "add --checkpoint-every"},
          {{"launch", plan, "--local", "--data", text, "--steps", "1", "--on-failure", "panic"},
           2,
           "expected stop, resume or replan"},
          {{"launch", plan, "--local", "--data", text, "--steps", "1", "--learning-rate", "-1"}, 2, "/learning_rate/peak"},
      });
}

// alpa #882: "no solution" assertion (field-faults).
TEST(BadInput, AModelThatCannotFitEndsWith3AndSaysWhatLacksHowMuch) {
  const ProgramResult result = Cli().run({"plan", "--cluster", "1x1:T4", "--model", "gpt3-175b", "--global-batch", "8"});
  EXPECT_EQ(result.exitCode, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("GiB"));
  EXPECT_THAT(result.err, HasSubstr("T4"));
}

}  // namespace
}  // namespace evenkeel
