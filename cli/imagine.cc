// rbee imagine: pictures from a prompt, written as files.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "backends/cpu/cpu_backend.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/model_paths.h"
#include "rbee/core/printable.h"
#include "rbee/engine/api/image_fields.h"
#include "rbee/engine/api/image_parameters.h"
#include "rbee/engine/image/engine.h"
#include "rbee/engine/image/model_memory.h"
#include "rbee/engine/infotext/infotext.h"
#include "rbee/io/hf_folder.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/output_file.h"
#include "workers/common/graphs_flag.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxPicture = uintmax_t{64} << 20;  // bytes of an input file

struct ImagineOptions {
  engine::ImageRequest request;
  std::string model;
  std::string model_id;  // reported name; empty = the model's own
  std::string device = "auto";
  std::string dtype = "auto";
  std::string prediction = "auto";
  std::string vae;
  std::string clip_l, clip_g, t5xxl, llm;
  std::vector<std::string> offload;
  std::string upscale_model;
  std::string loras;
  std::string embeddings;
  std::vector<std::string> lora;                               // "name" or "name:strength"
  std::vector<std::string> control_net_texts, control_images;  // one picture for each network
  std::vector<engine::NetworkPath> control_nets;               // of these texts
  engine::ControlUse control;                                  // of all of them
  std::string from;                                            // a picture file with settings
  std::string out = "picture.png";
  std::string init, mask;
  engine::HiresFix hires;
  int threads = 0;
  bool quiet = false;
};

// Writes pictures when they come, shows a progress bar, and lets the caller wait for the end.
class PictureSink final : public engine::ImageSink {
 public:
  PictureSink(std::string out, int32_t count, bool quiet)
      : out_(std::move(out)),
        count_(count),
        bar_(!quiet && isatty(STDERR_FILENO) != 0),
        quiet_(quiet) {}

  void on_started(const engine::ImageStarted& event) noexcept override {
    if (quiet_) return;
    std::fprintf(stderr, "%s: %d x %d, %s, %s, guidance %g, seed %llu\n",
                 printable_line(event.model).c_str(), event.width, event.height,
                 event.sampler.c_str(), event.schedule.c_str(),
                 static_cast<double>(event.guidance_scale),
                 static_cast<unsigned long long>(event.seed));
  }
  void on_progress(const engine::ImageProgress& event) noexcept override {
    if (!bar_) return;
    constexpr int kWidth = 32;
    const int done = event.total > 0 ? event.step * kWidth / event.total : 0;
    std::fprintf(stderr, "\r[%.*s%.*s] %d/%d %.2f steps/s ", done,
                 "################################", kWidth - done,
                 "................................", event.step, event.total,
                 event.steps_per_second);
    const engine::TileProgress& tiles = event.tiles;
    if (tiles.total > 0) std::fprintf(stderr, "tile %d/%d ", tiles.done, tiles.total);
  }
  void on_preview(const engine::ImagePreview&) noexcept override {}
  void on_image(engine::ImageReady&& event) noexcept override;
  void on_finished(const engine::ImageFinished& event) noexcept override {
    end_bar();
    const std::lock_guard lock(mutex_);
    finished_ = event;
    ended_.notify_all();
  }
  void on_failed(const engine::ImageFailed& event) noexcept override {
    end_bar();
    const std::lock_guard lock(mutex_);
    failed_ = event;
    ended_.notify_all();
  }

  // Blocks until the end. Throws the request's Error, or that of a file that could not be written.
  engine::ImageFinished wait();

 private:
  void end_bar() const {
    if (bar_) std::fprintf(stderr, "\n");
  }

  const std::string out_;
  const int32_t count_;
  const bool bar_;
  const bool quiet_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<engine::ImageFinished> finished_;
  std::optional<engine::ImageFailed> failed_;
  std::optional<engine::ImageFailed> unwritten_;
};

// "a.png", or for several pictures "a-0.png", "a-1.png", ...
std::string file_of(const std::string& out, int32_t index, int32_t count) {
  if (count == 1) return out;
  const fs::path path(out);
  return (path.parent_path() / cat(path.stem().string(), "-", index, path.extension().string()))
      .string();
}

void PictureSink::on_image(engine::ImageReady&& event) noexcept {
  try {
    const std::string path = file_of(out_, event.index, count_);
    io::OutputFile file(path);
    file.write(std::as_bytes(std::span(event.file)));
    file.finish();
    end_bar();
    std::printf("%s\n", path.c_str());
  } catch (const Error& error) {
    unwritten_ = engine::ImageFailed{error.code(), error.what()};
  }
}

