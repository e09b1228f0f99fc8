// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/profile/importers.h"

#include <gmock/gmock.h>

#include <random>

#include "core/cluster/catalogue.h"
#include "core/profile/sailor_links.h"
#include "core/profile/table_profile.h"
#include "tests/support/json_mutation.h"
#include "tests/support/reference_data.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_directory.h"

namespace evenkeel {
namespace {

using testing::HasSubstr;

Model twoLayers() {
  Model model{
      .name = "two-layers", .layers = 2, .hidden = 64, .heads = 4, .kvHeads = 4, .headDim = 16, .ffn = 256, .vocab = 1000};
  model.context = 32;
  return model;
}
Training training() { return {.sequenceLength = 32, .globalBatch = 8, .precision = Precision::Fp32}; }

Seconds sumOf(const ProfileTable& table, const std::string& device, std::span<const UnitKind> kinds, int tp, std::int64_t samples,
              bool forward) {
  const TableProfile profile(table, twoLayers(), training(), "test");
  Seconds sum;
  for (const UnitKind kind : kinds) {
    for (const Op op : opsOf(kind)) {
      const OpCost cost = profile.cost(*deviceTypeNamed(device), op, tp, samples);
      sum += forward ? cost.forward : cost.backward;
    }
  }
  return sum;
}
constexpr std::array kLayer = {UnitKind::Attention, UnitKind::Mlp};
constexpr std::array kHead = {UnitKind::Head};

constexpr const char* kMetis =
    R"({"model": {"model_name": "x"}, "execution_time": {"layer_compute_total_ms": [1.0, 4.0, 6.0, 3.0]}})";

TEST(MetisImport, DividesTheTimeOfALayerAmongItsOps) {
  const TemporaryDirectory folder;
  folder.file("DeviceType.A100_tp2_bs4.json", kMetis);
  folder.file("notes.txt", "not a profile");
  const auto table = importMetis(folder.path(), twoLayers(), training());
  ASSERT_TRUE(table.ok()) << table.error().text();
  const Seconds forward = sumOf(*table, "A100-40-SXM", kLayer, 2, 4, true),
                backward = sumOf(*table, "A100-40-SXM", kLayer, 2, 4, false);
  EXPECT_NEAR(milliseconds(forward + backward), 5.0, 1e-9);  // mean of the two layers
  EXPECT_GT(backward, forward);
  EXPECT_EQ(table->devices.at("A100-40-SXM").points.at({Op::Fc1, 2}).at(4).source, ValueSource::Apportioned);
}

TEST(MetisImport, NamesTheFileWhoseLayersAreNotThoseOfTheModel) {
  const TemporaryDirectory folder;
  folder.file("DeviceType.A100_tp1_bs1.json", R"({"execution_time": {"layer_compute_total_ms": [1.0, 4.0]}})");
  const auto table = importMetis(folder.path(), twoLayers(), training());
  ASSERT_FALSE(table.ok());
  EXPECT_THAT(table.error().text(), HasSubstr("DeviceType.A100_tp1_bs1.json"));
  EXPECT_THAT(table.error().text(), HasSubstr("2 layers"));
  const TemporaryDirectory empty;
  EXPECT_THAT(importMetis(empty.path(), twoLayers(), training()).error().what, HasSubstr("no profile of Metis"));
}

constexpr const char* kSailorTimes = R"({"1": {"2": {"0": [0.001, 0.0, 0.1], "1": [0.002, 0.004, 0.1], "2": [0.004, 0.006, 0.1],
  "3": [0.003, 0.005, 0.1]}}})";
constexpr const char* kSailorSizes = R"({"TWO": {"2": {"0": {"params_floats": 32000, "act_mem_floats": 100},
  "2": {"params_floats": 25000, "act_mem_floats": 5000}, "3": {"params_floats": 33000, "act_mem_floats": 700}}}})";

