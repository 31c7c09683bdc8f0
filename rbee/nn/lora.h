#pragma once
// Low-rank adapters (LoRA, Hu et al. 2021) beside linear layers, whose weights do not change. Each
// row of a batch has adapters of its own (Chen et al. 2023, "Punica"):
//
//   y[t] += sum over j of scales[t, j] * up[s] * down[s] * x[t],  s = slots[t, j]

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rbee/ops/fused_linear.h"

namespace rbee::nn {

// The adapters of each row of a batch; undefined: none.
struct LoraRows {
  Tensor slots;   // (rows, each) i32, contiguous; slot 0 changes nothing
  Tensor scales;  // (rows, each) f32, contiguous

  bool defined() const { return slots.defined(); }
  // Those of the rows picked by `rows`: (n) i32; undefined = all.
  LoraRows take(const Tensor& rows) const;
};

// The input of a language model's linear layers: x or its norm, and the adapters of its rows.
struct LayerInput : LinearInput {
  LayerInput(Tensor rows) : LinearInput(std::move(rows)) {}       // NOLINT: as LinearInput
  LayerInput(LinearInput rows) : LinearInput(std::move(rows)) {}  // NOLINT
  LayerInput(LinearInput rows, LoraRows adapters)
      : LinearInput(std::move(rows)), lora(std::move(adapters)) {}

  LoraRows lora;
};

// One adapter's factors for one layer.
struct LoraFactors {
  int64_t rank = 0;
  std::vector<float> down;  // (rank, in)
  std::vector<float> up;    // (out, rank), times alpha / rank
};

// The adapters of one linear layer, each in its slot. Change them only between steps.
class LoraLayer {
 public:
  // dtype: the type of the stored factors.
  LoraLayer(int64_t in, int64_t out, Device& device, DType dtype)
      : in_(in), out_(out), device_(&device), dtype_(dtype) {}

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t slots() const { return slots_; }
  bool empty() const { return slots_ == 0; }
  // Makes room for `slots` slots. A slot without an adapter changes nothing.
  void reserve(int64_t slots) { grow(std::max(slots, slots_), rank_); }
  // slot: 1 or above. Throws out_of_memory, before any change.
  void put(int64_t slot, const LoraFactors& factors);
  // Empties the slot: it changes nothing again.
  void clear(int64_t slot);

  const LinearWeights& down() const { return down_; }  // (slots, rank, in)
  const LinearWeights& up() const { return up_; }      // (slots, out, rank)
  int64_t bytes() const { return empty() ? 0 : down_.weight.bytes() + up_.weight.bytes(); }

 private:
  void grow(int64_t slots, int64_t rank);

  int64_t in_, out_;
  Device* device_;
  DType dtype_;
  int64_t slots_ = 0;
  int64_t rank_ = 0;  // of the largest, and what kernels read at a time
  LinearWeights down_, up_;
};

// A linear layer that adapters may change, under its names in adapter files.
struct LoraTarget {
  std::string gguf;  // e.g. "blk.3.attn_q"; empty: the model is not a GGUF file
  std::string hf;    // e.g. "model.layers.3.self_attn.q_proj"; empty: not in that format
  // The layer is rows [first_row, first_row + out) of a matrix with total_rows.
  int64_t first_row = 0;
  int64_t total_rows = 0;
  // And inputs [first_input, first_input + in) of total_inputs.
  int64_t first_input = 0;
  int64_t total_inputs = 0;
  int64_t pair_heads = 0;  // GGUF's rows of so many heads are Hugging Face's reordered; 0 = are not
  std::shared_ptr<LoraLayer> layer;
};

// What the rows' adapters add to each layer's result; undefined if they add nothing. All layers
// read x: (rows, in).
std::vector<Tensor> lora_changes(const Tensor& x, const LoraRows& rows,
                                 std::span<const LoraLayer* const> layers);

}  // namespace rbee::nn
