#pragma once
// How much device memory a language model takes, before it is loaded.

#include <cstdint>
#include <filesystem>

#include "rbee/engine/text/text_model.h"

namespace rbee::engine {

// An estimate in bytes, from the files' headers: weights as they are in the files, keys and
// values of one context in 16 bits, and room for kernels and steps. Reads mmproj, context,
// cpu_moe_layers and op_offload_min_batch of the options. Throws as load_text_model() does if the
// files cannot be opened.
int64_t text_model_memory(const std::filesystem::path& path, const TextModelOptions& options);

// How much of a model fits into `free` bytes of a GPU, by the same estimate.
struct FittingLayers {
  int64_t count = 0;           // for TextModelOptions::gpu_layers; 0: not even the output matrix
  int64_t all = 0;             // the model's layers and its output matrix
  int64_t cpu_moe_layers = 0;  // for TextModelOptions
};
// Which experts stay on the host.
enum class CpuMoe : uint8_t {
  as_given,  // those of options.cpu_moe_layers
  as_needed  // of as few layers as make all layers fit; of all layers, if that is not enough
};
FittingLayers fitting_gpu_layers(const std::filesystem::path& path, const TextModelOptions& options,
                                 int64_t free, CpuMoe experts = CpuMoe::as_given);

}  // namespace rbee::engine
