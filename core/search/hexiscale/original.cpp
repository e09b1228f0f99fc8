// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/hexiscale/original.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "core/base/json_reader.h"
#include "core/base/words.h"
#include "core/plan/plan.h"

namespace evenkeel::hexiscale {
namespace {

constexpr double kTera = 1024.0 * 1024 * 1024 * 1024, kGiga = 1024.0 * 1024 * 1024;  // as the original counts
constexpr std::int64_t kMostDevices = 4096;

/// The models that the original knows, all with sequences of 4096 and a vocabulary of 32000.
struct KnownModel {
  std::string_view name;
  double hidden;
  int layers;
};
constexpr std::array<KnownModel, 4> kModels = {
    {{"llama-7b", 4096, 32}, {"llama-13b", 5120, 40}, {"llama-30b", 6656, 60}, {"llama-70b", 8192, 80}}};

std::filesystem::path beside(const std::filesystem::path& folder, const char* name) {
  return std::filesystem::exists(folder / name) ? folder / name : folder.parent_path() / name;
}

Result<double> numberIn(const Json& json, const char* key, std::size_t index, const std::string& where) {
  if (json.is_object() && json.contains(key) && json.at(key).is_array() && index < json.at(key).size() &&
      json.at(key)[index].is_number() && json.at(key)[index].get<double>() > 0)
    return json.at(key)[index].get<double>();
  return invalidInput(where, fmt::format("has no positive number in {}[{}]", key, index));
}

/// The value behind `--name` among the recorded arguments.
std::optional<std::string> argument(const std::vector<std::string>& arguments, std::string_view name) {
  const auto found = std::ranges::find(arguments, name);
  if (found == arguments.end() || std::next(found) == arguments.end()) return std::nullopt;
  return *std::next(found);
}

Result<void> readArguments(const std::filesystem::path& file, OriginalCase& given, double& interGbs) {
  const auto json = readJsonFile(file);
  if (!json) return json.error();
  JsonContext context{file.string(), {}};
  JsonReader reader(*json, context);
  const std::vector<std::string> arguments = reader.texts("args");
  if (context.error) return *context.error;
  const auto count = [&](std::string_view name) -> Result<std::int64_t> {
    const auto text = argument(arguments, name);
    const auto value = text ? parseNumber<std::int64_t>(*text) : std::nullopt;
    if (!value || *value < 1 || *value > kMaxGlobalBatch)
      return invalidInput(file.string(), fmt::format("args have no {} with a whole number above 0", name));
    return *value;
  };
  const auto pipelines = count("--npipeline"), global = count("--global_bsz"), micro = count("--micro_bsz");
  for (const auto* one : {&pipelines, &global, &micro}) {
    if (!*one) return one->error();
  }
  given.pipelines = static_cast<int>(*pipelines);
  given.globalBatch = *global;
  given.microBatch = *micro;
  const auto speed = argument(arguments, "--inter_bw");
  const auto bandwidth = speed ? parseNumber<double>(*speed) : std::nullopt;
  if (!bandwidth || !(*bandwidth > 0)) return invalidInput(file.string(), "args have no --inter_bw with a number above 0");
  interGbs = *bandwidth;
  given.model = argument(arguments, "--model-size").value_or("");
  const auto model = std::ranges::find(kModels, given.model, &KnownModel::name);
  if (model == kModels.end())
    return invalidInput(file.string(), fmt::format("--model-size is \"{}\"", given.model),
                        "the original knows llama-7b, -13b, -30b and -70b");
  given.setting.layers = model->layers;
  given.setting.hidden = model->hidden;
  given.setting.sequence = 4096;
  given.setting.vocabulary = 32000;
  return {};
}

/// Devices type by type, machine by machine.
Result<void> readMachines(const std::filesystem::path& file, OriginalCase& given, double interGbs) {
  const auto json = readJsonFile(file);
  if (!json) return json.error();
  if (!json->is_object() || !json->contains("machine_amounts") || !json->at("machine_amounts").is_object() ||
      !json->contains("machine_specs"))
    return invalidInput(file.string(), "lacks machine_specs or machine_amounts");
  std::vector<double> intra;  // by machine
  for (const auto& [type, amounts] : json->at("machine_amounts").items()) {
    std::array<double, 3> spec{};  // TFLOPS, memory, bandwidth
    for (std::size_t i = 0; i < spec.size(); ++i) {
      const auto value = numberIn(json->at("machine_specs"), type.c_str(), i, file.string());
      if (!value) return value.error();
      spec[i] = *value;
    }
    if (!amounts.is_object()) return invalidInput(file.string(), fmt::format("amount of {} is no object", type));
    for (const auto& [size, count] : amounts.items()) {
      const auto devices = parseNumber<std::int64_t>(size);
      if (!devices || *devices < 1 || *devices > kMostDevices || !count.is_number_integer() || count.get<std::int64_t>() < 0 ||
          count.get<std::int64_t>() > kMostDevices)
        return invalidInput(file.string(), fmt::format("amount of {} is not devices: machines", type));
      for (std::int64_t machine = 0; machine < count.get<std::int64_t>(); ++machine) {
        for (std::int64_t d = 0; d < *devices; ++d) {
          if (std::ssize(given.types) >= kMostDevices) return invalidInput(file.string(), "has too many devices");
          given.setting.devices.push_back({static_cast<int>(intra.size()), spec[0] * kTera, spec[1]});
          given.types.push_back(type);
          given.machines.push_back(static_cast<int>(intra.size()));
        }
        intra.push_back(spec[2] * kGiga);
      }
    }
  }
  given.setting.bandwidth = [hosts = given.machines, intra, inter = interGbs * kGiga](int a, int b) {
    const int host = hosts[static_cast<std::size_t>(a)];
    return host == hosts[static_cast<std::size_t>(b)] ? intra[static_cast<std::size_t>(host)] : inter;
  };
  return {};
}

Result<void> readAnswers(const std::filesystem::path& file, OriginalCase& given) {
  const auto text = readFile(file);
  if (!text) return text.error();
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto json = parseJson(line, fmt::format("{}, line {}", file.string(), number));
    if (!json) return json.error();
    JsonContext context{fmt::format("{}, line {}", file.string(), number), {}};
    JsonReader reader(*json, context);
    const auto parts = reader.integers("parts", {0, kMostDevices});
    if (context.error) return *context.error;
    given.answers.emplace_back(parts.begin(), parts.end());
  }
  return {};
}

/// The members of each part, in their order.
std::vector<SubPart> split(const SubPart& devices, const std::vector<int>& parts) {
  std::vector<SubPart> result(static_cast<std::size_t>(*std::ranges::max_element(parts)) + 1);
  for (std::size_t i = 0; i < devices.size(); ++i) result[static_cast<std::size_t>(parts[i])].push_back(devices[i]);
  return result;
}

}  // namespace

