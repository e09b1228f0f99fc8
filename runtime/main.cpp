// SPDX-License-Identifier: GPL-3.0-or-later
// evenkeel-worker: executes one rank of a plan, or hosts the store of a job (resources/docs/protocol.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/plan/features.h"
#include "runtime/checkpoint/hugging_face.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/cuda/cuda.h"
#include "runtime/device/torch_setup.h"
#include "runtime/job/process.h"
#include "runtime/profile/op_times.h"
#include "runtime/train/worker.h"

namespace {

using namespace evenkeel;

constexpr std::string_view kUsage =
    "usage: evenkeel-worker --features\n"
    "       evenkeel-worker --store --address A --ranks N\n"
    "       evenkeel-worker --profile       (reads a request from stdin, writes evenkeel.profile/1)\n"
    "       evenkeel-worker --import-weights FOLDER DIRECTORY | --export-weights CHECKPOINT FOLDER\n"
    "       evenkeel-worker --job FILE      (environment: MASTER_ADDR MASTER_PORT RANK WORLD_SIZE EVENKEEL_TRAIN_ADDRESS)\n";

int usage(const std::string& what) {
  fmt::print(stderr, "evenkeel-worker: {}\n{}", what, kUsage);
  return 2;
}

int store(const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> options;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) options[arguments[i]] = arguments[i + 1];
  const auto ranks = parseNumber<int>(options["--ranks"]);
  if (arguments.size() != 5 || options["--address"].empty() || !ranks || *ranks < 1)
    return usage("--store needs --address A and --ranks N");
  if (const auto bound = endWithParent(); !bound) {
    fmt::print(stderr, "evenkeel-worker: {}\n", bound.error().text());
    return 1;
  }
  return serveStore(options["--address"], *ranks);
}

/// Measures this device: what is asked for comes from stdin, so that no file has to be brought here.
int profile() {
  const auto asked = parseJson(std::string(std::istreambuf_iterator<char>(std::cin), {}), "the request");
  const auto request = asked ? parseProfileRequest(*asked, "the request") : asked.error();
  if (!request) {
    fmt::print(stderr, "evenkeel-worker: {}\n", request.error().text());
    return 2;
  }
  useOneThread();
  keepFreedMemory();
  fmt::print("{}", prettyText(toJson(measureOps(*request))));
  return 0;
}

/// Weights from elsewhere, or for elsewhere.
int convertWeights(bool comeIn, const std::string& from, const std::string& to) {
  auto said = std::chrono::steady_clock::now();
  const auto tell = [&said](std::size_t done, std::size_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (now - said < std::chrono::seconds(1)) return;
    said = now;
    fmt::print(stderr, "{} of {} tensors\n", done, all);
  };
  const auto converted = comeIn ? importHuggingFace(from, to, tell) : exportHuggingFace(from, to, tell);
  if (!converted) {
    fmt::print(stderr, "error: {}\n", converted.error().text());
    return converted.error().code == Error::Code::InvalidInput ? 2 : 1;
  }
  for (const std::string& text : converted->notes) fmt::print(stderr, "note: {}\n", text);
  fmt::print("{}", prettyText({{"folder", converted->folder.string()},
                               {"model", toJson(converted->model)},
                               {"parameters", converted->parameters},
                               {"step", converted->step}}));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return usage("nothing to do");
  if (arguments[0] == "--features" && arguments.size() == 1) {
    fmt::print("{}", prettyText(toJson(ownRuntime(isBuiltForCards()))));
    return 0;
  }
  if (arguments[0] == "--store") return store(arguments);
  if (arguments[0] == "--profile" && arguments.size() == 1) {
    prepareLibraries(argv);
    return profile();
  }
  if ((arguments[0] == "--import-weights" || arguments[0] == "--export-weights") && arguments.size() == 3)
    return convertWeights(arguments[0] == "--import-weights", arguments[1], arguments[2]);
  if (arguments[0] == "--job" && arguments.size() == 2) {
    prepareLibraries(argv);
    runWorker(arguments[1]);
  }
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    fmt::print("{}", kUsage);
    return 0;
  }
  return usage(fmt::format("does not understand \"{}\"", fmt::join(arguments, " ")));
}
