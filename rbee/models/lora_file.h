#pragma once
// Files of low-rank adapters: folders that PEFT writes (adapter_config.json beside
// adapter_model.safetensors) and GGUF files in llama.cpp's form (general.type "adapter").

#include <filesystem>
#include <string>
#include <vector>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// What an adapter says of one layer.
struct LoraFileLayer {
  // As the format calls it: "model.layers.3.self_attn.q_proj", or "blk.3.attn_q".
  std::string module;
  const io::TensorEntry* down = nullptr;  // (rank, in)
  const io::TensorEntry* up = nullptr;    // (out, rank)
  float factor = 1;                       // alpha / rank, or alpha / sqrt(rank)
};

class LoraFile {
 public:
  // path: a folder of PEFT's, its .safetensors file, or a .gguf file. Throws what Checkpoint::open
  // throws, invalid_argument naming file and field or tensor for what contradicts itself, and
  // unsupported for kinds of adapters that are not implemented: others than LoRA, DoRA, biases,
  // changed tables of tokens, modules that are saved whole.
  explicit LoraFile(const std::filesystem::path& path);

  const std::string& source() const { return source_; }
  bool is_gguf() const { return file_.format() == io::Checkpoint::Format::gguf; }
  // Of the model that it was made for; empty: the file does not say.
  const std::string& architecture() const { return architecture_; }
  const std::vector<LoraFileLayer>& layers() const { return layers_; }  // one at least

 private:
  void read_peft();
  void read_gguf();
  // Pairs the tensors whose names end so; `rest` follows the module's name in front.
  struct Endings {
    std::string_view down, up;
  };
  void pair_tensors(const Endings& endings);
  bool is_copy(const io::TensorEntry& entry) const;
  void check_layer(const LoraFileLayer& layer) const;

  std::string source_;
  io::Checkpoint file_;
  std::string architecture_;
  std::vector<LoraFileLayer> layers_;
};

}  // namespace rbee::models
