#include "rbee/engine/image/source.h"

#include <algorithm>
#include <cctype>

#include "rbee/core/log.h"
#include "rbee/engine/image/defaults.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/io/hf_folder.h"
#include "rbee/models/image/tiny_autoencoder.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using models::ImageFamily;

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr int32_t kMaxSide = 2048;
constexpr const char* kAdapter = ".safetensors";

// A link to itself, or a name that is too long, is none.
bool is_file(const fs::path& path) {
  std::error_code refused;
  return fs::is_regular_file(path, refused);
}

std::string text_of(const fs::path& path) {
  return io::read_text(path, kMaxConfigBytes).value_or("");
}

diffusion::Prediction prediction_of(const std::string& named) {
  using diffusion::Prediction;
  if (named == "epsilon") return Prediction::epsilon;
  if (named == "v_prediction") return Prediction::v_prediction;
  if (named == "sample") return Prediction::sample;
  if (named == "flow_prediction") return Prediction::flow;
  fail(Code::invalid_argument, "prediction_type", "\"", named,
       "\" is none of epsilon, v_prediction, sample, flow_prediction");
}

// Of single files.
diffusion::SchedulerConfig config_of(const models::SchedulerSettings& settings) {
  diffusion::SchedulerConfig out;
  out.sampler = diffusion::parse_sampler(settings.class_name).sampler;
  out.train_steps = static_cast<int32_t>(settings.train_timesteps);
  out.beta_start = settings.beta_start;
  out.beta_end = settings.beta_end;
  if (settings.beta_schedule == "linear") out.beta_curve = diffusion::BetaCurve::linear;
  if (settings.beta_schedule == "squaredcos_cap_v2") {
    out.beta_curve = diffusion::BetaCurve::squared_cosine;
  }
  out.prediction = prediction_of(settings.prediction_type);
  out.spacing = diffusion::parse_schedule(settings.timestep_spacing);
  out.steps_offset = static_cast<int32_t>(settings.steps_offset);
  out.ends_at_alpha_one = settings.set_alpha_to_one;
  out.zero_terminal_snr = settings.rescale_betas_zero_snr;
  out.flow = {.shift = settings.shift,
              .dynamic = settings.use_dynamic_shifting,
              .base_shift = settings.base_shift,
              .max_shift = settings.max_shift,
              .base_tokens = settings.base_seq_len,
              .max_tokens = settings.max_seq_len};
  return out;
}

diffusion::SchedulerConfig folder_scheduler(const io::DiffusersFolder& folder) {
  constexpr const char* kPart = "scheduler";
  constexpr const char* kFile = "scheduler_config.json";
  const std::string class_name = folder.require(kPart).class_name, pipeline = folder.pipeline();
  const auto text = folder.text_file(kPart, kFile);
  if (!text)
    fail(Code::not_found, (folder.path() / kPart / kFile).string(), "there is no such file");
  const auto out = diffusion::parse_scheduler_config(*text, {class_name, pipeline});
  for (const std::string& setting : out.ignored) {
    log(LogLevel::warn,
        "a setting of scheduler_config.json is not computed, requests must name a sampler",
        {{"setting", setting}});
  }
  return out;
}

diffusion::SchedulerConfig scheduler_of(const fs::path& path, const models::ImageModel& model,
                                        const ImageSourceOptions& options) {
  diffusion::SchedulerConfig out = io::DiffusersFolder::is_one(path)
                                       ? folder_scheduler(io::DiffusersFolder::open(path))
                                       : config_of(model.scheduler);
  if (options.prediction_type) out.prediction = prediction_of(*options.prediction_type);
  return out;
}

// Few-step models say so in their names alone, but FLUX schnell is the one without guidance.
bool is_distilled(const ImageSource& source) {
  const bool flux = source.model.family == ImageFamily::flux;
  if (flux) return !source.model.denoiser->info().guidance;
  std::string id = cat(source.model.model_name, " ", source.info.id);
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](const char* word) { return id.find(word) != std::string::npos; };
  const bool consistency = source.scheduler.sampler == diffusion::Sampler::lcm ||
                           source.scheduler.sampler == diffusion::Sampler::tcd;
  return consistency || has("turbo") || has("schnell") || has("lightning") || has("lcm");
}

int32_t customary_steps(const ImageSource& source) {
  const bool flow = source.scheduler.prediction == diffusion::Prediction::flow;
  if (!is_distilled(source)) return flow ? 28 : 20;
  return source.model.family == ImageFamily::z_image ? 8 : 4;
}

