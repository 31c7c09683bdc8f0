#pragma once
// An image model with everything needed to make pictures: parts, tokenizers, noise, defaults.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/device.h"
#include "rbee/diffusion/scheduler_config.h"
#include "rbee/engine/api/image.h"
#include "rbee/engine/image/lora_folder.h"
#include "rbee/engine/image/tokenizers.h"
#include "rbee/models/image/control_net.h"
#include "rbee/models/image/embedding.h"
#include "rbee/models/image/image_model.h"
#include "rbee/models/image/upscaler.h"

namespace rbee::engine {

struct NamedControlNet {
  std::string name;  // see control_name
  std::unique_ptr<models::ControlNet> net;
};

struct NamedUpscaler {
  std::string name;  // see control_name
  std::unique_ptr<models::Upscaler> network;
};

struct ImageSource {
  Device* device = nullptr;
  models::ImageModel model;
  std::vector<PromptTokenizer> tokenizers;  // one for each of model.text
  diffusion::SchedulerConfig scheduler;
  ImageModelInfo info;
  int32_t side_step = 8;  // pixels; widths and heights are multiples of it
  std::vector<NamedControlNet> controls;
  std::vector<NamedUpscaler> upscalers;
  std::vector<models::TextEmbedding> embeddings;
  bool tiled_vae = false;                    // for all requests
  bool parts_leave = false;                  // parts leave the device between their uses
  std::unique_ptr<models::Vae> preview_vae;  // TAESD or a similar one; null: approximate colours
  // Changes the model's LoRAs. Empty: requests that name LoRAs are refused.
  std::function<void(models::ImageModel&, const std::vector<models::LoraSource>&)> change_loras;
  LoraFolder loras;  // where requests' LoRAs are looked up by name
};

// A folder or file, and how requests name the network in it.
struct NetworkPath {
  std::filesystem::path path;
  std::string name;  // empty = control_name(path)
};

struct ImageSourceOptions {
  Device* device = nullptr;
  std::string model_id;  // reported name; empty = the folder's or file's
  // What layers compute in. Absent: see customary_activations().
  std::optional<DType> activations;
  bool int8 = false;  // see models::ImageLoadOptions
  models::OffloadedParts offload;
  bool tiled_vae = false;  // always; else if a request asks for it or memory runs out
  std::vector<NetworkPath> control_nets;
  std::vector<std::filesystem::path> upscale_models;  // files of ESRGAN
  std::filesystem::path vae;                          // another VAE; empty = the model's own
  std::filesystem::path taesd;                        // for previews; empty = none
  // A folder with the tokenizer of CLIP or a language model for a single-file model, which has
  // none; empty = "tokenizer" beside that file (tools/get_clip_vocabulary.sh puts CLIP's there).
  // T5's: see load_tokenizer().
  std::filesystem::path tokenizer;
  // Text encoders of Stable Diffusion 3, FLUX and Z-Image, see ImageLoadOptions; empty = the
  // model's own.
  std::filesystem::path clip_l, clip_g, t5xxl;
  std::filesystem::path llm;  // Z-Image's
  // An existing folder; empty = <model>/loras, or "loras" beside a single file, if it exists.
  std::filesystem::path lora_folder;
  // A folder of textual inversions (files that do not fit are logged and skipped), or one file,
  // which must fit; empty = "embeddings", in the place of lora_folder's "loras".
  std::filesystem::path embeddings;
  std::optional<std::string> prediction_type;                 // overrides what the files say
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of weights loaded
};

// path: as for load_image_model. Throws as it does, and what its tokenizers throw.
ImageSource load_image_source(const std::filesystem::path& path, const ImageSourceOptions& options);

// Whether a negative prompt guides the model; false for models distilled with guidance, and for
// every FLUX.
bool is_guided(const ImageSource& source);

// Whether the model needs a picture and its mask (FLUX Fill). Other inpainting models accept a
// fully masked grey picture.
bool needs_mask(const ImageSource& source);

// Whether the denoiser itself reads the picture of a request's control (FLUX Depth, Canny).
bool reads_control(const ImageSource& source);

// Fills info and side_step from the model; device, model and scheduler must be set.
void fill_model_info(ImageSource& source, const std::string& model_id);

// The name of a ControlNet at this path: its folder's, or its file's without the ending.
std::string control_name(const std::filesystem::path& path);
// The network that a request names; an empty name means the only one. Throws invalid_argument
// naming the networks.
const models::ControlNet& find_control(const ImageSource& source, const std::string& name);

// The network of this name that enlarges pictures; null: none.
const models::Upscaler* find_upscaler(const ImageSource& source, const std::string& name);

}  // namespace rbee::engine
