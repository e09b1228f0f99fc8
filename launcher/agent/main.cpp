// SPDX-License-Identifier: GPL-3.0-or-later
// evenkeel-agent: starts, watches and stops one node's part of a run (resources/docs/protocol.md).
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "launcher/agent/commands.h"
#include "launcher/agent/reach.h"

namespace {

using namespace evenkeel;

constexpr int kBadUse = 2;
constexpr int kLost = 3;

struct Arguments {
  std::string command, directory;
  TailOptions tail;
  ReachOptions reach;
  WatchOptions watch;
  std::string address;
};

std::optional<Arguments> parse(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  Arguments arguments{.command = words.front()};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool hasValue = i + 1 < words.size();
    if (words[i] == "--once") {
      arguments.tail.once = arguments.watch.once = true;
    } else if (words[i] == "--dir" && hasValue) {
      arguments.directory = words[++i];
    } else if (words[i] == "--end") {
      arguments.reach.endThem = true;
    } else if (words[i] == "--to" && hasValue) {
      arguments.reach.targets.push_back(words[++i]);
    } else if (words[i] == "--address" && hasValue) {
      arguments.address = words[++i];
    } else if (words[i] == "--size" && hasValue) {
      const auto size = parseNumber<std::int64_t>(words[++i]);
      if (!size) return std::nullopt;
      arguments.reach.sizes.push_back(*size);
    } else if (words[i] == "--from" && hasValue) {
      const auto from = parseNumber<std::int64_t>(words[++i]);
      if (!from) return std::nullopt;
      arguments.tail.from = *from;
      arguments.watch.from.push_back(*from);  // one a node
    } else if (words[i] == "--slurm" && hasValue) {
      arguments.watch.slurmJob = words[++i];
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

int complain(const Error& error) {
  std::fprintf(stderr, "evenkeel-agent: %s\n", error.text().c_str());
  return error.code == Error::Code::InvalidInput ? kBadUse : 1;
}

int print(const Result<Json>& json) {
  if (!json) return complain(json.error());
  std::printf("%s\n", json->dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  return 0;
}

int tellEnd(const Result<TailEnd>& end) {
  if (!end) return complain(end.error());
  if (*end != TailEnd::Lost) return 0;
  std::fprintf(stderr, "evenkeel-agent: the agent is gone without a last record\n");
  return kLost;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse({argv + 1, argv + argc});
  if (arguments && arguments->command == "version") {
    return print(Json{{"version", EVENKEEL_VERSION}, {"protocol", 1}});
  }
  if (arguments && arguments->command == "listen" && !arguments->address.empty()) return print(listenAt(arguments->address));
  if (arguments && arguments->command == "reach" && !arguments->reach.targets.empty()) return print(reach(arguments->reach));
  if (!arguments || arguments->directory.empty()) {
    std::fprintf(stderr,
                 "usage: evenkeel-agent version | listen --address A | reach --to A:PORT ... [--size BYTES ...] [--end] | run "
                 "--dir DIR | tail --dir DIR --from SEQ [--once] | stop --dir DIR | status "
                 "--dir DIR | step --dir RUN | watch --dir RUN --slurm JOB --from SEQ ... [--once]\n");
    return kBadUse;
  }
  // one name for the directory, however it was written: processes are told by it
  std::error_code failure;
  const std::filesystem::path directory = std::filesystem::canonical(arguments->directory, failure);
  if (failure) return complain(invalidInput(arguments->directory, failure.message()));
  if (arguments->command == "run") return print(startRun(directory));
  if (arguments->command == "tail") return tellEnd(tailJournal(directory, arguments->tail));
  if (arguments->command == "watch" && !arguments->watch.from.empty()) return tellEnd(watchRun(directory, arguments->watch));
  if (arguments->command == "step") {
    const auto ran = runStep(directory);
    return !ran ? complain(ran.error()) : *ran ? 0 : 1;
  }
  if (arguments->command == "status") return print(statusOfRun(directory));
  if (arguments->command == "stop") {
    const auto stopped = stopRun(directory);
    const int printed = print(stopped);
    return printed == 0 && !(*stopped)["stopped"].get<bool>() ? 1 : printed;
  }
  std::fprintf(stderr, "evenkeel-agent: unknown command %s\n", arguments->command.c_str());
  return kBadUse;
}
