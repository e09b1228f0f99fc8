// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/words.h"

namespace evenkeel {
namespace {

const Json& nullJson() {
  static const Json null;
  return null;
}

std::string_view kindOf(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  return "a number";
}

std::string shorten(std::string text) {
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string shown(const Json& value) {
  return value.is_structured() ? std::string(kindOf(value))
                               : shorten(value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

JsonReader::JsonReader(const Json& value, JsonContext& context, std::string path)
    : value_(&value), context_(&context), path_(std::move(path)) {
  if (!value.is_object()) {
    fail("", fmt::format("is {}", shown(value)), "expected an object");
    value_ = &nullJson();
  }
}

std::string JsonReader::placeOf(std::string_view key) const {
  std::string path = path_;
  if (!key.empty()) path += "/" + std::string(key);
  return context_->source + (path.empty() ? "" : " " + path);
}

void JsonReader::fail(std::string_view key, std::string what, std::string remedy) {
  if (!context_->error) context_->error = invalidInput(placeOf(key), std::move(what), std::move(remedy));
}

const Json* JsonReader::find(std::string_view key) {
  asked_.emplace(key);
  lookedFor_.emplace(key);
  if (!value_->is_object()) return nullptr;
  const auto found = value_->find(std::string(key));
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonReader::has(std::string_view key) const {
  lookedFor_.emplace(key);
  if (!value_->is_object()) return false;
  const auto found = value_->find(std::string(key));
  return found != value_->end() && !found->is_null();
}

const Json* JsonReader::require(std::string_view key, std::string_view expected) {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "is missing", fmt::format("expected {}", expected));
  return value;
}

std::int64_t JsonReader::checkedInteger(const Json& value, std::string_view key, Bounds<std::int64_t> bounds) {
  const std::string expected = bounds.most == std::numeric_limits<std::int64_t>::max()
                                   ? fmt::format("expected a whole number of at least {}", bounds.least)
                                   : fmt::format("expected a whole number from {} to {}", bounds.least, bounds.most);
  const bool tooLarge = value.is_number_unsigned() &&
                        value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_integer() || tooLarge) {
    fail(key, fmt::format("is {}", shown(value)), expected);
    return bounds.least;
  }
  const auto number = value.get<std::int64_t>();
  if (number < bounds.least || number > bounds.most) {
    fail(key, fmt::format("is {}", number), expected);
    return bounds.least;
  }
  return number;
}

double JsonReader::checkedNumber(const Json& value, std::string_view key, Bounds<double> bounds) {
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::isfinite(number) && number >= bounds.least && number <= bounds.most) return number;
  }
  const bool hasMost = bounds.most < std::numeric_limits<double>::max();
  fail(key, fmt::format("is {}", shown(value)),
       hasMost ? fmt::format("expected a number from {} to {}", bounds.least, bounds.most)
               : fmt::format("expected a number of at least {}", bounds.least));
  return bounds.least;
}

std::string JsonReader::text(std::string_view key) {
  const Json* value = require(key, "a string");
  if (value == nullptr) return {};
  if (!value->is_string()) {
    fail(key, fmt::format("is {}", shown(*value)), "expected a string");
    return {};
  }
  return value->get<std::string>();
}

std::string JsonReader::text(std::string_view key, std::string otherwise) {
  return find(key) == nullptr ? std::move(otherwise) : text(key);
}

std::int64_t JsonReader::integer(std::string_view key, Bounds<std::int64_t> bounds) {
  const Json* value = require(key, "a whole number");
  return value == nullptr ? bounds.least : checkedInteger(*value, key, bounds);
}

std::int64_t JsonReader::integer(std::string_view key, Bounds<std::int64_t> bounds, std::int64_t otherwise) {
  const Json* value = find(key);
  return value == nullptr ? otherwise : checkedInteger(*value, key, bounds);
}

double JsonReader::number(std::string_view key, Bounds<double> bounds) {
  const Json* value = require(key, "a number");
  return value == nullptr ? bounds.least : checkedNumber(*value, key, bounds);
}

double JsonReader::number(std::string_view key, Bounds<double> bounds, double otherwise) {
  const Json* value = find(key);
  return value == nullptr ? otherwise : checkedNumber(*value, key, bounds);
}

bool JsonReader::boolean(std::string_view key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    fail(key, fmt::format("is {}", shown(*value)), "expected true or false");
    return otherwise;
  }
  return value->get<bool>();
}

JsonReader JsonReader::object(std::string_view key) {
  const Json* value = require(key, "an object");
  if (value == nullptr) return {nullJson(), *context_, path_ + "/" + std::string(key)};
  return {*value, *context_, path_ + "/" + std::string(key)};
}

std::vector<JsonReader> JsonReader::objects(std::string_view key) {
  std::vector<JsonReader> readers;
  const Json* value = require(key, "an array of objects");
  if (value == nullptr) return readers;
  if (!value->is_array()) {
    fail(key, fmt::format("is {}", shown(*value)), "expected an array of objects");
    return readers;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    readers.emplace_back((*value)[i], *context_, fmt::format("{}/{}/{}", path_, key, i));
  }
  return readers;
}

std::vector<JsonReader> JsonReader::optionalObjects(std::string_view key) {
  return find(key) == nullptr ? std::vector<JsonReader>{} : objects(key);
}

std::vector<std::int64_t> JsonReader::integers(std::string_view key, Bounds<std::int64_t> bounds) {
  std::vector<std::int64_t> numbers;
  const Json* value = require(key, "an array of whole numbers");
  if (value == nullptr) return numbers;
  if (!value->is_array()) {
    fail(key, fmt::format("is {}", shown(*value)), "expected an array of whole numbers");
    return numbers;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    numbers.push_back(checkedInteger((*value)[i], fmt::format("{}/{}", key, i), bounds));
  }
  return numbers;
}

std::vector<std::string> JsonReader::texts(std::string_view key) {
  std::vector<std::string> words;
  const Json* value = find(key);
  if (value == nullptr) return words;
  if (!value->is_array()) {
    fail(key, fmt::format("is {}", shown(*value)), "expected an array of strings");
    return words;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    if (!(*value)[i].is_string()) {
      fail(fmt::format("{}/{}", key, i), fmt::format("is {}", shown((*value)[i])), "expected a string");
      return words;
    }
    words.push_back((*value)[i].get<std::string>());
  }
  return words;
}

const Json& JsonReader::raw(std::string_view key) {
  const Json* value = find(key);
  return value == nullptr ? nullJson() : *value;
}

Json JsonReader::rest() {
  Json rest;
  if (!value_->is_object()) return rest;
  for (const auto& [key, value] : value_->items()) {
    if (asked_.contains(key)) continue;
    for (const std::string& known : lookedFor_) {
      if (!value_->contains(known) && isMisspelling(key, known)) fail(key, "is no field", fmt::format("did you mean {}?", known));
    }
    rest[key] = value;
  }
  return rest;
}

void expectFormat(JsonReader& reader, std::string_view format) {
  const std::string found = reader.text("format");
  if (found == format || reader.context().error) return;
  reader.fail("format", fmt::format("is \"{}\"", shorten(found)), fmt::format("expected \"{}\"", format));
}

void addUnknownFields(Json& json, const Json& extra) {
  if (!extra.is_object()) return;
  for (const auto& [key, value] : extra.items()) {
    if (!json.contains(key)) json[key] = value;
  }
}

}  // namespace evenkeel
