// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace evenkeel {

/// A program and its arguments as a list; no shell of ours ever sees them joined.
struct Command {
  std::vector<std::string> argv;                        // argv[0] is looked up in PATH if it has no slash
  std::function<std::string(std::size_t most)> input;   // the next bytes for its stdin, empty: no more; absent: empty stdin
  std::function<void(std::string_view)> onOutput;       // pieces of stdout as they come; absent: dropped
  std::function<void(std::string_view)> onErrorOutput;  // the same of stderr
  std::optional<std::chrono::milliseconds> deadline;    // for the whole command
  std::optional<std::chrono::milliseconds> silence;     // longest time in which nothing is read from it and nothing written
};

/// How a process ended: by itself with an exit status, or by a signal ("SIGKILL").
struct Ending {
  int exitStatus = 0;
  std::string signal;  // empty: exitStatus holds
  bool operator==(const Ending&) const = default;
  [[nodiscard]] bool wasGood() const { return signal.empty() && exitStatus == 0; }
  /// "exit status 3", "killed by SIGKILL"
  [[nodiscard]] std::string text() const;
};

struct CommandOutput {
  Ending ending;
  std::string out, err;
};

/// A machine on which we run programs and put files. One command at a time for each object; objects share nothing, so that
/// whoever needs two commands at once makes two. Nobody asks which kind it is.
class Host {
 public:
  virtual ~Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// For messages: the node's name.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Numeric address of the machine as seen from here; empty if not known (a proxy is in between, or it is this machine).
  [[nodiscard]] virtual std::string address() const { return {}; }
  /// Numeric address of this machine as the other one sees it; empty if not known.
  [[nodiscard]] virtual std::string addressOfThisEnd() const { return {}; }

  /// Runs a command to its end. That it ended badly is no Error: look at the Ending. Errors: it could not be started (Failed),
  /// a deadline passed or the stop came (Cancelled; a local one is killed with its process group, a remote one loses its
  /// stdin and stdout), the connection broke (Unreachable; make a new Host).
  [[nodiscard]] virtual Result<Ending> execute(const Command& command, std::stop_token stop = {}) = 0;

 protected:
  Host() = default;
};

/// execute() with all that it wrote; more than 16 MiB of it are an Error.
[[nodiscard]] Result<CommandOutput> run(Host& host, Command command, std::stop_token stop = {});

/// Calls onLine for each whole line of stdout (without the newline) until the command ends. Overlong lines (16 MiB) are an Error.
[[nodiscard]] Result<CommandOutput> followLines(Host& host, Command command, const std::function<void(std::string_view)>& onLine,
                                                std::stop_token stop = {});

/// Makes a directory and its parents; the directory itself gets mode 0700. Existing ones are fine.
[[nodiscard]] Result<void> makeDirectory(Host& host, const std::string& path, std::chrono::milliseconds deadline);

/// What is to be put on a host: bytes from memory or from a file here.
struct Upload {
  std::string bytes;       // the content, unless file is given
  std::string file;        // a file of this machine
  std::string path;        // absolute; folders that lack on the way are made, mode 0700
  std::string sha256;      // of the content; empty: computed from it
  bool isProgram = false;  // mode 0700, else 0600
  std::chrono::milliseconds silence{60'000};
  std::function<void(std::uint64_t done)> onProgress;  // bytes handed over so far
};

/// Streams into a .part file beside the path, compares the checksum there, renames: whoever looks sees all of it or nothing.
[[nodiscard]] Result<void> upload(Host& host, const Upload& upload, std::stop_token stop = {});

}  // namespace evenkeel
