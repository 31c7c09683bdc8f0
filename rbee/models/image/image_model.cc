#include "rbee/models/image/image_model.h"

#include <algorithm>
#include <map>

#include "rbee/io/diffusers_folder.h"
#include "rbee/models/image/autoencoder.h"
#include "rbee/models/image/clip_text.h"
#include "rbee/models/image/encoder_file.h"
#include "rbee/models/image/flux.h"
#include "rbee/models/image/held_parts.h"
#include "rbee/models/image/language_text.h"
#include "rbee/models/image/layers.h"
#include "rbee/models/image/lora.h"
#include "rbee/models/image/mmdit.h"
#include "rbee/models/image/model_files.h"
#include "rbee/models/image/single_file.h"
#include "rbee/models/image/t5_text.h"
#include "rbee/models/image/tiny_autoencoder.h"
#include "rbee/models/image/unet.h"
#include "rbee/models/image/z_image.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;

// Tensors that some writers keep and no model reads.
constexpr std::string_view kIgnored[] = {"position_ids", "logit_scale", "text_projection"};

// The states that a family reads of its text encoders.
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
    case ImageFamily::z_image:
      break;  // has no CLIP
  }
  return {};
}

TextJoin join_of(ImageFamily family, size_t encoders) {
  if (family == ImageFamily::sd3) return TextJoin::sd3;
  if (family == ImageFamily::flux) return TextJoin::flux;
  return encoders > 1 ? TextJoin::widths : TextJoin::single;
}

// The tokens that a model reads of T5: FLUX schnell, which has no guidance, reads fewer than dev.
int64_t t5_tokens(const ModelFiles& files) {
  constexpr int64_t kLong = 512, kShort = 256;
  if (files.family == ImageFamily::sd3) return kSd3T5Tokens;
  return files.require("transformer").config.flag_or("guidance_embeds", false) ? kLong : kShort;
}

// The layers of a family's language model whose states it reads.
LanguageTextUse language_use(const io::Checkpoint& checkpoint) {
  // Z-Image: those before the last layer.
  return {.behind = {std::max<int64_t>(language_layers(checkpoint) - 1, 1)}};
}

[[noreturn]] void fail_class(const ModelPart& part, std::string_view known) {
  fail(Code::unsupported, part.config.source(), part.name, " is a ", part.class_name,
       ", which is not implemented; known: ", known);
}

// Loads parts, the first time and whenever one comes back. The parts that it made keep it.
class Loader : public std::enable_shared_from_this<Loader> {
 public:
  Loader(std::shared_ptr<const ModelFiles> files, const ImageLoadOptions& options)
      : files_(std::move(files)),
        options_(options),
        activations_(options.activations.value_or(
            customary_activations(files_->family, options.device->host_accessible()))),
        loras_(*files_, options.loras, *options.device) {
    for (const ModelPart& part : files_->parts) total_ += part.weights.file_bytes();
  }

  ImageModel load();
  // From now on this loader owns the parts that the old or the new adapters change.
  void take_over(ImageModel& model, bool now);

 private:
  nn::WeightScope scope(const ModelPart& part, DType activations, nn::WeightStash* stash,
                        bool int8 = false);
  void close(const ModelPart& part, const nn::WeightScope& scope);
  std::vector<const ModelPart*> text_parts() const;
  const ModelPart& denoiser_part() const;
  PartStay stay(bool leaves) const;

  Holder<TextEncoder>::Make text_maker(const ModelPart& part, bool last);
  Holder<Denoiser>::Make denoiser_maker(int64_t pooled_width);
  Holder<Vae>::Make vae_maker();
  std::unique_ptr<TextEncoder> make_clip(const ModelPart& part, bool last, nn::WeightStash* stash);
  std::unique_ptr<TextEncoder> make_t5(const ModelPart& part, nn::WeightStash* stash);
  std::unique_ptr<TextEncoder> make_language(const ModelPart& part, nn::WeightStash* stash);
  std::unique_ptr<Denoiser> make_denoiser(int64_t pooled_width, nn::WeightStash* stash);
  std::unique_ptr<Denoiser> make_denoiser(const ModelPart& part, const nn::WeightScope& weights,
                                          int64_t pooled_width) const;
  std::unique_ptr<Vae> make_vae(nn::WeightStash* stash);
  DType customary_vae_activations(bool force_upcast) const;

  std::shared_ptr<const ModelFiles> files_;
  ImageLoadOptions options_;
  DType activations_;
  LoraSet loras_;
  std::map<std::string, nn::WeightFigures> figures_;  // by part
  int64_t done_ = 0, total_ = 0;                      // bytes of all parts
};

