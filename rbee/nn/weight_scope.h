#pragma once
// Named access to a checkpoint's weights under one set of names for both formats. A scope is a path
// such as "blk.3" / "attn_q"; copies are cheap. It finds names (weight_names.h), reads plain
// tensors (weight_reader.h), packs them for the device (weight_packer.h), and records what the
// model took (weight_books.h).

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/nn/visitors.h"
#include "rbee/nn/weight_books.h"
#include "rbee/nn/weight_names.h"
#include "rbee/nn/weight_options.h"
#include "rbee/nn/weight_reader.h"
#include "rbee/tensor/host_trip.h"

namespace rbee::nn {

struct LoraTarget;

// A matrix whose product needs its inputs in another order: weight * x[order].
struct OrderedMatrix {
  Tensor weight;
  Tensor order;  // (in) i32; undefined: their own order
};

class WeightScope {
 public:
  // Keeps a reference to the checkpoint. Throws invalid_argument if the options have no device.
  WeightScope(const io::Checkpoint& checkpoint, const WeightOptions& options);

  WeightScope operator/(std::string_view part) const;
  WeightScope layer(int64_t index) const;  // "blk.<index>"
  // The rank that loads, and its way to the others.
  const group::Membership& group() const;
  // Whether the rank takes a range of the experts, in place of a part of each.
  bool expert_parallel() const;
  // The same path, but its calls load to WeightOptions::host, which must be given.
  WeightScope on_host() const;
  // The same path where this layer's experts are loaded: on the host, if the options say so.
  WeightScope for_experts() const;
  // For layers whose experts are on the host; one of all layers.
  std::shared_ptr<HostTrip> host_trip() const;

  // Brings weights of the host to the device for large steps; one of all layers. Null: the options
  // want none. finish() starts it.
  std::shared_ptr<Visitors> visitors() const;
  // A matrix of a layer on the host, with its bias there, among them. Null: there are none, or
  // kernels cannot read the matrix as the file has it.
  std::shared_ptr<const VisitingMatrix> visiting_matrix(std::string_view leaf, RowSlice rows,
                                                        int64_t in, const Tensor& bias) const;

