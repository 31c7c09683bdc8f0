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
  bool tiled_vae = false;                    // also for requests that do not ask for it
  bool parts_leave = false;                  // the device, between their uses
  std::unique_ptr<models::Vae> preview_vae;  // TAESD or its kin; null: colours are guessed
  // Gives the model other LoRAs. Empty: requests that name some are refused.
  std::function<void(models::ImageModel&, const std::vector<models::LoraSource>&)> change_loras;
  LoraFolder loras;  // where requests' LoRAs are looked up by name
};

struct ImageSourceOptions {
  Device* device = nullptr;
  std::string model_id;  // reported name; empty = the folder's or file's
  // What layers compute in. Absent: see customary_activations().
  std::optional<DType> activations;
  bool int8 = false;  // see models::ImageLoadOptions
  models::OffloadedParts offload;
  bool tiled_vae = false;  // always; else where a request asks for it or memory runs out
  std::vector<std::filesystem::path> control_nets;
  std::vector<std::filesystem::path> upscale_models;  // files of ESRGAN
  std::filesystem::path vae;                          // another VAE; empty = the model's own
  std::filesystem::path taesd;                        // of previews; empty = none
  // A folder with CLIP's tokenizer for a model in one file, which has none; empty = "tokenizer"
  // beside that file (tools/get_clip_vocabulary.sh puts it there). T5's: see load_tokenizer().
  std::filesystem::path tokenizer;
  // Text encoders of Stable Diffusion 3 and FLUX, see ImageLoadOptions; empty = the model's own.
  std::filesystem::path clip_l, clip_g, t5xxl;
  // A folder that is there; empty = <model>/loras, or "loras" beside a single file, if it is there.
  std::filesystem::path lora_folder;
  // A folder of textual inversions, of which those that do not fit are logged and left out, or one
  // file, which has to fit; empty = "embeddings", where lora_folder has "loras".
  std::filesystem::path embeddings;
  std::optional<std::string> prediction_type;
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of weights loaded
};

// path: what load_image_model takes. Throws as it does, and what its tokenizers throw.
ImageSource load_image_source(const std::filesystem::path& path, const ImageSourceOptions& options);

// Whether the model is guided by a negative prompt; not those that were distilled with guidance,
// nor any FLUX.
bool is_guided(const ImageSource& source);

// Whether the model draws nothing without a picture and its mask (FLUX Fill). Other inpainting
// models take a gray picture that is masked all over.
bool needs_mask(const ImageSource& source);

// Whether the denoiser itself reads the picture that a request's control sends (FLUX Depth, Canny).
bool reads_control(const ImageSource& source);

// Fills info and side_step from what is known of the model; device, model and scheduler are set.
void fill_model_info(ImageSource& source, const std::string& model_id);

// What a ControlNet at this path is called: its folder's name, or its file's without the ending.
std::string control_name(const std::filesystem::path& path);
// The network that a request names; an empty name is for the only one. Throws invalid_argument
// naming those that there are.
const models::ControlNet& find_control(const ImageSource& source, const std::string& name);

// The network that enlarges pictures, by its name; null: there is none of it.
const models::Upscaler* find_upscaler(const ImageSource& source, const std::string& name);

}  // namespace rbee::engine
