// SPDX-License-Identifier: GPL-3.0-or-later
#include "launcher/deploy/worker_builds.h"

#include <algorithm>
#include <array>

#include "core/base/json.h"

namespace evenkeel {

std::vector<WorkerBuild> workerBuilds(const std::filesystem::path& programs) {
  std::vector<WorkerBuild> builds;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(programs / "workers", none)) {
    const auto said = readJsonFile(entry.path() / "worker.json");
    if (said && said->is_object() && said->value("torch", Json()).is_string())
      builds.push_back({.folder = entry.path(), .torch = (*said)["torch"].get<std::string>()});
  }
  std::ranges::sort(builds, {}, &WorkerBuild::torch);
  return builds;
}

Bundle withoutTorch(const Bundle& bundle) {
  // as PyTorch's own lib folder and NVIDIA's packages name them
  constexpr std::array<std::string_view, 8> kTheirs = {"lib/libtorch", "lib/libc10",   "lib/libcu",   "lib/libnv",
                                                       "lib/libnccl",  "lib/libgomp",  "lib/libshm",  "lib/libcaffe2"};
  Bundle rest = bundle;
  std::erase_if(rest.files, [&](const BundleFile& file) {
    return std::ranges::any_of(kTheirs, [&](std::string_view begin) { return file.name.starts_with(begin); });
  });
  rest.directory = bundle.directory + "-own-torch";
  return rest;
}

}  // namespace evenkeel
