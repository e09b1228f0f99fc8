// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <utility>

namespace evenkeel {
namespace {

void runSteps(const Segment& segment, Slots& slots, const Batch& batch) {
  for (const OpStep& step : segment.steps) step.run(slots, batch);
}

std::vector<std::size_t> indicesOf(const SlotSet& set, const Slots& slots) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < kSlotCount; ++i) {
    if (set[i] && slots.tensors[i].defined()) indices.push_back(i);
  }
  return indices;
}

/// The gradient of a segment whose ops are computed again first. It has no other memory than the inputs.
class RecomputeNode final : public torch::autograd::Node {
 public:
  RecomputeNode(const Segment& segment, Batch batch, std::vector<at::Tensor> inputs, std::vector<std::size_t> inputSlots,
                std::vector<std::size_t> outputSlots)
      : segment_(segment),
        batch_(std::move(batch)),
        inputs_(std::move(inputs)),
        inputSlots_(std::move(inputSlots)),
        outputSlots_(std::move(outputSlots)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::AutoGradMode recording(true);
    std::vector<at::Tensor> leaves;
    Slots slots;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      at::Tensor leaf = inputs_[i].detach();
      if (inputs_[i].requires_grad()) leaf.requires_grad_();
      leaves.push_back(leaf);
      slots.tensors[inputSlots_[i]] = std::move(leaf);
    }
    runSteps(segment_, slots, batch_);
    torch::autograd::variable_list outputs, outputGradients;
    for (std::size_t i = 0; i < outputSlots_.size(); ++i) {
      at::Tensor& output = slots.tensors[outputSlots_[i]];
      if (!gradients[i].defined() || !output.requires_grad()) continue;
      outputs.push_back(std::move(output));
      outputGradients.push_back(std::move(gradients[i]));
    }
    slots = {};
    torch::autograd::backward(outputs, outputGradients);
    torch::autograd::variable_list inputGradients;
    for (const at::Tensor& leaf : leaves) inputGradients.push_back(leaf.grad());
    return inputGradients;
  }

  void release_variables() override { inputs_.clear(); }

 private:
  const Segment& segment_;
  Batch batch_;
  std::vector<at::Tensor> inputs_;
  std::vector<std::size_t> inputSlots_, outputSlots_;
};

}  // namespace

std::vector<Segment> segmentsOf(std::vector<OpStep> steps, const std::bitset<kOpCount>& recomputed) {
  std::vector<Segment> segments;
  for (OpStep& step : steps) {
    const bool isRecomputed = recomputed[static_cast<std::size_t>(step.op)];
    if (segments.empty() || segments.back().isRecomputed != isRecomputed) segments.push_back({{}, isRecomputed, {}, {}});
    Segment& segment = segments.back();
    segment.inputs |= step.reads & ~segment.outputs;
    segment.outputs |= step.writes;
    segment.steps.push_back(std::move(step));
  }
  return segments;
}

void run(const Segment& segment, Slots& slots, const Batch& batch) {
  if (!segment.isRecomputed || !at::GradMode::is_enabled()) return runSteps(segment, slots, batch);
  const std::vector<std::size_t> inputSlots = indicesOf(segment.inputs, slots);
  std::vector<at::Tensor> inputs;
  for (const std::size_t slot : inputSlots) inputs.push_back(slots.tensors[slot]);
  {
    const at::AutoGradMode notRecording(false);
    runSteps(segment, slots, batch);
  }
  const std::vector<std::size_t> outputSlots = indicesOf(segment.outputs, slots);
  if (outputSlots.empty()) return;
  auto edges = torch::autograd::collect_next_edges(inputs);
  const std::shared_ptr<torch::autograd::Node> node(new RecomputeNode(segment, batch, std::move(inputs), inputSlots, outputSlots),
                                                    torch::autograd::deleteNode);
  node->set_next_edges(std::move(edges));
  for (const std::size_t slot : outputSlots) torch::autograd::set_history(slots.tensors[slot], node);
}

}  // namespace evenkeel
