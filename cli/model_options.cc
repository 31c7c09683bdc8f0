#include "cli/model_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <variant>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/core/cat.h"
#include "rbee/core/printable.h"
#include "rbee/engine/api/fields.h"
#include "rbee/engine/common/device_choice.h"
#include "rbee/engine/text/model_place.h"
#include "workers/common/graphs_flag.h"
#include "workers/common/group_flags.h"
#include "workers/common/model_paths.h"
#include "workers/llm/group.h"
#include "workers/llm/rank_devices.h"

namespace rbee::tools {

CLI::Option* add_seed_option(CLI::App& app, const std::string& flags, std::optional<uint64_t>& seed,
                             const std::string& help) {
  // Own parser: CLI11 clamps a larger int64 to 2^63 - 1, and reads -1 as the uint64 2^64 - 1.
  const auto read = [&seed, flags](const std::string& text) {
    const bool negative = text.starts_with('-');
    const char *begin = text.data() + (negative ? 1 : 0), *end = text.data() + text.size();
    uint64_t value = 0;
    const auto [at, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || at != end) throw CLI::ConversionError(text, flags);
    seed = negative ? std::nullopt : std::optional(value);
  };
  return app.add_option_function<std::string>(flags, read, help)->type_name("INT");
}

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option(
         "-m,--model", options.model,
         "a .gguf file, a .safetensors file beside its config.json, a Hugging Face folder, or "
         "hf:org/repo[:QUANTIZATION]")
      ->required();
  app.add_option("--mmproj", options.mmproj, "a GGUF file by which a GGUF model reads pictures")
      ->check(workers::no_file_or_name);
  app.add_option("--device", options.device, kDeviceHelp)->capture_default_str();
  app.add_option("--dtype", options.dtype, "what layers compute in")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16"}))
      ->capture_default_str();
  app.add_option("-c,--context", options.context, "tokens; 0 = the model's own, at most 4096")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
  app.add_option("-t,--threads", options.threads, "0 = one for each core")
      ->check(CLI::Range(0, 1024));
  workers::add_gpu_layer_flags(app, options.gpu_layers);
  workers::add_group_flags(app, options.group);
  workers::add_graphs_flag(app);
}

namespace {

// "--top-k" for "top_k".
std::string option_of(std::string_view field) {
  std::string out = cat("--", field);
  std::ranges::replace(out, '_', '-');
  return out;
}

// Adds the table's numbers; validate() checks the limits after all options were read.
void add_number_options(CLI::App& app, engine::SamplingParams& params) {
  for (const engine::SamplingField& field : engine::sampling_fields()) {
    std::string option = option_of(field.name);
    if (field.name == "temperature") option += ",--temp";
    const auto add = [&]<typename T>(T engine::SamplingParams::* member) {
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int32_t>) {
        app.add_option(option, params.*member, std::string(field.words))->capture_default_str();
      }
    };
    std::visit(add, field.member);
  }
}

void add_rule_options(CLI::App& app, SamplingFlags& flags) {
  app.add_option("--dry-sequence-breaker", flags.params.dry_sequence_breakers,
                 "a text that a repetition does not cross; may be given several times")
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", flags.params.ignore_eos, "the model cannot choose an end token");
  app.add_option("--bad-word", flags.params.bad_words,
                 "a text that the answer never contains; may be given several times")
      ->allow_extra_args(false);
  app.add_option("--logit-bias", flags.biases, "ID=BIAS, -100 to 100; may be given several times")
      ->allow_extra_args(false);
  app.add_option("--samplers", flags.samplers,
                 "their order, separated by semicolons; those not named are off: " +
                     std::string(engine::kSamplerNames));
}

engine::LogitBias parse_bias(const std::string& text) {
  engine::LogitBias out;
  const char* end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, out.id);
  check(id.ec == std::errc() && id.ptr != end && *id.ptr == '=' && out.id >= 0, "--logit-bias", "'",
        text, "' is not ID=BIAS");
  const auto bias = std::from_chars(id.ptr + 1, end, out.bias);
  check(bias.ec == std::errc() && bias.ptr == end, "--logit-bias", "'", text, "' is not ID=BIAS");
  return out;
}

std::vector<engine::SamplerKind> parse_samplers(std::string_view names) {
  std::vector<engine::SamplerKind> out;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(';'));
    const auto kind = engine::parse_sampler(name);
    check(kind.has_value(), "--samplers", "'", name, "' is none of ", engine::kSamplerNames);
    out.push_back(*kind);
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
  return out;
}

}  // namespace

void add_sampling_options(CLI::App& app, SamplingFlags& flags) {
  add_number_options(app, flags.params);
  add_rule_options(app, flags);
  add_seed_option(app, "-s,--seed", flags.params.seed,
                  "seed; if it is absent or negative, rbee draws one and prints it");
}

