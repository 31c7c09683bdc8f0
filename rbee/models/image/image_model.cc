#include "rbee/models/image/image_model.h"

#include <algorithm>

#include "rbee/io/diffusers_folder.h"
#include "rbee/models/image/autoencoder.h"
#include "rbee/models/image/clip_text.h"
#include "rbee/models/image/encoder_file.h"
#include "rbee/models/image/flux.h"
#include "rbee/models/image/lora.h"
#include "rbee/models/image/mmdit.h"
#include "rbee/models/image/model_files.h"
#include "rbee/models/image/single_file.h"
#include "rbee/models/image/t5_text.h"
#include "rbee/models/image/tiny_autoencoder.h"
#include "rbee/models/image/unet.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;

// Tensors that some writers keep and no model reads.
constexpr std::string_view kIgnored[] = {"position_ids", "logit_scale", "text_projection"};

// What a family reads of its text encoders.
ClipTextUse clip_use(ImageFamily family, bool last) {
  using Pooled = ClipTextUse::Pooled;
  switch (family) {
    case ImageFamily::sd1:
    case ImageFamily::sd2:
      return {};
    case ImageFamily::sdxl:
    case ImageFamily::sdxl_refiner:
      return {
          .clip_skip = 2, .final_norm = false, .pooled = last ? Pooled::projection : Pooled::none};
    case ImageFamily::sd3:
      return {.clip_skip = 2, .final_norm = false, .pooled = Pooled::projection};
    case ImageFamily::flux:
      return {.pooled = Pooled::norm};
  }
  return {};
}

TextJoin join_of(ImageFamily family, size_t encoders) {
  if (family == ImageFamily::sd3) return TextJoin::sd3;
  if (family == ImageFamily::flux) return TextJoin::flux;
  return encoders > 1 ? TextJoin::widths : TextJoin::single;
}

// What a model reads of T5: FLUX schnell, which has no guidance, less than dev.
int64_t t5_tokens(const ModelFiles& files) {
  constexpr int64_t kLong = 512, kShort = 256;
  if (files.family == ImageFamily::sd3) return kSd3T5Tokens;
  return files.require("transformer").config.flag_or("guidance_embeds", false) ? kLong : kShort;
}

[[noreturn]] void fail_class(const ModelPart& part, std::string_view known) {
  fail(Code::unsupported, part.config.source(), part.name, " is a ", part.class_name,
       ", which is not implemented; known: ", known);
}

// Loads parts one after another and adds up what they take.
class Loader {
 public:
  Loader(const ModelFiles& files, const ImageLoadOptions& options)
      : files_(files),
        options_(options),
        activations_(options.activations.value_or(
            customary_activations(files.family, options.device->host_accessible()))),
        loras_(files, options.loras, *options.device) {
    for (const ModelPart& part : files.parts) total_ += part.weights.file_bytes();
  }

  ImageModel load();
  // Reads parts of a model again that the old or the new adapters change.
  void reload(ImageModel& model);

 private:
  nn::WeightScope scope(const ModelPart& part, DType activations);
  void close(const ModelPart& part, const nn::WeightScope& scope);
  std::vector<const ModelPart*> text_parts() const;
  const ModelPart& denoiser_part() const;
  void load_text(const ModelPart& part, bool last, TextPart& text);
  std::unique_ptr<TextEncoder> load_clip(const ModelPart& part, bool last);
  std::unique_ptr<TextEncoder> load_t5(const ModelPart& part);
  void load_denoiser();
  std::unique_ptr<Denoiser> make_denoiser(const ModelPart& part, const nn::WeightScope& weights);
  void load_vae(const ModelPart& part);

  const ModelFiles& files_;
  const ImageLoadOptions& options_;
  DType activations_;
  LoraSet loras_;
  ImageModel model_;
  int64_t done_ = 0, total_ = 0;  // bytes of all parts
};

nn::WeightScope Loader::scope(const ModelPart& part, DType activations) {
  nn::WeightOptions weights{.device = options_.device,
                            .own_names = true,
                            .ignored = kIgnored,
                            .pack = options_.pack_weights,
                            .activations = activations,
                            .patch = loras_.patch(part.name)};
  if (options_.progress) {
    weights.progress = [this](int64_t done, int64_t) { options_.progress(done_ + done, total_); };
  }
  return {part.weights, weights};
}

void Loader::close(const ModelPart& part, const nn::WeightScope& scope) {
  scope.finish();
  done_ += part.weights.file_bytes();
  model_.weight_bytes += scope.figures().resident_bytes;
  model_.parameters += scope.figures().parameters;
}

std::unique_ptr<TextEncoder> Loader::load_clip(const ModelPart& part, bool last) {
  const nn::WeightScope weights = scope(part, activations_);
  ClipTextUse use = clip_use(files_.family, last);
  // Stability AI's files leave CLIP-L's projection out, which is the identity.
  const bool plain = part.class_name == "CLIPTextModel";
  if (files_.family == ImageFamily::sd3 && plain) use.pooled = ClipTextUse::Pooled::norm;
  auto encoder = std::make_unique<ClipTextEncoder>(weights, ClipTextConfig::read(part.config), use);
  close(part, weights);
  return encoder;
}

