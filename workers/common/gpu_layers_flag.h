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
  std::string layers = "auto";  // auto, all, or a number
  bool kv_offload = true;       // false: keys and values stay in host memory

  // Absent: as many as fit.
  std::optional<int64_t> count() const;
};

// Adds --gpu-layers, --n-gpu-layers and --no-kv-offload.
void add_gpu_layer_flags(CLI::App& app, GpuLayerFlags& flags);

// The arguments with "--gpu-layers" for "-ngl" and "--no-kv-offload" for "-nkvo": CLI11 takes
// several letters behind one dash for several flags.
std::vector<const char*> with_long_names(int argc, const char* const* argv);

}  // namespace rbee::workers
