// SPDX-License-Identifier: GPL-3.0-or-later
#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "core/base/words.h"
#include "launcher/agent/commands.h"
#include "launcher/agent/given_run.h"
#include "launcher/agent/supervisor.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kLookMs = 100;  // another machine writes the file: nobody tells us of it

std::string environmentOf(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// Our own numeric address on the way to another one (which may be our own); empty if there is no way. Sends nothing.
std::string addressToward(const std::string& other) {
  sockaddr_storage there{};
  auto* const four = reinterpret_cast<sockaddr_in*>(&there);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&there);
  if (::inet_pton(AF_INET, other.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = ::htons(9);
  } else if (::inet_pton(AF_INET6, other.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = ::htons(9);
  } else {
    return {};
  }
  const Fd socket(::socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  const bool isKnown = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) == 0 &&
                       ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size) == 0;
  if (!isKnown) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const address = here.ss_family == AF_INET ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(&here)->sin_addr)
                                                        : &reinterpret_cast<sockaddr_in6*>(&here)->sin6_addr;
  ::inet_ntop(here.ss_family, address, text.data(), text.size());
  return text.data();
}

/// Which of the plan's nodes this machine is: that of its name, or, where the plan's names are none of Slurm's, by the order of the allocation.
Result<std::size_t> ownPlace(const Json& nodes) {
  const std::string name = environmentOf("SLURMD_NODENAME");
  const auto position = parseNumber<std::size_t>(environmentOf("SLURM_NODEID"));
  const Json& list = nodes["nodes"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i]["node"] == name) return i;
  }
  if (nodes["by_name"].get<bool>()) return failed(name, "is no node of the plan, and Slurm has started the run here", "name the nodes as `sinfo` does");
  if (!position || *position >= list.size()) return failed("SLURM_NODEID", "names no node of the plan", "start this with srun, as slurm.sh does");
  return *position;
}

/// Where rank 0's node has put the store: waits for it.
Result<std::pair<std::string, int>> awaitStore(const fs::path& file, std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  while (Clock::now() < until) {
    if (const auto told = readJsonFile(file); told && told->is_object()) {
      if (told->contains("error")) return failed("the node of rank 0", told->value("error", ""));
      return std::pair(told->value("address", ""), told->value("port", 0));
    }
    ::poll(nullptr, 0, kLookMs);
  }
  return failed(file.string(), "did not come: the node of rank 0 has not started, or does not share this folder",
                "name a folder that all nodes share with --slurm-folder");
}

Result<void> tellStore(const fs::path& run, const Json& where) { return writeFileAtomically(run / kStoreFile, prettyText(where), true); }

/// node-K with what `run` finds there on other ways: job.json and node.json.
Result<void> prepareDirectory(const fs::path& run, const fs::path& directory, const Json& node) {
  if (::mkdir(directory.c_str(), 0700) != 0)
    return failed(directory.string(), fmt::format("cannot be made: {}", ::strerror(errno)),
                  errno == EEXIST ? "Slurm has started the run a second time; launch it anew with --resume" : "");
  const auto job = readFile(run / kJobFile);
  if (!job) return job.error();
  if (auto written = writeFileAtomically(directory / kJobFile, *job, true); !written) return written;
  return writeFileAtomically(directory / kNodeFile, prettyText(node), true);
}

Result<bool> superviseStep(const fs::path& run, const fs::path& directory, bool hostsStore) {
  auto given = readRunDirectory(directory);
  if (!given) return given.error();
  const auto checkpoints = holdCheckpoints(*given);
  if (!checkpoints) return checkpoints.error();
  auto journal = Journal::create(directory / kJournalFile);
  if (!journal) return journal.error();
  const std::string address = given->node.masterAddress;
  AgentRecord record{.pid = ::getpid(), .startTime = startTimeOf(::getpid()).value_or(0), .runId = given->node.runId};
  Supervisor supervisor(directory, std::move(given->node), std::move(given->run), *journal);
  const auto port = supervisor.start(given->deadline);
  if (!port) return port.error();
  record.storePort = *port;
  if (auto saved = writeFileAtomically(directory / kAgentFile, prettyText(toJson(record)), true); !saved) return saved.error();
  if (hostsStore) {
    if (auto told = tellStore(run, {{"address", address}, {"port", *port}}); !told) return told.error();
  }
  supervisor.watch();
  return !supervisor.hasFailed();
}

}  // namespace

Result<bool> runStep(const fs::path& run) {
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  auto nodes = readJsonFile(run / kNodesFile);
  if (!nodes) return std::move(nodes).error();
  const auto place = ownPlace(*nodes);
  if (!place) return place.error();
  Json node = (*nodes)["nodes"][*place];
  const fs::path directory = run / fmt::format("node-{}", *place);
  const bool hostsStore = node.value("hosts_store", false);
  const auto start = [&]() -> Result<bool> {
    if (node["train_address"] == "") node["train_address"] = addressToward(environmentOf("SLURM_LAUNCH_NODE_IPADDR"));
    if (node["train_address"] == "")
      return failed(node["node"], "does not know its own address in the allocation", "give the node a train_address in the cluster");
    node["master"] = {{"address", node["train_address"]}, {"port", 0}};
    if (!hostsStore) {
      const auto store = awaitStore(run / kStoreFile, std::chrono::milliseconds(nodes->value("start_ms", 120'000)));
      if (!store) return store.error();
      node["master"] = {{"address", store->first}, {"port", store->second}};
    }
    if (auto prepared = prepareDirectory(run, directory, node); !prepared) return prepared.error();
    return superviseStep(run, directory, hostsStore);
  };
  auto started = start();
  // the others wait for it; if even this cannot be written, they give up by themselves
  if (!started && hostsStore) [[maybe_unused]] const auto told = tellStore(run, {{"error", started.error().text()}});
  return started;
}

}  // namespace evenkeel
