// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace evenkeel {

/// A failure: what code may test, where it is, what is wrong, and the way out.
struct Error {
  enum class Code {
    InvalidInput,  // what was given is wrong; the program ends with 2
    Infeasible,    // what was given is right and has no solution; 3
    Unreachable,   // a host, a file system or a peer does not answer; 1
    Cancelled,     // a person or a deadline ended it; 1
    Failed,        // it was tried and did not work; 1
  };
  Code code = Code::Failed;
  std::string where;   // "pipeline 0, stage 1, RTX2080 on node b3", "cluster.json:12:3", "cluster.json /nodes/0/count"
  std::string what;    // "lacks 2.1 GiB even with full recomputation"
  std::string remedy;  // "move 2 units to stage 0"; may be empty

  bool operator==(const Error&) const = default;

  /// "where: what; remedy" on one line, for people.
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] inline Error invalidInput(std::string where, std::string what, std::string remedy = {}) {
  return {Error::Code::InvalidInput, std::move(where), std::move(what), std::move(remedy)};
}
[[nodiscard]] inline Error infeasible(std::string where, std::string what, std::string remedy = {}) {
  return {Error::Code::Infeasible, std::move(where), std::move(what), std::move(remedy)};
}
[[nodiscard]] inline Error failed(std::string where, std::string what, std::string remedy = {}) {
  return {Error::Code::Failed, std::move(where), std::move(what), std::move(remedy)};
}
[[nodiscard]] inline Error unreachable(std::string where, std::string what, std::string remedy = {}) {
  return {Error::Code::Unreachable, std::move(where), std::move(what), std::move(remedy)};
}

/// A T, or the Error that kept us from it. value() and error() of the other case are bugs (asserted).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] const T& value() const& { assert(ok()); return *std::get_if<0>(&state_); }
  [[nodiscard]] T& value() & { assert(ok()); return *std::get_if<0>(&state_); }
  /// By value, so that a loop over `*load()` does not outlive what it walks.
  [[nodiscard]] T value() && { assert(ok()); return std::move(*std::get_if<0>(&state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  [[nodiscard]] const Error& error() const& { assert(!ok()); return *std::get_if<1>(&state_); }
  [[nodiscard]] Error error() && { assert(!ok()); return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or the Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const { assert(error_); return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace evenkeel
