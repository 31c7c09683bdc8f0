#pragma once
// Text-to-image models, loaded from a folder in diffusers' layout or from one file.

#include <filesystem>
#include <functional>
#include <optional>

#include "rbee/models/image/parts.h"

namespace rbee::models {

enum class ImageFamily : uint8_t { sd1, sd2, sdxl, sdxl_refiner, sd3, flux, z_image };
const char* name(ImageFamily family);  // "sd1", ...

// The noise schedule in training of a single file's family. A folder says its own in
// scheduler/scheduler_config.json.
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

// The texts of a tokenizer's files; empty if there is none, as in single files.
struct TokenizerFiles {
  enum class Kind : uint8_t { clip, t5, language };
  Kind kind = Kind::clip;
  std::string tokenizer_json;
  std::string vocab_json, merges;  // CLIP's older form
  std::string spiece_model;        // T5's older form: SentencePiece's file
  std::string tokenizer_config_json;
  std::string special_tokens_map;
  std::filesystem::path gguf;  // the encoder's own file, if it has the vocabulary
};

struct TextPart {
  std::unique_ptr<TextEncoder> encoder;
  TokenizerFiles tokenizer;
};

// How the encoders' results are joined into one TextStates.
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
  // SDXL: without a negative prompt, its states are zeros (force_zeros_for_empty_prompt).
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

// Tokens of T5 that Stable Diffusion 3 reads; zeros for a model without T5.
inline constexpr int64_t kSd3T5Tokens = 256;

// Joins the encoders' results, in the order of model.text and of one batch. If a prompt has several
// chunks, their hidden states must already be one after another.
TextStates join_text(const ImageModel& model, std::span<const TextEncoding> encodings);
// Throws invalid_argument naming both sizes if the states' width or the VAE's latents do not fit
// the denoiser: then the parts are from different models. Throws unsupported if the denoiser reads
// other inputs than latents, or latents and a masked picture.
void check_parts_fit(const ImageModel& model);

struct LoraSource {
  std::filesystem::path path;                       // .safetensors
  float weight = 1;                                 // multiplies the file's own scale
  std::optional<float> text_weight = std::nullopt;  // the same for text encoders; absent = weight
};

// The default type of a family's activations: f32 if the host computes, else f16; bf16 for FLUX and
// Z-Image, whose states overflow in f16.
DType customary_activations(ImageFamily family, bool host_computes);

// Parts that leave the device between uses: of these, only the one used last is there. If the host
// cannot read the device's memory, host memory keeps their weights; else they are read again from
// the files, whose pages the system may still have.
struct OffloadedParts {
  bool text = false;  // all text encoders
  bool denoiser = false;
  bool vae = false;
};
// By name: text, denoiser, vae, all. Throws invalid_argument naming any other.
OffloadedParts offloaded_parts(std::span<const std::string> names);

struct ImageLoadOptions {
  Device* device = nullptr;
  // f32, f16 or bf16; sums and statistics are always f32. Absent: the family's default.
  std::optional<DType> activations;
  // Convolutions and linear layers of the denoiser, the VAE and ControlNets multiply in int8, with
  // weights in q8_0; the rest computes in `activations`. On CPUs only.
  bool int8 = false;
  // For the VAE. Absent: as activations. But the VAE of an SDXL model with force_upcast in its
  // config overflows in f16; instead of f16 it takes f32 if the host computes, else bf16.
  std::optional<DType> vae_activations;
  bool pack_weights = true;
  OffloadedParts offload;
  std::filesystem::path vae;  // another VAE (folder or file); empty = the model's own
  // Text encoders (folders or files) instead of the model's own or missing ones. Not for Stable
  // Diffusion 2.
  std::filesystem::path clip_l, clip_g, t5xxl;
  std::filesystem::path llm;  // a language model that encodes text, Z-Image's
  std::vector<LoraSource> loras;
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of all parts
};

// A value of --dtype: auto, f32, f16, bf16 or int8. Throws invalid_argument naming any other.
struct ImageArithmetic {
  std::optional<DType> activations;
  bool int8 = false;
};
ImageArithmetic image_arithmetic(std::string_view name);

// Throws not_found naming a missing file, part, tensor or field; unsupported, with a remedy, for
// pickled weights and for classes or settings that are not implemented, and for int8 on other
// devices than CPUs; invalid_argument naming a tensor or field with a wrong shape or value.
ImageModel load_image_model(const std::filesystem::path& path, const ImageLoadOptions& options);

// Bytes of weights that are on a GPU at once, by the files' headers: those of all parts that stay,
// and of the largest of options.offload. Weights in f32 count for 16 bits unless `activations` is
// f32. options.device is not read. Throws as load_image_model().
int64_t resident_weight_bytes(const std::filesystem::path& path, const ImageLoadOptions& options);

// Replaces the adapters of a model, loaded from `path` with `options`, by options.loras. Keeps
// parts that neither the old nor the new adapters change. Releases every other part before it reads
// it again, so there is never a second copy. Throws as load_image_model. If the adapters are wrong,
// it throws before it changes anything; after any other failure the model has no adapters, and
// released parts are read at their next use.
void change_loras(ImageModel& model, const std::filesystem::path& path,
                  const ImageLoadOptions& options);

}  // namespace rbee::models
