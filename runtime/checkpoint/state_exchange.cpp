// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/state_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace evenkeel {
namespace {

constexpr std::size_t kMostCopies = 8;  // of a card's tensors on the host that wait to be sent
constexpr int kColumns = 4;  // of a row that tells rank 0 of a piece: tensor, first, count, whether its first holder

/// Between row by row and the split dimension outside, which differ for tensors that are split by columns.
void transposed(std::int64_t rows, std::int64_t columns, const std::vector<float>& from, std::vector<float>& to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) to[static_cast<std::size_t>(c * rows + r)] = from[static_cast<std::size_t>(r * columns + c)];
  }
}

std::vector<float> splitOutside(const TensorSpec& tensor, std::vector<float> rows) {
  if (tensor.split != TpSplit::Columns) return rows;
  std::vector<float> columns(rows.size());
  transposed(tensor.shape[0], tensor.shape[1], rows, columns);
  return columns;
}

std::vector<float> rowByRow(const TensorSpec& tensor, std::vector<float> columns) {
  if (tensor.split != TpSplit::Columns) return columns;
  std::vector<float> rows(columns.size());
  transposed(tensor.shape[1], tensor.shape[0], columns, rows);
  return rows;
}

}  // namespace

Result<void> StateExchange::connect() {
  std::vector<at::Tensor> own;
  for (const ModelState state : kModelStates) {
    const std::vector<StatePiece> pieces = parameters_.pieces(state);
    at::Tensor table = at::empty({static_cast<std::int64_t>(pieces.size()), kColumns}, at::kLong);
    auto* row = table.data_ptr<std::int64_t>();
    for (const StatePiece& piece : pieces) {
      row[0] = static_cast<std::int64_t>(piece.tensor);
      row[1] = piece.first;
      row[2] = piece.values.numel();
      row[3] = piece.isFirstHolder ? 1 : 0;
      row += kColumns;
    }
    own.push_back(table);
  }
  if (comm_.rank() != 0) {
    for (const at::Tensor& table : own) {
      at::Tensor count = at::empty({1}, at::kLong);
      count.fill_(table.size(0));
      for (const at::Tensor& message : {count, table}) {
        if (message.numel() == 0) continue;
        if (auto sent = comm_.send(message, 0, kStateTag)->wait(); !sent) return sent;
      }
    }
    return {};
  }
  holdings_.assign(kModelStates.size(), std::vector<std::vector<Holding>>(map_.tensors.size()));
  for (int rank = 0; rank < comm_.worldSize(); ++rank) {
    for (std::size_t state = 0; state < kModelStates.size(); ++state) {
      at::Tensor table = own[state];
      if (rank != 0) {
        const at::Tensor count = at::empty({1}, at::kLong);
        if (auto got = comm_.receive(count, rank, kStateTag)->wait(); !got) return got;
        table = at::empty({count.item<std::int64_t>(), kColumns}, at::kLong);
        if (table.numel() > 0) {
          if (auto got = comm_.receive(table, rank, kStateTag)->wait(); !got) return got;
        }
      }
      const auto* row = table.data_ptr<std::int64_t>();
      for (std::int64_t i = 0; i < table.size(0); ++i, row += kColumns)
        holdings_[state][static_cast<std::size_t>(row[0])].push_back({rank, row[1], row[2], row[3] == 1});
    }
  }
  return {};
}

Result<void> StateExchange::gather(const std::function<void(std::vector<float>)>& take) {
  std::deque<std::unique_ptr<Transfer>> sent;
  for (std::size_t state = 0; state < kModelStates.size(); ++state) {
    const std::vector<StatePiece> own = parameters_.pieces(kModelStates[state]);
    for (std::size_t t = 0; t < map_.tensors.size(); ++t) {
      if (comm_.rank() != 0) {
        for (const StatePiece& piece : own) {
          if (piece.tensor != t || !piece.isFirstHolder) continue;
          sent.push_back(comm_.send(piece.values.cpu(), 0, kStateTag));
          if (piece.values.is_cpu() || sent.size() <= kMostCopies) continue;
          if (auto done = sent.front()->wait(); !done) return done;
          sent.pop_front();
        }
        continue;
      }
      std::vector<float> values(static_cast<std::size_t>(map_.tensors[t].elements()));
      auto next = std::ranges::find_if(own, [&](const StatePiece& piece) { return piece.tensor == t; });
      for (const Holding& holding : holdings_[state][t]) {
        at::Tensor part;
        if (holding.rank == 0) {
          part = next->values.cpu();  // own pieces of a tensor stand in the order of the table
          next = std::find_if(next + 1, own.end(), [&](const StatePiece& piece) { return piece.tensor == t; });
        }
        if (!holding.isFirstHolder) continue;
        if (holding.rank != 0) {
          part = at::empty({holding.count});
          if (auto got = comm_.receive(part, holding.rank, kStateTag)->wait(); !got) return got;
        }
        std::copy_n(part.data_ptr<float>(), holding.count, values.begin() + holding.first);
      }
      take(rowByRow(map_.tensors[t], std::move(values)));
    }
  }
  for (const auto& transfer : sent) {
    if (auto done = transfer->wait(); !done) return done;
  }
  return {};
}

Result<void> StateExchange::scatter(const std::function<Result<std::vector<float>>(ModelState, const TensorSpec&)>& give) {
  for (std::size_t state = 0; state < kModelStates.size(); ++state) {
    const std::vector<StatePiece> own = parameters_.pieces(kModelStates[state]);
    for (std::size_t t = 0; t < map_.tensors.size(); ++t) {
      if (comm_.rank() != 0) {
        for (const StatePiece& piece : own) {
          if (piece.tensor != t) continue;
          const at::Tensor values = piece.values.is_cpu() ? piece.values : at::empty(piece.values.sizes(), at::kFloat);
          if (auto got = comm_.receive(values, 0, kStateTag)->wait(); !got) return got;
          if (!piece.values.is_cpu()) piece.values.copy_(values);
        }
        continue;
      }
      auto read = give(kModelStates[state], map_.tensors[t]);
      if (!read) return std::move(read).error();
      std::vector<float> values = splitOutside(map_.tensors[t], *std::move(read));
      auto next = std::ranges::find_if(own, [&](const StatePiece& piece) { return piece.tensor == t; });
      for (const Holding& holding : holdings_[state][t]) {
        float* const from = values.data() + holding.first;
        if (holding.rank != 0) {
          const at::Tensor part = at::empty({holding.count});
          std::copy_n(from, holding.count, part.data_ptr<float>());
          if (auto sent = comm_.send(part, holding.rank, kStateTag)->wait(); !sent) return sent;
          continue;
        }
        next->values.copy_(at::from_blob(from, {holding.count}, at::kFloat));
        next = std::find_if(next + 1, own.end(), [&](const StatePiece& piece) { return piece.tensor == t; });
      }
    }
  }
  parameters_.finishUpdate();
  return {};
}

}  // namespace evenkeel
