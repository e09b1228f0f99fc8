// SPDX-License-Identifier: GPL-3.0-or-later
// Reads every #include of the project and names those that break the table of allowed includes (resources/docs/design.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// Folder -> the folders that it may include besides itself. What they include comes along.
const std::map<std::string, Names> kMayInclude = {
    {"resources", {}},
    {"core/base", {}},
    {"core/cluster", {"core/base", "resources"}},
    {"core/model", {"core/base", "resources"}},
    {"core/plan", {"core/cluster", "core/model"}},
    {"core/trace", {"core/plan"}},
    {"core/profile", {"core/plan", "core/trace"}},
    {"core/cost", {"core/plan", "core/trace", "core/profile"}},
    {"core/search", {"core/cost"}},
    {"core/report", {"core/cost"}},
    {"launcher/ssh", {"core/base"}},
    {"launcher/agent", {"core/base", "core/trace"}},
    {"launcher/deploy", {"launcher/ssh", "core/cluster"}},
    {"launcher/discover", {"launcher/ssh", "core/cluster"}},
    {"launcher/job", {"launcher/ssh", "launcher/agent", "launcher/deploy", "launcher/discover", "core/search"}},
    {"runtime", {"core/base", "core/model", "core/plan", "core/profile", "core/trace"}},
    {"app/cli", {"core/search", "core/report", "launcher/job", "launcher/discover"}},
    {"app/gui", {"core/search", "core/report", "launcher/job", "launcher/discover"}},
};

// Third-party headers -> the folders that may name them. A header that is not listed here is refused everywhere but in tests.
const std::vector<std::pair<std::regex, Names>> kForeign = {
    {std::regex("(nlohmann|fmt|spdlog)/.*"), {"core/base", "core/cluster", "core/model", "core/plan", "core/trace", "core/profile", "core/cost", "core/search", "core/report",
                                              "launcher/ssh", "launcher/agent", "launcher/deploy", "launcher/discover", "launcher/job", "runtime", "app/cli", "app/gui"}},
    {std::regex("(oneapi/)?tbb/.*"), {"core/search"}},
    {std::regex("libssh/.*"), {"launcher/ssh"}},
    {std::regex("sqlite3\\.h"), {"launcher/job"}},
    {std::regex("CLI/.*|sentencepiece_(processor|trainer)\\.h"), {"app/cli"}},
    {std::regex("(torch|ATen|c10|gloo|caffe2)/.*|nccl\\.h"), {"runtime"}},
    {std::regex("Q[A-Z][A-Za-z]*|Qt([A-Z].*)?|qcustomplot\\.h"), {"app/gui"}},
};

std::string folderOf(const std::string& path) {
  std::string best;
  for (const auto& [folder, allowed] : kMayInclude) {
    if (path.starts_with(folder + "/") && folder.size() > best.size()) best = folder;
  }
  return best;
}

void addReachable(const std::string& folder, Names& reached) {
  if (!reached.insert(folder).second) return;
  for (const std::string& next : kMayInclude.at(folder)) addReachable(next, reached);
}

/// The reason why a file in `folder` may not include `header`; empty if it may.
std::string objection(const std::string& folder, const std::string& header, bool isQuoted) {
  if (isQuoted) {
    const std::string target = folderOf(header);
    if (target.empty()) return "is not in a folder of the table";
    Names reached;
    addReachable(folder, reached);
    return reached.contains(target) ? "" : fmt::format("{} may not know {}", folder, target);
  }
  for (const auto& [pattern, folders] : kForeign) {
    if (std::regex_match(header, pattern)) return folders.contains(folder) ? "" : fmt::format("{} may not know <{}>", folder, header);
  }
  // the standard library and the system's own headers
  static const std::regex system("[a-z_0-9]+(\\.h)?|(sys|netinet|arpa|net|linux)/[a-z_0-9]+\\.h");
  return std::regex_match(header, system) ? "" : fmt::format("<{}> is in no list", header);
}

struct Include {
  std::string header;
  bool isQuoted = false;
  int line = 0;
};

std::vector<Include> includesOf(const fs::path& file) {
  static const std::regex pattern("\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"].*");
  std::vector<Include> includes;
  std::ifstream stream(file);
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    std::smatch match;
    if (std::regex_match(text, match, pattern)) includes.push_back({match[2], match[1] == "\"", line});
  }
  return includes;
}

TEST(Arrows, EveryIncludeFollowsTheTable) {
  const fs::path root = EVENKEEL_SOURCE_DIR;
  int files = 0;
  for (const char* top : {"core", "launcher", "runtime", "app", "resources"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
      ++files;
      const std::string path = fs::relative(entry.path(), root).string();
      const std::string folder = folderOf(path);
      EXPECT_FALSE(folder.empty()) << path << " is in no folder of the table";
      if (folder.empty()) continue;
      for (const Include& include : includesOf(entry.path())) {
        EXPECT_EQ(objection(folder, include.header, include.isQuoted), "") << path << ":" << include.line << " includes " << include.header;
      }
    }
  }
  EXPECT_GT(files, 30);
}

TEST(Arrows, AnIncludeAgainstTheTableIsNamed) {
  EXPECT_EQ(objection("core/base", "core/plan/plan.h", true), "core/base may not know core/plan");
  EXPECT_EQ(objection("core/cost", "libssh/libssh.h", false), "core/cost may not know <libssh/libssh.h>");
  EXPECT_EQ(objection("app/gui", "torch/torch.h", false), "app/gui may not know <torch/torch.h>");
  EXPECT_EQ(objection("core/model", "core/cluster/cluster.h", true), "core/model may not know core/cluster");
  EXPECT_EQ(objection("core/cost", "core/base/units.h", true), "");
  EXPECT_EQ(objection("core/base", "vector", false), "");
}

}  // namespace
