// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/discover/host_lists.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "core/base/words.h"
#include "launcher/discover/node_list.h"

namespace evenkeel {
namespace {

constexpr int kMostSlots = 1024;
constexpr int kMostIncludes = 16;  // as ssh itself

std::vector<std::string> wordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool isUsableName(std::string_view name) {
  return !name.empty() && !name.starts_with('-') && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
}

/// A name with more than one colon is a numeric address of IPv6: its colons separate nothing.
bool isIpv6(std::string_view name) { return std::ranges::count(name, ':') > 1; }

Result<int> slotsIn(std::string_view text, const std::string& where) {
  const auto slots = parseNumber<int>(text);
  if (!slots || *slots < 1 || *slots > kMostSlots) {
    return invalidInput(where, fmt::format("\"{}\" is no number of slots", text.substr(0, 40)), fmt::format("expected a whole number from 1 to {}", kMostSlots));
  }
  return *slots;
}

/// One line without its comment: "host", "host:4", "host slots=4 max_slots=8", "user@host slots=4".
Result<ListedHost> hostOfLine(const std::vector<std::string>& words, const std::string& where) {
  std::string name = words.front();
  std::optional<int> slots;
  if (!isIpv6(name) && name.find(':') != std::string::npos) {  // MPICH, Intel MPI: host:slots
    auto read = slotsIn(std::string_view(name).substr(name.find(':') + 1), where);
    if (!read) return std::move(read).error();
    slots = *read;
    name.resize(name.find(':'));
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = words[i].substr(0, equals);
    if (equals == std::string::npos) return invalidInput(where, fmt::format("\"{}\" is no setting", words[i].substr(0, 40)), "expected HOST slots=N");
    if (key != "slots" && key != "ncpus") continue;  // max_slots, port, user ... of one launcher or another: not ours
    auto read = slotsIn(std::string_view(words[i]).substr(equals + 1), where);
    if (!read) return std::move(read).error();
    slots = *read;
  }
  auto host = parseHost(name);
  if (!host) return invalidInput(where, host.error().where + " " + host.error().what, "expected HOST slots=N");
  host->slotCount = slots;
  return host;
}

std::vector<std::filesystem::path> matching(const std::string& pattern, const std::filesystem::path& base) {
  const char* home = std::getenv("HOME");
  std::string full = pattern;
  if (full.starts_with("~/") && home != nullptr) full = std::string(home) + full.substr(1);
  else if (!full.starts_with('/')) full = (base / full).string();
  glob_t found{};
  std::vector<std::filesystem::path> files;
  if (::glob(full.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return files;
}

Result<void> addAliases(const std::filesystem::path& file, const std::filesystem::path& base, int depth, std::vector<ListedHost>& hosts) {
  if (depth > kMostIncludes) return invalidInput(file.string(), fmt::format("is included more than {} deep", kMostIncludes));
  const auto text = readFile(file);
  if (!text) return text.error();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::ranges::replace_if(line, [](char c) { return c == '=' || c == '\r' || c == '"'; }, ' ');  // "Host=a" and quotes are allowed
    const std::vector<std::string> words = wordsOf(line.substr(0, line.find('#')));
    if (words.size() < 2) continue;
    const std::string key = lowerCase(words.front());
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (key == "include") {
        for (const auto& included : matching(words[i], base)) {
          if (auto added = addAliases(included, base, depth + 1, hosts); !added) return added;
        }
      }
      if (key != "host" || words[i].find_first_of("*?!") != std::string::npos || !isUsableName(words[i])) continue;
      if (std::ranges::any_of(hosts, [&](const ListedHost& known) { return known.name == words[i]; })) continue;
      ListedHost host{.name = words[i], .slotCount = {}, .ssh = {}};
      host.ssh.host = words[i];
      hosts.push_back(std::move(host));
    }
  }
  return {};
}

}  // namespace

Result<ListedHost> parseHost(std::string_view text) {
  const std::string where = fmt::format("host \"{}\"", text.substr(0, 80));
  ListedHost host;
  std::string_view rest = text;
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    host.ssh.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (!isUsableName(host.ssh.user)) return invalidInput(where, "names no user before its @", "expected USER@HOST");
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return invalidInput(where, "has a [ without its ]", "expected [ADDRESS]:PORT");
    port = rest.substr(close + 1);
    rest = rest.substr(1, close - 1);
    if (!port.empty() && !port.starts_with(':')) return invalidInput(where, "goes on after its ]", "expected [ADDRESS]:PORT");
  } else if (!isIpv6(rest) && rest.find(':') != std::string_view::npos) {
    port = rest.substr(rest.find(':'));
    rest = rest.substr(0, rest.find(':'));
  }
  if (!port.empty()) {
    const auto number = parseNumber<int>(port.substr(1));
    if (!number || *number < 1 || *number > 65535) return invalidInput(where, "names no port after its colon", "expected HOST:PORT");
    host.ssh.port = *number;
  }
  if (!isUsableName(rest)) return invalidInput(where, "is no name or address of a host", "expected [USER@]HOST[:PORT]");
  host.name = host.ssh.host = rest;
  return host;
}

Result<std::vector<ListedHost>> parseHosts(std::string_view list) {
  const auto names = expandNodeList(list);
  if (!names) return names.error();
  std::vector<ListedHost> hosts;
  for (const std::string& name : *names) {
    auto host = parseHost(name);
    if (!host) return std::move(host).error();
    hosts.push_back(*std::move(host));
  }
  return hosts;
}

Result<std::vector<ListedHost>> parseHostfile(std::string_view text, const std::string& source) {
  std::vector<ListedHost> hosts;
  std::map<std::string, int> lineOf;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = wordsOf(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    const std::string where = fmt::format("{}:{}", source, number);
    auto host = hostOfLine(words, where);
    if (!host) return std::move(host).error();
    const auto [first, isNew] = lineOf.emplace(host->name, number);
    if (!isNew) return invalidInput(where, fmt::format("{} stands in line {} already", host->name, first->second), "name each host once, with all of its slots");
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty()) return invalidInput(source, "names no host", "expected lines such as: worker-1 slots=4");
  return hosts;
}

Result<std::vector<ListedHost>> readSshConfig(const std::filesystem::path& file) {
  std::vector<ListedHost> hosts;
  if (auto added = addAliases(file, file.parent_path(), 0, hosts); !added) return added.error();
  if (hosts.empty()) return invalidInput(file.string(), "names no host one by one", "expected lines such as: Host gpu-1");
  return hosts;
}

Result<Cluster> clusterOf(const std::vector<ListedHost>& hosts, const std::string& type, int otherwise) {
  Json nodes = Json::array();
  for (const ListedHost& host : hosts) {
    nodes.push_back({{"name", host.name}, {"devices", {{"type", type}, {"count", host.slotCount.value_or(otherwise)}}}});
  }
  const Json json = {{"format", kClusterFormat}, {"nodes", nodes}};
  JsonContext context{"the list of hosts", {}};
  JsonReader reader(json, context);
  Cluster cluster = readCluster(reader);
  if (context.error) return *std::move(context.error);
  for (std::size_t i = 0; i < hosts.size(); ++i) cluster.nodes[i].ssh = hosts[i].ssh;
  return cluster;
}

}  // namespace evenkeel
