#pragma once
// Named access to a checkpoint's weights under one set of names for both formats, and the books of
// what was taken. A scope is a path such as "blk.3" / "attn_q"; copies are cheap.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {

class WeightStash;
struct LoraTarget;

// One role in a model under its GGUF name, by which model code calls it, and its Hugging Face name.
// '*' stands for the layer's number, '#' in Hugging Face names for an expert's or a head's;
// ".weight" and
// ".bias" are left out. Empty: not in that format.
struct TensorName {
  std::string_view gguf;
  std::string_view hf;
};

// Changes of weights while they are loaded (LoRA). Names are those of the checkpoint.
class WeightPatch {
 public:
  virtual ~WeightPatch() = default;
  virtual bool touches(std::string_view name) const = 0;
  // values: the tensor's, row-major. Throws invalid_argument where the patch does not fit the
  // shape.
  virtual void apply(std::string_view name, const Shape& shape, std::span<float> values) const = 0;
};

struct WeightOptions {
  Device* device = nullptr;
  std::span<const TensorName> names;          // the family's table; must outlive the scope
  bool own_names = false;                     // paths are names of the checkpoint, without a table
  std::span<const std::string_view> ignored;  // parts of names that a model may leave unused
  bool pack = true;                           // rewrite matrices for the device's kernels
  bool output = true;                         // whether the model takes its output matrix
  bool plain_fp8 = false;                     // floats of one byte are read without scales too
  bool widen_fp8 = false;                     // their matrices become 16 bits
  // Matrices of f32 and f16 become bf16 where activations are, for instructions that multiply
  // nothing else.
  bool narrow_matrices = false;
  // Floats of matrices and convolutions become q8_0 where rows are whole blocks of 32: for devices
  // whose kernels multiply those in 8 bits. Null: none; else says whether this tensor may.
  bool (*may_quantize)(std::string_view name) = nullptr;
  DType activations = DType::f32;      // f32, f16 or bf16: what layers compute in
  const WeightPatch* patch = nullptr;  // must outlive the scope
  // Remembers what the calls below give; a filled one gives it in place of the checkpoint. Must
  // outlive the scope.
  WeightStash* stash = nullptr;
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of the checkpoint
};

struct WeightFigures {
  int64_t parameters = 0;                            // elements of all tensors taken, each once
  int64_t resident_bytes = 0;                        // mapped in place, converted and packed
  std::array<int64_t, kDTypeCount> bytes_by_type{};  // of the tensors taken, as stored
  // The type with the most bytes.
  DType most_common() const;
};

// Rows [first, first + count) of a matrix with `total` rows, for tensors that hold several matrices
// on top of each other.
struct RowSlice {
  int64_t first = 0;
  int64_t count = 0;
  int64_t total = 0;
};

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
  struct Books;
  WeightScope(std::shared_ptr<Books> books, std::string path, int64_t layer);
  const io::TensorEntry& take(std::string_view leaf, const Shape& wanted) const;
  const io::TensorEntry& take_named(const std::string& full, const Shape& wanted) const;
  const io::TensorEntry& find_shaped(const std::string& full, const Shape& wanted) const;
  const io::TensorEntry& take_bytes(const std::string& full, const Shape& wanted) const;
  io::TensorEntry readable(io::TensorEntry entry) const;
  io::TensorEntry readable_matrix(io::TensorEntry entry) const;
  Tensor integer_matrix(std::string_view leaf, const io::TensorEntry& entry, RowSlice rows) const;
  Tensor shared_order(std::span<const int32_t> order) const;
  // With the patch where it touches the tensor, else in place where that can be.
  Tensor stored(std::string_view leaf, const Shape& shape) const;
  bool patched(std::string_view leaf) const;
  void refuse_patch(const std::string& full) const;
  // What `make` gives, or what it gave when the stash was filled.
  template <typename Make>
  Tensor remembered(const Make& make) const;
  Tensor pack(const Tensor& plain, const std::function<void(int64_t rows)>& on_packed) const;
  // Whether rows of `in` elements of this tensor are to become q8_0.
  bool quantizes(std::string_view leaf, DType stored, int64_t in) const;
  bool narrows(DType stored) const;
  // A matrix in the type that it is multiplied in.
  Tensor as_multiplied(std::string_view leaf, const Tensor& plain) const;
  Tensor pack_conv(std::string_view leaf, const Tensor& plain) const;

  std::shared_ptr<Books> books_;
  std::string path_;
  int64_t layer_ = -1;
};

}  // namespace rbee::nn