float customary_guidance(const ImageSource& source) {
  const bool flux = source.model.family == ImageFamily::flux;
  if (source.model.denoiser->info().guidance && !flux) return 8.5f;  // LCM, distilled with it
  if (is_distilled(source)) return 1.0f;
  switch (source.model.family) {
    case ImageFamily::sd3:
    case ImageFamily::z_image:
      return 5.0f;
    case ImageFamily::flux:  // those that read pictures learned it with far stronger guidance
      if (source.model.denoiser->info().mask_channels() > 0) return 30.0f;
      return reads_control(source) ? 10.0f : 3.5f;
    default:
      return 7.5f;
  }
}

std::vector<NamedControlNet> load_controls(const std::vector<NetworkPath>& paths,
                                           const models::ImageModel& model) {
  std::vector<NamedControlNet> out;
  for (const auto& [path, given] : paths) {
    std::string name = given.empty() ? control_name(path) : given;
    const bool taken = std::ranges::any_of(out, [&](const auto& n) { return n.name == name; });
    check(!taken, "control_net", "two networks are called \"", name, "\"; rename one of them");
    out.push_back({std::move(name), models::load_control_net(path, model)});
  }
  return out;
}

std::vector<NamedUpscaler> load_upscalers(const std::vector<fs::path>& paths,
                                          const models::ImageModel& model) {
  std::vector<NamedUpscaler> out;
  for (const fs::path& path : paths) {
    std::string name = control_name(path);
    const bool taken = std::ranges::any_of(out, [&](const auto& n) { return n.name == name; });
    check(!taken, "upscale_model", "two networks are called \"", name, "\"; rename one of them");
    out.push_back({std::move(name), models::load_upscaler(path, *model.device, model.activations)});
  }
  return out;
}

void add_word(models::TextEmbedding embedding, ImageSource& source) {
  source.info.embeddings.push_back({embedding.word, static_cast<int32_t>(embedding.count)});
  source.embeddings.push_back(std::move(embedding));
}

// A file of diffusers' has a word inside; AUTOMATIC1111 calls every file by its name.
void add_embedding(const fs::path& path, ImageSource& source) {
  const models::TextEmbedding read = models::read_embedding(path, source.model);
  add_word(read, source);
  models::TextEmbedding by_name = read;
  by_name.word = path.stem().string();
  if (by_name.word != read.word) add_word(std::move(by_name), source);
}

void load_embeddings(const fs::path& path, ImageSource& source) {
  if (!fs::is_directory(path)) return add_embedding(path, source);
  std::vector<fs::path> files;
  constexpr auto kReadable = fs::directory_options::skip_permission_denied;
  for (const auto& entry : fs::recursive_directory_iterator(path, kReadable)) {
    const fs::path ending = entry.path().extension();
    const bool known = ending == kAdapter || ending == ".pt" || ending == ".bin";
    if (known && is_file(entry.path())) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    try {
      add_embedding(file, source);
    } catch (const Error& error) {
      log(LogLevel::warn, "a textual inversion is left out", {{"reason", error.what()}});
      source.info.skipped_embeddings.push_back(file.stem().string());
    }
  }
}

}  // namespace

bool is_guided(const ImageSource& source) {
  return !source.model.denoiser->info().guidance && source.model.family != ImageFamily::flux;
}

bool needs_mask(const ImageSource& source) {
  return source.info.inpainting && source.model.family == ImageFamily::flux;
}

bool reads_control(const ImageSource& source) {
  const models::DenoiserInfo& info = source.model.denoiser->info();
  return source.model.family == ImageFamily::flux && info.in_channels == 2 * info.out_channels;
}

