// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/megatron.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/plan/violations.h"

namespace evenkeel::cli {
namespace {

/// Everything but the devices: two pipelines that Megatron-LM would run as one.
bool isLike(const Pipeline& a, const Pipeline& b) {
  const auto sameStage = [](const Stage& x, const Stage& y) {
    return x.units == y.units && x.tp == y.tp && x.dp == y.dp && x.recompute == y.recompute;
  };
  return a.localBatch == b.localBatch && a.microBatch == b.microBatch && std::ranges::equal(a.stages, b.stages, sameStage);
}

std::vector<std::string> objections(const Plan& plan) {
  std::vector<std::string> reasons;
  const Pipeline& first = plan.pipelines.front();
  for (std::size_t p = 1; p < plan.pipelines.size(); ++p) {
    if (!isLike(plan.pipelines[p], first)) {
      reasons.push_back(fmt::format("pipeline {} differs from pipeline 0: all replicas must be alike", p));
      break;
    }
  }
  if (first.localBatch % first.microBatch != 0)
    reasons.push_back(
        fmt::format("{} samples a pipeline are no multiple of the micro-batch of {}", first.localBatch, first.microBatch));
  for (std::size_t s = 0; s < first.stages.size(); ++s) {
    const Stage& stage = first.stages[s];
    const std::string place = placeOf(0, s);
    if (stage.tp != first.stages.front().tp)
      reasons.push_back(
          fmt::format("{} has tp {}, the first stage tp {}: one degree for all", place, stage.tp, first.stages.front().tp));
    if (stage.dp != 1) reasons.push_back(fmt::format("{} has dp {} inside of the pipeline", place, stage.dp));
    const auto splitsLayer = [&](int unit) {
      return unit > 0 && unit < plan.model.unitCount() - 1 && plan.model.unitKind(unit) == UnitKind::Mlp;
    };
    if (splitsLayer(stage.units.first)) reasons.push_back(fmt::format("{} begins in the middle of a layer", place));
    for (const Recompute& recompute : stage.recompute) {
      const bool coversAll = recompute.units.first <= std::max(stage.units.first, 1) &&
                             recompute.units.last >= std::min(stage.units.last, plan.model.unitCount() - 1);
      if (!coversAll) {
        reasons.push_back(fmt::format("{} recomputes in some of its layers only", place));
        break;
      }
    }
  }
  return reasons;
}

/// "Ettt|tttt|ttL"
std::string layoutOf(const Plan& plan) {
  std::string layout;
  for (const Stage& stage : plan.pipelines.front().stages) {
    if (!layout.empty()) layout += '|';
    for (int unit = stage.units.first; unit < stage.units.last; ++unit) {
      switch (plan.model.unitKind(unit)) {
        case UnitKind::Embedding: layout += 'E'; break;
        case UnitKind::Attention: layout += 't'; break;
        case UnitKind::Mlp: break;  // of the same layer
        case UnitKind::Head: layout += 'L'; break;
      }
    }
  }
  return layout;
}

}  // namespace

Result<std::vector<std::string>> megatronArguments(const Plan& plan) {
  if (plan.model.opaque)
    return failed("export --to megatron", plan.model.name + " is a table of layers, no transformer", "export it as trace, csv or html");
  if (const auto reasons = objections(plan); !reasons.empty())
    return failed("export --to megatron", fmt::format("Megatron-LM cannot express this plan: {}", fmt::join(reasons, "; ")),
                  "plan with --planner uniform, or launch it here");
  const Model& model = plan.model;
  const Training& training = plan.training;
  const Pipeline& pipeline = plan.pipelines.front();
  std::vector<std::string> words;
  const auto add = [&](const std::string& option, auto value) {
    words.push_back(option);
    words.push_back(fmt::format("{}", value));
  };
  add("--num-layers", model.layers);
  add("--hidden-size", model.hidden);
  add("--ffn-hidden-size", model.ffn);
  add("--num-attention-heads", model.heads);
  if (model.kvHeads != model.heads) {
    words.emplace_back("--group-query-attention");
    add("--num-query-groups", model.kvHeads);
  }
  if (model.headDim * model.heads != model.hidden) add("--kv-channels", model.headDim);
  add("--seq-length", training.sequenceLength);
  add("--max-position-embeddings", std::max(model.context, training.sequenceLength));
  add("--position-embedding-type", model.position == Position::Rotary ? "rope" : "learned_absolute");
  add("--normalization", model.norm == Norm::RmsNorm ? "RMSNorm" : "LayerNorm");
  if (model.gated) words.emplace_back("--swiglu");
  if (!model.bias) words.emplace_back("--disable-bias-linear");
  if (model.hasQkvBias() && !model.bias) words.emplace_back("--add-qkv-bias");
  if (!model.tiedEmbeddings) words.emplace_back("--untie-embeddings-and-output-weights");
  add("--make-vocab-size-divisible-by", model.vocabMultiple);
  add("--tensor-model-parallel-size", pipeline.stages.front().tp);
  add("--pipeline-model-parallel-size", pipeline.stages.size());
  add("--pipeline-model-parallel-layout", layoutOf(plan));
  add("--micro-batch-size", pipeline.microBatch);
  add("--global-batch-size", training.globalBatch);
  if (training.precision != Precision::Fp32) words.push_back(training.precision == Precision::Bf16 ? "--bf16" : "--fp16");
  if (training.sequenceParallel) words.emplace_back("--sequence-parallel");
  if (training.attention == AttentionKernel::Fused) words.emplace_back("--use-flash-attn");
  if (training.zeroStage >= 1) words.emplace_back("--use-distributed-optimizer");
  // Megatron-LM knows two sets of ops, the core of attention and whole layers: the smallest that saves what ours saves.
  bool recomputes = false, isSelective = true;
  for (const Stage& stage : pipeline.stages) {
    for (const Recompute& recompute : stage.recompute) {
      recomputes = true;
      isSelective = isSelective && std::ranges::all_of(recompute.ops, [](Op op) {
                      return op == Op::Score || op == Op::Softmax || op == Op::AttentionDropout || op == Op::Context;
                    });
    }
  }
  if (recomputes) add("--recompute-granularity", isSelective ? "selective" : "full");
  if (recomputes && !isSelective) {
    add("--recompute-method", "uniform");
    add("--recompute-num-layers", 1);
  }
  return words;
}

}  // namespace evenkeel::cli
