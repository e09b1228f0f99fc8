// SPDX-License-Identifier: GPL-3.0-or-later
// Whole programs on emulated nodes (tests/support/node_rig.h): the plan of issue 8 over four of them, and a workstation that is
// cut off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>

#include "tests/support/node_rig.h"
#include "tests/support/program.h"
#include "tests/support/shared_bundles.h"
#include "tests/support/sweep.h"

namespace evenkeel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OnTheRig : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(EVENKEEL_BIN_DIR) / "evenkeel-worker"))
      GTEST_SKIP() << "built without LibTorch";
    if (const std::string reason = NodeRig::reasonToSkip(); !reason.empty()) GTEST_SKIP() << reason;
    shareBundles(cli_.folder().path() / "cache" / "evenkeel");
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "the quick brown fox " + std::to_string(i * i % 97) + " jumps over the lazy dog\n";
    data_ = cli_.folder().file("text.txt", text);
  }

  /// A plan over nodes of the rig with so many devices each.
  std::string planFor(const NodeRig& rig, const std::vector<int>& devices) {
    Json cluster = {{"format", "evenkeel.cluster/1"}, {"nodes", Json::array()}};
    for (std::size_t i = 0; i < devices.size(); ++i) {
      cluster["nodes"].push_back(
          {{"name", "n" + std::to_string(i)},
           {"devices", {{"type", "cpu"}, {"count", devices[i]}}},
           {"ssh",
            {{"host", NodeRig::address(i)}, {"user", "root"}, {"identity", rig.identity()}, {"known_hosts", rig.knownHosts()}}}});
    }
    const std::string plan = (cli_.folder().path() / "plan.json").string();
    const ProgramResult planned =
        cli_.run({"plan", "--cluster", cli_.folder().file("cluster.json", cluster.dump()), "--model", "tiny-gpt",
                  "--global-batch", "12", "--sequence-length", "32", "--planner", "uniform", "--out", plan});
    EXPECT_EQ(planned.exitCode, 0) << planned.err;
    return plan;
  }
  std::vector<std::string> launch(const std::string& plan, int steps, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"launch", plan, "--data", data_, "--steps", std::to_string(steps), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Where node K of the only run that was started keeps its journal.
  static std::filesystem::path journalOf(const NodeRig& rig, std::size_t node, const std::string& run) {
    return rig.home(node) / ".local/share/evenkeel/runs" / run / ("node-" + std::to_string(node)) / "journal.jsonl";
  }

  Cli cli_;
  std::string data_;
};