TEST(SailorImport, ReadsTimesAndSizesOfLayers) {
  const TemporaryDirectory folder;
  const SailorSource source{folder.file("profile.json", kSailorTimes), folder.file("llm_info.json", kSailorSizes), "TWO",
                            "RTX-3090"};
  const auto table = importSailor(source, twoLayers(), training());
  ASSERT_TRUE(table.ok()) << table.error().text();
  EXPECT_NEAR(milliseconds(sumOf(*table, "RTX3090", kLayer, 2, 1, true)), 3.0, 1e-9);
  EXPECT_NEAR(milliseconds(sumOf(*table, "RTX3090", kLayer, 2, 1, false)), 5.0, 1e-9);
  EXPECT_NEAR(milliseconds(sumOf(*table, "RTX3090", kHead, 2, 1, false)), 5.0, 1e-9);
  std::int64_t saved = 0;
  for (const UnitKind kind : kLayer) {
    for (const Op op : opsOf(kind)) saved += table->devices.at("RTX3090").points.at({op, 2}).at(1).saved->value;
  }
  EXPECT_NEAR(static_cast<double>(saved), 4 * 5000, 13);
}

// GPT-Neo's profiled head is its final norm alone: the output projection was timed nowhere.
TEST(SailorImport, CountsTheProjectionWhereTheHeadWasTimedWithoutIt) {
  const TemporaryDirectory folder;
  std::string sizes = kSailorSizes;
  sizes.replace(sizes.find("33000"), 5, "128");
  const SailorSource source{folder.file("profile.json", kSailorTimes), folder.file("llm_info.json", sizes), "TWO", "RTX-3090"};
  const auto table = importSailor(source, twoLayers(), training());
  ASSERT_TRUE(table.ok()) << table.error().text();
  const TableProfile profile(*table, twoLayers(), training(), "test");
  EXPECT_EQ(profile.cost(*deviceTypeNamed("RTX3090"), Op::Head, 2, 1).source, ValueSource::Analytic);
  EXPECT_NEAR(milliseconds(profile.cost(*deviceTypeNamed("RTX3090"), Op::FinalNorm, 2, 1).forward), 3.0, 1e-9);
}

constexpr const char* kAceso =
    "gpu,model,precision,mbs,tp,op_name,forward-compute,backward-compute\n"
    "A100-40,TWO,fp32,1,2,enc-MLP-GEMM-1,10,21\n"
    "A100-40,TWO,fp32,1,2,gpt-post-process,30,50\n";

TEST(AcesoImport, ReadsOpsAndDividesTheLastOne) {
  const TemporaryDirectory folder;
  const auto table = importAceso({folder.file("ops.csv", kAceso), "TWO", "A100-40", "fp32"}, twoLayers(), training());
  ASSERT_TRUE(table.ok()) << table.error().text();
  const DeviceProfile& profile = table->devices.at("A100-40-SXM");
  EXPECT_NEAR(microseconds(profile.points.at({Op::Fc1, 2}).at(1).backward), 21, 1e-9);
  EXPECT_EQ(profile.points.at({Op::Fc1, 2}).at(1).source, ValueSource::Imported);
  const Seconds head = profile.points.at({Op::Head, 2}).at(1).forward, loss = profile.points.at({Op::Loss, 2}).at(1).forward;
  EXPECT_NEAR(microseconds(head + loss), 30, 1e-9);
  EXPECT_EQ(profile.points.at({Op::Head, 2}).at(1).source, ValueSource::Apportioned);
}

TEST(AcesoImport, AsksWhichModelIsMeantWhereATableHoldsMore) {
  const TemporaryDirectory folder;
  const std::string two = std::string(kAceso) + "A100-40,OTHER,fp32,1,2,enc-MLP-GEMM-1,11,22\n";
  const auto table = importAceso({folder.file("ops.csv", two), "", "", ""}, twoLayers(), training());
  ASSERT_FALSE(table.ok());
  EXPECT_THAT(table.error().text(), HasSubstr("ops.csv:4"));
  EXPECT_THAT(table.error().text(), HasSubstr("OTHER"));
}

constexpr const char* kBetween = R"({"z": {"A": {"2": {"z": {"A": {"2": [[-0.1, 1.0, 5.0], 8e9]}}},
                                           "1": {"z": {"A": {"1": [[0.0, 0.1, 2.0], 4e9]}, "B": {"1": [[0, 0, 0.1], 1e8]}}}}}})";
constexpr const char* kInside = R"({"A": {"2": [[-0.5, 14.0, 44.0], 125e9]}})";