nn::WeightScope Loader::scope(const ModelPart& part, DType activations, nn::WeightStash* stash,
                              bool int8) {
  nn::WeightOptions weights{.device = options_.device,
                            .own_names = true,
                            .ignored = kIgnored,
                            .pack = options_.pack_weights,
                            .plain_fp8 = true,
                            .widen_fp8 = options_.device->host_accessible(),
                            .narrow_matrices = options_.device->host_accessible(),
                            .may_quantize = int8 ? &multiplies_int8 : nullptr,
                            .activations = activations,
                            .patch = loras_.patch(part.name),
                            .stash = stash};
  if (options_.progress) {
    weights.progress = [this](int64_t done, int64_t) { options_.progress(done_ + done, total_); };
  }
  return {part.weights, weights};
}

// A part that comes back has the same size.
void Loader::close(const ModelPart& part, const nn::WeightScope& scope) {
  scope.finish();
  done_ += part.weights.file_bytes();
  figures_.try_emplace(part.name, scope.figures());
}

PartStay Loader::stay(bool leaves) const {
  if (!leaves) return PartStay::always;
  return options_.device->host_accessible() ? PartStay::reread : PartStay::stashed;
}

std::unique_ptr<TextEncoder> Loader::make_clip(const ModelPart& part, bool last,
                                               nn::WeightStash* stash) {
  const nn::WeightScope weights = scope(part, activations_, stash);
  ClipTextUse use = clip_use(files_->family, last);
  // Stability AI's files leave out CLIP-L's projection, which is the identity.
  const bool plain = part.class_name == "CLIPTextModel";
  if (files_->family == ImageFamily::sd3 && plain) use.pooled = ClipTextUse::Pooled::norm;
  auto encoder = std::make_unique<ClipTextEncoder>(weights, ClipTextConfig::read(part.config), use);
  close(part, weights);
  return encoder;
}

// Its states leave the range of f16.
std::unique_ptr<TextEncoder> Loader::make_t5(const ModelPart& part, nn::WeightStash* stash) {
  const bool overflows = activations_ == DType::f16;
  const nn::WeightScope weights = scope(part, overflows ? DType::bf16 : activations_, stash);
  auto encoder =
      std::make_unique<T5TextEncoder>(weights, T5TextConfig::read(part.config), t5_tokens(*files_));
  close(part, weights);
  return encoder;
}

std::unique_ptr<TextEncoder> Loader::make_language(const ModelPart& part, nn::WeightStash* stash) {
  LoadOptions load{
      .device = options_.device, .stash = stash, .activations = activations_, .progress = {}};
  load.pack_weights = options_.pack_weights;
  if (options_.progress) {
    load.progress = [this](int64_t done, int64_t) { options_.progress(done_ + done, total_); };
  }
  auto encoder =
      std::make_unique<LanguageTextEncoder>(part.weights, load, language_use(part.weights));
  done_ += part.weights.file_bytes();
  nn::WeightFigures figures;
  figures.parameters = encoder->parameters();
  figures.resident_bytes = encoder->weight_bytes();
  figures_.try_emplace(part.name, figures);
  return encoder;
}

Holder<TextEncoder>::Make Loader::text_maker(const ModelPart& part, bool last) {
  const auto self = shared_from_this();
  if (files_->family == ImageFamily::z_image) {
    return [self, &part](nn::WeightStash* stash) { return self->make_language(part, stash); };
  }
  if (part.class_name == "T5EncoderModel") {
    return [self, &part](nn::WeightStash* stash) { return self->make_t5(part, stash); };
  }
  if (part.class_name == "CLIPTextModel" || part.class_name == "CLIPTextModelWithProjection") {
    return
        [self, &part, last](nn::WeightStash* stash) { return self->make_clip(part, last, stash); };
  }
  fail_class(part, "CLIPTextModel, CLIPTextModelWithProjection, T5EncoderModel");
}

std::unique_ptr<Denoiser> Loader::make_denoiser(const ModelPart& part,
                                                const nn::WeightScope& weights,
                                                int64_t pooled_width) const {
  if (part.class_name == "SD3Transformer2DModel") {
    return std::make_unique<Mmdit>(weights, MmditConfig::read(part.config));
  }
  if (part.class_name == "FluxTransformer2DModel") {
    return std::make_unique<Flux>(weights, FluxConfig::read(part.config));
  }
  if (part.class_name == "ZImageTransformer2DModel") {
    return std::make_unique<ZImage>(weights, ZImageConfig::read(part.config));
  }
  if (part.class_name != "UNet2DConditionModel") {
    fail_class(part,
               "UNet2DConditionModel, SD3Transformer2DModel, FluxTransformer2DModel, "
               "ZImageTransformer2DModel");
  }
  UnetConfig config = UnetConfig::read(part.config);
  config.pooled_width = pooled_width;
  return std::make_unique<Unet>(weights, config);
}

