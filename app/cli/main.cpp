// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "app/cli/command.h"

namespace {

/// A file that is opened while 0, 1 or 2 is closed would become stdin, stdout or stderr.
void keepStandardStreamsOpen() {
  int fd = 0;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace evenkeel::cli;
  keepStandardStreamsOpen();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of one write, not the end of a run that we follow

  CLI::App app{"Evenkeel: plans and launches training on clusters of unlike accelerators", "evenkeel-cli"};
  app.set_version_flag("--version", EVENKEEL_VERSION);
  app.require_subcommand(1);
  app.fallthrough(false);
  Outcome outcome;
  outcome.words = {"evenkeel-cli"};
  outcome.words.insert(outcome.words.end(), argv + std::min(argc, 1), argv + argc);
  addDevices(app, outcome);
  addModels(app, outcome);
  addPlan(app, outcome);
  addCompare(app, outcome);
  addReproduce(app, outcome);
  addCheck(app, outcome);
  addEvaluate(app, outcome);
  addSimulate(app, outcome);
  addImport(app, outcome);
  addExport(app, outcome);
  addDiscover(app, outcome);
  addProfile(app, outcome);
  addLaunch(app, outcome);
  addRuns(app, outcome);
  addStatus(app, outcome);
  addAttach(app, outcome);
  addStop(app, outcome);
  addLogs(app, outcome);
  addTokenize(app, outcome);
  addWeights(app, outcome);
  addTrace(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    note("error: {}; `evenkeel-cli --help` and `evenkeel-cli COMMAND --help` list what there is\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    note("error: {}\n", error.what());
    return kFailed;
  }
  // What was printed may still wait in a buffer: a full disk must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    note("error: standard output: cannot be written ({})\n", std::strerror(errno));
    return outcome.exitCode == kOk ? kFailed : outcome.exitCode;
  }
  return outcome.exitCode;
}
