// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/accuracy/v100.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/base/csv.h"
#include "core/base/words.h"
#include "core/cluster/catalogue.h"
#include "core/profile/analytic_profile.h"

namespace evenkeel::accuracy {
namespace {

const std::set<std::string, std::less<>> kFittedSizes = {"350M", "2_6B", "6_7B", "scale-layer"};

struct Table {
  std::vector<CsvRow> rows;
  std::string source;

  Result<double> number(const CsvRow& row, std::string_view column) const {
    const auto found = row.fields.find(column);
    const auto value = found == row.fields.end() ? std::nullopt : parseNumber<double>(found->second);
    if (!value) return invalidInput(fmt::format("{}:{}", source, row.line), fmt::format("has no number in column {}", column));
    return *value;
  }
};

Result<Table> readTable(const std::filesystem::path& file) {
  const auto text = readFile(file);
  if (!text) return text.error();
  auto rows = parseCsv(*text, file.string());
  if (!rows) return std::move(rows).error();
  return Table{*std::move(rows), file.string()};
}

struct Cell {
  Model model;
  std::string size;
  int tp = 1, samples = 1;
  Seconds forward, backward;  // measured, all 13 ops of a layer
};

/// Megatron's fused softmax wants a multiple of 4 rows of heads.
bool hasFusedSoftmax(const Cell& cell) { return cell.model.heads / cell.tp * cell.samples % 4 == 0; }

Result<std::vector<Cell>> readCells(const Table& table) {
  std::map<std::tuple<std::string, int, int>, Cell> cells;
  for (const CsvRow& row : table.rows) {
    const auto text = [&](std::string_view column) {
      const auto found = row.fields.find(column);
      return found == row.fields.end() ? std::string() : found->second;
    };
    if (text("algo") != "0") continue;
    std::map<std::string_view, double> numbers;
    for (const std::string_view column :
         {"hidden", "ffn", "heads", "kv_channels", "seq", "vocab", "mbs", "tp", "op_index", "fwd_us", "bwd_us"}) {
      const auto value = table.number(row, column);
      if (!value) return value.error();
      numbers[column] = *value;
    }
    constexpr int kFirst = 1, kLast = 13;  // of the ops of a layer
    if (numbers["op_index"] < kFirst || numbers["op_index"] > kLast) continue;
    const int tp = static_cast<int>(numbers["tp"]), samples = static_cast<int>(numbers["mbs"]);
    Cell& cell = cells[{text("size"), tp, samples}];
    cell.size = text("size");
    cell.tp = tp;
    cell.samples = samples;
    cell.model.layers = 1;
    cell.model.hidden = static_cast<std::int64_t>(numbers["hidden"]);
    cell.model.heads = cell.model.kvHeads = static_cast<int>(numbers["heads"]);
    cell.model.headDim = static_cast<std::int64_t>(numbers["kv_channels"]);
    cell.model.ffn = static_cast<std::int64_t>(numbers["ffn"]);
    cell.model.vocab = static_cast<std::int64_t>(numbers["vocab"]);
    cell.model.context = static_cast<std::int64_t>(numbers["seq"]);
    cell.forward += fromMicroseconds(numbers["fwd_us"]);
    cell.backward += fromMicroseconds(numbers["bwd_us"]);
  }
  std::vector<Cell> list;
  for (auto& [key, cell] : cells) {
    if (hasFusedSoftmax(cell)) list.push_back(std::move(cell));
  }
  return list;
}

class Errors {
 public:
  void add(const Cell& cell, const DeviceType& device, const DeviceClass& constants) {
    Training training;
    training.sequenceLength = cell.model.context;
    training.globalBatch = cell.samples;
    training.precision = Precision::Fp16;
    const AnalyticProfile profile(cell.model, training, {.dropout = true, .deviceClass = &constants});
    Seconds forward, backward;
    for (const UnitKind kind : {UnitKind::Attention, UnitKind::Mlp}) {
      for (const Op op : opsOf(kind)) {
        const OpCost cost = profile.cost(device, op, cell.tp, cell.samples);
        forward += cost.forward;
        backward += cost.backward;
      }
    }
    const double f = std::abs(forward / cell.forward - 1), b = std::abs(backward / cell.backward - 1);
    ++errors_.cells;
    forwardSum_ += f;
    backwardSum_ += b;
    errors_.forwardMost = std::max(errors_.forwardMost, f);
    errors_.backwardMost = std::max(errors_.backwardMost, b);
  }
  LayerErrors result() const {
    LayerErrors errors = errors_;
    errors.forward = forwardSum_ / std::max(1, errors.cells);
    errors.backward = backwardSum_ / std::max(1, errors.cells);
    return errors;
  }

