#pragma once
// How the weights of a checkpoint are loaded.

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "rbee/group/share.h"
#include "rbee/nn/weight_names.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {

class WeightStash;

// Changes of weights while they are loaded (LoRA). Names are those of the checkpoint.
class WeightPatch {
 public:
  virtual ~WeightPatch() = default;
  virtual bool touches(std::string_view name) const = 0;
  // values: the tensor's, row-major. Throws invalid_argument if the patch does not fit the shape.
  virtual void apply(std::string_view name, const Shape& shape, std::span<float> values) const = 0;
};

struct WeightOptions {
  Device* device = nullptr;
  std::span<const TensorName> names;          // the family's table; must outlive the scope
  bool own_names = false;                     // paths are names of the checkpoint, without a table
  std::span<const std::string_view> ignored;  // a model may leave tensors with these in their names
  bool pack = true;                           // rewrite matrices for the device's kernels
  bool output = true;                         // whether the model takes its output matrix
  int64_t first_layers = INT64_MAX;           // the model takes only so many
  bool plain_fp8 = false;                     // also read FP8 tensors without scales
  bool widen_fp8 = false;                     // FP8 matrices become 16 bits
  // f32 and f16 matrices become bf16 if activations are bf16, for instructions that multiply only
  // that.
  bool narrow_matrices = false;
  bool expert_parallel = false;  // ranks of a group hold experts whole, a range of them each
  // Says which float matrices and convolutions may become q8_0, if their rows are whole blocks of
  // 32. For devices whose kernels multiply q8_0 in 8 bits. Null: none.
  bool (*may_quantize)(std::string_view name) = nullptr;
  DType activations = DType::f32;  // f32, f16 or bf16: what layers compute in
  // Where WeightScope::on_host() loads, for layers that a GPU has no room for; they compute in f32.
  // Null: no layer is loaded there.
  Device* host = nullptr;
  // The experts of the first layers, so many, are loaded there: see WeightScope::for_experts().
  int64_t cpu_moe_layers = 0;
  // Rows from which on the host's weights come to the device for one use (Visitors); 0: never.
  int64_t op_offload_min_batch = 0;
  // The rank that loads its part of a model. Layers know by it what to take and with whom to add.
  group::Membership group = {};
  const WeightPatch* patch = nullptr;  // must outlive the scope
  // Keeps what a scope's calls give. If it is filled, calls give its contents instead of reading
  // the checkpoint. Must outlive the scope.
  WeightStash* stash = nullptr;
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of the checkpoint

  // Whether rows of `in` elements of this tensor become q8_0.
  bool quantizes(std::string_view name, DType stored, int64_t in) const {
    const bool fits = !is_quantized(stored) && in % info(DType::q8_0).block_size == 0;
    return may_quantize != nullptr && fits && may_quantize(name);
  }
  // Whether a matrix of this type becomes bf16.
  bool narrows(DType stored) const {
    return narrow_matrices && activations == DType::bf16 &&
           (stored == DType::f32 || stored == DType::f16);
  }
};

}  // namespace rbee::nn
