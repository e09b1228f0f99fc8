// SPDX-License-Identifier: GPL-3.0-or-later
// The JSON form of profiles: one object a point, {device_type, op, tp, samples, forward_us, backward_us, ...}.
#include "core/profile/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace evenkeel {
namespace {

constexpr double kMostMicroseconds = 1e13;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50U;

constexpr std::array<std::pair<std::string_view, ValueSource>, 5> kSources = {{{"measured", ValueSource::Measured},
                                                                               {"imported", ValueSource::Imported},
                                                                               {"interpolated", ValueSource::Interpolated},
                                                                               {"apportioned", ValueSource::Apportioned},
                                                                               {"analytic", ValueSource::Analytic}}};

ProfileConditions readConditions(JsonReader& profile) {
  ProfileConditions conditions;
  if (!profile.has("conditions")) return conditions;
  JsonReader reader = profile.object("conditions");
  if (reader.has("precision")) conditions.precision = reader.oneOf<Precision>("precision", precisionWords());
  conditions.sequenceLength = reader.integer("sequence", {0, kMaxSequence}, 0);
  conditions.model = reader.text("model", "");
  conditions.framework = reader.text("framework", "");
  conditions.driver = reader.text("driver", "");
  conditions.date = reader.text("date", "");
  return conditions;
}

void readPoint(JsonReader& reader, ProfileTable& table) {
  const std::string device = reader.text("device_type");
  const std::string word = reader.text("op");
  const std::optional<Op> op = opNamed(word);
  if (!op) reader.fail("op", fmt::format("\"{}\" is no op", word.substr(0, 60)));
  const auto tp = static_cast<int>(reader.integer("tp", {1, 1 << 14}));
  const std::int64_t samples = reader.integer("samples", {1, kMaxGlobalBatch});
  ProfilePoint point;
  point.forward = fromMicroseconds(reader.number("forward_us", {0, kMostMicroseconds}));
  point.backward = fromMicroseconds(reader.number("backward_us", {0, kMostMicroseconds}));
  if (reader.has("saved_bytes")) point.saved = Bytes{reader.integer("saved_bytes", {0, kMostBytes})};
  point.source = reader.oneOf<ValueSource>("source", kSources, ValueSource::Measured);
  point.runs = static_cast<int>(reader.integer("runs", {0, 1 << 30}, 0));
  point.spread = reader.number("spread", {0, 1e6}, 0.0);
  if (reader.context().error) return;
  if (!table.devices[device].points[{*op, tp}].emplace(samples, point).second)
    reader.fail("samples", fmt::format("{} of {} at tp {} on {} stands there twice", samples, word, tp, device.substr(0, 60)));
}

bool takesTime(const DeviceProfile& device) {
  return std::ranges::any_of(device.points, [](const auto& op) {
    return std::ranges::any_of(op.second, [](const auto& point) { return (point.second.forward + point.second.backward).value > 0; });
  });
}

}  // namespace

Result<ProfileTable> parseProfile(const Json& json, const std::string& source) {
  JsonContext context{source, {}};
  JsonReader reader(json, context);
  expectFormat(reader, kProfileFormat);
  ProfileTable table;
  table.conditions = readConditions(reader);
  for (JsonReader& entry : reader.optionalObjects("devices")) {
    const std::string name = entry.text("device_type");
    if (entry.has("reserved_bytes")) table.devices[name].reserved = Bytes{entry.integer("reserved_bytes", {0, kMostBytes})};
  }
  for (JsonReader& entry : reader.objects("points")) {
    readPoint(entry, table);
    if (context.error) break;
  }
  if (context.error) return *std::move(context.error);
  if (table.devices.empty()) return invalidInput(source, "holds no point", "expected at least one in \"points\"");
  for (const auto& [name, device] : table.devices) {
    if (!device.points.empty() && !takesTime(device)) return invalidInput(source, fmt::format("says that every op of {} takes no time", name.substr(0, 80)), "measure it again");
  }
  return table;
}

Result<ProfileTable> loadProfile(const std::filesystem::path& file) {
  const auto json = readJsonFile(file);
  if (!json) return json.error();
  return parseProfile(*json, file.string());
}

Json toJson(const ProfileTable& table) {
  Json json;
  json["format"] = kProfileFormat;
  Json& conditions = json["conditions"] = Json::object();
  const ProfileConditions& c = table.conditions;
  if (c.precision) conditions["precision"] = name(*c.precision);
  if (c.sequenceLength > 0) conditions["sequence"] = c.sequenceLength;
  if (!c.model.empty()) conditions["model"] = c.model;
  if (!c.framework.empty()) conditions["framework"] = c.framework;
  if (!c.driver.empty()) conditions["driver"] = c.driver;
  if (!c.date.empty()) conditions["date"] = c.date;
  json["devices"] = Json::array();
  json["points"] = Json::array();
  for (const auto& [device, profile] : table.devices) {
    Json entry = {{"device_type", device}};
    if (profile.reserved) entry["reserved_bytes"] = profile.reserved->value;
    json["devices"].push_back(std::move(entry));
    for (const auto& [key, points] : profile.points) {
      for (const auto& [samples, point] : points) {
        Json p = {{"device_type", device},
                  {"op", name(key.op)},
                  {"tp", key.tp},
                  {"samples", samples},
                  {"forward_us", rounded(microseconds(point.forward))},
                  {"backward_us", rounded(microseconds(point.backward))}};
        if (point.saved) p["saved_bytes"] = point.saved->value;
        p["source"] = name(point.source);
        if (point.runs > 0) p["runs"] = point.runs;
        if (point.spread > 0) p["spread"] = rounded(point.spread);
        json["points"].push_back(std::move(p));
      }
    }
  }
  return json;
}

}  // namespace evenkeel
