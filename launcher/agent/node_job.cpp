// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/agent/node_job.h"

#include <fmt/format.h>

#include <limits>

namespace evenkeel {
namespace {

constexpr Bounds<std::int64_t> kCount{0, 1 << 20};
constexpr Bounds<std::int64_t> kPort{0, 65535};
constexpr Bounds<std::int64_t> kPid{1, std::numeric_limits<int>::max()};

int integer(JsonReader& reader, std::string_view key, Bounds<std::int64_t> bounds) {
  return static_cast<int>(reader.integer(key, bounds));
}

}  // namespace

std::string logFileOf(int rank) { return fmt::format("rank-{}.log", rank); }

Json toJson(const NodeJob& job) {
  Json json;
  json["format"] = "evenkeel.node/1";
  json["run_id"] = job.runId;
  json["node"] = job.node;
  json["node_rank"] = job.nodeRank;
  json["world_size"] = job.worldSize;
  json["ranks"] = Json::array();
  for (const NodeJob::Rank& rank : job.ranks) {
    json["ranks"].push_back({{"rank", rank.rank}, {"local_rank", rank.localRank}, {"device", rank.device}});
  }
  json["train_address"] = job.trainAddress;
  json["master"] = {{"address", job.masterAddress}, {"port", job.masterPort}};
  json["hosts_store"] = job.hostsStore;
  json["worker"] = job.worker;
  json["environment"] = Json::object();
  for (const auto& [name, value] : job.environment) json["environment"][name] = value;
  return json;
}

Result<NodeJob> parseNodeJob(const Json& json, const std::string& source) {
  JsonContext context{source, {}};
  JsonReader reader(json, context);
  NodeJob job;
  expectFormat(reader, "evenkeel.node/1");
  job.runId = reader.text("run_id");
  job.node = reader.text("node");
  job.nodeRank = integer(reader, "node_rank", kCount);
  job.worldSize = integer(reader, "world_size", kCount);
  for (JsonReader& rank : reader.objects("ranks")) {
    job.ranks.push_back({integer(rank, "rank", kCount), integer(rank, "local_rank", kCount), rank.text("device")});
  }
  job.trainAddress = reader.text("train_address");
  JsonReader master = reader.object("master");
  job.masterAddress = master.text("address");
  job.masterPort = integer(master, "port", kPort);
  job.hostsStore = reader.boolean("hosts_store", false);
  job.worker = reader.text("worker");
  const Json& environment = reader.raw("environment");
  if (environment.is_object()) {
    for (const auto& [name, value] : environment.items()) {
      if (value.is_string()) {
        job.environment[name] = value.get<std::string>();
      } else {
        reader.fail("environment", fmt::format("holds {}, which is no text", name), "expected {\"NAME\": \"value\"}");
      }
    }
  }
  if (job.ranks.empty()) reader.fail("ranks", "is empty", "expected at least one rank");
  if (!job.hostsStore && job.masterPort == 0) reader.fail("master", "has no port", "expected the port of the store");
  if (context.error) return *std::move(context.error);
  return job;
}

Json toJson(const AgentRecord& record) {
  return {{"pid", record.pid}, {"start_time", record.startTime}, {"run_id", record.runId}, {"store_port", record.storePort}};
}

Result<AgentRecord> loadAgentRecord(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kAgentFile;
  auto json = readJsonFile(file);
  if (!json) return std::move(json).error();
  JsonContext context{file.string(), {}};
  JsonReader reader(*json, context);
  AgentRecord record;
  record.pid = integer(reader, "pid", kPid);
  record.startTime = reader.integer("start_time", {0, std::numeric_limits<std::int64_t>::max()});
  record.runId = reader.text("run_id");
  record.storePort = static_cast<int>(reader.integer("store_port", kPort, 0));
  if (context.error) return *std::move(context.error);
  return record;
}

}  // namespace evenkeel
