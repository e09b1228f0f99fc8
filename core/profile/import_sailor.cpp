// SPDX-License-Identifier: GPL-3.0-or-later
// Layer profiles of the Sailor artifact.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/profile/apportion.h"
#include "core/profile/import_support.h"
#include "core/profile/importers.h"

namespace evenkeel {
namespace {

/// [tp][layer] = {params_floats, act_mem_floats, ...} for one sample, fp32.
class LayerSizes {
 public:
  LayerSizes(const Json* json, std::string where) : json_(json), where_(std::move(where)) {}

  struct Size {
    std::int64_t parameters = 0;
    Bytes saved;
  };
  /// Nothing where the file lacks the tp or the layer.
  [[nodiscard]] Result<std::optional<Size>> of(int tp, int layer) const {
    if (json_ == nullptr) return std::optional<Size>{};
    const auto ofTp = json_->find(std::to_string(tp));
    if (ofTp == json_->end() || !ofTp->is_object()) return std::optional<Size>{};
    const auto found = ofTp->find(std::to_string(layer));
    if (found == ofTp->end()) return std::optional<Size>{};
    JsonContext context{where_, {}};
    JsonReader reader(*found, context, fmt::format("/{}/{}", tp, layer));
    Size size;
    size.parameters = reader.integer("params_floats", {0, std::int64_t{1} << 44U});
    size.saved = {4 * reader.integer("act_mem_floats", {0, std::int64_t{1} << 44U})};
    if (context.error) return *std::move(context.error);
    return std::optional<Size>{size};
  }

 private:
  const Json* json_;
  std::string where_;
};

/// Times of the layers of one (samples, tp): a list, or an object by layer number.
Result<std::vector<LayerPoint>> readLayers(const Json& json, const std::string& where, int expected) {
  std::vector<LayerPoint> layers;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string key = std::to_string(i);
    if (json.is_object() && !json.contains(key)) return invalidInput(where, fmt::format("lacks layer {}", i));
    const Json& times = json.is_object() ? json.at(key) : json.at(i);
    const std::string place = fmt::format("{}/{}", where, i);
    if (!times.is_array() || times.size() < 2)
      return invalidInput(place, "is no list of times", "expected [forward, backward, update]");
    const auto forward = secondsOf(times[0]), backward = secondsOf(times[1]);
    if (!forward || !backward) return invalidInput(place, "is no pair of times", "expected seconds from 0 to 1e6");
    layers.push_back({*forward, *backward, {}});
  }
  if (static_cast<int>(layers.size()) < expected) {
    return invalidInput(where, fmt::format("has {} layers", layers.size()),
                        fmt::format("the model has {} with embedding and head", expected));
  }
  return layers;
}

class SailorImport {
 public:
  SailorImport(const Model& model, const Training& training, const LayerSizes& sizes)
      : model_(model), apportioner_(model, training), sizes_(sizes) {}

  /// [samples][tp][layer].
  Result<DeviceProfile> read(const Json& json, const std::string& where, const DeviceType& device) const {
    if (!json.is_object()) return invalidInput(where, "is no object", "expected [samples][tp][layer]");
    DeviceProfile profile;
    for (const auto& [samplesText, ofSamples] : json.items()) {
      const auto samples = parseNumber<std::int64_t>(samplesText);
      if (!samples || *samples < 1 || *samples > kMaxGlobalBatch || !ofSamples.is_object())
        return invalidInput(where + "/" + samplesText.substr(0, 40), "is no number of samples with an object");
      for (const auto& [tpText, layers] : ofSamples.items()) {
        const auto tp = parseNumber<int>(tpText);
        const std::string place = fmt::format("{}/{}/{}", where, samplesText, tpText.substr(0, 40));
        if (!tp || *tp < 1 || *tp > 1 << 14 || !layers.is_structured()) return invalidInput(place, "is no tp with layers");
        if (auto added = addPoint(profile, device, layers, place, *tp, *samples); !added) return added.error();
      }
    }
    return profile;
  }

