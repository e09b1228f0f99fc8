// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace c10d {
class Store;
}

namespace evenkeel {

/// Hosts the store of a job on a free port: writes {"event": "store", "port"} to stdout, serves until SIGTERM or the end of
/// stdin, then returns 0. Returns 1 with a message on stderr when it cannot listen.
[[nodiscard]] int serveStore(const std::string& address, int ranks);

/// The job's store as a rank sees it: texts under names, set once, awaited with a deadline.
class Rendezvous {
 public:
  struct Options {
    std::string address;
    int port = 0;
    Seconds timeout;  // to connect, and for await()
  };
  [[nodiscard]] static Result<Rendezvous> connect(const Options& options);

  Rendezvous(Rendezvous&&) noexcept;
  Rendezvous& operator=(Rendezvous&&) noexcept;
  ~Rendezvous();

  /// Returns once the store has it.
  [[nodiscard]] Result<void> publish(const std::string& name, const std::string& text);
  /// Waits until somebody has published `name`, at most the timeout.
  [[nodiscard]] Result<std::string> await(const std::string& name);
  /// Waits until all of `names` are published, at most `patience`.
  void awaitAll(const std::vector<std::string>& names, Seconds patience);
  /// The text if it is there already, else nothing: also when the store does not answer.
  [[nodiscard]] std::string peek(const std::string& name);

  /// For process groups; never null.
  [[nodiscard]] c10d::Store& store() const;

 private:
  struct State;
  explicit Rendezvous(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace evenkeel