Result<OriginalCase> loadOriginalCase(const std::filesystem::path& folder) {
  OriginalCase given;
  double interGbs = 0;
  if (auto read = readArguments(beside(folder, "case.json"), given, interGbs); !read) return read.error();
  if (auto read = readMachines(beside(folder, "machines.json"), given, interGbs); !read) return read.error();
  if (auto read = readAnswers(folder / "metis_calls.jsonl", given); !read) return read.error();
  if (given.microBatch < given.pipelines)
    return invalidInput(folder.string(), "has fewer samples in a micro-batch than pipelines");
  return given;
}

Result<std::vector<Iteration>> replay(const OriginalCase& given, Batching batching) {
  SubPart everyone(given.setting.devices.size());
  for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
  const std::int64_t microBatch = given.microBatch / given.pipelines;
  std::vector<Iteration> iterations;
  std::size_t next = 0;
  while (next < given.answers.size()) {
    if (given.answers[next].size() != everyone.size())
      return invalidInput(fmt::format("METIS answer {}", next), "does not divide all devices");
    const std::vector<SubPart> pipelines = split(everyone, given.answers[next++]);
    if (next + pipelines.size() > given.answers.size()) break;  // the division for an iteration that never came
    const auto count = static_cast<std::int64_t>(pipelines.size());
    Batches batches{static_cast<double>(microBatch), given.globalBatch / given.microBatch};
    std::int64_t samples = given.globalBatch;
    if (batching == Batching::Consistent) {
      batches.count = given.globalBatch / (count * microBatch);
      samples = batches.count * count * microBatch;
    }
    Iteration one;
    double slowest = 0;
    bool fits = true;
    for (const SubPart& devices : pipelines) {
      if (given.answers[next].size() != devices.size())
        return invalidInput(fmt::format("METIS answer {}", next), "does not divide the devices of its pipeline");
      const std::vector<SubPart> parts = split(devices, given.answers[next++]);
      if (parts.size() > 3) return invalidInput(fmt::format("METIS answer {}", next - 1), "has more than 3 parts");
      Layout layout;
      for (const std::size_t part : orderOfSubParts(given.setting, parts)) {
        const auto stages = stagesOf(given.setting, parts[part], batches);
        layout.stages.insert(layout.stages.end(), stages.begin(), stages.end());
      }
      layout.layers = layersByMemory(given.setting, layout.stages);
      fits = fits && fitsByItsOwn(given.setting, layout, batches.microBatch);
      slowest = std::max(slowest, pipelineSeconds(given.setting, layout, batches));
      one.memoryGib.push_back(memoryGib(given.setting, layout, batches.microBatch));
      one.pipelines.push_back(std::move(layout));
    }
    one.seconds = iterationSeconds(slowest, syncSeconds(given.setting, one.pipelines));
    if (fits) one.tokensPerSecond = static_cast<double>(samples) * given.setting.sequence / one.seconds;
    iterations.push_back(std::move(one));
  }
  return iterations;
}

