// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/node_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/base/words.h"

namespace evenkeel {
namespace {

constexpr std::size_t kMostNames = 16384;

std::string_view trimmed(std::string_view text) {
  const auto isSpace = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && isSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back())) text.remove_suffix(1);
  return text;
}

class NodeListParser {
 public:
  explicit NodeListParser(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> parse() {
    std::vector<std::string> names;
    for (bool more = true; more;) {
      auto group = parseGroup();
      if (!group) return std::move(group).error();
      if (names.size() + group->size() > kMostNames) return tooMany();
      names.insert(names.end(), group->begin(), group->end());
      more = at_ < text_.size();
      ++at_;  // the comma
    }
    return names;
  }

 private:
  [[nodiscard]] Error wrong(std::size_t at, std::string what) const {
    return invalidInput(fmt::format("hosts \"{}\", column {}", text_.substr(0, 80), at + 1), std::move(what), "expected, for example, a,b or gpu[01-03,7]");
  }
  [[nodiscard]] Error tooMany() const { return wrong(0, fmt::format("names more than {} hosts", kMostNames)); }

  /// One name with any number of brackets, up to the next comma outside of them.
  Result<std::vector<std::string>> parseGroup() {
    std::vector<std::string> names{""};
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      if (text_[at_] == ']') return wrong(at_, "has a ] without its [");
      if (text_[at_] == '[') {
        auto words = parseBrackets();
        if (!words) return std::move(words).error();
        if (names.size() * words->size() > kMostNames) return tooMany();
        std::vector<std::string> longer;
        for (const std::string& name : names) {
          for (const std::string& word : *words) longer.push_back(name + word);
        }
        names = std::move(longer);
        continue;
      }
      const std::size_t end = std::min(text_.find_first_of(",[]", at_), text_.size());
      for (std::string& name : names) name += text_.substr(at_, end - at_);
      at_ = end;
    }
    for (std::string& name : names) {
      name = trimmed(name);
      if (name.empty()) return wrong(begin, "names a host without a name");
      if (name.find_first_of(" \t/\"'\\;|&$`()<>*?!") != std::string::npos || name.starts_with('-')) return wrong(begin, fmt::format("\"{}\" is no name of a host", name.substr(0, 80)));
    }
    return names;
  }

  /// "[01-03,7]" -> 01 02 03 7
  Result<std::vector<std::string>> parseBrackets() {
    const std::size_t open = at_, close = text_.find(']', at_);
    if (close == std::string_view::npos) return wrong(open, "has a [ without its ]");
    std::string_view inside = text_.substr(open + 1, close - open - 1);
    if (inside.find('[') != std::string_view::npos) return wrong(open, "has a [ inside a [");
    at_ = close + 1;
    std::vector<std::string> words;
    for (bool more = true; more;) {
      const std::size_t comma = inside.find(',');
      more = comma != std::string_view::npos;
      const std::string_view part = trimmed(inside.substr(0, comma));
      if (more) inside.remove_prefix(comma + 1);
      if (auto added = addRange(part, open, words); !added) return added.error();
    }
    return words;
  }

  Result<void> addRange(std::string_view part, std::size_t at, std::vector<std::string>& words) const {
    const std::size_t dash = part.find('-');
    const std::string_view firstText = part.substr(0, dash);
    const std::string_view lastText = dash == std::string_view::npos ? firstText : part.substr(dash + 1);
    const auto isNumber = [](std::string_view text) { return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }); };
    const auto first = parseNumber<std::int64_t>(firstText), last = parseNumber<std::int64_t>(lastText);
    if (!isNumber(firstText) || !isNumber(lastText) || !first || !last) return wrong(at, fmt::format("\"{}\" is no number or range of numbers", part.substr(0, 40)));
    if (*last < *first) return wrong(at, fmt::format("the range {} falls", part.substr(0, 40)));
    if (static_cast<std::size_t>(*last - *first) + words.size() >= kMostNames) return tooMany();
    for (std::int64_t number = *first; number <= *last; ++number) words.push_back(fmt::format("{:0{}}", number, firstText.size()));
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<std::string>> expandNodeList(std::string_view text) { return NodeListParser(text).parse(); }

}  // namespace evenkeel
