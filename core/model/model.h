// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_reader.h"
#include "core/base/units.h"
#include "core/model/op.h"

namespace evenkeel {

enum class Family { Gpt, Llama };  // Gpt: LayerNorm, GELU, learned positions, biases. Llama: RMSNorm, SwiGLU, RoPE, none
enum class Norm { LayerNorm, RmsNorm };
enum class Position { Learned, Rotary };
enum class Activation { Gelu, GeluTanh };  // of a plain MLP; gated ones have SiLU. GeluTanh: the approximation that GPT-2 was trained with

/// A layer of which only the costs are known. All but the parameters are of one sample.
struct OpaqueLayer {
  std::string name;
  std::int64_t parameters = 0;
  Bytes saved;      // from forward to backward
  Bytes transient;  // workspace while it runs
  Flops forward;    // of its matrix products, the backward has twice as many; 0: not known
  struct Time {
    Seconds forward, backward;
    bool operator==(const Time&) const = default;
  };
  std::map<std::string, Time> times;  // by device type; of others the FLOPs tell
  bool operator==(const OpaqueLayer&) const = default;
};

/// A model that can be planned but not trained: one layer in front, equal ones inside, one behind. tp is 1.
struct OpaqueLayers {
  OpaqueLayer first, inner, last;
  bool operator==(const OpaqueLayers&) const = default;
};

/// A transformer decoder. Sizes are in elements; invariants (readModel checks them): headDim * heads need not equal hidden,
/// kvHeads divides heads, everything is at least 1.
struct Model {
  std::string name;
  int layers = 0;
  std::int64_t hidden = 0;
  int heads = 0;
  int kvHeads = 0;  // < heads: grouped-query attention
  std::int64_t headDim = 0;
  std::int64_t ffn = 0;              // inner width of the MLP
  std::int64_t vocab = 0;            // real vocabulary
  std::int64_t vocabMultiple = 128;  // padded to a multiple of it; never depends on tp
  std::int64_t context = 0;          // longest sequence; rows of a learned position embedding
  bool gated = false;                // MLP with three matrices
  bool tiedEmbeddings = true;
  bool bias = true;             // linear layers and norms have biases
  std::optional<bool> qkvBias;  // of query, key and value, where they differ from the others (Qwen2)
  Norm norm = Norm::LayerNorm;
  Position position = Position::Learned;
  Activation activation = Activation::Gelu;
  double normEpsilon = 1e-5;     // GPT-2, Llama 2
  double rotaryBase = 10'000.0;  // Su et al., RoFormer; Llama 2
  // A table instead: then `layers` counts the inner layers, hidden x context numbers of a sample cross from layer to layer, and
  // the sizes of heads and MLP are 1. An inner layer is an attention unit, with its cost in Op::Qkv; the MLP unit behind it is
  // empty.
  std::optional<OpaqueLayers> opaque;
  Json extra;
  bool operator==(const Model&) const = default;

  [[nodiscard]] std::int64_t paddedVocab() const { return (vocab + vocabMultiple - 1) / vocabMultiple * vocabMultiple; }
  [[nodiscard]] Family family() const {
    return norm == Norm::RmsNorm && gated && position == Position::Rotary ? Family::Llama : Family::Gpt;
  }
  [[nodiscard]] bool hasQkvBias() const { return qkvBias.value_or(bias); }
  /// 2 x layers + 2: embedding, attention and MLP block of each layer, head.
  [[nodiscard]] int unitCount() const { return 2 * layers + 2; }
  [[nodiscard]] UnitKind unitKind(int unit) const;
  /// Layer of an attention or MLP unit, 0-based.
  [[nodiscard]] int layerOfUnit(int unit) const { return (unit - 1) / 2; }
};

/// The words of files and the labels for display, which differ from those of the op for the inner layer of a table.
[[nodiscard]] std::string_view name(const Model& model, Op op);
[[nodiscard]] std::string_view label(const Model& model, Op op);
[[nodiscard]] std::optional<Op> opNamed(const Model& model, std::string_view name);
/// What is recomputed where a whole layer is.
[[nodiscard]] std::vector<Op> opsOfLayer(const Model& model);
/// The layer of the table that an op stands for: the inner one is Op::Qkv. Null for all others. The model must be a table.
[[nodiscard]] const OpaqueLayer* opaqueLayer(const Model& model, Op op);

/// How tensor parallelism shards a tensor.
enum class TpSplit { None, Rows, Columns };  // Rows: dimension 0 (output features), Columns: dimension 1 (input features)

/// One parameter tensor of the unsplit model. Linear weights are (output features, input features).
struct TensorSpec {
  std::string name;  // globally unique: "layer.3.attention.qkv.weight"
  std::vector<std::int64_t> shape;
  TpSplit split = TpSplit::None;
  enum class Init { Zero, One, Normal } init = Init::Normal;
  double deviation = 0.02;  // of Init::Normal
  bool operator==(const TensorSpec&) const = default;

  [[nodiscard]] std::int64_t elements() const;
};

/// The parameter tensors of a unit in a fixed order, with the padded vocabulary. A tied embedding appears under one name in the
/// embedding and in the head unit: it is one tensor. Residual projections are initialised with 0.02 / sqrt(2 layers) (GPT-2).
[[nodiscard]] std::vector<TensorSpec> tensorsOf(const Model& model, int unit);

/// Exact parameter count with the real (unpadded) vocabulary: what papers and model cards quote.
[[nodiscard]] std::int64_t parameterCount(const Model& model);
/// Parameters that a holder of the units [first, last) stores, padded vocabulary; a tied embedding counts once.
[[nodiscard]] std::int64_t storedParameters(const Model& model, int first, int last);

inline constexpr std::string_view kModelFormat = "evenkeel.model/1";
[[nodiscard]] Model readModel(JsonReader& reader);
[[nodiscard]] Json toJson(const Model& model);

/// A Hugging Face config.json: gpt2, gpt_bigcode, llama, mistral, phi3, qwen2, gemma, by any of the names that its keys go by; of
/// a model with more than text, its text_config. What our model cannot express exactly (experts, further norms, biases of some
/// layers) is an error that says so.
[[nodiscard]] Model readHuggingFaceConfig(JsonReader& reader, const std::string& nameIfAbsent);
/// A file of our format or a Hugging Face config.json.
[[nodiscard]] Result<Model> loadModel(const std::filesystem::path& file);
/// What `--model` takes: a file if there is one or the text looks like a path, else a name of the catalogue.
[[nodiscard]] Result<Model> modelFromArgument(const std::string& argument);
/// The presets of resources/models, in the order of the index. Parsed once; a broken one is a bug (tested).
[[nodiscard]] const std::vector<Model>& modelCatalogue();

}  // namespace evenkeel