// Its states leave the range of f16.
std::unique_ptr<TextEncoder> Loader::load_t5(const ModelPart& part) {
  const bool overflows = activations_ == DType::f16;
  const nn::WeightScope weights = scope(part, overflows ? DType::bf16 : activations_);
  auto encoder =
      std::make_unique<T5TextEncoder>(weights, T5TextConfig::read(part.config), t5_tokens(files_));
  close(part, weights);
  return encoder;
}

void Loader::load_text(const ModelPart& part, bool last, TextPart& text) {
  text.tokenizer = part.tokenizer;
  if (part.class_name == "T5EncoderModel") {
    text.encoder = load_t5(part);
    text.tokenizer.kind = TokenizerFiles::Kind::t5;
  } else if (part.class_name == "CLIPTextModel" ||
             part.class_name == "CLIPTextModelWithProjection") {
    text.encoder = load_clip(part, last);
  } else {
    fail_class(part, "CLIPTextModel, CLIPTextModelWithProjection, T5EncoderModel");
  }
}

std::unique_ptr<Denoiser> Loader::make_denoiser(const ModelPart& part,
                                                const nn::WeightScope& weights) {
  if (part.class_name == "SD3Transformer2DModel") {
    return std::make_unique<Mmdit>(weights, MmditConfig::read(part.config));
  }
  if (part.class_name == "FluxTransformer2DModel") {
    return std::make_unique<Flux>(weights, FluxConfig::read(part.config));
  }
  if (part.class_name != "UNet2DConditionModel") {
    fail_class(part, "UNet2DConditionModel, SD3Transformer2DModel, FluxTransformer2DModel");
  }
  UnetConfig config = UnetConfig::read(part.config);
  config.pooled_width = model_.text.back().encoder->pooled_width();
  return std::make_unique<Unet>(weights, config);
}

const ModelPart& Loader::denoiser_part() const {
  const ModelPart* transformer = files_.find("transformer");
  return transformer != nullptr ? *transformer : files_.require("unet");
}

void Loader::load_denoiser() {
  const ModelPart& part = denoiser_part();
  const nn::WeightScope weights = scope(part, activations_);
  model_.denoiser = make_denoiser(part, weights);
  close(part, weights);
}

void Loader::load_vae(const ModelPart& part) {
  if (part.class_name == "AutoencoderTiny") {
    const nn::WeightScope weights = scope(part, options_.vae_activations.value_or(activations_));
    model_.vae =
        std::make_unique<TinyAutoencoder>(weights, TinyAutoencoderConfig::read(part.config));
    return close(part, weights);
  }
  if (part.class_name != "AutoencoderKL") fail_class(part, "AutoencoderKL, AutoencoderTiny");
  const AutoencoderConfig config = AutoencoderConfig::read(part.config);
  const bool overflows = config.force_upcast && activations_ == DType::f16;
  const DType activations =
      options_.vae_activations.value_or(overflows ? DType::f32 : activations_);
  const nn::WeightScope weights = scope(part, activations);
  model_.vae = std::make_unique<Autoencoder>(weights, config);
  close(part, weights);
}

ImageModel Loader::load() {
  model_.family = files_.family;
  model_.model_name = files_.name;
  model_.scheduler = files_.scheduler;
  if (options_.prediction_type) model_.scheduler.prediction_type = *options_.prediction_type;
  model_.zeros_for_empty_negative = files_.zeros_for_empty_negative;
  model_.device = options_.device;
  model_.activations = activations_;
  const std::vector<const ModelPart*> encoders = text_parts();
  for (const ModelPart* part : encoders) {
    load_text(*part, part == encoders.back(), model_.text.emplace_back());
  }
  model_.join = join_of(files_.family, encoders.size());
  load_denoiser();
  load_vae(files_.require("vae"));
  model_.adapted = loras_.parts();
  if (options_.progress) options_.progress(total_, total_);
  return std::move(model_);
}

void Loader::reload(ImageModel& model) {
  const std::vector<std::string> before = std::move(model.adapted), now = loras_.parts();
  const auto changed = [&](const ModelPart& part) {
    return std::ranges::find(before, part.name) != before.end() ||
           std::ranges::find(now, part.name) != now.end();
  };
  model_ = std::move(model);
  const int64_t bytes = model_.weight_bytes, parameters = model_.parameters;
  // Also when a part cannot be read: the rest stays the caller's.
  struct GiveBack {
    ImageModel &from, &to;
    ~GiveBack() { to = std::move(from); }
  } give_back{model_, model};
  model_.adapted = before;
  const std::vector<const ModelPart*> encoders = text_parts();
  for (size_t i = 0; i < encoders.size(); ++i) {
    if (!changed(*encoders[i])) continue;
    model_.text[i].encoder.reset();
    load_text(*encoders[i], encoders[i] == encoders.back(), model_.text[i]);
  }
  if (changed(denoiser_part())) {
    model_.denoiser.reset();
    load_denoiser();
  }
  model_.adapted = now;
  model_.weight_bytes = bytes;
  model_.parameters = parameters;
}

