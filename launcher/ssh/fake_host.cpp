// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/ssh/fake_host.h"

namespace evenkeel {

Result<Ending> FakeHost::execute(const Command& command, std::stop_token stop) {
  commands_.push_back(command.argv);
  if (command.input && command.argv.size() == 7) {  // upload(): sh -c SCRIPT sh PATH SHA256 MODE
    std::string& bytes = files_[command.argv[4]];
    bytes.clear();
    for (std::string piece = command.input(4096); !piece.empty(); piece = command.input(4096)) bytes += piece;
    return Ending{};
  }
  return answer_(command, std::move(stop));
}

Ending FakeHost::reply(const Command& command, std::string_view out, int exitStatus) {
  if (command.onOutput) command.onOutput(out);
  return {.exitStatus = exitStatus};
}

}  // namespace evenkeel