TEST(SailorLinks, BecomeTablesWhoseTimeNeverFallsWithSize) {
  const TemporaryDirectory folder;
  folder.file("multizone_bandwidths_het.json", kBetween);
  folder.file("intra_node_bandwidths.json", kInside);
  const auto links = SailorLinks::load(folder.path(), "z");
  ASSERT_TRUE(links.ok()) << links.error().text();
  for (const auto& link : {links->between("A", "A", 2), links->between("B", "A", 1), links->inside("A", 2)}) {
    ASSERT_TRUE(link.has_value());
    EXPECT_LE(link->table.size(), 8U);
    Seconds before;
    for (const MessageRate& rate : link->table) {
      EXPECT_GE(rate.size / rate.bandwidth, before);
      before = rate.size / rate.bandwidth;
    }
  }
  EXPECT_NEAR(gbs(links->between("B", "A", 4)->bandwidthFor({1 << 20})), 0.1, 1e-9);
  EXPECT_FALSE(links->between("A", "C", 1).has_value());
  EXPECT_TRUE(links->hasNicPerCard("A"));  // two pairs get twice as much
}

// Broken and hostile files end with a table or an error that names the file.
TEST(Importers, EndWithATableOrAnErrorForEveryMutation) {
  std::mt19937 random(11);
  const auto broken = [&](const Json& whole) {
    Json json = whole;
    for (int changes = 1 + static_cast<int>(random() % 2); changes > 0; --changes) mutate(json, random);
    return json;
  };
  const Json times = *parseJson(kSailorTimes, "own"), sizes = *parseJson(kSailorSizes, "own"), metis = *parseJson(kMetis, "own");
  const Json between = *parseJson(kBetween, "own"), inside = *parseJson(kInside, "own");
  const SailorSource sailor{"times.json", "sizes.json", "TWO", "RTX-3090"};
  for (int i = 0; i < sweep(1500, 100'000); ++i) {
    if (const auto table = parseSailor(broken(times), broken(sizes), sailor, twoLayers(), training()); !table.ok()) {
      ASSERT_THAT(table.error().where, testing::AnyOf(HasSubstr("times.json"), HasSubstr("sizes.json")));
    }
    const std::map<std::filesystem::path, Json> files = {{"m/DeviceType.A100_tp2_bs4.json", broken(metis)}};
    if (const auto table = parseMetis(files, twoLayers(), training()); !table.ok()) {
      ASSERT_THAT(table.error().where, HasSubstr("DeviceType.A100_tp2_bs4.json"));
    }
    if (const auto links = SailorLinks::parse(broken(between), "between.json", broken(inside), "inside.json", "z"); !links.ok()) {
      ASSERT_THAT(links.error().where, testing::AnyOf(HasSubstr("between.json"), HasSubstr("inside.json")));
    }
    std::string csv = kAceso;
    for (int changes = 3; changes > 0; --changes) csv[random() % csv.size()] = static_cast<char>(random() % 256);
    if (const auto table = parseAceso(csv, {"ops.csv", "", "", ""}, twoLayers(), training()); !table.ok()) {
      ASSERT_THAT(table.error().where, HasSubstr("ops.csv"));
    }
  }
}

TEST(Importers, ReadTheFilesOfTheArtifactsThemselves) {
  const auto sailor = referenceData("sailor/profiles");
  if (!sailor) GTEST_SKIP() << "no reference data";
  Model opt{
      .name = "OPT-350M", .layers = 24, .hidden = 1024, .heads = 16, .kvHeads = 16, .headDim = 64, .ffn = 4096, .vocab = 50272};
  opt.context = 2048;
  opt.tiedEmbeddings = false;
  const Training fp32{.sequenceLength = 2048, .globalBatch = 8, .precision = Precision::Fp32};
  const auto folder = importProfile(*sailor / "layer" / "OPT-350", opt, fp32);
  ASSERT_TRUE(folder.ok()) << folder.error().text();
  EXPECT_EQ(folder->devices.size(), 7U);
  const auto metis = importProfile(referenceData("metis-cases/profiles/syn10-AV").value(), twoLayers(), fp32);
  ASSERT_FALSE(metis.ok());  // 10 layers, not 4
  Model ten = opt;
  ten.layers = 8;
  EXPECT_TRUE(importProfile(referenceData("metis-cases/profiles/syn10-AV").value(), ten, fp32).ok());
  const auto aceso = importAceso({*sailor / "aceso" / "aceso_ops.csv", "OPT-350", "", "fp32"}, opt, fp32);
  ASSERT_TRUE(aceso.ok()) << aceso.error().text();
  EXPECT_EQ(aceso->devices.size(), 6U);
}

}  // namespace
}  // namespace evenkeel