engine::SamplingParams sampling_of(const SamplingFlags& flags) {
  engine::SamplingParams params = flags.params;
  for (const std::string& bias : flags.biases) params.logit_bias.push_back(parse_bias(bias));
  if (!flags.samplers.empty()) params.samplers = parse_samplers(flags.samplers);
  validate(params);  // the engine's limits
  return params;
}

namespace {

DeviceId named_device(const std::string& device) {
  const auto id = parse_device_id(device);
  check(id.has_value(), "--device", "'", device, "' is none of auto, cpu, cuda:N, rocm:N, metal:N");
  return *id;
}

}  // namespace

Device& device_of(const std::string& device, const std::function<int64_t()>& needed) {
  if (device == "auto") {
    const engine::DeviceChoice choice = engine::choose_device(backends(), needed);
    if (!choice.reason.empty()) std::fprintf(stderr, "%s\n", printable_text(choice.reason).c_str());
    return get_device(choice.id);
  }
  return get_device(named_device(device));
}

engine::TextModelOptions text_model_options(const ModelOptions& options, bool one_device) {
  const group::RankPlace group_place = workers::group_place(options.group);
  if (one_device && group_place.ranks > 1) {
    fail(Code::unsupported, "--tensor-parallel-size",
         "models for embeddings are not implemented for several ranks");
  }
  cpu::set_thread_count(workers::threads_of_rank(group_place, options.threads));
  engine::TextModelOptions load_options{
      .mmproj = options.mmproj,
      .context = options.context,
      .op_offload_min_batch = options.gpu_layers.op_offload_min_batch,
      .model_id = options.model_id};
  engine::PlaceWanted wanted{.gpu_layers = options.gpu_layers.count(),
                             .cpu_moe_layers = options.gpu_layers.experts(),
                             .one_device = one_device};
  engine::ModelPlace place;
  if (group_place.ranks > 1) {
    place.device = workers::rank_devices(backends(), options.device, group_place.local_ranks,
                                         group_place.first_local)
                       .front();
    place.gpu_layers = wanted.gpu_layers.value_or(models::kAllLayers);
  } else {
    if (options.device != "auto") wanted.device = named_device(options.device);
    place = engine::place_text_model(backends(), wanted, options.model, load_options);
  }
  if (!place.reason.empty()) std::fprintf(stderr, "%s\n", printable_text(place.reason).c_str());
  load_options.device = &get_device(place.device);
  load_options.gpu_layers = place.gpu_layers;
  load_options.cpu_moe_layers = place.cpu_moe_layers;
  if (options.pan_and_scan != "auto") load_options.pan_and_scan = options.pan_and_scan == "on";
  if (options.dtype != "auto") load_options.activations = parse_dtype(options.dtype);
  if (isatty(STDERR_FILENO) != 0) {
    load_options.progress = [](int64_t done, int64_t total) {
      if (done < total) {
        std::fprintf(stderr, "\rloading %3d %%", static_cast<int>(done * 100 / total));
      } else {
        std::fprintf(stderr, "\r             \r");
      }
    };
  }
  return load_options;
}

namespace {

workers::GroupTerms group_terms(const ModelOptions& options) {
  return {.program = RBEE_VERSION,
          .flags = cat("context ", options.context, ", dtype ", options.dtype)};
}

// One line, also where the library's own errors come first.
void end_without_group(const std::string& why) {
  std::fprintf(stderr, "rbee: the group has ended: %s\n", printable_text(why).c_str());
  std::fflush(nullptr);
  _exit(workers::kGroupLost);
}

}  // namespace

void follow_if_rank(const ModelOptions& options, const std::string& cache_type) {
  const group::RankPlace place = workers::group_place(options.group);
  if (place.rank == 0) return;
  cpu::set_thread_count(workers::threads_of_rank(place, options.threads));
  const auto devices =
      workers::rank_devices(backends(), options.device, place.local_ranks, place.first_local);
  engine::TextModelOptions load_options{
      .device = &get_device(devices[static_cast<size_t>(place.local_rank)]),
      .context = options.context};
  if (options.dtype != "auto") load_options.activations = parse_dtype(options.dtype);
  const auto kv_dtype =
      cache_type == "auto" ? std::nullopt : std::optional(parse_dtype(cache_type));
  std::exit(workers::run_rank(options.group, group_terms(options), load_options, kv_dtype));
}

engine::TextModel load(const ModelOptions& options) {
  engine::TextModelOptions load_options = text_model_options(options);
  const group::RankPlace place = workers::group_place(options.group);
  if (place.ranks > 1) {
    workers::GroupWishes wishes{
        .pictures = !options.mmproj.empty(),
        .cpu_moe = options.gpu_layers.cpu_moe || options.gpu_layers.experts().value_or(0) > 0};
    if (options.group.expert_parallel) wishes.expert_parallel = load_options.device->id().kind;
    workers::check_group(place, wishes);
    workers::start_group(options.group, options.model, group_terms(options), end_without_group,
                         load_options);
  }
  return engine::load_text_model(options.model, load_options);
}

}  // namespace rbee::tools
