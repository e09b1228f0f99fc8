// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/records.h"

#include <array>
#include <limits>

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

Json toJson(const std::vector<JobNode>& nodes) {
  Json json = Json::array();
  for (const JobNode& node : nodes) {
    Json ssh{{"host", node.ssh.host},
             {"port", node.ssh.port},
             {"user", node.ssh.user},
             {"identity", node.ssh.identity},
             {"known_hosts", node.ssh.knownHosts},
             {"proxy_jump", node.ssh.proxyJump}};
    json.push_back(Json{{"name", node.name},
                        {"ssh", std::move(ssh)},
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
    JsonReader ssh = entry.object("ssh");
    node.ssh = {.host = ssh.text("host"),
                .port = static_cast<int>(ssh.integer("port", {1, 65535})),
                .user = ssh.text("user"),
                .identity = ssh.text("identity")};
    node.ssh.knownHosts = ssh.text("known_hosts");
    node.ssh.proxyJump = ssh.text("proxy_jump", "");
    node.directory = entry.text("directory");
    node.agent = entry.text("agent");
    node.firstRank = static_cast<int>(entry.integer("first_rank", {0, kMaxDevices}));
    node.rankCount = static_cast<int>(entry.integer("rank_count", {0, kMaxDevices}));
    nodes.push_back(std::move(node));
  }
  if (context.error) return *std::move(context.error);
  return nodes;
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
