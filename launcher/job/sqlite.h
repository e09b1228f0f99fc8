// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace evenkeel {

/// A prepared statement. Values are bound from the left by add(); then step() through the rows. step() is false at the end
/// and on a failure; hasFailed() tells them apart.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql);
  Statement& add(std::int64_t value);
  Statement& add(double value);  // not a number is stored as NULL
  Statement& add(std::string_view value);
  Statement& add(const std::optional<double>& value);
  Statement& add(const std::optional<std::string>& value);
  /// True: there is a row to read. False: no more rows, or a failure.
  bool step();
  /// Runs it to its end; false on a failure.
  bool run();
  [[nodiscard]] bool hasFailed() const { return hasFailed_; }
  [[nodiscard]] bool isNull(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double number(int column) const;  // NULL reads as not a number
  [[nodiscard]] std::string text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int nextParameter_ = 1;
  bool hasFailed_ = false;
};

/// One connection to an SQLite file (WAL, waits up to 10 s for other processes). Use from one thread at a time.
class Database {
 public:
  /// Opens or makes the file, mode 0600. A damaged file or one that is no database is an Error.
  [[nodiscard]] static Result<Database> open(const std::filesystem::path& file);

  [[nodiscard]] Statement prepare(std::string_view sql) { return {database_.get(), sql}; }
  /// Runs statements that have neither parameters nor rows.
  [[nodiscard]] Result<void> execute(const std::string& sql);
  /// Why the last call failed.
  [[nodiscard]] Error lastError() const;
  /// Rows that the last INSERT or UPDATE has changed.
  [[nodiscard]] int changes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database(std::filesystem::path file, sqlite3* database) : file_(std::move(file)), database_(database) {}
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace evenkeel
