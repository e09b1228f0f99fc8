// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/checkpoint_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

const std::vector<TensorSpec>& tensors() {
  static const std::vector<TensorSpec> tensors = {{.name = "a", .shape = {2, 3}}, {.name = "b", .shape = {4}}};
  return tensors;
}

CheckpointFacts factsAt(std::int64_t step) {
  return {.step = step, .model = *modelFromArgument("tiny-gpt"), .sequenceLength = 32, .globalBatch = 8, .seed = 3, .dataSha256 = "d", .runId = "r", .planSha256 = "p"};
}

/// Element i of the n-th tensor that is written is 100 n + i.
Result<fs::path> save(const fs::path& directory, std::int64_t step, int keep = 3) {
  CheckpointWriter writer(directory, keep, factsAt(step), tensors());
  float first = 0;
  for ([[maybe_unused]] const ModelState state : kModelStates) {
    for (const TensorSpec& tensor : tensors()) {
      std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
      std::iota(values.begin(), values.end(), first);
      first += 100;
      writer.put(std::move(values));
    }
  }
  return writer.wait();
}

TEST(Checkpoint, IsReadAsItWasWritten) {
  const TemporaryDirectory folder;
  const auto place = save(folder.path(), 200);
  ASSERT_TRUE(place) << place.error().text();
  EXPECT_EQ(place->filename(), "step-0000000200");
  for (const fs::path& from : {*place, folder.path()}) {
    const auto reader = CheckpointReader::open(from);
    ASSERT_TRUE(reader) << reader.error().text();
    EXPECT_EQ(reader->facts().step, 200);
    EXPECT_EQ(reader->facts().seed, 3U);
    EXPECT_THAT(*reader->read(ModelState::Weights, tensors()[1]), ElementsAre(100, 101, 102, 103));
    EXPECT_THAT(*reader->read(ModelState::SecondMoments, tensors()[0]), ElementsAre(400, 401, 402, 403, 404, 405));
    EXPECT_FALSE(reader->objection(*modelFromArgument("tiny-gpt")));
  }
  EXPECT_EQ(static_cast<unsigned>(fs::status(*place).permissions()) & 0077U, 0U) << "nobody else's business";
}

TEST(Checkpoint, NamesWhatAnotherModelDiffersIn) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(save(folder.path(), 1));
  Model other = *modelFromArgument("tiny-gpt");
  other.name = "renamed";
  EXPECT_FALSE(CheckpointReader::open(folder.path())->objection(other));
  other.layers = 7;
  EXPECT_THAT(CheckpointReader::open(folder.path())->objection(other)->text(), HasSubstr("layers is 8, not 7"));
}

TEST(Checkpoint, KeepsTheNewestAndNothingElseOfItsKind) {
  const TemporaryDirectory folder;
  const std::string stranger = folder.file("notes.txt", "mine");
  fs::create_directories(folder.path() / "step-0000000009.part");  // of a run that was killed
  for (const std::int64_t step : {100, 200, 300, 400}) ASSERT_TRUE(save(folder.path(), step, 2));
  std::vector<std::string> names;
  for (const fs::path& path : checkpointsIn(folder.path())) names.push_back(path.filename());
  EXPECT_THAT(names, ElementsAre("step-0000000400", "step-0000000300"));
  EXPECT_TRUE(fs::exists(stranger));
  EXPECT_FALSE(fs::exists(folder.path() / "step-0000000009.part"));
}

// Full disks, kills and bad memory: a damaged checkpoint is named, and the one before it is taken.
TEST(Checkpoint, DoesNotGiveWayToOnesOfLaterStepsThatAreNotItsOwn) {
  const TemporaryDirectory folder;
  for (const std::int64_t step : {500, 600}) ASSERT_TRUE(save(folder.path(), step, 2));
  for (const std::int64_t step : {100, 200, 300}) ASSERT_TRUE(save(folder.path(), step, 2));
  std::vector<std::string> names;
  for (const fs::path& path : checkpointsIn(folder.path())) names.push_back(path.filename());
  EXPECT_THAT(names, ElementsAre("step-0000000600", "step-0000000500", "step-0000000300", "step-0000000200"));
}

TEST(Checkpoint, ThatIsDamagedIsPassedOverForTheOneBeforeIt) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(save(folder.path(), 100));
  const fs::path newest = *save(folder.path(), 200);
  const std::string whole = *readFile(newest / "model-00001-of-00001.safetensors");
  const auto damage = [&](const std::string& file, const std::string& bytes) { ASSERT_TRUE(writeFileAtomically(newest / file, bytes)); };
  std::string flipped = whole;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  damage("model-00001-of-00001.safetensors", flipped);
  EXPECT_THAT(CheckpointReader::open(newest).error().text(), HasSubstr("checksum"));
  damage("model-00001-of-00001.safetensors", whole.substr(0, whole.size() - 3));
  EXPECT_THAT(CheckpointReader::open(newest).error().text(), HasSubstr("3 bytes are missing"));
  auto reader = CheckpointReader::open(folder.path());
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ(reader->facts().step, 100);
  ASSERT_EQ(reader->passedOver().size(), 1U);
  damage("model-00001-of-00001.safetensors", whole);
  damage("model.safetensors.index.json", "{}");
  EXPECT_THAT(CheckpointReader::open(newest).error().text(), HasSubstr("index.json"));
  fs::remove(newest / "checkpoint.json");
  EXPECT_THAT(CheckpointReader::open(newest).error().text(), HasSubstr("no such file"));
  EXPECT_THAT(CheckpointReader::open(folder.path() / "none").error().text(), HasSubstr("is no folder"));
}

TEST(Checkpoint, ThatCannotBeWrittenSaysWhyAndLeavesNothing) {
  const auto written = save("/proc/evenkeel", 1);
  ASSERT_FALSE(written);
  const TemporaryDirectory folder;
  {
    CheckpointWriter writer(folder.path(), 3, factsAt(5), tensors());
    writer.put({1, 2, 3, 4, 5, 6});
  }  // the run was stopped in the middle
  EXPECT_THAT(checkpointsIn(folder.path()), ::testing::IsEmpty());
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace evenkeel
