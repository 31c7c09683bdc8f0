#pragma once
// LoRA adapter files: PEFT's folders (adapter_config.json beside adapter_model.safetensors) and
// GGUF files in llama.cpp's form (general.type "adapter").

#include <filesystem>
#include <string>
#include <vector>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

// An adapter's tensors for one layer.
struct LoraFileLayer {
  // Its name in the format: "model.layers.3.self_attn.q_proj", or "blk.3.attn_q".
  std::string module;
  const io::TensorEntry* down = nullptr;  // (rank, in)
  const io::TensorEntry* up = nullptr;    // (out, rank)
  float factor = 1;                       // alpha / rank, or alpha / sqrt(rank)
};

class LoraFile {
 public:
  // path: a folder of PEFT's, its .safetensors file, or a .gguf file. Throws what Checkpoint::open
  // throws, invalid_argument naming file and field or tensor for contradictions, and unsupported
  // for what is not implemented: other methods than LoRA, DoRA, biases, changed token tables, and
  // modules saved as a whole.
  explicit LoraFile(const std::filesystem::path& path);

  const std::string& source() const { return source_; }
  bool is_gguf() const { return file_.format() == io::Checkpoint::Format::gguf; }
  // Of the model for which it was made; empty if the file does not say.
  const std::string& architecture() const { return architecture_; }
  const std::vector<LoraFileLayer>& layers() const { return layers_; }  // one at least

 private:
  void read_peft();
  void read_gguf();
  // The endings of the paired tensors' names; `rest` follows the module's name.
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
