// SPDX-License-Identifier: GPL-3.0-or-later
// Profile folders of Metis.
#include <fmt/format.h>

#include "core/base/words.h"
#include "core/profile/apportion.h"
#include "core/profile/import_support.h"
#include "core/profile/importers.h"

namespace evenkeel {
namespace {

/// DeviceType.A100_tp2_bs4.json
struct FileName {
  std::string device;
  int tp = 0;
  std::int64_t samples = 0;
};

std::optional<FileName> parseFileName(std::string_view name) {
  constexpr std::string_view kPrefix = "DeviceType.", kSuffix = ".json";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const std::size_t bs = name.rfind("_bs");
  if (bs == std::string_view::npos) return std::nullopt;
  const std::size_t tp = name.substr(0, bs).rfind("_tp");
  if (tp == std::string_view::npos || tp == 0) return std::nullopt;
  const auto degree = parseNumber<int>(name.substr(tp + 3, bs - tp - 3));
  const auto samples = parseNumber<std::int64_t>(name.substr(bs + 3));
  if (!degree || *degree < 1 || *degree > 1 << 14 || !samples || *samples < 1 || *samples > kMaxGlobalBatch) return std::nullopt;
  return FileName{std::string(name.substr(0, tp)), *degree, *samples};
}

Result<std::vector<Seconds>> layerTimes(const Json& json, const std::filesystem::path& file, int expected) {
  JsonContext context{file.string(), {}};
  JsonReader reader(json, context);
  JsonReader execution = reader.object("execution_time");
  const Json& list = execution.raw("layer_compute_total_ms");
  if (context.error) return *std::move(context.error);
  const std::string where = file.string() + " /execution_time/layer_compute_total_ms";
  if (!list.is_array()) return invalidInput(where, "is no list", "expected one time a layer");
  std::vector<Seconds> times;
  for (const Json& value : list) {
    const auto time = secondsOf(value, 1e-3);
    if (!time)
      return invalidInput(fmt::format("{}/{}", where, times.size()), "is no time", "expected milliseconds from 0 to 1e9");
    times.push_back(*time);
  }
  if (static_cast<int>(times.size()) != expected) {
    return invalidInput(where, fmt::format("has {} layers", times.size()),
                        fmt::format("the model has {} with embedding and head", expected));
  }
  return times;
}

}  // namespace

Result<ProfileTable> parseMetis(const std::map<std::filesystem::path, Json>& files, const Model& model,
                                const Training& training) {
  ProfileTable table;
  table.conditions = {.precision = training.precision,
                      .sequenceLength = training.sequenceLength,
                      .model = model.name,
                      .framework = "Metis layer profile",
                      .driver = "",
                      .date = ""};
  const Apportioner apportioner(model, training);
  for (const auto& [file, json] : files) {
    const auto name = parseFileName(file.filename().string());
    if (!name) continue;
    const auto times = layerTimes(json, file, model.layers + 2);
    if (!times) return times.error();
    Seconds layer;
    for (std::size_t i = 1; i + 1 < times->size(); ++i) layer += (1.0 / model.layers) * (*times)[i];
    const DeviceType type = referenceType(name->device);
    DeviceProfile& profile = table.devices[deviceNameOf(name->device)];
    apportioner.addSum(profile, type, LayerPart::Embedding, name->tp, name->samples, times->front());
    apportioner.addSum(profile, type, LayerPart::Layer, name->tp, name->samples, layer);
    apportioner.addSum(profile, type, LayerPart::Head, name->tp, name->samples, times->back());
  }
  if (table.devices.empty()) {
    const std::string where = files.empty() ? "folder" : files.begin()->first.parent_path().string();
    return invalidInput(where, "holds no profile of Metis", "expected files DeviceType.X_tpT_bsB.json");
  }
  return table;
}

Result<ProfileTable> importMetis(const std::filesystem::path& folder, const Model& model, const Training& training) {
  std::error_code failure;
  std::map<std::filesystem::path, Json> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (!parseFileName(entry.path().filename().string())) continue;
    auto json = readJsonFile(entry.path());
    if (!json) return std::move(json).error();
    files[entry.path()] = *std::move(json);
  }
  if (failure) return invalidInput(folder.string(), "cannot be read as a folder: " + failure.message());
  if (files.empty())
    return invalidInput(folder.string(), "holds no profile of Metis", "expected files DeviceType.X_tpT_bsB.json");
  return parseMetis(files, model, training);
}

}  // namespace evenkeel
