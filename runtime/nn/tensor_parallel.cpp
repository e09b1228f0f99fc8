// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/nn/tensor_parallel.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>

namespace evenkeel {
namespace {

class EnterNode final : public torch::autograd::Node {
 public:
  explicit EnterNode(const TensorParallel& group) : group_(group) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return {group_.sumOf(gradients[0])};
  }

 private:
  const TensorParallel& group_;
};

class SumNode final : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override { return std::move(gradients); }
};

/// Makes `node` the history of `output`, which was computed from x without recording.
template <class NodeType, class... Arguments>
at::Tensor withHistory(at::Tensor output, const at::Tensor& x, const Arguments&... arguments) {
  if (!torch::autograd::compute_requires_grad(x)) return output;
  const std::shared_ptr<torch::autograd::Node> node(new NodeType(arguments...), torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace

TensorParallel::TensorParallel(Comm& comm, const std::vector<int>& ranks, int shard)
    : comm_(&comm), ranks_(ranks), size_(static_cast<int>(ranks.size())), shard_(shard) {
  std::ranges::sort(ranks_);
}

at::Tensor TensorParallel::sumOf(const at::Tensor& x) const {
  // A copy in any case: what autograd hands us may be shared with other nodes.
  const bool isNarrow = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  const at::Tensor total =
      x.detach().to(isNarrow ? at::kFloat : x.scalar_type(), /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
  if (auto done = comm_->allReduceSum(total, ranks_); !done) throw CommFailure(done.error());
  return total.to(x.scalar_type());
}

at::Tensor TensorParallel::enter(const at::Tensor& x) const {
  if (size_ == 1) return x;
  return withHistory<EnterNode>(x.detach(), x, *this);
}

at::Tensor TensorParallel::sum(const at::Tensor& x) const {
  if (size_ == 1) return x;
  return withHistory<SumNode>(sumOf(x), x);
}

at::Tensor TensorParallel::largest(const at::Tensor& x) const {
  at::Tensor largest = x.detach().clone(at::MemoryFormat::Contiguous);
  if (size_ == 1) return largest;
  if (auto done = comm_->allReduceMax(largest, ranks_); !done) throw CommFailure(done.error());
  return largest;
}

}  // namespace evenkeel
