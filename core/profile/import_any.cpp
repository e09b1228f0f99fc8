// SPDX-License-Identifier: GPL-3.0-or-later
// Which importer a path is for.
#include <fmt/format.h>

#include "core/profile/importers.h"

namespace evenkeel {

Result<ProfileTable> importProfile(const std::filesystem::path& path, const Model& model, const Training& training) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    // Sailor: .../MODEL/GPU/profile.json with llm_info.json above; all GPUs of a model folder.
    ProfileTable all;
    for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
      const std::filesystem::path file = entry.path() / "profile.json";
      if (!std::filesystem::exists(file, failure)) continue;
      auto table = importProfile(file, model, training);
      if (!table) return table;
      all.conditions = table->conditions;
      for (auto& [device, profile] : table->devices) all.devices[device] = std::move(profile);
    }
    if (!all.devices.empty()) return all;
    return importMetis(path, model, training);
  }
  if (path.extension() == ".csv") return importAceso({path, "", "", ""}, model, training);
  if (path.filename() == "profile.json") {
    const std::filesystem::path folder = std::filesystem::absolute(path, failure).parent_path();
    const std::filesystem::path sizes = folder.parent_path().parent_path() / "llm_info.json";
    const auto json = readJsonFile(path);
    if (json && json->is_object() && !json->contains("format")) {
      return importSailor({path, std::filesystem::exists(sizes, failure) ? sizes : std::filesystem::path{},
                           folder.parent_path().filename().string(), folder.filename().string()},
                          model, training);
    }
  }
  return loadProfile(path);
}

}  // namespace evenkeel