engine::ImageFinished PictureSink::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return finished_ || failed_; });
  if (failed_) fail(failed_->code, "imagine", failed_->message);
  if (unwritten_) fail(unwritten_->code, "imagine", unwritten_->message);
  return *finished_;
}

std::string read_picture(const std::string& path) {
  if (path.empty()) return {};
  std::optional<std::string> bytes = io::read_text(path, kMaxPicture);
  if (!bytes) fail(Code::not_found, "imagine", path, ": no such file");
  check(!bytes->empty(), "imagine", path, ": the file is empty");  // would count as none
  return std::move(*bytes);
}

// "name" or "name:0.8"; a name may have a colon if no number follows it.
engine::LoraUse lora_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  float strength = 1;
  if (colon == std::string::npos || !CLI::detail::lexical_cast(text.substr(colon + 1), strength)) {
    return {text, 1};
  }
  return {text.substr(0, colon), strength};
}

// The engine names the networks, in the order of their paths.
std::vector<engine::ControlUse> controls_of(const ImagineOptions& options) {
  check(options.control_nets.size() == options.control_images.size(), "imagine",
        options.control_nets.size(), " --control-net need as many --control-image, not ",
        options.control_images.size());
  std::vector<engine::ControlUse> out;
  for (size_t i = 0; i < options.control_nets.size(); ++i) {
    out.push_back(options.control);
    const engine::NetworkPath& net = options.control_nets[i];
    out.back().name = net.name.empty() ? engine::control_name(net.path) : net.name;
    out.back().image = read_picture(options.control_images[i]);
  }
  return out;
}

