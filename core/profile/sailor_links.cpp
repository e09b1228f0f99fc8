// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/sailor_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/base/json.h"
#include "core/base/words.h"

namespace evenkeel {

/// A value of a document with its place in it.
class JsonPlace {
 public:
  JsonPlace(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}
  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] Error wrong(const std::string& what, const std::string& remedy = {}) const {
    return invalidInput(where_, what, remedy);
  }

 private:
  const Json& json_;
  std::string where_;
};

namespace {

/// Calls visit(key, place) for each member of an object until one fails.
template <class Visit>
Result<void> forEach(const JsonPlace& place, const Visit& visit) {
  if (!place.json().is_object()) return place.wrong("is no object");
  for (const auto& [key, value] : place.json().items()) {
    if (auto visited = visit(key, JsonPlace(value, place.where() + "/" + key.substr(0, 40))); !visited) return visited;
  }
  return {};
}

Result<int> pairsOf(const std::string& text, const JsonPlace& place) {
  const auto pairs = parseNumber<int>(text);
  if (!pairs || *pairs < 1 || *pairs > 4096) return place.wrong("is no number of pairs");
  return *pairs;
}

}  // namespace

Result<SailorLinks::Fit> SailorLinks::readFit(const JsonPlace& place) {
  const Json& json = place.json();
  const bool hasShape = json.is_array() && json.size() == 2 && json[0].is_array() && json[0].size() == 3 && json[1].is_number() &&
                        std::ranges::all_of(json[0], [](const Json& value) { return value.is_number(); });
  if (!hasShape) return place.wrong("is no bandwidth", "expected [[a, b, c], most bytes per second]");
  const Fit fit{json[0][0].get<double>(), json[0][1].get<double>(), json[0][2].get<double>(), json[1].get<double>()};
  if (!(fit.most > 0) || !std::isfinite(fit.a + fit.b + fit.c + fit.most)) return place.wrong("is no bandwidth above 0");
  return fit;
}

LinkSpec SailorLinks::specOf(const Fit& fit) {
  LinkSpec spec{{fit.most}, {}, {}};
  std::optional<Seconds> above;
  for (int power = 30; power >= 16; power -= 2) {
    const Bytes size{std::int64_t{1} << static_cast<unsigned>(power)};
    const double l = std::log2(static_cast<double>(size.value) / 1e6);
    const BytesPerSecond fitted{std::min(fit.most, (fit.a * l * l + fit.b * l + fit.c) * 1e9)};
    // The square falls to 0 and below at small messages: none takes longer than one four times as large.
    const BytesPerSecond floor{above ? static_cast<double>(size.value) / above->value : fit.most / 1000};
    const BytesPerSecond rate = std::max(fitted, floor);
    above = size / rate;
    spec.table.push_back({size, rate});
  }
  std::ranges::reverse(spec.table);
  return spec;
}

std::optional<LinkSpec> SailorLinks::nearest(const ByPairs& fits, int pairs) {
  const auto found = std::ranges::min_element(fits, {}, [&](const auto& entry) { return std::abs(entry.first - pairs); });
  if (found == fits.end()) return std::nullopt;
  return specOf(found->second);
}

Result<SailorLinks> SailorLinks::load(const std::filesystem::path& folder, const std::string& zone) {
  const std::filesystem::path betweenFile = folder / "multizone_bandwidths_het.json",
                              insideFile = folder / "intra_node_bandwidths.json";
  const auto between = readJsonFile(betweenFile);
  if (!between) return between.error();
  const auto inside = readJsonFile(insideFile);
  if (!inside) return inside.error();
  return parse(*between, betweenFile.string(), *inside, insideFile.string(), zone);
}

Result<SailorLinks> SailorLinks::parse(const Json& between, const std::string& betweenWhere, const Json& inside,
                                       const std::string& insideWhere, const std::string& zone) {
  SailorLinks links;
  if (!between.is_object() || !between.contains(zone)) return invalidInput(betweenWhere, fmt::format("has no zone \"{}\"", zone));
  const auto read = forEach({between[zone], betweenWhere + " /" + zone}, [&](const std::string& a, const JsonPlace& cards) {
    return forEach(cards, [&](const std::string& n, const JsonPlace& zones) -> Result<void> {
      const auto pairs = pairsOf(n, zones);
      if (!pairs) return pairs.error();
      if (!zones.json().is_object() || !zones.json().contains(zone)) return {};
      return forEach({zones.json()[zone], zones.where() + "/" + zone}, [&](const std::string& b, const JsonPlace& peers) {
        return forEach(peers, [&](const std::string& n2, const JsonPlace& place) -> Result<void> {
          if (n2 != n) return {};
          auto fit = readFit(place);
          if (!fit) return std::move(fit).error();
          links.between_[{a, b}][*pairs] = *fit;
          return {};
        });
      });
    });
  });
  if (!read) return read.error();
  const auto readInside = forEach({inside, insideWhere}, [&](const std::string& card, const JsonPlace& counts) {
    return forEach(counts, [&](const std::string& n, const JsonPlace& place) -> Result<void> {
      const auto pairs = pairsOf(n, place);
      if (!pairs) return pairs.error();
      auto fit = readFit(place);
      if (!fit) return std::move(fit).error();
      links.inside_[card][*pairs] = *fit;
      return {};
    });
  });
  if (!readInside) return readInside.error();
  return links;
}

std::optional<LinkSpec> SailorLinks::between(const std::string& a, const std::string& b, int pairs) const {
  for (const auto& key : {std::pair{a, b}, std::pair{b, a}}) {
    if (const auto found = between_.find(key); found != between_.end()) return nearest(found->second, pairs);
  }
  return std::nullopt;
}

std::optional<LinkSpec> SailorLinks::inside(const std::string& card, int pairs) const {
  const auto found = inside_.find(card);
  return found == inside_.end() ? std::nullopt : nearest(found->second, pairs);
}

bool SailorLinks::hasNicPerCard(const std::string& card) const {
  const auto found = between_.find({card, card});
  if (found == between_.end() || found->second.size() < 2) return false;
  const auto& [few, one] = *found->second.begin();
  const auto& [many, all] = *found->second.rbegin();
  constexpr double kNearly = 0.9;
  return all.most / one.most >= kNearly * many / few;
}

}  // namespace evenkeel