const ModelPart& Loader::denoiser_part() const {
  const ModelPart* transformer = files_->find("transformer");
  return transformer != nullptr ? *transformer : files_->require("unet");
}

std::unique_ptr<Denoiser> Loader::make_denoiser(int64_t pooled_width, nn::WeightStash* stash) {
  const ModelPart& part = denoiser_part();
  const nn::WeightScope weights = scope(part, activations_, stash, options_.int8);
  std::unique_ptr<Denoiser> denoiser = make_denoiser(part, weights, pooled_width);
  close(part, weights);
  return denoiser;
}

Holder<Denoiser>::Make Loader::denoiser_maker(int64_t pooled_width) {
  return [self = shared_from_this(), pooled_width](nn::WeightStash* stash) {
    return self->make_denoiser(pooled_width, stash);
  };
}

// SDXL's first autoencoder leaves the range of f16.
DType Loader::customary_vae_activations(bool force_upcast) const {
  const bool xl =
      files_->family == ImageFamily::sdxl || files_->family == ImageFamily::sdxl_refiner;
  if (!xl || !force_upcast || activations_ != DType::f16) return activations_;
  return options_.device->host_accessible() ? DType::f32 : DType::bf16;
}

std::unique_ptr<Vae> Loader::make_vae(nn::WeightStash* stash) {
  const ModelPart& part = files_->require("vae");
  if (part.class_name == "AutoencoderTiny") {
    const DType activations = options_.vae_activations.value_or(activations_);
    const nn::WeightScope weights = scope(part, activations, stash);
    auto vae = std::make_unique<TinyAutoencoder>(weights, TinyAutoencoderConfig::read(part.config));
    close(part, weights);
    return vae;
  }
  if (part.class_name != "AutoencoderKL") fail_class(part, "AutoencoderKL, AutoencoderTiny");
  const AutoencoderConfig config = AutoencoderConfig::read(part.config);
  const DType activations =
      options_.vae_activations.value_or(customary_vae_activations(config.force_upcast));
  const nn::WeightScope weights = scope(part, activations, stash, options_.int8);
  auto vae = std::make_unique<Autoencoder>(weights, config);
  close(part, weights);
  return vae;
}

Holder<Vae>::Make Loader::vae_maker() {
  return [self = shared_from_this()](nn::WeightStash* stash) { return self->make_vae(stash); };
}

ImageModel Loader::load() {
  ImageModel model;
  model.family = files_->family;
  model.model_name = files_->name;
  model.scheduler = files_->scheduler;
  model.zeros_for_empty_negative = files_->zeros_for_empty_negative;
  model.device = options_.device;
  model.activations = activations_;
  model.int8 = options_.int8;
  const auto held = std::make_shared<HeldParts>();
  const OffloadedParts& offload = options_.offload;
  const std::vector<const ModelPart*> encoders = text_parts();
  for (const ModelPart* part : encoders) {
    held->text.push_back(std::make_unique<Holder<TextEncoder>>(
        held->turns, stay(offload.text), text_maker(*part, part == encoders.back())));
    TextPart& text =
        model.text.emplace_back(held_encoder(held, held->text.size() - 1), part->tokenizer);
    if (part->class_name == "T5EncoderModel") text.tokenizer.kind = TokenizerFiles::Kind::t5;
    if (files_->family == ImageFamily::z_image)
      text.tokenizer.kind = TokenizerFiles::Kind::language;
  }
  model.join = join_of(files_->family, encoders.size());
  held->denoiser =
      std::make_unique<Holder<Denoiser>>(held->turns, stay(offload.denoiser),
                                         denoiser_maker(model.text.back().encoder->pooled_width()));
  model.denoiser = held_denoiser(held);
  held->vae = std::make_unique<Holder<Vae>>(held->turns, stay(offload.vae), vae_maker());
  model.vae = held_vae(held);
  held->turns.enter(nullptr);
  for (const auto& [part, figures] : figures_) {
    model.weight_bytes += figures.resident_bytes;
    model.parameters += figures.parameters;
  }
  model.adapted = loras_.parts();
  model.held = held;
  if (options_.progress) options_.progress(total_, total_);
  options_.progress = nullptr;
  return model;
}

void Loader::take_over(ImageModel& model, bool now) {
  const std::vector<std::string> before = model.adapted, after = loras_.parts();
  const auto changed = [&](const ModelPart& part) {
    return std::ranges::find(before, part.name) != before.end() ||
           std::ranges::find(after, part.name) != after.end();
  };
  const auto replace = [&](auto& holder, auto make) {
    holder.replace(std::move(make));
    if (now) holder.use();
  };
  HeldParts& held = *model.held;
  // After a failure half-way the model has adapters, too.
  model.adapted.insert(model.adapted.end(), after.begin(), after.end());
  const std::vector<const ModelPart*> encoders = text_parts();
  for (size_t i = 0; i < encoders.size(); ++i) {
    const ModelPart& part = *encoders[i];
    if (changed(part)) replace(*held.text[i], text_maker(part, i + 1 == encoders.size()));
  }
  if (changed(denoiser_part())) {
    replace(*held.denoiser, denoiser_maker(model.text.back().encoder->pooled_width()));
  }
  model.adapted = after;
  options_.progress = nullptr;
}

