// SPDX-License-Identifier: GPL-3.0-or-later
// Op profiles of Aceso.
#include <fmt/format.h>

#include <array>

#include "core/base/csv.h"
#include "core/base/words.h"
#include "core/profile/analytic_profile.h"
#include "core/profile/import_support.h"
#include "core/profile/importers.h"

namespace evenkeel {
namespace {

/// Their names. The last one holds head and loss, which are divided in the analytic proportion.
constexpr std::string_view kPostProcess = "gpt-post-process";
constexpr std::array<std::pair<std::string_view, Op>, 15> kOps = {{{"encoder-embedding", Op::Embedding},
                                                                   {"enc-1st-layernorm", Op::Norm1},
                                                                   {"enc-attention-qkv", Op::Qkv},
                                                                   {"enc-attention-score", Op::Score},
                                                                   {"enc-attention-softmax", Op::Softmax},
                                                                   {"enc-attention-dropout", Op::AttentionDropout},
                                                                   {"enc-attention-context", Op::Context},
                                                                   {"enc-attention-dense", Op::Projection},
                                                                   {"enc-post-attention-dropout", Op::Dropout1},
                                                                   {"enc-2nd-layernorm", Op::Norm2},
                                                                   {"enc-MLP-GEMM-1", Op::Fc1},
                                                                   {"enc-MLP-gelu", Op::Activation},
                                                                   {"enc-MLP-GEMM-2", Op::Fc2},
                                                                   {"enc-post-MLP-dropout", Op::Dropout2},
                                                                   {"final-layernorm", Op::FinalNorm}}};

class Row {
 public:
  Row(const CsvRow& row, const std::string& source) : row_(row), source_(source) {}

  /// The first of the columns that exists; nothing if none does.
  [[nodiscard]] const std::string* find(std::initializer_list<std::string_view> columns) const {
    for (const std::string_view column : columns) {
      if (const auto found = row_.fields.find(column); found != row_.fields.end()) return &found->second;
    }
    return nullptr;
  }
  [[nodiscard]] Result<double> number(std::initializer_list<std::string_view> columns, double least, double most) const {
    const std::string* text = find(columns);
    if (text == nullptr) return invalidInput(where(), fmt::format("has no column {}", *columns.begin()));
    const auto value = parseNumber<double>(*text);
    if (!value || *value < least || *value > most)
      return invalidInput(where(), fmt::format("{} is \"{}\"", *columns.begin(), text->substr(0, 40)),
                          fmt::format("expected a number from {} to {}", least, most));
    return *value;
  }
  [[nodiscard]] std::string where() const { return fmt::format("{}:{}", source_, row_.line); }

 private:
  const CsvRow& row_;
  const std::string& source_;
};

/// Whether the row is of what was asked for; a row of a second way to split an op (algo 1) is none of ours.
bool isWanted(const Row& row, const AcesoSource& source) {
  const auto matches = [&](std::initializer_list<std::string_view> columns, const std::string& wanted) {
    const std::string* text = row.find(columns);
    return wanted.empty() || text == nullptr || *text == wanted;
  };
  return matches({"size", "model"}, source.size) && matches({"gpu"}, source.device) && matches({"precision"}, source.precision) &&
         matches({"algo"}, "0");
}

}  // namespace

Result<ProfileTable> importAceso(const AcesoSource& source, const Model& model, const Training& training) {
  const auto text = readFile(source.ops);
  if (!text) return text.error();
  return parseAceso(*text, source, model, training);
}

Result<ProfileTable> parseAceso(std::string_view text, const AcesoSource& source, const Model& model, const Training& training) {
  const std::string where = source.ops.string();
  const auto rows = parseCsv(text, where);
  if (!rows) return rows.error();
  ProfileTable table;
  table.conditions = {.precision = training.precision,
                      .sequenceLength = training.sequenceLength,
                      .model = source.size.empty() ? model.name : source.size,
                      .framework = "Aceso op profile",
                      .driver = "",
                      .date = ""};
  const AnalyticProfile analytic(model, training);
  std::string theirModel;
  for (const CsvRow& csvRow : *rows) {
    const Row row(csvRow, where);
    if (!isWanted(row, source)) continue;
    if (const std::string* size = row.find({"size", "model"})) {
      if (!theirModel.empty() && *size != theirModel)
        return invalidInput(row.where(), fmt::format("is of \"{}\", rows above are of \"{}\"", size->substr(0, 40), theirModel),
                            "say which one is meant (--size)");
      theirModel = size->substr(0, 40);
    }
    const std::string* name = row.find({"op_name", "op"});
    if (name == nullptr) return invalidInput(row.where(), "has no column op or op_name", "expected an op table of Aceso");
    const auto samples = row.number({"mbs"}, 1, kMaxGlobalBatch);
    if (!samples) return samples.error();
    const auto tp = row.number({"tp"}, 1, 1 << 14);
    if (!tp) return tp.error();
    const auto forward = row.number({"forward-compute", "fwd_us"}, 0, 1e12);
    if (!forward) return forward.error();
    const auto backward = row.number({"backward-compute", "bwd_us"}, 0, 1e12);
    if (!backward) return backward.error();
    const std::string* gpu = row.find({"gpu"});
    const std::string device = gpu != nullptr ? *gpu : source.device.empty() ? "V100-32" : source.device;
    DeviceProfile& profile = table.devices[deviceNameOf(device)];
    const auto add = [&](Op op, double forwardShare, double backwardShare, ValueSource valueSource) {
      ProfilePoint& point = profile.points[{op, static_cast<int>(*tp)}][static_cast<std::int64_t>(*samples)];
      point.forward = fromMicroseconds(forwardShare * *forward);
      point.backward = fromMicroseconds(backwardShare * *backward);
      point.source = valueSource;
    };
    if (*name == kPostProcess) {
      const DeviceType type = referenceType(device);
      const OpCost head = analytic.cost(type, Op::Head, static_cast<int>(*tp), static_cast<std::int64_t>(*samples));
      const OpCost loss = analytic.cost(type, Op::Loss, static_cast<int>(*tp), static_cast<std::int64_t>(*samples));
      const double f = head.forward / (head.forward + loss.forward), b = head.backward / (head.backward + loss.backward);
      add(Op::Head, f, b, ValueSource::Apportioned);
      add(Op::Loss, 1 - f, 1 - b, ValueSource::Apportioned);
      continue;
    }
    for (const auto& [theirs, op] : kOps) {
      if (theirs == *name) add(op, 1, 1, ValueSource::Imported);
    }
  }
  if (!theirModel.empty()) table.conditions.model = theirModel;
  if (table.devices.empty()) return invalidInput(where, "holds no row of that model, device and precision");
  return table;
}

}  // namespace evenkeel
