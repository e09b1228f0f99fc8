// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/job/sqlite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>

namespace evenkeel {
namespace {

constexpr int kBusyTimeoutMs = 10'000;

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* database) const { ::sqlite3_close_v2(database); }

Statement::Statement(sqlite3* database, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  hasFailed_ = ::sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK;
  statement_.reset(statement);
}

Statement& Statement::add(std::int64_t value) {
  ::sqlite3_bind_int64(statement_.get(), nextParameter_++, value);
  return *this;
}

Statement& Statement::add(double value) {
  ::sqlite3_bind_double(statement_.get(), nextParameter_++, value);
  return *this;
}

Statement& Statement::add(std::string_view value) {
  ::sqlite3_bind_text(statement_.get(), nextParameter_++, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::add(const std::optional<double>& value) {
  return add(value.value_or(std::numeric_limits<double>::quiet_NaN()));
}

Statement& Statement::add(const std::optional<std::string>& value) {
  if (value) return add(std::string_view(*value));
  ::sqlite3_bind_null(statement_.get(), nextParameter_++);
  return *this;
}

bool Statement::step() {
  if (hasFailed_) return false;
  const int outcome = ::sqlite3_step(statement_.get());
  hasFailed_ = outcome != SQLITE_ROW && outcome != SQLITE_DONE;
  return outcome == SQLITE_ROW;
}

bool Statement::run() {
  while (step()) {
  }
  return !hasFailed_;
}

bool Statement::isNull(int column) const { return ::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
std::int64_t Statement::integer(int column) const { return ::sqlite3_column_int64(statement_.get(), column); }

double Statement::number(int column) const {
  return isNull(column) ? std::numeric_limits<double>::quiet_NaN() : ::sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(::sqlite3_column_text(statement_.get(), column));
  return bytes == nullptr ? std::string()
                          : std::string(bytes, static_cast<std::size_t>(::sqlite3_column_bytes(statement_.get(), column)));
}

Result<Database> Database::open(const std::filesystem::path& file) {
  // made by us, so that it is private from its first byte; SQLite gives its other files the same mode
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return failed(file.string(), fmt::format("cannot be opened: {}", ::strerror(errno)));
  ::close(fd);
  sqlite3* raw = nullptr;
  const int opened = ::sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  Database database(file, raw);
  if (opened != SQLITE_OK) return database.lastError();
  ::sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  if (auto set = database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"); !set) return set.error();
  return database;
}

Result<void> Database::execute(const std::string& sql) {
  if (::sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return lastError();
  return {};
}

Error Database::lastError() const {
  const int code = database_ ? ::sqlite3_errcode(database_.get()) : SQLITE_NOMEM;
  const std::string reason = database_ ? ::sqlite3_errmsg(database_.get()) : "out of memory";
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) {
    return failed(file_.string(), fmt::format("is damaged, or no run history ({})", reason),
                  "move it away; a new one will be made");
  }
  return failed(file_.string(), reason);
}

int Database::changes() const { return ::sqlite3_changes(database_.get()); }

}  // namespace evenkeel
