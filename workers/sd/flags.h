#pragma once
// The command line of an image worker. Hives may also set flags as environment variables:
// WORKER_ID, SD_VERSION, PORT, CALLBACK_URL, MODEL_PATH, CUDA_DEVICE, ROCM_DEVICE, METAL_DEVICE,
// USE_FLASH_ATTN, USE_F16.

#include <string>
#include <variant>
#include <vector>

#include "workers/common/worker.h"

namespace rbee::workers {

struct SdFlags : CommonFlags {  // worker_id: default "sd-worker-<port>"; port: default 8081
  std::string model;            // folder in diffusers' layout, or one file
  std::string version;          // the model's kind by --sd-version; empty = not given
  std::string taesd;            // for previews; empty = none
  std::string vae;              // another VAE; empty = the model's own
  // Text encoders; empty = the model's own.
  std::string clip_l, clip_g, t5xxl, llm;
  std::string embeddings;  // folder of textual inversions, or a file; empty = <model>/embeddings
  std::vector<std::string> control_nets;  // folders or files
  std::vector<std::string> upscale_models;
  std::string loras;                // folder of adapters; empty = <model>/loras
  std::string prediction = "auto";  // epsilon or v_prediction
  std::string dtype = "auto";       // what layers compute in: f32, f16 or bf16
  // Parts that leave the device between their uses: text, denoiser, vae, or all.
  std::vector<std::string> offload;
  bool vae_tiling = false;  // for every picture
};

// As parse_flags() of the chat worker.
std::variant<SdFlags, int> parse_sd_flags(int argc, const char* const* argv,
                                          const Program& program);

}  // namespace rbee::workers
