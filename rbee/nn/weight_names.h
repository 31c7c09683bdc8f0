#pragma once
// Names of weights: what a checkpoint calls a tensor that model code asks for by its GGUF name.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rbee/io/checkpoint.h"

namespace rbee::nn {

// One role in a model under its GGUF name, by which model code calls it, and its Hugging Face name.
// '*' stands for the layer's number, '#' in Hugging Face names for an expert's or a head's;
// ".weight" and ".bias" are left out. Empty: not in that format.
struct TensorName {
  std::string_view gguf;
  std::string_view hf;
};

// `pattern` with its '*' replaced by the layer's number.
std::string numbered(std::string_view pattern, int64_t layer);

// A name with '#' stands for one tensor of each index; a name without it is one tensor of all.
bool is_one_of_each(std::string_view name);
// The name of tensor `index`.
std::string name_of_each(std::string_view name, int64_t index);

class WeightNames {
 public:
  // Keeps a reference to the table. own_names: roles are names of the checkpoint already.
  WeightNames(const io::Checkpoint& checkpoint, std::span<const TensorName> table, bool own_names);

  bool is_gguf() const { return gguf_; }
  // The role's name in this checkpoint, without the leaf; empty if the format has no such tensor.
  std::string in_checkpoint(std::string_view role, int64_t layer) const;
  // The role's Hugging Face name in a language model alone; empty if that format has no such
  // tensor.
  std::string in_hf(std::string_view role, int64_t layer) const;

 private:
  // Where a Hugging Face checkpoint keeps the model: alone, inside a multimodal one, without the
  // "model." around its layers (decoders for embeddings), or below a head (encoders that classify).
  enum class Nesting : uint8_t { plain, outer, inner, bare, bert, roberta };
  static std::string nest(Nesting nesting, std::string name);
  std::string_view hf_pattern(std::string_view role) const;
  // The nesting under which the table's first row has a tensor.
  Nesting find_nesting(const io::Checkpoint& checkpoint) const;

  std::span<const TensorName> table_;
  bool own_names_;
  bool gguf_;
  Nesting nesting_;
};

}  // namespace rbee::nn
