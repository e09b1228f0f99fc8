// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/base/json_reader.h"
#include "core/base/sha256.h"

namespace evenkeel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

Result<std::string> sumOf(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return invalidInput(file.string(), "is missing or cannot be opened");
  Sha256 sum;
  std::string piece(std::size_t{1} << 20U, '\0');
  while (stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    sum.update(std::string_view(piece).substr(0, static_cast<std::size_t>(stream.gcount())));
  }
  if (stream.bad()) return failed(file.string(), "cannot be read");
  return sum.finish();
}

bool isStepFolder(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kStepPrefix) && name.size() > kStepPrefix.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(kStepPrefix.size()), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<CheckpointFacts> factsOf(JsonReader& reader) {
  CheckpointFacts facts;
  expectFormat(reader, kCheckpointFormat);
  facts.step = reader.integer("step", {0, 1'000'000'000});
  JsonReader model = reader.object("model");
  if (!reader.context().error) facts.model = readModel(model);
  facts.sequenceLength = reader.integer("sequence_length", {1, kMaxSequence});
  facts.globalBatch = reader.integer("global_batch", {1, std::int64_t{1} << 40U});
  facts.seed = static_cast<std::uint64_t>(reader.integer("seed", {0, std::numeric_limits<std::int64_t>::max()}));
  facts.dataSha256 = reader.text("data_sha256", "");
  facts.runId = reader.text("run", "");
  facts.planSha256 = reader.text("plan_sha256", "");
  if (reader.has("loss_scale")) {
    JsonReader scale = reader.object("loss_scale");
    facts.lossScale = LossScale{.value = scale.number("value", {1, 1e300}),
                                .goodSteps = scale.integer("good_steps", {0, LossScale::kGrowthSteps}),
                                .skipped = scale.integer("skipped", {0, facts.step})};
  }
  if (reader.context().error) return *reader.context().error;
  return facts;
}

}  // namespace

std::vector<fs::path> checkpointsIn(const fs::path& directory) {
  std::vector<fs::path> folders;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, failure)) {
    if (entry.is_directory(failure) && isStepFolder(entry.path())) folders.push_back(entry.path());
  }
  std::ranges::sort(folders, std::greater<>(), [](const fs::path& folder) { return folder.filename().string(); });  // numbers of equal width
  return folders;
}

Result<CheckpointReader> CheckpointReader::open(const fs::path& place) {
  std::error_code failure;
  if (!fs::is_directory(place, failure)) return invalidInput(place.string(), "is no folder", "expected a checkpoint, or a folder of checkpoints");
  if (isStepFolder(place) || fs::exists(place / "checkpoint.json", failure)) return openFolder(place);
  const std::vector<fs::path> folders = checkpointsIn(place);
  if (folders.empty()) return invalidInput(place.string(), "holds no checkpoint", "expected folders such as step-0000000200");
  std::vector<Error> passedOver;
  for (const fs::path& folder : folders) {
    auto reader = openFolder(folder);
    if (reader) {
      reader->passedOver_ = std::move(passedOver);
      return reader;
    }
    passedOver.push_back(std::move(reader).error());
  }
  return passedOver.front();
}

Result<CheckpointReader> CheckpointReader::openFolder(const fs::path& folder) {
  const fs::path list = folder / "checkpoint.json";
  const auto json = readJsonFile(list);
  if (!json) return json.error();
  JsonContext context{list.string(), {}};
  JsonReader reader(*json, context);
  auto facts = factsOf(reader);
  if (!facts) return std::move(facts).error();
  CheckpointReader checkpoint;
  checkpoint.folder_ = folder;
  checkpoint.facts_ = *std::move(facts);
  for (JsonReader& entry : reader.objects("files")) {
    const std::string name = entry.text("name"), expected = entry.text("sha256");
    if (name.empty() || name.find('/') != std::string::npos) entry.fail("name", "is no name of a file");
    if (context.error) return *std::move(context.error);
    if (name.ends_with(".safetensors")) {  // first: it says more about a damaged file than its sum
      auto file = SafetensorsFile::open(folder / name);
      if (!file) return std::move(file).error();
      checkpoint.files_.push_back(*std::move(file));
    }
    const auto sum = sumOf(folder / name);
    if (!sum) return sum.error();
    if (*sum != expected) return invalidInput((folder / name).string(), "is damaged: its checksum is not the one that was written", "use an older checkpoint");
  }
  if (context.error) return *std::move(context.error);
  return checkpoint;
}

std::optional<Error> CheckpointReader::objection(const Model& model) const {
  const auto shape = [](const Model& m) {
    Json json = toJson(m);
    json.erase("name");
    return json;
  };
  const Json own = shape(facts_.model), wanted = shape(model);
  for (const auto& [key, value] : wanted.items()) {
    if (own.contains(key) && own[key] == value) continue;
    return invalidInput(folder_.string(), fmt::format("is of another model: {} is {}, not {}", key, own.contains(key) ? own[key].dump() : "absent", value.dump()),
                        "resume with the model that was trained");
  }
  return std::nullopt;
}

Result<std::vector<float>> CheckpointReader::read(ModelState state, const TensorSpec& tensor) const {
  if (state != ModelState::Weights && facts_.step == 0) return std::vector<float>(static_cast<std::size_t>(tensor.elements()));
  const std::string name = storedName(state, tensor);
  for (const SafetensorsFile& file : files_) {
    const StoredTensor* stored = file.find(name);
    if (stored == nullptr) continue;
    if (stored->shape != tensor.shape) return invalidInput(folder_.string(), fmt::format("{} has another shape", name));
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    if (auto read = file.read(*stored, values); !read) return read.error();
    return values;
  }
  return invalidInput(folder_.string(), fmt::format("lacks {}", name));
}

}  // namespace evenkeel
