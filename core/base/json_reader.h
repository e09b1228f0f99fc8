// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.h"

namespace evenkeel {

template <class T>
struct Bounds {
  T least = std::numeric_limits<T>::lowest();
  T most = std::numeric_limits<T>::max();
};

/// Where a document comes from and the first thing that is wrong with it. One per document, shared by its readers.
struct JsonContext {
  std::string source;  // file name, or what stands for it
  std::optional<Error> error;
};

/// Reads the fields of one JSON object and remembers which were asked for. Nothing throws: the first wrong or missing field
/// is kept in the context as an Error that names source, JSON path and the expected form; later reads return defaults.
/// Pattern: read everything, then look at context.error once.
class JsonReader {
 public:
  /// `value` must outlive the reader. A value that is no object is an error at once.
  JsonReader(const Json& value, JsonContext& context, std::string path = "");

  [[nodiscard]] bool has(std::string_view key) const;  // present and not null

  // Required fields; an absent one is an error.
  std::string text(std::string_view key);
  std::int64_t integer(std::string_view key, Bounds<std::int64_t> bounds);
  double number(std::string_view key, Bounds<double> bounds);
  JsonReader object(std::string_view key);
  std::vector<JsonReader> objects(std::string_view key);  // an array of objects
  std::vector<std::int64_t> integers(std::string_view key, Bounds<std::int64_t> bounds);

  // Optional fields; an absent one is `otherwise`.
  std::string text(std::string_view key, std::string otherwise);
  std::int64_t integer(std::string_view key, Bounds<std::int64_t> bounds, std::int64_t otherwise);
  double number(std::string_view key, Bounds<double> bounds, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  std::vector<std::string> texts(std::string_view key);     // empty if absent
  std::vector<JsonReader> optionalObjects(std::string_view key);  // empty if absent

  /// One of a closed set of words. Optional if `otherwise` is given.
  template <class E>
  E oneOf(std::string_view key, std::span<const std::pair<std::string_view, E>> words, std::optional<E> otherwise = {}) {
    if (otherwise && !has(key)) return *otherwise;
    const std::string word = text(key);
    std::string known;
    for (const auto& [name, value] : words) {
      if (name == word) return value;
      known += known.empty() ? std::string(name) : ", " + std::string(name);
    }
    fail(key, "is \"" + word + "\"", "expected one of: " + known);
    return words.front().second;
  }

  /// Any JSON value; null if absent.
  [[nodiscard]] const Json& raw(std::string_view key);

  /// The fields that nobody asked for, to be written back: a file may carry more than we understand. One that is spelt nearly
  /// like a field that was asked for and is absent is an error: a misspelt "nic_bandwith_gbs" must not become a silent default.
  [[nodiscard]] Json rest();

  /// Records an error at a field (or at the object itself if key is empty).
  void fail(std::string_view key, std::string what, std::string remedy = {});
  [[nodiscard]] std::string placeOf(std::string_view key) const;
  [[nodiscard]] JsonContext& context() const { return *context_; }

 private:
  const Json* find(std::string_view key);
  const Json* require(std::string_view key, std::string_view expected);
  std::int64_t checkedInteger(const Json& value, std::string_view key, Bounds<std::int64_t> bounds);
  double checkedNumber(const Json& value, std::string_view key, Bounds<double> bounds);

  const Json* value_;
  JsonContext* context_;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
  mutable std::set<std::string, std::less<>> lookedFor_;  // asked_ and what has() was asked
};

/// Checks `format`, for example "evenkeel.cluster/1". A newer version is refused with the version that we know.
void expectFormat(JsonReader& reader, std::string_view format);

/// Adds the fields of `extra` (an object or null) that `json` lacks.
void addUnknownFields(Json& json, const Json& extra);

}  // namespace evenkeel