TEST_F(OnTheRig, FourUnlikeNodesTrainAsOneMachineDoesAlthoughTheWorkstationIsCutOff) {
  NodeRig rig({"n0", "n1", "n2", "n3"});
  const std::string plan = planFor(rig, {2, 1, 1, 2});
  const int steps = sweep(12, 100);
  Program follower(cli_.command(launch(plan, steps)), cli_.variables(), cli_.folder().path());
  ASSERT_TRUE(follower.readUntil([](const ProgramResult& r) { return r.err.find("step 1 of ") != std::string::npos; }))
      << follower.soFar().err;
  const std::string said = follower.soFar().err;
  const std::string run = said.substr(said.find("run 2") + 4, 20);
  rig.unplugWorkstation(true);
  // The nodes go on among themselves while nobody follows.
  ASSERT_TRUE(NodeRig::awaitText(journalOf(rig, 0, run), "\"step\":" + std::to_string(isFullRun() ? 30 : 8))) << said;
  if (isFullRun()) ::poll(nullptr, 0, 20'000);  // what the issue asks for
  rig.unplugWorkstation(false);
  const ProgramResult result = follower.finish();
  ASSERT_EQ(result.exitCode, 0) << result.err;
  const Json far = result.json();
  EXPECT_EQ(far["steps"], steps);
  EXPECT_EQ(far["losses"].size(), static_cast<std::size_t>(steps));
  const ProgramResult near = cli_.run(launch(plan, steps, {"--local"}));
  ASSERT_EQ(near.exitCode, 0) << near.err;
  EXPECT_EQ(far["losses"], near.json()["losses"]);
  for (std::size_t i = 0; i < rig.size(); ++i) EXPECT_THAT(rig.processes(i), IsEmpty());
}

// Megatron-DeepSpeed #126: the same libraries assumed everywhere.
TEST_F(OnTheRig, NodesWithoutLibTorchAndBlasTrainWithWhatTheyAreSent) {
  NodeRig rig({"n0", "n1"}, {.hidesLibraries = true});
  ASSERT_NE(rig.on(0, std::string(EVENKEEL_BIN_DIR) + "/evenkeel-worker --features >/dev/null 2>&1"), 0)
      << "the node has LibTorch";
  const std::string plan = planFor(rig, {1, 1});
  const ProgramResult first = cli_.run(launch(plan, 3));
  ASSERT_EQ(first.exitCode, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("copying to n1"));
  EXPECT_EQ(first.json()["losses"], cli_.run(launch(plan, 3, {"--local"})).json()["losses"]);
  // one file is lost on one node: only that one travels again, and only there
  ASSERT_EQ(rig.on(1,
                   "cd /root/.cache/evenkeel && rm bundles/*/lib/libtorch_cpu.so* && largest=$(ls -S files | head -1) && rm "
                   "files/$largest"),
            0);
  const ProgramResult again = cli_.run(launch(plan, 3));
  ASSERT_EQ(again.exitCode, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("copying to n1"));
  EXPECT_THAT(again.err, ::testing::Not(HasSubstr("copying to n0")));
}

/// A program whose stdin and stderr are a terminal; what it writes there is collected.
class OnATerminal {
 public:
  OnATerminal(const std::vector<std::string>& argv, const std::map<std::string, std::string>& variables) {
    std::vector<std::string> arguments = argv;
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  ~OnATerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  OnATerminal(const OnATerminal&) = delete;
  OnATerminal& operator=(const OnATerminal&) = delete;
  void type(const std::string& line) const {
    ASSERT_EQ(::write(terminal_, (line + "\n").data(), line.size() + 1), static_cast<ssize_t>(line.size() + 1));
  }
  /// False if the text does not come before the program's end or the limit.
  bool await(const std::string& text, std::size_t from = 0, std::chrono::seconds limit = std::chrono::seconds(90)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (screen_.find(text, from) == std::string::npos) {
      pollfd ready{terminal_, POLLIN, 0};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      std::array<char, 4096> chunk{};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
      const ssize_t count = ::read(terminal_, chunk.data(), chunk.size());
      if (count <= 0) return false;
      screen_.append(chunk.data(), static_cast<std::size_t>(count));
    }
    return true;
  }
  [[nodiscard]] const std::string& screen() const { return screen_; }
  int exitCode() {
    await("\x01 never", 0);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string screen_;
};

/// The files below a folder that hold a text.
std::vector<std::string> filesWith(const std::filesystem::path& folder, const std::string& text) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    const auto content = readFile(entry.path());
    if (content && content->find(text) != std::string::npos) found.push_back(entry.path().string());
  }
  return found;
}

// zed #28601, sshwifty #84: keyboard-interactive that never asks. And what is typed stays here.
TEST_F(OnTheRig, APasswordTypedAtTheTerminalIsFoundNowhereElse) {
  NodeRig rig({"n0", "n1"}, {.takesPasswords = true});
  const std::string plan = planFor(rig, {1, 1});
  OnATerminal launch(cli_.command(this->launch(plan, 4)), cli_.variables());
  // both nodes ask, one at a time, and the one that was answered wrongly asks again
  std::size_t seen = 0;
  for (const char* answer : {"wrong", NodeRig::kPassword, NodeRig::kPassword}) {
    ASSERT_TRUE(launch.await("asks root: Password:", seen)) << launch.screen();
    seen = launch.screen().find("asks root: Password:", seen) + 1;
    launch.type(answer);
  }
  ASSERT_TRUE(launch.await("step 1 of 4")) << launch.screen();
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (const auto pid = parseNumber<int>(entry.path().filename().string())) {
      EXPECT_EQ((procText(*pid, "cmdline") + procText(*pid, "environ")).find(NodeRig::kPassword), std::string::npos)
          << procText(*pid, "cmdline");
    }
  }
  EXPECT_EQ(launch.exitCode(), 0) << launch.screen();
  EXPECT_THAT(launch.screen(), HasSubstr("that was wrong"));
  EXPECT_EQ(launch.screen().find(NodeRig::kPassword), std::string::npos) << "what is typed is not shown";
  EXPECT_THAT(filesWith(cli_.folder().path(), NodeRig::kPassword), IsEmpty());
  for (std::size_t i = 0; i < rig.size(); ++i) EXPECT_THAT(filesWith(rig.home(i), NodeRig::kPassword), IsEmpty());
}

TEST_F(OnTheRig, WithoutATerminalNobodyIsAskedAndTheWayOutIsPrinted) {
  NodeRig rig({"n0"}, {.takesPasswords = true});
  const ProgramResult result = cli_.run(launch(planFor(rig, {1}), 4));
  EXPECT_EQ(result.exitCode, 1);
  EXPECT_THAT(result.err,
              ::testing::AllOf(HasSubstr("n0: reachable: 10.77.0.11 port 22 refuses the login"), HasSubstr("ssh-copy-id")));
}

