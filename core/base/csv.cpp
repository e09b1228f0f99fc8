// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/csv.h"

#include <fmt/format.h>

namespace evenkeel {
namespace {

struct Record {
  int line = 1;
  std::vector<std::string> fields;
};

class CsvScanner {
 public:
  CsvScanner(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  Result<std::vector<Record>> records() {
    std::vector<Record> records;
    while (position_ < text_.size()) {
      if (skipsLine()) continue;
      Record record{line_, {}};
      bool more = true;
      while (more) {
        auto field = nextField();
        if (!field) return std::move(field).error();
        record.fields.push_back(*std::move(field));
        more = position_ < text_.size() && text_[position_] == ',';
        if (more) ++position_;
      }
      endLine();
      records.push_back(std::move(record));
    }
    return records;
  }

 private:
  bool skipsLine() {
    const std::size_t end = text_.find('\n', position_);
    const std::string_view line = text_.substr(position_, end == std::string_view::npos ? end : end - position_);
    if (!line.empty() && line != "\r" && line.front() != '#') return false;
    position_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++line_;
    return true;
  }

  Result<std::string> nextField() {
    std::string field;
    if (position_ < text_.size() && text_[position_] == '"') {
      const int start = line_;
      for (++position_;; ++position_) {
        if (position_ >= text_.size()) return invalidInput(fmt::format("{}:{}", source_, start), "a quote is never closed");
        if (text_[position_] == '\n') ++line_;
        if (text_[position_] != '"') {
          field.push_back(text_[position_]);
        } else if (text_.substr(position_).starts_with("\"\"")) {
          field.push_back(text_[position_++]);
        } else {
          break;
        }
      }
      ++position_;
      if (position_ < text_.size() && std::string_view(",\r\n").find(text_[position_]) == std::string_view::npos) {
        return invalidInput(fmt::format("{}:{}", source_, line_), "text follows a closing quote");
      }
    } else {
      while (position_ < text_.size() && std::string_view(",\r\n").find(text_[position_]) == std::string_view::npos) {
        field.push_back(text_[position_++]);
      }
    }
    return field;
  }

  void endLine() {
    if (position_ < text_.size() && text_[position_] == '\r') ++position_;
    if (position_ < text_.size() && text_[position_] == '\n') ++position_;
    ++line_;
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

Result<std::vector<CsvRow>> parseCsv(std::string_view text, const std::string& source) {
  auto records = CsvScanner(text, source).records();
  if (!records) return std::move(records).error();
  if (records->empty()) return invalidInput(source, "is empty", "expected a first line that names the columns");
  const std::vector<std::string>& columns = records->front().fields;
  std::vector<CsvRow> rows;
  for (std::size_t i = 1; i < records->size(); ++i) {
    Record& record = (*records)[i];
    if (record.fields.size() != columns.size()) {
      return invalidInput(fmt::format("{}:{}", source, record.line),
                          fmt::format("has {} fields where the first line names {}", record.fields.size(), columns.size()));
    }
    CsvRow row{record.line, {}};
    for (std::size_t column = 0; column < columns.size(); ++column) {
      row.fields[columns[column]] = std::move(record.fields[column]);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace evenkeel
