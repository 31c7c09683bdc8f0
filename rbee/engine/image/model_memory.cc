#include "rbee/engine/image/model_memory.h"

#include "rbee/io/diffusers_folder.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;

// Beside the weights SDXL takes 2.6 GiB at 1024 x 1024 with its VAE in one piece, and kernels and
// their workspace 0.6 GiB (docs/reference/image-memory.md).
constexpr int64_t kRoom = int64_t{3} << 30;

// Of a file, or of a folder's weights.
int64_t bytes_of(const fs::path& path) {
  if (!fs::is_directory(path)) return static_cast<int64_t>(fs::file_size(path));
  return io::open_part_weights(path).file_bytes();
}

}  // namespace

int64_t image_model_memory(const fs::path& path, const ImageSourceOptions& options) {
  int64_t bytes = models::resident_weight_bytes(path, {.activations = options.activations,
                                                       .offload = options.offload,
                                                       .vae = options.vae,
                                                       .clip_l = options.clip_l,
                                                       .clip_g = options.clip_g,
                                                       .t5xxl = options.t5xxl,
                                                       .llm = options.llm});
  for (const NetworkPath& net : options.control_nets) bytes += bytes_of(net.path);
  for (const fs::path& file : options.upscale_models) bytes += bytes_of(file);
  return bytes + kRoom;
}

}  // namespace rbee::engine
