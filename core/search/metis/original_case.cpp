// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/metis/original_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <regex>
#include <sstream>

#include "core/base/json_reader.h"

namespace evenkeel::metis {
namespace {

constexpr Bounds<double> kPositive{0.0, 1e15};
constexpr Bounds<std::int64_t> kCount{1, 1'000'000};
/// The original permutes node types; more than this many make more orders than anybody waits for.
constexpr std::size_t kMostTypes = 6;

Result<std::vector<double>> numbersOf(const Json& json, const std::string& where) {
  if (!json.is_array() || json.empty()) return invalidInput(where, "is not a list of numbers");
  std::vector<double> numbers;
  for (const Json& value : json) {
    if (!value.is_number() || !(value.get<double>() >= 0))
      return invalidInput(where, "holds something that is no number from 0 on");
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

/// The value at a path of keys; null where it is absent.
const Json& at(const Json& json, std::initializer_list<const char*> path) {
  static const Json kNothing;
  const Json* now = &json;
  for (const char* const key : path) {
    if (!now->is_object() || !now->contains(key)) return kNothing;
    now = &now->at(key);
  }
  return *now;
}

Result<double> numberAt(const Json& json, const std::filesystem::path& file, std::initializer_list<const char*> path) {
  const Json& value = at(json, path);
  std::string name;
  for (const char* const key : path) name += (name.empty() ? "" : ".") + std::string(key);
  if (!value.is_number()) return invalidInput(fmt::format("{}: {}", file.string(), name), "is missing or no number");
  return value.get<double>();
}

/// `IP slots=D`, one node a line.
Result<std::vector<std::pair<std::string, int>>> readHostfile(const std::filesystem::path& file) {
  const auto text = readFile(file);
  if (!text) return text.error();
  std::vector<std::pair<std::string, int>> nodes;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    static const std::regex kLine(R"(\s*(\S+)\s+slots=(\d{1,4})\s*)");
    std::smatch match;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!std::regex_match(line, match, kLine)) {
      return invalidInput(fmt::format("{}, line {}", file.string(), number), fmt::format("is \"{}\"", line.substr(0, 80)),
                          "expected an address and slots=N");
    }
    nodes.emplace_back(match[1], std::stoi(match[2]));
  }
  if (nodes.empty()) return invalidInput(file.string(), "names no node");
  return nodes;
}

Result<void> readNodes(const std::filesystem::path& folder, OriginalCase& given) {
  const auto hosts = readHostfile(folder / "hostfile");
  if (!hosts) return hosts.error();
  const auto file = folder / "clusterfile.json";
  const auto json = readJsonFile(file);
  if (!json) return json.error();
  if (!json->is_object()) return invalidInput(file.string(), "is no object of nodes");
  for (const auto& [address, node] : json->items()) {
    JsonContext context{file.string(), {}};
    JsonReader reader(node, context, address);
    const std::string type = reader.text("instance_type");
    const double memory = reader.number("memory", kPositive);
    if (context.error) return *context.error;
    given.memoryMb.try_emplace(type, memory * 1024);
  }
  for (const auto& [address, devices] : *hosts) {
    const Json& node = at(*json, {address.c_str()});
    if (!node.is_object()) return invalidInput(file.string(), fmt::format("does not describe {} of the hostfile", address));
    const auto bandwidth = numberAt(node, file, {"intra_bandwidth"});
    if (!bandwidth) return bandwidth.error();
    if (!(*bandwidth > 0)) return invalidInput(fmt::format("{}: {}", file.string(), address), "has no intra_bandwidth above 0");
    given.nodes.push_back({node.at("instance_type").get<std::string>(), devices, *bandwidth});
  }
  return {};
}

Result<void> readArguments(const std::filesystem::path& folder, OriginalCase& given, std::string& firstFile) {
  const auto file = folder / "case.json";
  const auto json = readJsonFile(file);
  if (!json) return json.error();
  JsonContext context{file.string(), {}};
  JsonReader reader(*json, context);
  firstFile = reader.text("profile_first_file", "");
  JsonReader arguments = reader.object("args");
  given.layers = static_cast<int>(arguments.integer("num_layers", {2, 10'000}));
  given.globalBatch = arguments.integer("gbs", kCount);
  given.hidden = arguments.integer("hidden_size", kCount);
  given.sequence = arguments.integer("sequence_length", kCount);
  given.vocabulary = arguments.integer("vocab_size", kCount);
  given.mostTp = static_cast<int>(arguments.integer("max_profiled_tp_degree", {1, 1024}));
  given.mostBatch = static_cast<int>(arguments.integer("max_profiled_batch_size", {1, 1'000'000}));
  given.variance = arguments.number("min_group_scale_variance", {0.0, 1e6});
  given.mostPermuted = static_cast<int>(arguments.integer("max_permute_len", {1, 64}));
  const Json& orders = reader.raw("node_sequence_order");
  if (context.error) return *context.error;
  if (orders.is_array()) {
    for (const Json& order : orders) {
      std::vector<std::string> types;
      for (const Json& type : order) {
        if (!type.is_string()) return invalidInput(file.string() + ": node_sequence_order", "holds something that is no type");
        types.push_back(type.get<std::string>());
      }
      given.typeOrders.push_back(std::move(types));
    }
  }
  return {};
}

Result<void> readProfiles(const std::filesystem::path& folder, const std::string& firstFile, OriginalCase& given) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) files.push_back(entry.path());
  if (error) return invalidInput(folder.string(), "cannot be read: " + error.message());
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    static const std::regex kName(R"(DeviceType\.(.+)_tp(\d{1,4})_bs(\d{1,6})\.json)");
    std::smatch match;
    const std::string name = file.filename().string();
    if (!std::regex_match(name, match, kName)) continue;
    const auto json = readJsonFile(file);
    if (!json) return json.error();
    const auto layers = numbersOf(at(*json, {"execution_time", "layer_compute_total_ms"}), name + ": layer_compute_total_ms");
    const auto memory = numbersOf(at(*json, {"execution_memory", "layer_memory_total_mb"}), name + ": layer_memory_total_mb");
    const auto both = numberAt(*json, file, {"execution_time", "forward_backward_time_ms"});
    if (!layers) return layers.error();
    if (!memory) return memory.error();
    if (!both) return both.error();
    for (const std::vector<double>* const list : {&*layers, &*memory}) {
      if (list->size() != static_cast<std::size_t>(given.layers))
        return invalidInput(file.string(), fmt::format("has {} layers", list->size()),
                            fmt::format("num_layers is {}", given.layers));
    }
    given.profiles[{match[1], std::stoi(match[2]), std::stoi(match[3])}] = {*layers, *both, *memory};
    if (given.firstType.empty() && (firstFile.empty() || firstFile == name)) {
      const auto parameters =
          numbersOf(at(*json, {"model", "parameters", "parameters_per_layer_bytes"}), name + ": parameters_per_layer_bytes");
      const auto optimizer = numberAt(*json, file, {"execution_time", "optimizer_time_ms"});
      const auto generator = numberAt(*json, file, {"execution_time", "batch_generator_time_ms"});
      if (!parameters) return parameters.error();
      if (parameters->size() < 2) return invalidInput(name + ": parameters_per_layer_bytes", "has fewer than 2 layers");
      if (!optimizer) return optimizer.error();
      if (!generator) return generator.error();
      given.firstType = match[1];
      given.parameterBytes = *parameters;
      given.optimizerMs = *optimizer;
      given.batchGeneratorMs = *generator;
    }
  }
  if (given.firstType.empty()) {
    return invalidInput(folder.string(),
                        firstFile.empty() ? "holds no DeviceType.<T>_tp<t>_bs<b>.json" : "does not hold " + firstFile);
  }
  return {};
}

}  // namespace

int OriginalCase::deviceCount() const {
  return std::accumulate(nodes.begin(), nodes.end(), 0, [](int sum, const Node& node) { return sum + node.devices; });
}

Result<OriginalCase> loadOriginalCase(const std::filesystem::path& folder, const std::filesystem::path& profiles) {
  OriginalCase given;
  std::string firstFile;
  if (auto read = readArguments(folder, given, firstFile); !read) return read.error();
  if (auto read = readNodes(folder, given); !read) return read.error();
  if (auto read = readProfiles(profiles, firstFile, given); !read) return read.error();

  std::vector<std::string> types;
  for (const OriginalCase::Node& node : given.nodes) {
    if (std::ranges::find(types, node.type) == types.end()) types.push_back(node.type);
  }
  if (types.size() > kMostTypes)
    return invalidInput(folder.string(), fmt::format("has {} device types", types.size()), "at most 6");
  std::ranges::sort(types);
  if (given.typeOrders.empty()) {
    do given.typeOrders.push_back(types);
    while (std::ranges::next_permutation(types).found);
  }
  for (const std::vector<std::string>& order : given.typeOrders) {
    if (!std::ranges::is_permutation(order, types))
      return invalidInput((folder / "case.json").string() + ": node_sequence_order", "does not name each device type once");
  }
  std::vector<std::string> needed = types;
  needed.push_back(given.firstType);
  for (const std::string& type : needed) {
    for (int tp = 1; tp <= given.mostTp; tp *= 2) {
      if (!given.profiles.contains({type, tp, 1}))
        return invalidInput(profiles.string(), fmt::format("lacks DeviceType.{}_tp{}_bs1.json", type, tp));
    }
  }
  return given;
}

}  // namespace evenkeel::metis