// DeepSpeed #3489 and issue 8: environment of each node, and a command at the end that knows how it ended.
TEST_F(OnTheRig, TheEnvironmentReachesTheWorkersAndTheEndCommandKnowsTheCause) {
  NodeRig rig({"n0", "n1"});
  const std::string plan = planFor(rig, {1, 1});
  const ProgramResult good =
      cli_.run(launch(plan, 3,
                      {"--env", "EVENKEEL_TRIAL=both", "--env", "n1:EVENKEEL_TRIAL=mine", "--end-command",
                       "echo \"$EVENKEEL_RUN $EVENKEEL_STATE $EVENKEEL_STEPS\" > \"$XDG_DATA_HOME/told\""}));
  ASSERT_EQ(good.exitCode, 0) << good.err;
  const std::string run = good.json()["run"];
  EXPECT_EQ(*readFile(cli_.folder().path() / "data/told"), run + " finished 3\n");
  const auto environmentOf = [&](std::size_t node) {
    return (*readJsonFile(rig.home(node) / ".local/share/evenkeel/runs" / run / ("node-" + std::to_string(node)) /
                          "node.json"))["environment"];
  };
  EXPECT_EQ(environmentOf(0)["EVENKEEL_TRIAL"], "both");
  EXPECT_EQ(environmentOf(1)["EVENKEEL_TRIAL"], "mine");
  EXPECT_THAT(filesWith(rig.home(0) / ".local/share/evenkeel/runs" / run, "end_command"), IsEmpty());
}

TEST_F(OnTheRig, DiscoverMeasuresThePairsAndWritesThemAsLinks) {
  NodeRig rig({"n0", "n1", "n2"});
  if (NodeRig::canShape()) rig.shape(2, "80mbit");
  rig.addTool(0, "nvidia-smi",
              "case $1 in --query-gpu=*) echo 'index, uuid, name, memory.total [MiB], memory.used [MiB], driver_version'\n"
              "echo '0, GPU-1111, NVIDIA A100-SXM4-80GB, 81920, 4, 535.1';; esac\n");
  const std::string found = (cli_.folder().path() / "found.json").string();
  const ProgramResult looked = cli_.run({"discover", "--hosts", "root@10.77.0.[11-13]", "--identity", rig.identity(),
                                         "--known-hosts", rig.knownHosts(), "--measure", "--out", found});
  ASSERT_EQ(looked.exitCode, 0) << looked.err;
  const Json cluster = *readJsonFile(found);
  EXPECT_EQ(cluster["nodes"][0]["devices"][0]["uuid"], "GPU-1111");
  EXPECT_FALSE(cluster["nodes"][1]["ssh"].contains("port")) << "22 is what a file means that names no port";
  ASSERT_EQ(cluster["links"].size(), 3U);
  for (const Json& link : cluster["links"]) {
    EXPECT_GT(link["bandwidth_gbs"].get<double>(), 0.0);
    EXPECT_EQ(link["bandwidth_table"].size(), 3U);
    const bool isSlow = link["between"][1] == "10.77.0.13";
    if (NodeRig::canShape()) {
      EXPECT_EQ(link["bandwidth_gbs"].get<double>() < 0.011, isSlow) << link.dump();
    }
  }
  for (std::size_t i = 0; i < rig.size(); ++i) EXPECT_THAT(rig.processes(i), IsEmpty());
}

