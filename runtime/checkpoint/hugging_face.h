// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/model.h"

namespace evenkeel {

/// A tensor as Hugging Face's transformers keep it: our tensors `parts` (names of core/model: tensorsOf) on top of each other along their
/// first dimension, and of a padded vocabulary only the real rows.
struct ForeignTensor {
  std::string name;                 // without the name of the trunk ("transformer.", "model.")
  std::vector<TensorSpec> parts;
  std::vector<std::int64_t> shape;  // as it is stored
  bool isTransposed = false;        // (input features, output features): GPT-2
  bool isOfTrunk = true;            // lm_head is not
};

/// The architecture whose layers compute what the model's do, as config.json calls it: gpt2, llama or qwen2. An Error names what none of them has.
[[nodiscard]] Result<std::string> architectureOf(const Model& model);
/// All tensors of that architecture in the order of our units; a tied head is none.
[[nodiscard]] std::vector<ForeignTensor> foreignTensors(const Model& model, const std::string& architecture);

struct ConvertedWeights {
  Model model;
  std::filesystem::path folder;  // what was written
  std::int64_t parameters = 0;   // with the real vocabulary
  std::int64_t step = 0;         // of the checkpoint
  std::vector<std::string> notes;
};

/// Told of every tensor that is done, of how many.
using ConversionProgress = std::function<void(std::size_t done, std::size_t all)>;

/// Reads config.json and the safetensors files of `folder` (model.safetensors, or those of model.safetensors.index.json; fp32, bf16 or fp16) and
/// writes a checkpoint of step 0 below `directory`, which holds no other, and from which `launch --resume` trains. Model types: gpt2, llama, mistral, qwen2. Missing, unknown and
/// misshapen tensors are errors, and so is what the layers would compute otherwise (scaled rotary positions). Memory: two tensors.
[[nodiscard]] Result<ConvertedWeights> importHuggingFace(const std::filesystem::path& folder, const std::filesystem::path& directory, const ConversionProgress& progress = {});

/// Writes the weights of a checkpoint (a folder, or a folder of them) as config.json and safetensors files in fp32, without the rows that pad the
/// vocabulary. `folder` must not exist or be empty; it is whole or not there.
[[nodiscard]] Result<ConvertedWeights> exportHuggingFace(const std::filesystem::path& checkpoint, const std::filesystem::path& folder, const ConversionProgress& progress = {});

}  // namespace evenkeel
