#pragma once
// Text-to-image models: a folder in diffusers' layout, or one file, as the parts that make
// pictures.

#include <filesystem>
#include <functional>
#include <optional>

#include "rbee/models/image/parts.h"

namespace rbee::models {

enum class ImageFamily : uint8_t { sd1, sd2, sdxl, sdxl_refiner, sd3, flux };
const char* name(ImageFamily family);  // "sd1", ...

// The noise that the model was trained with: scheduler_config.json, or what the family uses.
struct SchedulerSettings {
  std::string class_name;  // diffusers' name, e.g. "PNDMScheduler"
  int64_t train_timesteps = 1000;
  double beta_start = 0.00085;
  double beta_end = 0.012;
  std::string beta_schedule = "scaled_linear";  // linear, scaled_linear, squaredcos_cap_v2
  std::string prediction_type = "epsilon";      // epsilon, v_prediction, sample, flow_prediction
  std::string timestep_spacing = "leading";     // leading, linspace, trailing
  int64_t steps_offset = 0;
  bool set_alpha_to_one = true;
  bool rescale_betas_zero_snr = false;
  // Flow models
  double shift = 1;
  bool use_dynamic_shifting = false;
  double base_shift = 0.5, max_shift = 1.15;       // at the two lengths below
  int64_t base_seq_len = 256, max_seq_len = 4096;  // tokens of the picture
};

// The files that describe a tokenizer, as their texts; empty where there is none, as in single
// files.
struct TokenizerFiles {
  enum class Kind : uint8_t { clip, t5 };
  Kind kind = Kind::clip;
  std::string tokenizer_json;
  std::string vocab_json, merges;  // CLIP's older form
  std::string spiece_model;        // T5's older form: SentencePiece's file
  std::string tokenizer_config_json;
  std::string special_tokens_map;
  std::filesystem::path gguf;  // the encoder's own file, where that has the vocabulary
};

struct TextPart {
  std::unique_ptr<TextEncoder> encoder;
  TokenizerFiles tokenizer;
};

// How the encoders' results become one TextStates.
enum class TextJoin : uint8_t {
  single,  // the only encoder's states
  widths,  // side by side along the width (SDXL); pooled: the last encoder's
  sd3,     // the CLIPs side by side, zeros up to T5's width, then T5's tokens; pooled side by side
  flux,    // T5's states; pooled: CLIP's
};

struct HeldParts;

struct ImageModel {
  ImageFamily family = ImageFamily::sd1;
  std::string model_name;  // the folder's or file's name
  std::vector<TextPart> text;
  TextJoin join = TextJoin::single;
  std::unique_ptr<Denoiser> denoiser;
  std::unique_ptr<Vae> vae;
  SchedulerSettings scheduler;
  // SDXL: an absent negative prompt has zeros for states (force_zeros_for_empty_prompt).
  bool zeros_for_empty_negative = false;
  Device* device = nullptr;
  DType activations = DType::f32;
  bool int8 = false;         // as ImageLoadOptions says
  int64_t weight_bytes = 0;  // resident, packed copies included
  int64_t parameters = 0;
  std::vector<std::string> adapted;  // parts that adapters have changed, by diffusers' names
  std::shared_ptr<HeldParts> held;   // the parts above, as change_loras() reaches them

  int64_t default_size() const;  // pixels along each side that the model was trained with
};

// What Stable Diffusion 3 reads of T5, zeros where a model comes without it.
inline constexpr int64_t kSd3T5Tokens = 256;

// One TextStates of the encoders' results, in the order of model.text; encodings of one batch. A
// prompt of several chunks comes with its chunks' hidden states already one after another.
TextStates join_text(const ImageModel& model, std::span<const TextEncoding> encodings);
// Throws invalid_argument naming both sizes where these states, or the VAE's latents, are not of
// the width that the denoiser reads: the parts are of different models. Throws unsupported where
// the denoiser reads more than latents, or those and a masked picture.
void check_parts_fit(const ImageModel& model);

struct LoraSource {
  std::filesystem::path path;                       // .safetensors
  float weight = 1;                                 // multiplies the file's own scale
  std::optional<float> text_weight = std::nullopt;  // the same for text encoders; absent = weight
};

// What a family computes in when nobody says: f32 where the host computes, else 16 bits; FLUX,
// whose states leave the range of f16, in bf16.
DType customary_activations(ImageFamily family, bool host_computes);

// Parts that leave the device between their uses: only the one used last is there, until another
// part is used. Where the host may not read the device's memory, their weights wait in its own;
// elsewhere they are read again, from pages of files that the system keeps as it sees fit.
struct OffloadedParts {
  bool text = false;  // all text encoders
  bool denoiser = false;
  bool vae = false;
};
// By name: text, denoiser, vae, all. Throws invalid_argument naming another.
OffloadedParts offloaded_parts(std::span<const std::string> names);

struct ImageLoadOptions {
  Device* device = nullptr;
  // f32, f16 or bf16; sums and statistics are f32 in any case. Absent: the family's custom.
  std::optional<DType> activations;
  // Convolutions and linear layers of the denoiser, the VAE and ControlNets multiply in int8, with
  // weights in q8_0; what else is computed is of `activations`. On CPUs.
  bool int8 = false;
  // For the VAE alone. Absent: as activations; but where those are f16 and the model is an SDXL
  // whose config says force_upcast, its VAE overflows in f16: f32 where the host computes, else
  // bf16.
  std::optional<DType> vae_activations;
  bool pack_weights = true;
  OffloadedParts offload;
  std::filesystem::path vae;  // another VAE (folder or file); empty = the model's own
  // Text encoders of all families but Stable Diffusion 2 (folders or files), in place of the
  // model's own or where it has none.
  std::filesystem::path clip_l, clip_g, t5xxl;
  std::vector<LoraSource> loras;
  std::optional<std::string> prediction_type;                 // overrides what the files say
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of all parts
};

// What --dtype says: auto, f32, f16, bf16 or int8. Throws invalid_argument naming another.
struct ImageArithmetic {
  std::optional<DType> activations;
  bool int8 = false;
};
ImageArithmetic image_arithmetic(std::string_view name);

// Throws not_found naming a missing file, part, tensor or field; unsupported for pickled weights
// and classes or settings that are not implemented, with a remedy, and for int8 on devices other
// than CPUs; invalid_argument naming a tensor or field with a wrong shape or value.
ImageModel load_image_model(const std::filesystem::path& path, const ImageLoadOptions& options);

// Gives a model, loaded from `path` with `options`, the adapters of options.loras in place of those
// that it has. Parts that neither change stay; each other one is let go before it is read again, so
// there is never a second copy of it. Throws as load_image_model: what is wrong with the adapters
// before anything is changed; after any other failure the model has no adapters, and what was let
// go is read at its next use.
void change_loras(ImageModel& model, const std::filesystem::path& path,
                  const ImageLoadOptions& options);

}  // namespace rbee::models
