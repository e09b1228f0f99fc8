// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/job/events.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace evenkeel {

void EventWriter::write(const std::string& event, const Json& fields) {
  Json line;
  line["event"] = event;
  line.update(fields);
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // the agent is gone: we end with it (endWithParent)
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace evenkeel
