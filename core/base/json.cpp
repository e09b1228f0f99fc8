// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <unordered_set>
#include <vector>

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

struct TooDeep {};
struct GivenTwice {
  std::string key;
};

/// What the parser's events are checked for: nesting, and names that one object gives twice (of which only one could be kept).
class DocumentLimits {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxJsonDepth) throw TooDeep{};
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get_ref<const std::string&>()).second) {
      throw GivenTwice{parsed.get<std::string>()};
    }
    return true;
  }

 private:
  std::vector<std::unordered_set<std::string>> keys_;  // one set for each open object
};

std::string lineAndColumn(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t lineStart = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("{}:{}", line, before.size() - lineStart + 1);
}

/// nlohmann's "[json.exception...] parse error at line 1, column 2: syntax error while parsing ... - ..." less its preamble.
std::string plainReason(std::string_view message) {
  if (const std::size_t bracket = message.find("] "); message.starts_with('[') && bracket != std::string_view::npos) message.remove_prefix(bracket + 2);
  const std::size_t position = message.find("column ");
  const std::size_t colon = position == std::string_view::npos ? position : message.find(": ", position);
  return std::string(colon == std::string_view::npos ? message : message.substr(colon + 2));
}

bool looksBinary(std::string_view text) { return text.substr(0, 4096).find('\0') != std::string_view::npos; }

}  // namespace

Result<Json> parseJson(std::string_view text, const std::string& source) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return invalidInput(source, "is empty", "expected a JSON document");
  }
  if (looksBinary(text)) return invalidInput(source, "is a binary file", "expected a JSON document");
  DocumentLimits limits;
  try {
    return Json::parse(text, std::ref(limits));
  } catch (const TooDeep&) {
    return invalidInput(source, fmt::format("nests deeper than {} levels", kMaxJsonDepth));
  } catch (const GivenTwice& twice) {
    return invalidInput(source, fmt::format("gives \"{}\" twice in one object", twice.key.substr(0, 80)), "leave one of them out");
  } catch (const Json::parse_error& error) {
    // byte is 1-based and names the last character read
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    return invalidInput(source + ":" + lineAndColumn(text, offset), plainReason(error.what()));
  } catch (const Json::exception& error) {
    return invalidInput(source, plainReason(error.what()));
  }
}

Result<std::string> readFile(const fs::path& file) {
  std::error_code failure;
  const fs::file_status status = fs::status(file, failure);
  if (status.type() == fs::file_type::not_found) return invalidInput(file.string(), "no such file");
  if (failure) return invalidInput(file.string(), failure.message());
  if (status.type() == fs::file_type::directory) return invalidInput(file.string(), "is a folder", "expected a file");
  if (status.type() != fs::file_type::regular) return invalidInput(file.string(), "is not a regular file");
  const std::uintmax_t size = fs::file_size(file, failure);
  if (failure) return invalidInput(file.string(), failure.message());
  if (size > kMaxFileBytes) return invalidInput(file.string(), fmt::format("has {} bytes; the limit is {}", size, kMaxFileBytes));
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return invalidInput(file.string(), std::string("cannot be opened: ") + std::strerror(errno));
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

Result<Json> readJsonFile(const fs::path& file) {
  auto text = readFile(file);
  if (!text) return std::move(text).error();
  return parseJson(*text, file.string());
}

Result<void> writeFileAtomically(const fs::path& file, std::string_view bytes, bool isPrivate) {
  const auto fail = [&](const char* step) {
    return failed(file.string(), fmt::format("cannot be written ({}: {})", step, std::strerror(errno)));
  };
  std::error_code unknown;
  // A link keeps pointing where it points, and a device or pipe is written to: neither may be replaced by a file.
  const fs::path target = fs::is_symlink(file, unknown) ? fs::weakly_canonical(file, unknown) : file;
  const fs::file_status status = fs::status(target, unknown);
  const bool inPlace = fs::exists(status) && !fs::is_regular_file(status);
  const fs::path part = inPlace ? target : fs::path(target.string() + fmt::format(".{}.part", ::getpid()));
  const int fd = ::open(part.c_str(), O_WRONLY | (inPlace ? 0 : O_CREAT | O_TRUNC) | O_CLOEXEC, isPrivate ? 0600 : 0644);
  if (fd < 0) return fail("open");
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const Error error = fail("write");
      ::close(fd);
      if (!inPlace) ::unlink(part.c_str());
      return error;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (inPlace) {
    ::close(fd);
    return {};
  }
  const bool flushed = ::fsync(fd) == 0;
  if (::close(fd) != 0 || !flushed || ::rename(part.c_str(), target.c_str()) != 0) {
    const Error error = fail("rename");
    ::unlink(part.c_str());
    return error;
  }
  return {};
}

double rounded(double number) {
  if (!std::isfinite(number)) return number;
  return std::strtod(fmt::format("{:.12g}", number).c_str(), nullptr);
}

std::string prettyText(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace evenkeel
