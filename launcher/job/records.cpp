// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/records.h"

#include <array>
#include <limits>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr Bounds<std::int64_t> kAny{};

struct Timeout {
  const char* key;
  std::chrono::milliseconds LaunchTimeouts::*field;
};
constexpr std::array<Timeout, 6> kTimeouts{{{"connect_ms", &LaunchTimeouts::connect},
                                            {"command_ms", &LaunchTimeouts::command},
                                            {"start_ms", &LaunchTimeouts::start},
                                            {"reconnect_ms", &LaunchTimeouts::reconnect},
                                            {"stop_ms", &LaunchTimeouts::stop},
                                            {"peer_ms", &LaunchTimeouts::peer}}};

Json toJson(const SshTarget& ssh) {
  return {{"host", ssh.host},
          {"port", ssh.port},
          {"user", ssh.user},
          {"identity", ssh.identity},
          {"known_hosts", ssh.knownHosts},
          {"proxy_jump", ssh.proxyJump}};
}

SshTarget readTarget(JsonReader ssh) {
  return {.host = ssh.text("host"),
          .port = static_cast<int>(ssh.integer("port", {1, 65535})),
          .user = ssh.text("user"),
          .identity = ssh.text("identity"),
          .proxyJump = ssh.text("proxy_jump", ""),
          .knownHosts = ssh.text("known_hosts")};
}

}  // namespace

std::string eventOf(const Json& record) { return textOf(record, "event"); }

std::string textOf(const Json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_string() ? field->get<std::string>() : std::string();
}

std::int64_t integerOf(const Json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_number() ? field->get<std::int64_t>() : 0;
}

double numberOf(const Json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_number() ? field->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

StepRecord stepOf(const Json& record) {
  return {.step = integerOf(record, "step"),
          .loss = numberOf(record, "loss"),
          .tokens = integerOf(record, "tokens"),
          .iterationMs = numberOf(record, "iteration_ms"),
          .computeMs = numberOf(record, "compute_ms"),
          .p2pMs = numberOf(record, "p2p_ms"),
          .bubbleMs = numberOf(record, "bubble_ms"),
          .syncMs = numberOf(record, "sync_ms"),
          .optimizerMs = numberOf(record, "optimizer_ms"),
          .peakBytes = integerOf(record, "peak_bytes"),
          .gradNorm = numberOf(record, "grad_norm"),
          .learningRate = numberOf(record, "learning_rate")};
}

std::optional<Json> parseRecord(std::string_view line) {
  if (!line.starts_with('{')) return std::nullopt;
  auto record = parseJson(line, "journal");
  if (!record || integerOf(*record, "seq") < 1 || eventOf(*record).empty()) return std::nullopt;
  return *std::move(record);
}

std::optional<Json> parseQueueLine(std::string_view line) {
  constexpr std::string_view kQueue = "queue ";
  if (!line.starts_with(kQueue)) return std::nullopt;
  auto queue = parseJson(line.substr(kQueue.size()), "queue");
  if (!queue || !queue->is_object() || !queue->contains("state")) return std::nullopt;
  if (!(*queue)["over"].is_boolean()) (*queue)["over"] = false;
  return *std::move(queue);
}

std::optional<WatchedRecord> parseWatchedRecord(std::string_view line, std::size_t nodeCount) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto node = parseNumber<std::size_t>(line.substr(0, space));
  auto record = parseRecord(line.substr(space + 1));
  if (!node || *node >= nodeCount || !record) return std::nullopt;
  return WatchedRecord{*node, *std::move(record)};
}

std::vector<std::string> watchCommand(const RunRecord& run, const std::vector<std::int64_t>& from, bool once) {
  std::vector<std::string> argv{run.nodes.front().agent, "watch", "--dir", run.slurm->directory, "--slurm", run.slurm->id};
  for (const std::int64_t first : from) argv.insert(argv.end(), {"--from", std::to_string(first)});
  if (once) argv.emplace_back("--once");
  return argv;
}