// Chosen by the file name's ending.
io::ImageFormat format_of(const std::string& path) {
  std::string ending = fs::path(path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (ending == ".jpg" || ending == ".jpeg") return io::ImageFormat::jpeg;
  if (ending == ".webp") return io::ImageFormat::webp;
  check(ending.empty() || ending == ".png", "imagine", "--out ", path,
        " does not end with .png, .jpg, .jpeg or .webp");
  return io::ImageFormat::png;
}

// Whether a flag was on the command line.
using Given = std::function<bool(const char* flag)>;

// The text may come from a stranger, so control characters become question marks.
void print_unused(const std::string& path, std::string field) {
  constexpr size_t kMost = 200;
  if (field.size() > kMost) field = field.substr(0, kMost) + "...";
  std::ranges::replace_if(field, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  std::fprintf(stderr, "%s: not used: %s\n", path.c_str(), printable_line(field).c_str());
}

// Takes the settings of a picture's file, except those given on the command line.
engine::ImageRequest with_settings_of(const std::string& path, engine::ImageRequest request,
                                      const Given& given) {
  using Request = engine::ImageRequest;
  const std::optional<std::string> text = engine::read_infotext(read_picture(path));
  if (!text) fail(Code::invalid_argument, "imagine", path, ": it has no settings");
  std::vector<std::string> unused;
  const Request from = engine::parse_parameters(*text, &unused);
  for (const std::string& field : unused) print_unused(path, field);
  const auto take = [&](const char* flag, auto member) {
    if (!given(flag)) request.*member = from.*member;
  };
  take("prompt", &Request::prompt);
  take("--negative", &Request::negative_prompt);
  take("--prompt-rule", &Request::prompt_rule);
  take("--clip-skip", &Request::clip_skip);
  take("--width", &Request::width);
  take("--height", &Request::height);
  take("--steps", &Request::steps);
  take("--guidance", &Request::guidance_scale);
  take("--guidance-rescale", &Request::guidance_rescale);
  take("--sampler", &Request::sampler);
  take("--schedule", &Request::schedule);
  take("--seed", &Request::seed);
  take("--noise", &Request::noise_source);
  if (!given("--variation") && !given("--variation-seed")) request.variation = from.variation;
  take("--tiling", &Request::tiling);
  take("--seed-delta", &Request::seed_delta);
  take("--seed-width", &Request::seed_width);
  take("--seed-height", &Request::seed_height);
  if (!given("--s-churn") && !given("--s-tmin") && !given("--s-tmax") && !given("--s-noise")) {
    request.added_noise = from.added_noise;
  }
  take("--strength", &Request::strength);
  take("--hires", &Request::hires);
  take("--mask-blur", &Request::mask_blur);
  take("--mask-only", &Request::mask_only);
  take("--mask-padding", &Request::mask_padding);
  take("--mask-fill", &Request::mask_fill);
  take("--eta", &Request::eta);
  take("--mask-invert", &Request::mask_invert);
  request.strength_rule = from.strength_rule;
  return request;
}

engine::ImageRequest request_of(const ImagineOptions& options, const Given& given) {
  engine::ImageRequest request = options.request;
  request.job_id = "terminal";
  if (given("--hires")) request.hires = options.hires;
  if (!options.from.empty()) request = with_settings_of(options.from, std::move(request), given);
  for (const std::string& text : options.lora) request.loras.push_back(lora_of(text));
  request.controls = controls_of(options);
  if (!options.upscale_model.empty()) {
    const std::string name = engine::control_name(options.upscale_model);
    const bool of_hires = request.hires && request.hires->upscaler == name;
    if (!of_hires) request.upscaler = name;
  }
  request.init_image = read_picture(options.init);
  request.mask_image = read_picture(options.mask);
  request.encoding.format = format_of(options.out);
  engine::validate(request);
  return request;
}

// Checks before the work, which may take minutes.
void check_writable(const std::string& out, int32_t count) {
  const std::string first = file_of(out, 0, count);
  for (const std::string& path : {out, first}) {
    check(!fs::is_directory(path), "imagine", "--out ", path, " is a folder");
  }
  const io::OutputFile probe(first);
}

// Puts paths into the place of names of the hub.
void use_local_paths(ImagineOptions& options) {
  if (hub::is_hub_name(options.model)) options.model_id = options.model;
  for (std::string* path :
       {&options.model, &options.vae, &options.clip_l, &options.clip_g, &options.t5xxl,
        &options.llm, &options.upscale_model, &options.embeddings}) {
    use_local_path(*path, options.device);
  }
  for (std::string path : options.control_net_texts) {
    std::string name = use_local_path(path, options.device);
    options.control_nets.push_back({std::move(path), std::move(name)});
  }
}

int run(ImagineOptions options, const Given& given) {
  use_local_paths(options);
  engine::ImageRequest request = request_of(options, given);
  check_writable(options.out, request.count);
  cpu::set_thread_count(options.threads);
  const models::ImageArithmetic arithmetic = models::image_arithmetic(options.dtype);
  engine::ImageSourceOptions source{.device = nullptr,
                                    .model_id = options.model_id,
                                    .activations = arithmetic.activations,
                                    .int8 = arithmetic.int8,
                                    .offload = models::offloaded_parts(options.offload),
                                    .control_nets = options.control_nets,
                                    .vae = options.vae,
                                    .clip_l = options.clip_l,
                                    .clip_g = options.clip_g,
                                    .t5xxl = options.t5xxl,
                                    .llm = options.llm,
                                    .lora_folder = options.loras,
                                    .embeddings = options.embeddings,
                                    .prediction_type = std::nullopt,
                                    .progress = {}};
  if (options.prediction != "auto") source.prediction_type = options.prediction;
  if (!options.upscale_model.empty()) source.upscale_models = {options.upscale_model};
  // Arithmetic in int8 is the CPU's alone.
  const bool on_cpu = options.device == "auto" && arithmetic.int8;
  source.device = &device_of(on_cpu ? "cpu" : options.device,
                             [&] { return engine::image_model_memory(options.model, source); });
  const auto engine = engine::make_image_engine(engine::load_image_source(options.model, source),
                                                {.warm_up = false});
  auto sink = std::make_shared<PictureSink>(options.out, request.count, options.quiet);
  engine->submit(std::move(request), sink);
  const engine::ImageFinished finished = sink->wait();
  if (!options.quiet) {
    std::fprintf(stderr, "[text %.2f s, %d steps %.2f s, decoding %.2f s]\n",
                 finished.text_ms / 1000, finished.steps, finished.sample_ms / 1000,
                 finished.decode_ms / 1000);
  }
  return 0;
}

// What the field does, and its range.
std::string help_of(const engine::ImageField& field) {
  std::string out(field.words);
  if (field.multiple > 1) out += cat("; a multiple of ", field.multiple);
  if (field.high > 0 && field.high < INT32_MAX)
    out += cat(" (", field.low, " to ", field.high, ")");
  return out;
}

// Adds the option of a row of the table; validate() checks the limits after all options were read.
template <typename T>
void add_field(CLI::App& app, const engine::ImageField& field, T& value) {
  const std::string option(field.option);
  if constexpr (std::is_same_v<T, bool>) {
    app.add_flag(option, value, help_of(field));
  } else if constexpr (std::is_same_v<T, std::optional<uint64_t>>) {
    add_seed_option(app, option, value, help_of(field));
  } else if constexpr (std::is_enum_v<T>) {
    const auto read = [&field, &value](const std::string& name) {
      value = static_cast<T>(std::ranges::find(field.choices, name) - field.choices.begin());
    };
    const std::vector<std::string> names(field.choices.begin(), field.choices.end());
    app.add_option_function<std::string>(option, read, help_of(field))
        ->check(CLI::IsMember(names))
        ->default_str(names[static_cast<size_t>(value)]);
  } else if constexpr (std::is_same_v<T, std::string>) {
    app.add_option(option, value, std::string(field.words));
  } else {
    CLI::Option* added = app.add_option(option, value, help_of(field));
    if (std::is_arithmetic_v<T> && !field.zero_is_absent) added->capture_default_str();
  }
}

template <typename Object>
void add_fields(CLI::App& app, Object& object) {
  engine::for_each_image_field(object, [&](const engine::ImageField& field, auto& value) {
    if (!field.option.empty()) add_field(app, field, value);
  });
}

void add_pictures(CLI::App& app, ImagineOptions& options) {
  app.add_option("--init", options.init, "Picture file to start from");
  app.add_option("--mask", options.mask, "PNG whose white or transparent part is repainted");
  app.add_option("--control-net", options.control_net_texts,
                 "ControlNet, folder or file; repeatable");
  app.add_option("--control-image", options.control_images,
                 "Picture file that it reads, such as edges or a pose; one for each network");
}

}  // namespace

Command add_imagine(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("imagine", "draw a picture from a prompt");
  auto options = std::make_shared<ImagineOptions>();
  CLI::Option* prompt = app->add_option("prompt", options->request.prompt, "what to draw");
  app->add_option("--from", options->from,
                  "picture file with settings; flags of the command line override them");
  app->final_callback([app, prompt] {
    if (prompt->empty() && app->count("--from") == 0) throw CLI::RequiredError("prompt or --from");
  });
  app->add_option("-m,--model", options->model,
                  "diffusers folder, one file, hf:org/repo, or a short name such as xl")
      ->required();
  app->add_option("-o,--out", options->out,
                  "PNG file, or .jpg or .webp; several get -0, -1, ... before the ending")
      ->capture_default_str();
  app->add_option("--device", options->device, kDeviceHelp)->capture_default_str();
  app->add_option("--dtype", options->dtype, "what layers compute in; int8 on CPUs")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "int8"}))
      ->capture_default_str();
  app->add_option("--prediction", options->prediction,
                  "what the denoiser predicts; auto: as the files say, or as is usual")
      ->check(CLI::IsMember({"auto", "epsilon", "v_prediction"}))
      ->capture_default_str();
  app->add_option("--offload", options->offload,
                  "parts that leave the device between their uses, for less memory: text, "
                  "denoiser, vae (separated by commas), or all")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("-t,--threads", options->threads, "0 = one for each core")
      ->check(CLI::Range(0, 1024));
  workers::add_graphs_flag(*app);
  app->add_option("--vae", options->vae, "another VAE, folder or file");
  app->add_option("--upscale-model", options->upscale_model,
                  "ESRGAN or Real-ESRGAN file that enlarges the finished picture, or, if "
                  "--hires-upscaler names it, the first pass's picture");
  app->add_option("--clip-l,--clip_l", options->clip_l,
                  "CLIP-L of Stable Diffusion 1, XL, 3 or FLUX, folder or file");
  app->add_option("--clip-g,--clip_g", options->clip_g, "CLIP-G of Stable Diffusion XL or 3");
  app->add_option("--t5xxl", options->t5xxl, "T5 of Stable Diffusion 3 or FLUX");
  app->add_option("--llm", options->llm,
                  "language model that encodes Z-Image's text, folder or file");
  app->add_option("--lora", options->lora, "name or name:strength; may be given several times");
  app->add_option("--loras", options->loras, "folder of LoRAs; default: <model>/loras");
  app->add_option("--embeddings", options->embeddings,
                  "folder of textual inversions, or one file; default: <model>/embeddings");
  app->add_flag("-q,--quiet", options->quiet, "only the file's name");
  add_fields(*app, options->request);
  add_fields(*app, options->control);
  add_fields(*app, options->hires);
  for (const char* option : {"--hires-upscaler", "--hires-steps", "--hires-strength"}) {
    app->get_option(option)->needs(app->get_option("--hires"));
  }
  app->get_option("--hires")->default_str("");  // without it there is no second pass
  add_pictures(*app, *options);
  return {app, [app, options] {
            return run(*options, [&](const char* flag) { return app->count(flag) > 0; });
          }};
}

}  // namespace rbee::tools