 private:
  LayerErrors errors_;
  double forwardSum_ = 0, backwardSum_ = 0;
};

struct Point {
  Bytes size;
  Seconds time;
};

/// 8 points of the faster branch: of each eighth of the sizes (by their logarithm) the one with the most bytes a second, and the
/// smallest size.
LinkSpec bestTable(const std::vector<Point>& points) {
  constexpr int kPoints = 8;
  const double least = std::log2(static_cast<double>(points.front().size.value));
  const double most = std::log2(static_cast<double>(points.back().size.value));
  std::map<int, Point> best;  // by eighth
  for (const Point& point : points) {
    const double place = (std::log2(static_cast<double>(point.size.value)) - least) / std::max(1e-9, most - least);
    const int eighth = point.size == points.front().size ? -1 : std::min(kPoints - 2, static_cast<int>(place * (kPoints - 1)));
    const auto rate = [](const Point& p) { return static_cast<double>(p.size.value) / p.time.value; };
    const auto [found, isNew] = best.emplace(eighth, point);
    if (!isNew && rate(point) > rate(found->second)) found->second = point;
  }
  LinkSpec link;
  for (const auto& [eighth, point] : best)
    link.table.push_back({point.size, {static_cast<double>(point.size.value) / point.time.value}});
  return link;
}

}  // namespace

Result<V100Errors> v100Errors(const std::filesystem::path& data) {
  const auto table = readTable(data / "aceso" / "gpt_ops_v100.csv");
  if (!table) return table.error();
  const auto cells = readCells(*table);
  if (!cells) return cells.error();
  const DeviceType device = *deviceTypeNamed("V100-32-SXM2");
  Errors fitted, heldOut, generic;
  std::map<std::string, Errors> bySize;
  std::map<int, Errors> genericByTp;
  for (const Cell& cell : *cells) {
    (kFittedSizes.contains(cell.size) ? fitted : heldOut).add(cell, device, deviceClassOf(device));
    bySize[cell.size].add(cell, device, deviceClassOf(device));
    generic.add(cell, device, genericAccelerator());
    genericByTp[cell.tp].add(cell, device, genericAccelerator());
  }
  V100Errors result{fitted.result(), heldOut.result(), generic.result(), {}, {}};
  for (const auto& [size, errors] : bySize) result.bySize[size] = errors.result();
  for (const auto& [tp, errors] : genericByTp) result.genericByTp[tp] = errors.result();
  return result;
}

Result<std::vector<CollectiveError>> collectiveErrors(const std::filesystem::path& data) {
  const auto table = readTable(data / "aceso" / "collectives_v100.csv");
  if (!table) return table.error();
  std::map<std::tuple<std::string, std::string, int>, std::vector<Point>> groups;
  for (const CsvRow& row : table->rows) {
    const auto size = table->number(row, "size_mib_per_rank"), time = table->number(row, "time_ms"),
               gpus = table->number(row, "gpus");
    for (const auto* value : {&size, &time, &gpus}) {
      if (!value->ok()) return value->error();
    }
    constexpr double kSkipped = 1e8;  // written where a size was too big
    if (*time >= kSkipped || *size <= 0) continue;
    groups[{row.fields.at("collective"), row.fields.at("dtype"), static_cast<int>(*gpus)}].push_back(
        {fromGib(*size / 1024), fromMilliseconds(*time)});
  }
  const DeviceType device = *deviceTypeNamed("V100-32-SXM2");
  std::vector<CollectiveError> errors;
  for (auto& [key, points] : groups) {
    const auto& [collective, type, gpus] = key;
    std::ranges::sort(points, {}, [](const Point& p) { return std::pair{p.size, p.time}; });
    LinkSpec tabled;
    if (collective != "all_reduce") {
      tabled = bestTable(points);
    }
    CollectiveError error{collective, type, gpus, static_cast<int>(points.size()), 0, 0};
    for (const Point& point : points) {
      const Seconds predicted = collective == "all_reduce" ? allReduceTime(point.size, gpus, device.intra, deviceClassOf(device))
                                                           : tabled.transferTime(point.size);
      constexpr double kOtherBranch = 1.2;
      if (collective != "all_reduce" && point.time > kOtherBranch * predicted) {
        ++error.slower;
        continue;
      }
      error.error += std::abs(predicted / point.time - 1);
    }
    error.error /= std::max(1, error.rows - error.slower);
    errors.push_back(error);
  }
  return errors;
}

}  // namespace evenkeel::accuracy
