#pragma once
// The flags of a language model that a GPU has no room for. Names are llama.cpp's.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rbee::workers {

struct GpuLayerFlags {
  std::string layers = "auto";          // auto, all, or a number
  bool cpu_moe = false;                 // all experts stay in host memory
  std::string cpu_moe_layers = "auto";  // auto, or those of so many layers
  int64_t op_offload_min_batch = 32;    // tokens of steps whose weights come to the GPU; 0: none
  bool kv_offload = true;               // false: keys and values stay in host memory

  // Absent: as many as fit.
  std::optional<int64_t> count() const;
  // Layers whose experts stay in host memory. Absent: as few as make all layers fit.
  std::optional<int64_t> experts() const;
};

// Adds --gpu-layers, --n-gpu-layers, --cpu-moe, --n-cpu-moe, --op-offload-min-batch,
// --no-op-offload and --no-kv-offload.
void add_gpu_layer_flags(CLI::App& app, GpuLayerFlags& flags);

// The arguments with the long names for "-ngl", "-cmoe", "-ncmoe", "-nkvo" and "-tp": CLI11 takes
// several letters behind one dash for several flags.
std::vector<const char*> with_long_names(int argc, const char* const* argv);

}  // namespace rbee::workers
