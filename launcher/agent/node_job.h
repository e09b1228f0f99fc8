// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/json_reader.h"

namespace evenkeel {

// The files of a run's directory on a node (resources/docs/protocol.md).
inline constexpr const char* kJobFile = "job.json";
inline constexpr const char* kNodeFile = "node.json";
inline constexpr const char* kAgentFile = "agent.json";
inline constexpr const char* kJournalFile = "journal.jsonl";
// Of a run that Slurm starts, one level above.
inline constexpr const char* kNodesFile = "nodes.json";
inline constexpr const char* kStoreFile = "store.json";
inline constexpr const char* kSlurmScript = "slurm.sh";
inline constexpr const char* kSlurmLog = "slurm.log";

/// "rank-3.log"
[[nodiscard]] std::string logFileOf(int rank);

/// What one node has to do: node.json.
struct NodeJob {
  struct Rank {
    int rank = 0, localRank = 0;
    std::string device;  // "node/index"
    bool operator==(const Rank&) const = default;
  };
  std::string runId, node;
  int nodeRank = 0, worldSize = 1;
  std::vector<Rank> ranks;
  std::string trainAddress;
  std::string masterAddress;
  int masterPort = 0;  // 0 on the node that hosts the store
  bool hostsStore = false;
  std::string worker;  // program
  std::map<std::string, std::string> environment;
  bool operator==(const NodeJob&) const = default;
};

[[nodiscard]] Json toJson(const NodeJob& job);
[[nodiscard]] Result<NodeJob> parseNodeJob(const Json& json, const std::string& source);

/// agent.json: who watches over the run.
struct AgentRecord {
  int pid = 0;
  std::int64_t startTime = 0;  // clock ticks since boot: tells a process from a later one with its pid
  std::string runId;
  int storePort = 0;  // 0: hosts no store, or has none yet
  bool operator==(const AgentRecord&) const = default;
};

[[nodiscard]] Json toJson(const AgentRecord& record);
[[nodiscard]] Result<AgentRecord> loadAgentRecord(const std::filesystem::path& directory);

}  // namespace evenkeel
