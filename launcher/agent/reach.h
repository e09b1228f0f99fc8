// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace evenkeel {

/// `listen`: waits for connections on a free port of the address, in a process of its own that ends by itself two minutes after
/// its last message, or when it is told to. Returns {"port", "pid"} once it listens.
[[nodiscard]] Result<Json> listenAt(const std::string& address);

struct ReachOptions {
  std::vector<std::string> targets;  // "10.0.0.2:4711", "[fe80::1]:4711"
  std::vector<std::int64_t> sizes;   // of messages whose time is measured, in bytes; none: only whether it can be reached
  bool endThem = false;              // the listeners end afterwards
};
/// `reach`: sends messages to listeners, one after the other. Returns {"reached": [{"to", "ok", "reason" | "latency_us",
/// "times_us": [one a size, without the latency]}]}. At most 5 s for a connection, about half a second for a size.
[[nodiscard]] Result<Json> reach(const ReachOptions& options);

}  // namespace evenkeel
