// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/block_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/random.h"
#include "core/plan/violations.h"
#include "tests/support/plans.h"

namespace evenkeel {
namespace {

using ::testing::ElementsAre;

Model smallModel(bool tied) {
  Model model = *modelFromArgument("tiny-gpt");
  model.layers = 2;
  model.hidden = 8;
  model.heads = 4;
  model.kvHeads = 2;
  model.headDim = 2;
  model.ffn = 16;
  model.vocab = 10;
  model.vocabMultiple = 4;
  model.context = 4;
  model.tiedEmbeddings = tied;
  return model;
}

/// Random pipelines with random cuts, tp 1, 2 or 4 and dp 1 or 2 in every stage. Valid.
Plan randomPlan(std::uint64_t seed) {
  const CounterRandom random(seed, "plans");
  std::uint64_t draws = 0;
  const auto draw = [&](std::uint64_t bound) { return static_cast<int>(random.below(draws++, bound)); };
  Plan plan;
  plan.model = smallModel(draw(2) == 0);
  plan.cluster = *parseClusterShorthand("16x8:cpu");
  int node = 0;
  for (int pipelines = 1 + draw(3); pipelines > 0; --pipelines) {
    Pipeline pipeline{.localBatch = 4, .microBatch = 2};
    const int units = plan.model.unitCount();
    std::set<int> cuts = {0, units};
    for (int more = draw(4); more > 0; --more) cuts.insert(1 + draw(static_cast<std::uint64_t>(units) - 1));
    for (auto first = cuts.begin(), last = std::next(first); last != cuts.end(); ++first, ++last, ++node) {
      Stage stage{.tp = 1 << draw(3), .dp = 1 + draw(2), .units = {*first, *last}};
      for (int d = 0; d < stage.tp * stage.dp; ++d) stage.devices.push_back({node, d});
      pipeline.stages.push_back(std::move(stage));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  plan.training = {
      .sequenceLength = 4, .globalBatch = 4 * static_cast<std::int64_t>(plan.pipelines.size()), .precision = Precision::Fp32};
  return plan;
}

/// Whether shard `shard` of `tp` needs row or column `index` of the tensor's split dimension, by what the shard computes with it:
/// its query heads and the key and value heads that these read, its columns of the MLP, its rows of the vocabulary.
bool needs(const Model& model, const TensorSpec& tensor, int tp, int shard, std::int64_t index) {
  if (tensor.split == TpSplit::None) return true;
  const auto hasPart = [&](std::int64_t parts, std::int64_t part) { return part * tp / parts == shard; };
  const bool isKeyOrValue = tensor.name.find("key") != std::string::npos || tensor.name.find("value") != std::string::npos;
  if (isKeyOrValue) {
    for (int query = 0; query < model.heads; ++query) {
      if (hasPart(model.heads, query) && query / (model.heads / model.kvHeads) == index / model.headDim) return true;
    }
    return false;
  }
  return hasPart(tensor.shape[tensor.split == TpSplit::Columns ? 1 : 0], index);
}

TEST(BlockMap, GivesEveryElementItsHoldersAndNoElementTwice) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Plan plan = randomPlan(seed);
    ASSERT_TRUE(shapeViolations(plan).empty()) << shapeViolations(plan)[0].what;
    const BlockMap map = blockMap(plan);
    const std::vector<RankPlace> places = rankPlaces(plan);
    for (std::size_t t = 0; t < map.tensors.size(); ++t) {
      const TensorSpec& tensor = map.tensors[t];
      const std::int64_t length = tensor.shape[tensor.split == TpSplit::Columns ? 1 : 0];
      std::vector<int> ranks;  // with a unit that uses the tensor
      for (std::size_t r = 0; r < places.size(); ++r) {
        const UnitRange units = plan.pipelines[places[r].pipeline].stages[places[r].stage].units;
        for (int unit = units.first; unit < units.last; ++unit) {
          const auto tensors = tensorsOf(plan.model, unit);
          if (std::ranges::count(tensors, tensor.name, &TensorSpec::name) == 0) continue;
          ranks.push_back(static_cast<int>(r));
          break;
        }
      }
      std::int64_t next = 0, elements = 0;
      for (const Block& block : map.blocks) {
        if (block.tensor != t) continue;
        elements += block.elements;
        for (std::int64_t index = block.range.first; index < block.range.last; ++index, ++next) {
          std::vector<int> holders;
          for (const int rank : ranks) {
            const RankPlace& place = places[static_cast<std::size_t>(rank)];
            const int tp = plan.pipelines[place.pipeline].stages[place.stage].tp;
            if (needs(plan.model, tensor, tp, place.shard, index)) holders.push_back(rank);
          }
          EXPECT_EQ(map.holderSets[block.holderSet], holders) << "seed " << seed << ", " << tensor.name << " " << index;
        }
      }
      // The blocks of a tensor come by holder set: together they cover it once.
      EXPECT_EQ(next, length) << tensor.name;
      EXPECT_EQ(elements, tensor.elements()) << tensor.name;
    }
  }
}

TEST(BlockMap, PacksWhatIsSummedTogetherWithoutGapsInTheSameOrderOnAllRanks) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Plan plan = randomPlan(seed);
    const BlockMap map = blockMap(plan);
    const std::set<std::vector<int>> distinct(map.holderSets.begin(), map.holderSets.end());
    EXPECT_EQ(distinct.size(), map.holderSets.size());
    std::map<std::size_t, std::int64_t> elementsOfSet;
    for (const Block& block : map.blocks) elementsOfSet[block.holderSet] += block.elements;
    for (int rank = 0; rank < static_cast<int>(rankPlaces(plan).size()); ++rank) {
      std::int64_t next = 0;
      for (const HeldBlock& held : heldBlocks(map, rank)) {
        EXPECT_EQ(held.offset, next);
        next += map.blocks[held.block].elements;
      }
      std::size_t previous = 0;
      std::set<std::size_t> seen;
      for (const SyncRegion& region : syncRegions(map, rank)) {
        EXPECT_THAT(map.holderSets[region.holderSet], ::testing::Contains(rank));
        EXPECT_EQ(region.elements, elementsOfSet[region.holderSet]) << "one fused collective sums the whole set";
        EXPECT_GE(region.holderSet, previous);
        EXPECT_TRUE(seen.insert(region.holderSet).second);
        previous = region.holderSet;
      }
    }
  }
}

