// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/profile/profile_table.h"

namespace evenkeel {

/// Profiles that other planners measured. A model is needed to divide what they time as a whole (a layer; forward and backward)
/// among the ops in the analytic proportion; such parts are marked Apportioned. Names of device types are translated to those of
/// our table where it has the device, so that clusters find them. Failures name the file and the place in it.

/// A folder of `DeviceType.X_tpT_bsB.json` (forward and backward of whole layers together, in ms): Metis.
[[nodiscard]] Result<ProfileTable> importMetis(const std::filesystem::path& folder, const Model& model, const Training& training);
/// The same of what the files hold, by path; files of other names are passed over.
[[nodiscard]] Result<ProfileTable> parseMetis(const std::map<std::filesystem::path, Json>& files, const Model& model,
                                              const Training& training);

/// What of a Sailor artifact is read.
struct SailorSource {
  std::filesystem::path times;  // profile.json of one GPU, or profiles_tmp.json: [model][gpu] on top
  std::filesystem::path sizes;  // llm_info.json; empty: sizes are counted
  std::string model;            // its name in those files: "OPT-350"
  std::string device;           // of profile.json; else every GPU of the model is read
};
/// Layer times of Sailor: [samples][tp][layer] = [forward, backward, update] in seconds. Layer 0 is the embedding, the last the
/// head. A head whose size says that the output projection is not part of it keeps its time as that of the final norm.
[[nodiscard]] Result<ProfileTable> importSailor(const SailorSource& source, const Model& model, const Training& training);
/// The same of what the files hold; `sizes` may be null.
[[nodiscard]] Result<ProfileTable> parseSailor(const Json& times, const Json& sizes, const SailorSource& source,
                                               const Model& model, const Training& training);

/// Op times of Aceso (us) in one table: the columns op or op_name, mbs, tp, and forward/backward; rows of algo 0. `size` chooses
/// the rows of one model where the table holds more (columns size or model), `device` the rows of one GPU where it has a column
/// gpu.
struct AcesoSource {
  std::filesystem::path ops;
  std::string size, device, precision;
};
[[nodiscard]] Result<ProfileTable> importAceso(const AcesoSource& source, const Model& model, const Training& training);
[[nodiscard]] Result<ProfileTable> parseAceso(std::string_view text, const AcesoSource& source, const Model& model,
                                              const Training& training);

/// Whatever the path holds: a profile of ours, a Metis folder, Sailor's profile.json in .../MODEL/GPU/, an Aceso table.
[[nodiscard]] Result<ProfileTable> importProfile(const std::filesystem::path& path, const Model& model, const Training& training);

/// Our name of a device that others call so: "A100-40" -> "A100-40-SXM"; else the name itself.
[[nodiscard]] std::string deviceNameOf(const std::string& theirs);

}  // namespace evenkeel
