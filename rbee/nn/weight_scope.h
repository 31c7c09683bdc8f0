#pragma once
// Named access to a checkpoint's weights under one set of names for both formats. A scope is a path
// such as "blk.3" / "attn_q"; copies are cheap. It finds names (weight_names.h), reads plain
// tensors (weight_reader.h), packs them for the device (weight_packer.h), and keeps the books of
// what was taken (weight_books.h).

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/nn/weight_books.h"
#include "rbee/nn/weight_names.h"
#include "rbee/nn/weight_options.h"
#include "rbee/nn/weight_reader.h"

namespace rbee::nn {

struct LoraTarget;

// A matrix for products with inputs in another order: weight * x[order].
struct OrderedMatrix {
  Tensor weight;
  Tensor order;  // (in) i32; undefined: as they are
};

class WeightScope {
 public:
  // Keeps a reference to the checkpoint. Throws unsupported when the device is not given one.
  WeightScope(const io::Checkpoint& checkpoint, const WeightOptions& options);

  WeightScope operator/(std::string_view part) const;
  WeightScope layer(int64_t index) const;  // "blk.<index>"

  // The calls below take a leaf, "weight" or "bias". They throw not_found naming a missing tensor
  // and the wanted shape, invalid_argument naming both shapes, and unsupported naming a type that
  // is neither f32, f16, bf16 nor a block type. Sizes of 1 at the ends of a shape do not count: a
  // convolution of one pixel is a matrix too, and a matrix of one row a vector.
  bool has(std::string_view leaf) const;
  // True where the checkpoint is meant for inputs of the matrix that are rounded to floats of one
  // byte, layers compute in 16 bits, and the matrix stays in 8 bits.
  bool rounds_inputs(std::string_view leaf) const;
  // What the matrix is to be multiplied by: a file of NVFP4 may have a scale beside it. To be asked
  // for before matrix(), which throws unsupported for a scale that nobody asked for.
  float matrix_scale(std::string_view leaf) const;
  // The same of experts(): one for each of them, or none where the file has none. Both throw
  // invalid_argument for another number of scales and for one that is not finite.
  std::vector<float> expert_scales(std::string_view leaf, int64_t experts) const;
  // (size) as activations(), plus `offset`; memory of its own.
  Tensor vector(std::string_view leaf, int64_t size, float offset = 0) const;
  // Of any shape, as activations(); memory of its own.
  Tensor array(std::string_view leaf, const Shape& shape) const;
  // (rows, size) as activations(), memory of its own: one tensor in GGUF files, one for each row
  // under a Hugging Face name with '#'.
  Tensor stack(std::string_view leaf, const Shape& shape) const;
  // (out, in, kernel_h, kernel_w), packed for image_conv(): as activations(), q8_0 as options say,
  // or 16 bits where the device reads host memory, as stored or of block types; mapped pages are
  // given back.
  Tensor conv(std::string_view leaf, const Shape& shape) const;
  // (size) on the host.
  std::vector<float> values(std::string_view leaf, int64_t size) const;
  // As stored and in place where the device reads host memory, else copied.
  Tensor table(std::string_view leaf, const Shape& shape) const;
  // (rows.count, in), packed for linear(), as stored, q8_0 or bf16 as options say; the mapped pages
  // of a packed matrix are given back; 16 bits of a block type whose blocks run over rows' ends.
  // Floats of one byte (e4m3) stay 8 bits (f8_g128) where a group of 128 inputs has one scale;
  // packed integers become their entry's type.
  Tensor matrix(std::string_view leaf, RowSlice rows, int64_t in) const;
  // The same, but packed integers whose groups follow an order by activations (GPTQ's desc_act)
  // stay in their bits, with their inputs group by group. Matrices with one order that are taken
  // one after another share its tensor.
  OrderedMatrix ordered_matrix(std::string_view leaf, RowSlice rows, int64_t in) const;
  // (experts, out, in), packed for expert_linear(): one tensor in GGUF files, one for each expert
  // under a Hugging Face name with '#'. Throws unsupported where a patch touches one.
  Tensor experts(std::string_view leaf, const Shape& shape) const;
  // The same from Hugging Face's MXFP4: `leaf`_blocks and `leaf`_scales hold (experts, step * out,
  // in), of which rows first, first + step, ... are taken.
  Tensor mxfp4_experts(std::string_view leaf, const Shape& shape, int64_t first,
                       int64_t step) const;

  // A tensor that one of the calls above gave lies elsewhere now.
  void moved(const Tensor& from, const Tensor& to) const;

  // The full name in the checkpoint's own words, e.g. "model.layers.3.self_attn.q_proj.weight".
  std::string name(std::string_view leaf) const;
  // The path in GGUF's words, e.g. "blk.3.attn_q", and in Hugging Face's as a language model alone
  // has it, e.g. "model.layers.3.self_attn.q_proj"; empty: not in that format.
  std::string role() const;
  std::string hf_name() const;
  // Layers that adapters may change, in the order in which they were taken.
  std::vector<LoraTarget>& lora_targets() const;
  bool is_gguf() const;
  bool wants_output() const;
  Device& device() const;
  DType activations() const;
  const WeightFigures& figures() const;
  // Ends the progress and logs the names of tensors that no call took.
  void finish() const;

 private:
  struct State;
  WeightScope(std::shared_ptr<State> state, std::string path, int64_t layer);
  // What `make` gives, or what it gave when the stash was filled.
  template <typename Make>
  Tensor remembered(const Make& make) const;
  // The same for a tensor that is not packed, in memory of its own.
  template <typename Make>
  Tensor own(const Make& make) const;

  std::shared_ptr<State> state_;
  std::string path_;
  int64_t layer_ = -1;
};

}  // namespace rbee::nn
