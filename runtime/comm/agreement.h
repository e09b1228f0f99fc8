// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "runtime/comm/rendezvous.h"

namespace evenkeel {

/// What must be the same on all ranks before they may exchange tensors: a receive that is too small ends the process.
struct Agreement {
  std::string plan, run, data;  // anything that is equal if and only if they are: hashes, sizes
  bool operator==(const Agreement&) const = default;
};

/// Waits for the agreement of all ranks. Those that differ from rank 0 are named with what differs; a rank that does not come
/// within the rendezvous' timeout is named too.
[[nodiscard]] Result<void> agree(Rendezvous& rendezvous, const Agreement& own, int rank, int worldSize);

}  // namespace evenkeel