// unsloth #6352, DeepSpeed #4907: what a GPU node lacks is said before anything is sent, by name.
TEST_F(OnTheRig, APreflightNamesWhatGpuNodesLack) {
  NodeRig rig({"n0", "n1"});
  const auto addCard = [&](std::size_t node, const std::string& driver, const std::string& capability) {
    rig.addTool(node, "nvidia-smi",
                "case $1 in --query-gpu=*) echo 'index, uuid, name, memory.total [MiB], memory.used [MiB], driver_version, compute_cap'\n"
                "echo '0, GPU-" + std::to_string(node) + ", NVIDIA A100-SXM4-80GB, 81920, 4, " + driver + ", " + capability + "';; esac\n");
  };
  const auto addTorch = [&](std::size_t node, const std::string& nccl) {
    rig.addTool(node, "python3",
                "echo '{\"path\": \"/opt/torch\", \"version\": \"2.7.1+cu126\", \"cuda\": \"12.6\", \"nccl\": \"" + nccl +
                    "\", \"architectures\": [\"sm_80\", \"sm_90\"]}'\n");
  };
  // A plan over both, whose cores become cards.
  Json cards = *readJsonFile(planFor(rig, {1, 1}));
  for (std::size_t i = 0; i < rig.size(); ++i)
    cards["cluster"]["nodes"][i]["devices"] = Json::array({{{"type", "A100-80-SXM"}, {"uuid", "GPU-" + std::to_string(i)}}});
  const std::string plan = cli_.folder().file("gpu.json", cards.dump());
  const auto preflight = [&] { return cli_.run({"launch", plan, "--data", data_, "--steps", "1", "--preflight"}); };
  addCard(0, "535.129.03", "8.0");
  addCard(1, "450.51.06", "8.0");
  addTorch(0, "2.26.2");
  addTorch(1, "2.20.5");
  const ProgramResult unfit = preflight();
  EXPECT_EQ(unfit.exitCode, 1);
  EXPECT_THAT(unfit.err, ::testing::AllOf(HasSubstr("driver 450.51.06 is too old for CUDA 12.6"), HasSubstr("1 x NVIDIA A100-SXM4-80GB, driver 535.129.03"),
                                          HasSubstr("2.7.1+cu126 is there, but no worker for it"), HasSubstr("./run.sh --cuda /opt/torch")));
  addCard(1, "535.129.03", "12.0");
  EXPECT_THAT(preflight().err, HasSubstr("has no code for compute capability 12.0"));
  addCard(1, "535.129.03", "9.0");
  // Ours for CPU cores stands in for a worker that was built for that PyTorch: the programs are those that are tested.
  const std::filesystem::path programs = cli_.folder().path() / "programs", build = programs / "workers" / "2.7.1+cu126";
  std::filesystem::create_directories(build);
  for (const char* program : {"evenkeel-cli", "evenkeel-agent", "evenkeel-worker"}) {
    std::filesystem::copy_file(std::filesystem::path(EVENKEEL_BIN_DIR) / program, programs / program);
    if (std::string(program) != "evenkeel-cli") std::filesystem::copy_file(std::filesystem::path(EVENKEEL_BIN_DIR) / program, build / program);
  }
  std::ofstream(build / "worker.json") << R"({"torch": "2.7.1+cu126"})";
  const auto withBuild = [&] {
    return Program({(programs / "evenkeel-cli").string(), "launch", plan, "--data", data_, "--steps", "1", "--preflight"}, cli_.variables(), cli_.folder().path()).finish();
  };
  EXPECT_THAT(withBuild().err, HasSubstr("NCCL 2.20.5 on n1, 2.26.2 on n0; ranks of unlike versions do not understand each other"));
  addTorch(1, "2.26.2");
  const ProgramResult fit = withBuild();
  EXPECT_THAT(fit.err, ::testing::AllOf(HasSubstr("2.7.1+cu126 (CUDA 12.6, NCCL 2.26.2) of its own in /opt/torch"),
                                        HasSubstr("NCCL_SOCKET_IFNAME==eth0 (that of 10.77.0.12"), HasSubstr("are to be copied"),
                                        ::testing::Not(HasSubstr("is plan only"))));
  EXPECT_EQ(fit.exitCode, 0) << "a worker was built for that PyTorch: nothing stands against a launch";
}

// A run that nobody follows, fails, and is to go on: whoever attaches next lets it; the losses of both attempts are one curve.
TEST_F(OnTheRig, ADetachedRunThatFailedGoesOnWhenSomebodyAttaches) {
  NodeRig rig({"n0", "n1"});
  const std::string plan = planFor(rig, {1, 1});
  const ProgramResult started = cli_.run(
      launch(plan, 60,
             {"--detach", "--on-failure", "resume", "--checkpoint-every", "5", "--checkpoint-directory", "/root/checkpoints"}));
  ASSERT_EQ(started.exitCode, 0) << started.err;
  const std::string run = started.json()["run"];
  ASSERT_TRUE(NodeRig::awaitText(journalOf(rig, 0, run), "\"event\":\"checkpoint\""));
  const ProgramResult beside =
      cli_.run(launch(plan, 5, {"--checkpoint-every", "5", "--checkpoint-directory", "/root/checkpoints"}));
  EXPECT_EQ(beside.exitCode, 1);
  EXPECT_THAT(beside.err, HasSubstr("is the checkpoint directory of run " + run));
  for (const int pid : rig.processes(1)) {
    if (procText(pid, "cmdline").find("--job") != std::string::npos) ::kill(pid, SIGKILL);
  }
  ASSERT_TRUE(NodeRig::awaitText(journalOf(rig, 1, run), "\"event\":\"ended\""));
  const ProgramResult attached = cli_.run({"attach", run, "--json"});
  ASSERT_EQ(attached.exitCode, 0) << attached.err;
  EXPECT_THAT(attached.err, HasSubstr("going on from the newest checkpoint"));
  const Json whole = attached.json();
  EXPECT_EQ(whole["losses"].size(), 60U);
  EXPECT_EQ(whole["attempts"], Json::array({run}));
  EXPECT_EQ(whole["losses"], cli_.run(launch(plan, 60, {"--local"})).json()["losses"]);
}

}  // namespace
}  // namespace evenkeel