TEST(BlockMap, MakesATiedEmbeddingOneTensorWithHoldersAtBothEnds) {
  // Megatron-LM #7452: sums across groups went wrong where tied embeddings met other parallelisms.
  const Plan plan = planOf(*parseClusterShorthand("1x3:cpu"), smallModel(true),
                           {{2, 1, {"cpu-0/0", "cpu-0/1"}, {0, 3, 6}}, {1, 1, {"cpu-0/2"}, {0, 6}}});
  const BlockMap map = blockMap(plan);
  ASSERT_EQ(map.tensors[0].name, "embedding.token");
  const auto block = std::ranges::find(map.blocks, std::size_t{0}, &Block::tensor);
  EXPECT_THAT(map.holderSets[block->holderSet], ElementsAre(0, 1, 2));
  EXPECT_EQ(std::ranges::count(map.tensors, std::string("embedding.token"), &TensorSpec::name), 1);
  EXPECT_EQ(std::ranges::count(map.blocks, std::size_t{0}, &Block::tensor), 1);
}

TEST(BlockMap, CutsATensorWhereAnyPipelineCutsIt) {
  Plan plan =
      planOf(*parseClusterShorthand("1x3:cpu"), smallModel(false), {{2, 1, {"cpu-0/0"}, {0, 6}}, {1, 1, {"cpu-0/1"}, {0, 6}}});
  plan.pipelines[1].stages[0].tp = 2;
  plan.pipelines[1].stages[0].devices.push_back({0, 2});
  const BlockMap map = blockMap(plan);
  std::vector<std::pair<SliceRange, std::vector<int>>> blocks;
  for (const Block& block : map.blocks) {
    if (map.tensors[block.tensor].name == "layer.0.mlp.fc1.weight")
      blocks.emplace_back(block.range, map.holderSets[block.holderSet]);
  }
  EXPECT_THAT(blocks,
              ElementsAre(std::pair(SliceRange{0, 8}, std::vector{0, 1}), std::pair(SliceRange{8, 16}, std::vector{0, 2})));
}

TEST(BlockMap, NeedsNoSyncWhereOnePipelineHoldsEverythingOnce) {
  const Plan plan = planOf(*parseClusterShorthand("1x2:cpu"), smallModel(false), {{2, 1, {"cpu-0/0", "cpu-0/1"}, {0, 3, 6}}});
  EXPECT_TRUE(syncRegions(blockMap(plan), 0).empty());
  EXPECT_TRUE(syncRegions(blockMap(plan), 1).empty());
}

TEST(RankPlaces, FollowTheSortedDevices) {
  const Plan plan = planOf(*parseClusterShorthand("1x3:cpu"), smallModel(false),
                           {{2, 1, {"cpu-0/2", "cpu-0/0"}, {0, 3, 6}}, {1, 1, {"cpu-0/1"}, {0, 6}}});
  EXPECT_THAT(rankPlaces(plan), ElementsAre(RankPlace{.pipeline = 0, .stage = 1}, RankPlace{.pipeline = 1, .stage = 0},
                                            RankPlace{.pipeline = 0, .stage = 0}));
}

}  // namespace
}  // namespace evenkeel