 private:
  Result<void> addPoint(DeviceProfile& profile, const DeviceType& device, const Json& json, const std::string& where, int tp,
                        std::int64_t samples) const {
    auto layers = readLayers(json, where, model_.layers + 2);
    if (!layers) return std::move(layers).error();
    // Transformer layers stand between the embedding and what is left for the head (LLaMA's norm is an entry of its own there).
    LayerPoint layer, head;
    const auto count = static_cast<double>(model_.layers);
    for (int i = 1; i <= model_.layers; ++i) {
      layer.forward += (1 / count) * (*layers)[static_cast<std::size_t>(i)].forward;
      layer.backward += (1 / count) * (*layers)[static_cast<std::size_t>(i)].backward;
    }
    std::int64_t headParameters = 0;
    bool knowsHead = true;
    for (std::size_t i = static_cast<std::size_t>(model_.layers) + 1; i < layers->size(); ++i) {
      head.forward += (*layers)[i].forward;
      head.backward += (*layers)[i].backward;
      const auto size = sizes_.of(tp, static_cast<int>(i));
      if (!size) return size.error();
      knowsHead = knowsHead && size->has_value();
      if (!*size) continue;
      headParameters += (*size)->parameters;
      head.saved = Bytes{(head.saved ? head.saved->value : 0) + samples * (*size)->saved.value};
    }
    LayerPoint embedding = layers->front();
    for (const auto& [point, index] : {std::pair{&embedding, 0}, std::pair{&layer, std::min(2, model_.layers)}}) {
      const auto size = sizes_.of(tp, index);
      if (!size) return size.error();
      if (*size) point->saved = samples * (*size)->saved;
    }
    // A projection would hold at least half of hidden x vocabulary / tp.
    const bool withoutProjection = knowsHead && headParameters < model_.hidden * model_.vocab / tp / 2;
    apportioner_.add(profile, device, LayerPart::Embedding, tp, samples, embedding);
    apportioner_.add(profile, device, LayerPart::Layer, tp, samples, layer);
    apportioner_.add(profile, device, LayerPart::Head, tp, samples, head, withoutProjection);
    return {};
  }

  const Model& model_;
  Apportioner apportioner_;
  const LayerSizes& sizes_;
};

}  // namespace

Result<ProfileTable> parseSailor(const Json& times, const Json& sizes, const SailorSource& source, const Model& model,
                                 const Training& training) {
  const Json* ofModel = nullptr;
  if (!sizes.is_null()) {
    if (!sizes.is_object() || !sizes.contains(source.model) || !sizes[source.model].is_object())
      return invalidInput(source.sizes.string(), fmt::format("has no model \"{}\"", source.model));
    ofModel = &sizes[source.model];
  }
  const LayerSizes layerSizes(ofModel, source.sizes.string() + " /" + source.model);
  const SailorImport import(model, training, layerSizes);

  ProfileTable table;
  table.conditions = {.precision = training.precision,
                      .sequenceLength = training.sequenceLength,
                      .model = source.model,
                      .framework = "Sailor layer profile",
                      .driver = "",
                      .date = ""};
  const auto add = [&](const std::string& device, const Json& json, const std::string& where) -> Result<void> {
    auto profile = import.read(json, where, referenceType(device));
    if (!profile) return std::move(profile).error();
    table.devices[deviceNameOf(device)] = *std::move(profile);
    return {};
  };
  const std::string where = source.times.string();
  if (!source.device.empty()) {
    if (auto added = add(source.device, times, where); !added) return added.error();
    return table;
  }
  if (!times.is_object() || !times.contains(source.model) || !times[source.model].is_object())
    return invalidInput(where, fmt::format("has no model \"{}\"", source.model));
  for (const auto& [device, json] : times[source.model].items()) {
    if (auto added = add(device, json, fmt::format("{} /{}/{}", where, source.model, device)); !added) return added.error();
  }
  return table;
}

Result<ProfileTable> importSailor(const SailorSource& source, const Model& model, const Training& training) {
  const auto times = readJsonFile(source.times);
  if (!times) return times.error();
  if (source.sizes.empty()) return parseSailor(*times, nullptr, source, model, training);
  const auto sizes = readJsonFile(source.sizes);
  if (!sizes) return sizes.error();
  return parseSailor(*times, *sizes, source, model, training);
}

}  // namespace evenkeel