Json toJson(const std::vector<JobNode>& nodes) {
  Json json = Json::array();
  for (const JobNode& node : nodes) {
    json.push_back(Json{{"name", node.name},
                        {"ssh", toJson(node.ssh)},
                        {"directory", node.directory},
                        {"agent", node.agent},
                        {"first_rank", node.firstRank},
                        {"rank_count", node.rankCount}});
  }
  return json;
}

Result<std::vector<JobNode>> parseJobNodes(const std::string& text, const std::string& source) {
  auto json = parseJson(text, source);
  if (!json) return std::move(json).error();
  const Json whole{{"nodes", *json}};
  JsonContext context{source, {}};
  JsonReader reader(whole, context);
  std::vector<JobNode> nodes;
  for (JsonReader& entry : reader.objects("nodes")) {
    JobNode node{.name = entry.text("name")};
    node.ssh = readTarget(entry.object("ssh"));
    node.directory = entry.text("directory");
    node.agent = entry.text("agent");
    node.firstRank = static_cast<int>(entry.integer("first_rank", {0, kMaxDevices}));
    node.rankCount = static_cast<int>(entry.integer("rank_count", {0, kMaxDevices}));
    nodes.push_back(std::move(node));
  }
  if (context.error) return *std::move(context.error);
  return nodes;
}

Json toJson(const SlurmJob& job) {
  Json options = Json::array();
  for (const auto& [name, value] : job.request.options) options.push_back({name, value});
  return {{"id", job.id},
          {"directory", job.directory},
          {"login", toJson(job.request.login)},
          {"options", std::move(options)},
          {"folder", job.request.folder}};
}

Result<SlurmJob> parseSlurmJob(const std::string& text, const std::string& source) {
  auto json = parseJson(text, source);
  if (!json) return std::move(json).error();
  JsonContext context{source, {}};
  JsonReader reader(*json, context);
  SlurmJob job{.id = reader.text("id"), .request = {}, .directory = reader.text("directory")};
  job.request.login = readTarget(reader.object("login"));
  job.request.folder = reader.text("folder");
  for (const Json& option : reader.raw("options")) {
    if (option.is_array() && option.size() == 2 && option[0].is_string() && option[1].is_string())
      job.request.options.emplace_back(option[0].get<std::string>(), option[1].get<std::string>());
    else reader.fail("options", "holds something that is no option", R"(expected [["name", "value"]])");
  }
  if (context.error) return *std::move(context.error);
  return job;
}

Json toJson(const LaunchTimeouts& timeouts) {
  Json json = Json::object();
  for (const Timeout& timeout : kTimeouts) json[timeout.key] = (timeouts.*timeout.field).count();
  return json;
}

Result<LaunchTimeouts> parseTimeouts(const std::string& text, const std::string& source) {
  auto json = parseJson(text, source);
  if (!json) return std::move(json).error();
  JsonContext context{source, {}};
  JsonReader reader(*json, context);
  LaunchTimeouts timeouts;
  for (const Timeout& timeout : kTimeouts) timeouts.*timeout.field = std::chrono::milliseconds(reader.integer(timeout.key, kAny));
  if (context.error) return *std::move(context.error);
  return timeouts;
}

Json toJson(const JobFailure& failure) {
  return {{"rank", failure.rank}, {"node", failure.node}, {"reason", failure.reason}, {"last_step", failure.lastStep}};
}

Result<JobFailure> parseFailure(const std::string& text, const std::string& source) {
  auto json = parseJson(text, source);
  if (!json) return std::move(json).error();
  JsonContext context{source, {}};
  JsonReader reader(*json, context);
  JobFailure failure{.rank = static_cast<int>(reader.integer("rank", {-1, kMaxDevices})),
                     .node = reader.text("node"),
                     .reason = reader.text("reason")};
  failure.lastStep = reader.integer("last_step", kAny);
  if (context.error) return *std::move(context.error);
  return failure;
}

}  // namespace evenkeel