  // The calls below take a leaf, "weight" or "bias". They throw not_found naming a missing tensor
  // and the wanted shape, invalid_argument naming both shapes, and unsupported naming a type that
  // is neither f32, f16, bf16 nor a block type. Sizes of 1 at the ends of a shape do not count: a
  // convolution of one pixel is a matrix too, and a matrix of one row a vector.
  bool has(std::string_view leaf) const;
  // True if the checkpoint expects the matrix's inputs rounded to FP8, layers compute in 16 bits,
  // and the matrix stays in 8 bits.
  bool rounds_inputs(std::string_view leaf) const;
  // The scale of an NVFP4 matrix, else 1. Call it before matrix(), which throws unsupported if the
  // file has a scale that was not read.
  float matrix_scale(std::string_view leaf) const;
  // The same for experts(): one scale for each expert, or none if the file has none. Both throw
  // invalid_argument for another number of scales and for one that is not finite.
  std::vector<float> expert_scales(std::string_view leaf, int64_t experts) const;
  // (size) as activations(), plus `offset`, in new memory.
  Tensor vector(std::string_view leaf, int64_t size, float offset = 0) const;
  // Any shape, as activations(), in new memory.
  Tensor array(std::string_view leaf, const Shape& shape) const;
  // (rows, size) as activations(), in new memory: from one tensor in GGUF files, from one tensor
  // for each row under a Hugging Face name with '#'.
  Tensor stack(std::string_view leaf, const Shape& shape) const;
  // (out, in, kernel_h, kernel_w), packed for image_conv(): in q8_0 if the options say so, in the
  // stored 16-bit type if the device reads host memory, else as activations(). Gives the mapped
  // pages back.
  Tensor conv(std::string_view leaf, const Shape& shape) const;
  // (size) on the host.
  std::vector<float> values(std::string_view leaf, int64_t size) const;
  // As stored: in place if the device reads host memory, else copied.
  Tensor table(std::string_view leaf, const Shape& shape) const;
  // (rows.count, in), packed for linear(): as stored, or in q8_0 or bf16 if the options say so. A
  // block type whose blocks cross rows' ends becomes 16 bits. FP8 (e4m3) stays 8 bits (f8_g128) if
  // each group of 128 inputs has one scale. Packed integers become their entry's type. Gives the
  // mapped pages of a packed matrix back. `inputs`: only these of the `in`, cut at multiples of
  // input_block().
  Tensor matrix(std::string_view leaf, RowSlice rows, int64_t in,
                const std::optional<group::Range>& inputs = {}) const;
  // Neighbouring inputs of a matrix, or of experts' matrices, that share a block; 1: none do, or
  // there is no such tensor.
  int64_t input_block(std::string_view leaf) const;
  // Whether ordered_matrix() would give an order.
  bool has_order(std::string_view leaf, const Shape& shape) const;
  // Counts a tensor that the rank leaves to the other ranks of its group.
  void leave(std::string_view leaf, const Shape& shape) const;
  // The same, but packed integers whose groups follow an order by activations (GPTQ's desc_act)
  // keep their bits, with their inputs group by group. Matrices taken one after another share the
  // tensor of an equal order.
  OrderedMatrix ordered_matrix(std::string_view leaf, RowSlice rows, int64_t in) const;
  // (experts, out, in), packed for expert_linear(): from one tensor in GGUF files, from one tensor
  // for each expert under a Hugging Face name with '#'. `cut`: only these experts, and this part of
  // each one's matrix; of none, the tensor is undefined. Throws unsupported if a patch touches one.
  Tensor experts(std::string_view leaf, const Shape& shape, const StackCut& cut = {}) const;
  // What experts() reads, in place in the file, for Visitors::add_experts(); none if kernels cannot
  // read it as it is there.
  std::vector<Tensor> mapped_experts(std::string_view leaf, const Shape& shape) const;
  // The same from Hugging Face's MXFP4: `leaf`_blocks and `leaf`_scales hold (experts, step * out,
  // in). Takes rows first, first + step, ...
  Tensor mxfp4_experts(std::string_view leaf, const Shape& shape, int64_t first, int64_t step,
                       const StackCut& cut = {}) const;

  // Tells the stash that a tensor of the calls above was moved.
  void moved(const Tensor& from, const Tensor& to) const;

  // The full name in the checkpoint's own words, e.g. "model.layers.3.self_attn.q_proj.weight".
  std::string name(std::string_view leaf) const;
  // The path in GGUF's words, e.g. "blk.3.attn_q", and in Hugging Face's as a language model alone
  // has it, e.g. "model.layers.3.self_attn.q_proj"; empty: not in that format.
  std::string role() const;
  std::string hf_name() const;
  // Layers that adapters may change, in the order in which the model took them.
  std::vector<LoraTarget>& lora_targets() const;
  bool is_gguf() const;
  bool wants_output() const;
  // Of a model's layers, those that it is to take, from the first one on.
  int64_t wanted_layers(int64_t layers) const;
  Device& device() const;
  DType activations() const;
  const WeightFigures& figures() const;
  // Reports the end of the progress and logs the names of tensors that no call took. Throws
  // invalid_argument if the group's ranks are to hold ranges of experts and there are none.
  void finish() const;

 private:
  struct State;
  struct Place;
  WeightScope(std::shared_ptr<State> state, Place* place, std::string path, int64_t layer);
  // Calls `make`, or gives its earlier result from a filled stash.
  template <typename Make>
  Tensor remembered(const Make& make) const;
  // The same for a tensor that is not packed; counts its bytes as resident.
  template <typename Make>
  Tensor own(const Make& make) const;

  std::shared_ptr<State> state_;
  Place* place_;  // of the state
  std::string path_;
  int64_t layer_ = -1;
};

}  // namespace rbee::nn
