// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "launcher/agent/commands.h"
#include "launcher/agent/given_run.h"
#include "launcher/agent/supervisor.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<GivenRun> readRunDirectory(const fs::path& directory) {
  auto nodeJson = readJsonFile(directory / kNodeFile);
  if (!nodeJson) return std::move(nodeJson).error();
  auto node = parseNodeJob(*nodeJson, (directory / kNodeFile).string());
  if (!node) return std::move(node).error();
  auto jobJson = readJsonFile(directory / kJobFile);
  if (!jobJson) return std::move(jobJson).error();
  JsonContext context{(directory / kJobFile).string(), {}};
  JsonReader reader(*jobJson, context);
  expectFormat(reader, "evenkeel.job/1");
  if (const std::string id = reader.text("run_id"); id != node->runId)
    reader.fail("run_id", fmt::format("is \"{}\"", id), "expected " + node->runId);
  const Json run = reader.raw("run");
  JsonReader timeouts = reader.object("timeouts");
  const double seconds = timeouts.number("start_s", {0.001, 86400.0});
  if (context.error) return *std::move(context.error);
  return GivenRun{*std::move(node), run, std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000))};
}

Result<Fd> holdCheckpoints(const GivenRun& given) {
  const bool writes = std::ranges::any_of(given.node.ranks, [](const NodeJob::Rank& rank) { return rank.rank == 0; });
  const auto checkpoint = given.run.find("checkpoint");
  if (!writes || checkpoint == given.run.end() || !checkpoint->is_object()) return Fd();
  const auto named = checkpoint->find("directory");
  if (named == checkpoint->end() || !named->is_string() || named->get<std::string>().empty()) return Fd();
  const fs::path directory = named->get<std::string>();
  std::error_code ignored;
  fs::create_directories(directory, ignored);  // the worker says why it cannot
  const fs::path file = directory / ".evenkeel-lock";
  Fd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.isOpen()) return Fd();
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const auto holder = readFile(file);
    return failed(directory.string(),
                  fmt::format("is the checkpoint directory of run {}, which is still running",
                              holder ? holder->substr(0, 64) : "(unknown)"),
                  "name another one, or stop that run");
  }
  if (::ftruncate(lock.get(), 0) == 0) [[maybe_unused]]
    const ssize_t written = ::write(lock.get(), given.node.runId.data(), given.node.runId.size());  // for the message alone
  return lock;
}

namespace {

/// Leaves the terminal, the shell and their pipes; errors of ours go to agent.log from here on.
void detach(const fs::path& directory) {
  ::setsid();
  ::signal(SIGPIPE, SIG_IGN);
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd log(::open((directory / "agent.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ::dup2(nothing.get(), 0);
  ::dup2(log.get(), 1);
  ::dup2(log.get(), 2);
}

/// The detached process: reports its start through `report`, then watches.
[[noreturn]] void supervise(const fs::path& directory, GivenRun given, Journal journal, Fd report) {
  detach(directory);
  AgentRecord record{.pid = ::getpid(), .startTime = startTimeOf(::getpid()).value_or(0), .runId = given.node.runId};
  const auto save = [&] { return writeFileAtomically(directory / kAgentFile, prettyText(toJson(record)), true); };
  const auto tell = [&](const Json& message) {
    const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
    // if the starter is gone, there is nobody to be told
    [[maybe_unused]] const ssize_t written = ::write(report.get(), text.data(), text.size());
    report.close();
  };
  if (auto saved = save(); !saved) {
    tell({{"error", saved.error().text()}});
    ::_exit(1);
  }
  Supervisor supervisor(directory, std::move(given.node), std::move(given.run), journal);
  auto started = supervisor.start(given.deadline);
  if (started) {
    record.storePort = *started;
    if (auto saved = save(); !saved) ::fprintf(stderr, "%s\n", saved.error().text().c_str());
    tell(toJson(record));
    supervisor.watch();
  } else {
    tell({{"error", started.error().text()}});
  }
  ::_exit(0);
}

}  // namespace

Result<Json> startRun(const fs::path& directory) {
  ::umask(077);
  auto given = readRunDirectory(directory);
  if (!given) return std::move(given).error();
  auto checkpoints = holdCheckpoints(*given);
  if (!checkpoints) return std::move(checkpoints).error();
  auto journal = Journal::create(directory / kJournalFile);
  if (!journal) return std::move(journal).error();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return failed("evenkeel-agent", fmt::format("cannot make a pipe: {}", ::strerror(errno)));
  Fd fromAgent(ends[0]), report(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return failed("evenkeel-agent", fmt::format("cannot fork: {}", ::strerror(errno)));
  if (pid == 0) {
    fromAgent.close();
    supervise(directory, *std::move(given), *std::move(journal),
              std::move(report));  // and holds the checkpoints, which it has inherited
  }
  report.close();
  std::string text;
  std::array<char, 4096> chunk{};
  while (true) {  // ends with the report, or with the agent's death; the agent has the deadline
    const ssize_t count = ::read(fromAgent.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  if (text.empty()) return failed("evenkeel-agent", "died while it was starting", "see agent.log in " + directory.string());
  auto message = parseJson(text, "evenkeel-agent");
  if (!message) return std::move(message).error();
  if (message->contains("error")) return failed("", (*message)["error"].get<std::string>());
  return *std::move(message);
}

}  // namespace evenkeel
