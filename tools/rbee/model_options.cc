#include "tools/rbee/model_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"

namespace rbee::tools {

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option(
         "-m,--model", options.model,
         "a .gguf file, a .safetensors file beside its config.json, or a Hugging Face folder")
      ->required();
  app.add_option("--device", options.device, "cpu, cuda:N or rocm:N")->capture_default_str();
  app.add_option("--dtype", options.dtype, "what layers compute in")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16"}))
      ->capture_default_str();
  app.add_option("-c,--context", options.context, "tokens; 0 = the model's own, at most 4096")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
  app.add_option("-t,--threads", options.threads, "0 = one for each core")
      ->check(CLI::Range(0, 1024));
}

void add_sampling_options(CLI::App& app, SamplingFlags& flags) {
  engine::SamplingParams& p = flags.params;
  app.add_option("--temperature,--temp", p.temperature, "0 = always the likeliest token")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  app.add_option("--top-k", p.top_k, "likeliest tokens kept; 0 = off")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--top-p", p.top_p, "probability mass kept; 1 = off")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--min-p", p.min_p, "least probability relative to the likeliest; 0 = off")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--repetition-penalty", p.repetition_penalty, "1 = off")
      ->check(CLI::Range(0.01, 2.0))
      ->capture_default_str();
  app.add_option("--frequency-penalty", p.frequency_penalty, "0 = off")
      ->check(CLI::Range(-2.0, 2.0))
      ->capture_default_str();
  app.add_option("--presence-penalty", p.presence_penalty, "0 = off")
      ->check(CLI::Range(-2.0, 2.0))
      ->capture_default_str();
  app.add_option("--repeat-last-n", p.repeat_last_n, "tokens the penalties look back; 0 = all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("-s,--seed", flags.seed, "below 0 = a fresh one, which is shown")
      ->capture_default_str();
}

engine::SamplingParams sampling_of(const SamplingFlags& flags) {
  engine::SamplingParams params = flags.params;
  if (flags.seed >= 0) params.seed = static_cast<uint64_t>(flags.seed);
  return params;
}

engine::TextModel load(const ModelOptions& options) {
  const auto id = parse_device_id(options.device);
  check(id.has_value(), "--device", "'", options.device, "' is none of cpu, cuda:N, rocm:N");
  cpu::set_thread_count(options.threads);
  engine::TextModelOptions load_options{.device = &get_device(*id), .context = options.context};
  if (options.dtype != "auto") load_options.activations = parse_dtype(options.dtype);
  const bool show = isatty(STDERR_FILENO) != 0;
  if (show) {
    load_options.progress = [](int64_t done, int64_t total) {
      std::fprintf(stderr, "\rloading %3d %%", static_cast<int>(done * 100 / total));
    };
  }
  engine::TextModel model = engine::load_text_model(options.model, load_options);
  if (show) std::fprintf(stderr, "\r             \r");
  return model;
}

}  // namespace rbee::tools
