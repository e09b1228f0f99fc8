// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/accuracy/measured_runs.h"

#include <fmt/format.h>

#include <sstream>

#include "core/base/csv.h"
#include "core/base/json.h"
#include "core/base/words.h"

namespace evenkeel::accuracy {
namespace {

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// "2*4xTitan-RTX(tp4)": two replicas of four cards.
bool addReplicas(const std::string& text, std::vector<ReplicaCards>& replicas) {
  std::string rest = text;
  int count = 1;
  if (const std::size_t star = rest.find('*'); star != std::string::npos) {
    count = parseNumber<int>(rest.substr(0, star)).value_or(0);
    rest = rest.substr(star + 1);
  }
  const std::size_t x = rest.find('x'), open = rest.rfind("(tp");
  if (x == std::string::npos || open == std::string::npos || !rest.ends_with(")") || x > open) return false;
  const int tp = parseNumber<int>(rest.substr(open + 3, rest.size() - open - 4)).value_or(0);
  if (count < 1 || count > 4096 || tp < 1 || tp > 64) return false;
  replicas.insert(replicas.end(), static_cast<std::size_t>(count), {rest.substr(x + 1, open - x - 1), tp});
  return true;
}

class RowReader {
 public:
  RowReader(const CsvRow& row, const std::string& file) : row_(row), where_(fmt::format("{}:{}", file, row.line)) {}

  std::string text(std::string_view column) {
    const auto found = row_.fields.find(column);
    if (found == row_.fields.end()) fail(fmt::format("has no column {}", column));
    return found == row_.fields.end() ? "" : found->second;
  }
  std::string optional(std::string_view column) const {
    const auto found = row_.fields.find(column);
    return found == row_.fields.end() ? "" : found->second;
  }
  std::int64_t count(std::string_view column) {
    const std::string value = text(column);
    const auto number = parseNumber<std::int64_t>(value);
    if (!number || *number < 1 || *number > 1 << 20) fail(fmt::format("{} is \"{}\"", column, value));
    return number.value_or(1);
  }
  /// A measured figure; nothing if it is absent or its flag column is 0.
  std::optional<double> measured(std::string_view column, std::string_view flag) const {
    if (optional(flag) == "0") return std::nullopt;
    const auto value = parseNumber<double>(optional(column));
    return value && *value > 0 ? value : std::nullopt;
  }
  void fail(const std::string& what) {
    if (!error_) error_ = invalidInput(where_, what);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const CsvRow& row_;
  std::string where_;
  std::optional<Error> error_;
};

Result<MeasuredRun> readRun(const CsvRow& row, const std::string& file) {
  RowReader reader(row, file);
  MeasuredRun run;
  run.id = reader.text("run_id");
  run.runtime = reader.text("runtime");
  run.model = reader.text("model");
  run.cluster = reader.text("cluster");
  run.nodes = static_cast<int>(reader.count("nodes"));
  run.cards = static_cast<int>(reader.count("gpus_total"));
  run.dp = static_cast<int>(reader.count("dp"));
  run.microBatch = static_cast<int>(reader.count("mbs"));
  run.globalBatch = reader.count("gbs");
  std::istringstream layers(reader.text("layers_per_stage"));
  for (int count = 0; layers >> count;) run.layers.push_back(count);
  for (const std::string& stage : split(reader.text("devices_per_stage"), " | ")) {
    run.stages.emplace_back();
    for (const std::string& replicas : split(stage, "/")) {
      if (!addReplicas(replicas, run.stages.back())) reader.fail(fmt::format("devices_per_stage has \"{}\"", replicas));
    }
    if (static_cast<int>(run.stages.back().size()) != run.dp) reader.fail("has a stage whose replicas are not dp");
  }
  if (run.layers.size() != run.stages.size())
    reader.fail("has unlike numbers of stages in layers_per_stage and devices_per_stage");
  if (const auto time = reader.measured("real_s_per_iter", "time_usable")) run.time = Seconds{*time};
  if (const auto peak = reader.measured("real_peak_mem_bytes", "mem_usable")) run.peak = Bytes{static_cast<std::int64_t>(*peak)};
  if (reader.error()) return *reader.error();
  return run;
}

}  // namespace

std::string MeasuredRun::set() const {
  if (isAceso()) return "aceso";
  if (cluster.find("MIT") != std::string::npos) return cluster.find("3090") != std::string::npos ? "mit-2" : "mit-1";
  if (cluster.find("GH200") == std::string::npos) return "other";
  return model.find("Neo") != std::string::npos       ? "gh200-neo"
         : model.find("OPT-350") != std::string::npos ? "gh200-opt"
                                                      : "other";
}

Result<std::vector<MeasuredRun>> loadRuns(const std::filesystem::path& file) {
  const auto text = readFile(file);
  if (!text) return text.error();
  const auto rows = parseCsv(*text, file.string());
  if (!rows) return rows.error();
  std::vector<MeasuredRun> runs;
  for (const CsvRow& row : *rows) {
    auto run = readRun(row, file.string());
    if (!run) return std::move(run).error();
    runs.push_back(*std::move(run));
  }
  return runs;
}

}  // namespace evenkeel::accuracy
