// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/sha256.h"
#include "launcher/ssh/fake_host.h"
#include "launcher/ssh/local_host.h"
#include "launcher/ssh/waits.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LocalHost, TellsOutputErrorOutputAndExitStatusApart) {
  LocalHost host("here");
  const auto output = run(host, {.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->out, "out\n");
  EXPECT_EQ(output->err, "err\n");
  EXPECT_EQ(output->ending.text(), "exit status 3");
}

TEST(LocalHost, NamesTheSignalThatEndedACommand) {
  LocalHost host("here");
  EXPECT_EQ(run(host, {.argv = {"sh", "-c", "kill -s SEGV $$"}})->ending.text(), "killed by SIGSEGV");
}

TEST(LocalHost, SaysWhichProgramIsMissing) {
  LocalHost host("here");
  EXPECT_THAT(run(host, {.argv = {"/nowhere/program"}}).error().text(), HasSubstr("cannot run /nowhere/program: No such file"));
}

TEST(LocalHost, PassesArgumentsAsTheyAre) {
  LocalHost host("here");
  EXPECT_EQ(run(host, {.argv = {"printf", "%s", "it's $HOME; \"größe\""}})->out, "it's $HOME; \"größe\"");
}

// Waiting before reading is a deadlock once a pipe is full.
TEST(LocalHost, FeedsAndReadsALotAtOnce) {
  LocalHost host("here");
  const std::string megabytes(std::size_t{5} << 20U, 'z');
  std::size_t given = 0;
  const auto output = run(host, {.argv = {"sh", "-c", "tee /dev/stderr"}, .input = [&](std::size_t most) {
                                   const std::string piece = megabytes.substr(given, most);
                                   given += piece.size();
                                   return piece;
                                 }});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->out, megabytes);
}

TEST(LocalHost, SurvivesACommandThatDoesNotReadItsInput) {
  LocalHost host("here");
  const auto output = run(host, {.argv = {"true"}, .input = [](std::size_t) { return std::string(65536, 'x'); }});
  ASSERT_TRUE(output);
  EXPECT_TRUE(output->ending.wasGood());
}

TEST(LocalHost, EndsACommandAtItsDeadline) {
  LocalHost host("here");
  const auto output = run(host, {.argv = {"sleep", "600"}, .deadline = 300ms});
  EXPECT_EQ(output.error().code, Error::Code::Cancelled);
  EXPECT_THAT(output.error().text(), HasSubstr("here: sleep has not ended within 0.3 s"));
}

TEST(LocalHost, EndsASilentCommand) {
  LocalHost host("here");
  EXPECT_THAT(run(host, {.argv = {"sleep", "600"}, .silence = 100ms}).error().text(), HasSubstr("has been silent for 0.1 s"));
}

TEST(LocalHost, EndsACommandAndItsChildrenWhenAskedTo) {
  LocalHost host("here");
  std::stop_source stop;
  OwnedFd child;
  const auto output = followLines(
      host, {.argv = {"sh", "-c", "sleep 600 & echo $!; wait"}},
      [&](std::string_view line) {
        child = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(std::string(line)), 0)));
        stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(output.error().code, Error::Code::Cancelled);
  pollfd gone{child.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&gone, 1, 30'000), 1);
}

TEST(LocalHost, DoesNotWaitForADaemonThatHoldsItsOutput) {
  LocalHost host("here");
  std::string pid;
  const auto output =
      followLines(host, {.argv = {"sh", "-c", "setsid sleep 600 & echo $!"}}, [&](std::string_view line) { pid = line; });
  ASSERT_TRUE(output);
  ::kill(std::stoi(pid), SIGKILL);
}

TEST(Host, HandsOverWholeLines) {
  LocalHost host("here");
  std::vector<std::string> lines;
  const auto output =
      followLines(host, {.argv = {"printf", "a\\n\\nb c\\nrest"}}, [&](std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(output);
  EXPECT_THAT(lines, ElementsAre("a", "", "b c"));  // what has no end is no line
}

TEST(Host, RefusesEndlessOutput) {
  LocalHost host("here");
  EXPECT_THAT(run(host, {.argv = {"cat", "/dev/zero"}}).error().text(), HasSubstr("wrote more than 16 MiB"));
}

TEST(Host, MakesAPrivateDirectory) {
  const TemporaryDirectory directory;
  LocalHost host("here");
  const std::string path = directory.path() / "a b" / "it's";
  ASSERT_TRUE(makeDirectory(host, path, 10s));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_THAT(makeDirectory(host, "/proc/nothing", 10s).error().text(), HasSubstr("cannot make the folder /proc/nothing"));
}

TEST(Upload, ArrivesWholeAndPrivate) {
  const TemporaryDirectory directory;
  LocalHost host("here");
  const std::string path = directory.path() / "-odd name";
  std::uint64_t told = 0;
  ASSERT_TRUE(
      upload(host, {.bytes = std::string(1'000'000, 'a'), .path = path, .onProgress = [&](std::uint64_t done) { told = done; }}));
  EXPECT_EQ(readFile(path)->size(), 1'000'000U);
  EXPECT_EQ(told, 1'000'000U);
  struct stat status {};
  ::stat(path.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const std::string program = directory.path() / "program";
  ASSERT_TRUE(upload(host, {.file = path, .path = program, .isProgram = true}));
  ::stat(program.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST(Upload, LeavesNothingWhenTheChecksumDiffers) {
  const TemporaryDirectory directory;
  LocalHost host("here");
  const auto put = upload(host, {.bytes = "abc", .path = directory.path() / "x", .sha256 = sha256("abd")});
  EXPECT_THAT(put.error().text(), HasSubstr("what arrived has another checksum"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Upload, LeavesNothingWhenItIsStopped) {
  const TemporaryDirectory directory;
  LocalHost host("here");
  std::stop_source stop;
  const auto put = upload(host,
                          {.bytes = std::string(10'000'000, 'a'),
                           .path = directory.path() / "x",
                           .onProgress = [&](std::uint64_t) { stop.request_stop(); }},
                          stop.get_token());
  EXPECT_EQ(put.error().code, Error::Code::Cancelled);
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "x"));
}

TEST(FakeHost, AnswersFromAFunctionAndKeepsUploads) {
  FakeHost host("fake",
                [](const Command& command, std::stop_token) -> Result<Ending> { return FakeHost::reply(command, "hello\n", 4); });
  ASSERT_TRUE(upload(host, {.bytes = "data", .path = "/x/y"}));
  const auto output = run(host, {.argv = {"greet"}});
  EXPECT_EQ(output->out, "hello\n");
  EXPECT_EQ(output->ending.exitStatus, 4);
  EXPECT_EQ(host.files().at("/x/y"), "data");
  EXPECT_EQ(host.commands().size(), 2U);
}

}  // namespace
}  // namespace evenkeel