Json documentOf(const OriginalCase& given, const std::vector<Iteration>& iterations) {
  const auto pipelinesOf = [&](const Iteration& one) {
    Json pipelines = Json::array();
    for (std::size_t p = 0; p < one.pipelines.size(); ++p) {
      Json devices = Json::array();
      for (const StageDevices& stage : one.pipelines[p].stages) {
        Json names = Json::array();
        for (const int device : stage)
          names.push_back(fmt::format("{}@{}", given.types[static_cast<std::size_t>(device)],
                                      given.machines[static_cast<std::size_t>(device)]));
        devices.push_back(std::move(names));
      }
      pipelines.push_back({{"stages", one.pipelines[p].stages},
                           {"layers", one.pipelines[p].layers},
                           {"mem_gib_per_device", one.memoryGib[p]},
                           {"devices", std::move(devices)}});
    }
    return pipelines;
  };
  Json document;
  document["format"] = kPlanFormat;
  Json& search = document["search"];
  search["planner"] = "hexiscale";
  search["options"] = {{"exact", "true"}};
  search["stopped"] = "space exhausted";
  search["evaluated"] = iterations.size();
  Json& original = search["original"];
  const Iteration* best = nullptr;  // the first of the best
  for (const Iteration& one : iterations) {
    if (one.tokensPerSecond > 0 && (best == nullptr || one.tokensPerSecond > best->tokensPerSecond)) best = &one;
  }
  original["tokens_per_s"] = best == nullptr ? Json(nullptr) : Json(best->tokensPerSecond);
  original["cost_ms"] = best == nullptr ? Json(nullptr) : Json(1e3 * best->seconds);
  original["npipeline"] = best == nullptr ? Json(nullptr) : Json(best->pipelines.size());
  original["pipelines"] = best == nullptr ? Json(nullptr) : pipelinesOf(*best);
  Json& all = original["iterations"] = Json::array();
  for (const Iteration& one : iterations)
    all.push_back({{"npipeline", one.pipelines.size()}, {"pipelines", pipelinesOf(one)}, {"throughput", one.tokensPerSecond}});
  return document;
}

}  // namespace evenkeel::hexiscale