void fill_model_info(ImageSource& source, const std::string& model_id) {
  const models::ImageModel& model = source.model;
  ImageModelInfo& info = source.info;
  info.id = model_id.empty() ? model.model_name : model_id;
  info.architecture = models::name(model.family);
  info.device = cat(source.device->id());
  info.capture_refusal = source.device->capture_refusal();
  info.dtype = model.int8 ? "int8" : cat(model.activations);
  info.default_width = info.default_height = static_cast<int32_t>(model.default_size());
  info.max_side = kMaxSide;
  info.default_steps = customary_steps(source);
  info.default_guidance = customary_guidance(source);
  info.default_sampler = std::string(diffusion::name(source.scheduler.sampler));
  info.default_schedule = std::string(diffusion::name(diffusion::Schedule::automatic));
  const auto& denoiser = model.denoiser->info();
  info.inpainting = denoiser.mask_channels() > 0;
  source.side_step = static_cast<int32_t>(model.vae->info().scale * denoiser.patch);
  info.controls.clear();
  for (const NamedControlNet& control : source.controls) info.controls.push_back(control.name);
  info.upscalers.clear();
  for (const NamedUpscaler& upscaler : source.upscalers) {
    info.upscalers.push_back({upscaler.name, static_cast<int32_t>(upscaler.network->scale())});
  }
  info.parameters = model.parameters;
  info.weight_bytes = model.weight_bytes;
}

ImageSource load_image_source(const fs::path& path, const ImageSourceOptions& options) {
  constexpr const char* kOp = "load_image_source";
  check(options.device != nullptr, kOp, "no device is given");
  check(options.lora_folder.empty() || fs::is_directory(options.lora_folder), kOp,
        "the folder of LoRAs ", options.lora_folder.string(), " is not there, or is no folder");
  models::ImageLoadOptions load;
  load.device = options.device;
  load.activations = options.activations;
  load.int8 = options.int8;
  load.offload = options.offload;
  load.vae = options.vae;
  load.clip_l = options.clip_l;
  load.clip_g = options.clip_g;
  load.t5xxl = options.t5xxl;
  load.llm = options.llm;
  load.progress = options.progress;
  ImageSource out;
  out.device = options.device;
  out.tiled_vae = options.tiled_vae;
  out.parts_leave = options.offload.text || options.offload.denoiser || options.offload.vae;
  out.model = models::load_image_model(path, load);
  check_parts_fit(out.model);
  out.scheduler = scheduler_of(path, out.model, options);
  const fs::path home = fs::is_directory(path) ? path : path.parent_path();
  const fs::path beside = options.tokenizer.empty() ? home / "tokenizer" : options.tokenizer;
  for (const models::TextPart& part : out.model.text) {
    out.tokenizers.push_back(load_tokenizer(part.tokenizer, beside));
  }
  out.loras = LoraFolder(options.lora_folder.empty() ? home / "loras" : options.lora_folder);
  load.progress = nullptr;
  out.change_loras = [path, load](models::ImageModel& model,
                                  const std::vector<models::LoraSource>& loras) {
    models::ImageLoadOptions with = load;
    with.loras = loras;
    models::change_loras(model, path, with);
  };
  out.controls = load_controls(options.control_nets, out.model);
  out.upscalers = load_upscalers(options.upscale_models, out.model);
  if (!options.taesd.empty()) {
    out.preview_vae = models::load_tiny_autoencoder(options.taesd, out.model);
  }
  const bool named = !options.embeddings.empty();
  const fs::path embeddings = named ? options.embeddings : home / "embeddings";
  if (named || fs::is_directory(embeddings)) load_embeddings(embeddings, out);
  fill_model_info(out, options.model_id);
  const std::string defaults = text_of(home / "generation_config.json");
  if (fs::is_directory(path) && !defaults.empty()) {
    read_defaults(defaults, (home / "generation_config.json").string(), out.info);
  }
  return out;
}

std::string control_name(const fs::path& path) {
  const fs::path plain = fs::absolute(path).lexically_normal();
  const fs::path last = plain.has_filename() ? plain : plain.parent_path();
  return (fs::is_directory(path) ? last.filename() : last.stem()).string();
}

const models::ControlNet& find_control(const ImageSource& source, const std::string& name) {
  if (source.controls.empty()) {
    fail(Code::unsupported, "control", "there is no ControlNet; start with --control-net PATH");
  }
  if (name.empty() && source.controls.size() == 1) return *source.controls.front().net;
  std::string known;
  for (const NamedControlNet& control : source.controls) {
    if (control.name == name) return *control.net;
    known += cat(known.empty() ? "" : ", ", control.name);
  }
  fail(Code::invalid_argument, "control.model", "\"", name, "\" is none of ", known);
}

const models::Upscaler* find_upscaler(const ImageSource& source, const std::string& name) {
  const auto found = std::ranges::find(source.upscalers, name, &NamedUpscaler::name);
  return found == source.upscalers.end() ? nullptr : found->network.get();
}

}  // namespace rbee::engine