std::vector<const ModelPart*> Loader::text_parts() const {
  std::vector<const ModelPart*> out;
  for (const ModelPart& part : files_.parts) {
    if (part.name.starts_with("text_encoder")) out.push_back(&part);
  }
  if (out.empty()) fail(Code::not_found, files_.name, "the model has no text_encoder");
  std::ranges::sort(out, {}, &ModelPart::name);
  return out;
}

void check_options(const ImageLoadOptions& options) {
  constexpr const char* kOp = "load_image_model";
  check(options.device != nullptr, kOp, "no device is given");
  for (const auto& asked : {options.activations, options.vae_activations}) {
    const DType type = asked.value_or(DType::f32);
    check(type == DType::f32 || type == DType::f16 || type == DType::bf16, kOp, "activations are ",
          type, ", wanted f32, f16 or bf16");
  }
}

void replace_part(ModelFiles& files, ModelPart part) {
  std::erase_if(files.parts, [&](const ModelPart& old) { return old.name == part.name; });
  files.parts.push_back(std::move(part));
}

// What a transformer's file may lack and users can give.
void require_parts(const ModelFiles& files) {
  const auto require = [&](const std::string& part, std::string_view what) {
    if (files.find(part) != nullptr) return;
    fail(Code::not_found, files.name, "the model has no ", part, ": ", what);
  };
  for (const EncoderRole role : {EncoderRole::clip_l, EncoderRole::clip_g, EncoderRole::t5xxl}) {
    const auto part = encoder_part(files.family, role);
    // Stable Diffusion 3 was trained to do without T5.
    const bool optional = files.family == ImageFamily::sd3 && role == EncoderRole::t5xxl;
    if (part && !optional) require(*part, cat("give the text encoder ", name(role), " besides"));
  }
  require("vae", "give a VAE besides");
}

void add_parts(const ImageLoadOptions& options, ModelFiles& files) {
  if (!options.vae.empty()) {
    io::refuse_pickle(options.vae);
    ModelPart vae = fs::is_directory(options.vae) ? read_part_folder(options.vae, "AutoencoderKL")
                                                  : read_vae_file(options.vae, files.family);
    vae.name = "vae";
    replace_part(files, std::move(vae));
  }
  for (const auto& [role, path] : {std::pair{EncoderRole::clip_l, &options.clip_l},
                                   {EncoderRole::clip_g, &options.clip_g},
                                   {EncoderRole::t5xxl, &options.t5xxl}}) {
    if (!path->empty()) replace_part(files, read_encoder(*path, files.family, role));
  }
  require_parts(files);
}

ModelFiles read_model(const fs::path& path) {
  if (!fs::exists(path)) {
    fail(Code::not_found, path.string(), "there is no such file or folder");
  }
  io::refuse_pickle(path);
  return fs::is_directory(path) ? read_diffusers_folder(path) : read_single_file(path);
}

}  // namespace

const char* name(ImageFamily family) {
  switch (family) {
    case ImageFamily::sd1:
      return "sd1";
    case ImageFamily::sd2:
      return "sd2";
    case ImageFamily::sdxl:
      return "sdxl";
    case ImageFamily::sdxl_refiner:
      return "sdxl_refiner";
    case ImageFamily::sd3:
      return "sd3";
    case ImageFamily::flux:
      return "flux";
  }
  return "unknown";
}

int64_t ImageModel::default_size() const {
  constexpr int64_t kSmall = 512, kLarge = 1024;
  const int64_t sample = denoiser->info().sample_size;
  if (sample > 0) return sample * vae->info().scale;
  return family == ImageFamily::sd1 || family == ImageFamily::sd2 ? kSmall : kLarge;
}

DType customary_activations(ImageFamily family, bool host_computes) {
  if (host_computes) return DType::f32;
  return family == ImageFamily::flux ? DType::bf16 : DType::f16;
}

ImageModel load_image_model(const fs::path& path, const ImageLoadOptions& options) {
  check_options(options);
  ModelFiles files = read_model(path);
  add_parts(options, files);
  return load_image_model(files, options);
}

ImageModel load_image_model(const ModelFiles& files, const ImageLoadOptions& options) {
  check_options(options);
  return Loader(files, options).load();
}

void change_loras(ImageModel& model, const fs::path& path, const ImageLoadOptions& options) {
  check_options(options);
  ModelFiles files = read_model(path);
  add_parts(options, files);
  Loader loader(files, options);
  try {
    loader.reload(model);
  } catch (...) {
    // Whatever of it was read has the new ones.
    for (const ModelPart& part : files.parts) model.adapted.push_back(part.name);
    ImageLoadOptions plain = options;
    plain.loras.clear();
    Loader(files, plain).reload(model);
    throw;
  }
}

}  // namespace rbee::models