std::vector<const ModelPart*> Loader::text_parts() const {
  std::vector<const ModelPart*> out;
  for (const ModelPart& part : files_->parts) {
    if (part.name.starts_with("text_encoder")) out.push_back(&part);
  }
  if (out.empty()) fail(Code::not_found, files_->name, "the model has no text_encoder");
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
  if (options.int8 && !options.device->host_accessible()) {
    fail(Code::unsupported, kOp, "dtype is int8 on ", options.device->id(),
         ": int8 arithmetic is for CPUs; choose auto, f16 or bf16");
  }
}

void replace_part(ModelFiles& files, ModelPart part) {
  std::erase_if(files.parts, [&](const ModelPart& old) { return old.name == part.name; });
  files.parts.push_back(std::move(part));
}

// Parts that a transformer's file may lack and users can give.
void require_parts(const ModelFiles& files) {
  const auto require = [&](const std::string& part, std::string_view what) {
    if (files.find(part) != nullptr) return;
    fail(Code::not_found, files.name, "the model has no ", part, ": ", what);
  };
  for (const EncoderRole role : kEncoderRoles) {
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
                                   {EncoderRole::t5xxl, &options.t5xxl},
                                   {EncoderRole::llm, &options.llm}}) {
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
    case ImageFamily::z_image:
      return "z_image";
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
  const bool wide = family == ImageFamily::flux || family == ImageFamily::z_image;
  return wide ? DType::bf16 : DType::f16;
}

ImageArithmetic image_arithmetic(std::string_view name) {
  ImageArithmetic out;
  if (name == "auto") return out;
  out.int8 = name == "int8";
  if (out.int8) return out;
  out.activations = parse_dtype(name);
  const DType type = out.activations.value_or(DType::u8);
  check(type == DType::f32 || type == DType::f16 || type == DType::bf16, "dtype", "\"", name,
        "\" is none of auto, f32, f16, bf16, int8");
  return out;
}

OffloadedParts offloaded_parts(std::span<const std::string> names) {
  OffloadedParts out;
  for (const std::string& part : names) {
    const bool all = part == "all";
    check(all || part == "text" || part == "denoiser" || part == "vae", "offload", "\"", part,
          "\" is none of text, denoiser, vae, all");
    out.text = out.text || all || part == "text";
    out.denoiser = out.denoiser || all || part == "denoiser";
    out.vae = out.vae || all || part == "vae";
  }
  return out;
}

int64_t resident_weight_bytes(const fs::path& path, const ImageLoadOptions& options) {
  ModelFiles files = read_model(path);
  add_parts(options, files);
  const bool halved = options.activations != DType::f32;
  int64_t stay = 0, largest_of_others = 0;
  for (const ModelPart& part : files.parts) {
    int64_t bytes = 0;
    for (const io::TensorEntry& tensor : part.weights.tensors()) {
      const auto stored = static_cast<int64_t>(tensor.data.size());
      bytes += halved && tensor.dtype == DType::f32 ? stored / 2 : stored;
    }
    const bool leaves = part.name == "vae"                      ? options.offload.vae
                        : part.name.starts_with("text_encoder") ? options.offload.text
                                                                : options.offload.denoiser;
    if (leaves) {
      largest_of_others = std::max(largest_of_others, bytes);
    } else {
      stay += bytes;
    }
  }
  return stay + largest_of_others;
}

ImageModel load_image_model(const fs::path& path, const ImageLoadOptions& options) {
  check_options(options);
  ModelFiles files = read_model(path);
  add_parts(options, files);
  return load_image_model(std::move(files), options);
}

ImageModel load_image_model(ModelFiles&& files, const ImageLoadOptions& options) {
  check_options(options);
  return std::make_shared<Loader>(std::make_shared<ModelFiles>(std::move(files)), options)->load();
}

void change_loras(ImageModel& model, const fs::path& path, const ImageLoadOptions& options) {
  check_options(options);
  const auto files = std::make_shared<ModelFiles>(read_model(path));
  add_parts(options, *files);
  const auto loader = std::make_shared<Loader>(files, options);
  ImageLoadOptions plain = options;
  plain.loras.clear();
  try {
    loader->take_over(model, true);
  } catch (...) {
    std::make_shared<Loader>(files, plain)->take_over(model, false);
    throw;
  }
}

}  // namespace rbee::models
