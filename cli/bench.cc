// rbee bench: the speed of prompts and generation, beside the machine's limits.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/limits.h"
#include "cli/model_options.h"
#include "cli/model_paths.h"
#include "cli/token_work.h"
#include "rbee/core/printable.h"
#include "rbee/engine/common/device_choice.h"
#include "rbee/engine/text/group/text_group.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/models/lora_adapter.h"

namespace rbee::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  ModelOptions model;
  std::vector<int> prompts = {512};
  std::vector<int> generations = {128};
  std::vector<int> batches = {1};  // sequences that generate at once
  int depth = 0;                   // tokens in each sequence's cache before
  int repetitions = 5;
  std::string cache_type = "auto";  // of keys and values
  int chunk = 0;                    // prompt tokens in one step; 0 = 512 on a CPU, 2048 on a GPU
  std::string lora;                 // of every sequence; empty: none
  bool json = false;
};

struct Result {
  std::string test;
  double median;  // tokens per second
  double lowest;
  double highest;
  double limit;  // tokens per second; 0 = not known
  const char* limit_name;
  double work = 0;  // per token: bytes to read (generation), operations (prompts)
  int prompt = 0;   // tokens of the prompt whose first token is timed; 0: another test
};

// Milliseconds until the first token's candidates are on the host.
double first_token_ms(const Result& result) {
  return result.prompt * 1000 / result.median;
}

constexpr int32_t kLoraSlot = 1;

double tokens_per_second(int tokens, Clock::time_point start) {
  return tokens / std::chrono::duration<double>(Clock::now() - start).count();
}

// Token ids spread over the vocabulary, the same in every run.
std::vector<int32_t> some_tokens(int count, int64_t vocab) {
  std::vector<int32_t> ids;
  uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(vocab)));
  }
  return ids;
}

// The logits that the engine requests at temperature 0.
engine::TopLogitsWanted likeliest(int64_t vocab) {
  return {.count = engine::lead_count(1, vocab), .vocab = vocab, .scales = {}};
}

// The setting of a test.
struct Setting {
  engine::Stepper& stepper;
  int64_t vocab;
  std::vector<engine::LoraSlot> lora;  // of every sequence
};

double time_prompt(const Setting& setting, int tokens, int64_t chunk) {
  auto& [stepper, vocab, lora] = setting;
  engine::Sequence sequence(stepper.pool());
  sequence.lora = lora;
  sequence.tokens = some_tokens(tokens, vocab);
  const auto start = Clock::now();
  for (int64_t left = tokens; left > 0;) {
    const int64_t count = std::min(left, chunk);
    const engine::Stepper::Work work[] = {{&sequence, count}};
    const int32_t rows[] = {static_cast<int32_t>(count - 1)};
    left -= count;
    if (left > 0) {
      stepper.run(work, {});
    } else {
      stepper.step(work, rows, likeliest(vocab));
    }
  }
  return tokens_per_second(tokens, start);
}

// A timed generation.
struct Generation {
  int tokens;     // of each sequence
  int sequences;  // at once
  int depth;      // tokens in each sequence's cache before; their values do not matter
};

// Always takes the most likely token, as the engine does at temperature 0.
double time_generation(const Setting& setting, const Generation& of) {
  auto& [stepper, vocab, lora] = setting;
  std::deque<engine::Sequence> sequences;
  std::vector<engine::Stepper::Work> work;
  std::vector<int32_t> rows;
  for (int i = 0; i < of.sequences; ++i) {
    engine::Sequence& sequence = sequences.emplace_back(stepper.pool());
    sequence.tokens = some_tokens(of.depth + 1, vocab);
    sequence.lora = lora;
    sequence.cached = of.depth;
    work.push_back({&sequence, 1});
    rows.push_back(i);
  }
  const auto step = [&](engine::AsyncStep ahead) {
    stepper.begin(work, rows, likeliest(vocab), ahead);
    const engine::TopLogitRows found = stepper.top_logits();
    for (size_t i = 0; i < sequences.size(); ++i) sequences[i].tokens.push_back(found.ids[i]);
  };
  step(engine::AsyncStep::nothing);  // pays for first-touched memory
  const auto start = Clock::now();
  for (int i = 1; i < of.tokens; ++i) step(engine::AsyncStep::next_step);
  step(engine::AsyncStep::nothing);
  return tokens_per_second(of.tokens * of.sequences, start);
}

template <typename Run>
Result repeat(std::string test, int repetitions, Run run) {
  run();
  std::vector<double> rates;
  rates.reserve(static_cast<size_t>(repetitions));
  for (int i = 0; i < repetitions; ++i) rates.push_back(run());
  std::ranges::sort(rates);
  return {std::move(test), rates[rates.size() / 2], rates.front(), rates.back(), 0, "", 0, 0};
}

void print_table(const std::vector<Result>& results, const engine::TextModel& model,
                 const HardwareLimits& limits) {
  std::printf("%s, %s, %.1f MB of weights, %.1f M parameters, %s (%s)\n",
              printable_line(model.info.id).c_str(), model.info.quantization.c_str(),
              static_cast<double>(model.info.weight_bytes) / 1e6,
              static_cast<double>(model.info.parameters) / 1e6, model.info.device.c_str(),
              model.device->description().c_str());
  if (const models::HostLayers layers = model.model->host_layers(); layers.any()) {
    std::printf("%lld of %lld layers on the CPU\n", static_cast<long long>(layers.count),
                static_cast<long long>(model.model->config().layers));
  }
  if (const int64_t layers = model.model->cpu_moe_layers(); layers > 0) {
    std::printf("the experts of %lld layers on the CPU\n", static_cast<long long>(layers));
  }
  std::printf("measured limits: memory %.1f GB/s, f32 %.0f GFLOP/s, bf16 %.0f, int8 %.0f GOP/s\n\n",
              limits.bytes_per_second / 1e9, limits.f32_flops / 1e9, limits.bf16_flops / 1e9,
              limits.int8_ops / 1e9);
  std::printf("%-14s %12s %21s %12s  %s\n", "test", "tokens/s", "lowest .. highest", "limit",
              "share of the limit");
  for (const Result& r : results) {
    std::printf("%-14s %12.1f %10.1f ..%9.1f %12.1f  %.0f %% of %s\n", r.test.c_str(), r.median,
                r.lowest, r.highest, r.limit, r.median * 100 / r.limit, r.limit_name);
  }
  for (const Result& r : results) {
    if (r.prompt == 0) continue;
    std::printf("time to the first token, prompt of %d: %.1f ms\n", r.prompt, first_token_ms(r));
  }
}

void print_json(const std::vector<Result>& results, const engine::TextModel& model) {
  for (const Result& r : results) {
    std::printf(
        "{\"model\":\"%s\",\"type\":\"%s\",\"test\":\"%s\",\"tokens_per_second\":%.2f,"
        "\"lowest\":%.2f,\"highest\":%.2f,\"limit\":%.2f,\"limit_name\":\"%s\"",
        model.info.id.c_str(), model.info.quantization.c_str(), r.test.c_str(), r.median, r.lowest,
        r.highest, r.limit, r.limit_name);
    std::printf(",\"%s\":%.6g", r.prompt > 0 ? "operations_per_token" : "bytes_per_token", r.work);
    if (r.prompt > 0) std::printf(",\"first_token_ms\":%.2f", first_token_ms(r));
    std::printf("}\n");
  }
}

// The limit is that of the fastest unit for this weight type's products.
void set_prompt_limit(Result& result, const engine::TextModel& model, const TokenWork& token,
                      const HardwareLimits& limits) {
  result.work = token.operations().all();
  const Unit unit = limits.unit_for(model.info.quantization);
  result.limit = unit.operations_per_second / result.work;
  result.limit_name = unit.name;
}

// The limit is reading the weights and, on average, half of the new keys and values, or the
// products if those take longer with many sequences.
void set_generation_limit(Result& result, const Generation& of, const TokenWork& token,
                          double cached_token_bytes, const engine::TextModel& model,
                          const HardwareLimits& limits) {
  const models::ModelConfig& config = model.model->config();
  const double sequences = of.sequences;
  const double cached = sequences * (of.depth + of.tokens / 2.0) * cached_token_bytes;
  result.work = (token.bytes(of.sequences).all() + cached) / sequences;
  result.limit = limits.weights_bytes_per_second / result.work;
  result.limit_name = of.sequences == 1 && of.depth == 0 ? "reading the weights" : "reading";
  const double logits = 2.0 * static_cast<double>(config.vocab_size * config.dim);
  const Unit unit = limits.unit_for(model.info.quantization);
  const double products = unit.operations_per_second / (token.operations().all() + logits);
  if (products >= result.limit) return;
  result.limit = products;
  result.limit_name = unit.name;
}

// Where the CPU has some of the weights, each device takes its share of a token's work in turn.
void set_shared_limit(Result& result, double host_limit, const TokenWork::Parts& work) {
  const double host = work.host / work.all();
  result.limit = 1 / (host / host_limit + (1 - host) / result.limit);
  result.limit_name = "both devices' limits";
}

// tg128, tg128x32 (32 sequences), tg128@512 (each with 512 tokens before).
std::string name_of(const Generation& of) {
  std::string name = cat("tg", of.tokens);
  if (of.sequences > 1) name += cat("x", of.sequences);
  if (of.depth > 0) name += cat("@", of.depth);
  return name;
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options),
        model_(load(options.model)),
        vocab_(model_.tokenizer->vocab_size()),
        token_(options.model.model, *model_.model) {
    const int64_t longest =
        std::max(*std::ranges::max_element(options.prompts),
                 options.depth + *std::ranges::max_element(options.generations) + 1);
    check(longest <= model_.info.context_length, "--context", model_.info.context_length,
          " tokens are too few for ", longest);
    if (options.cache_type != "auto") kv_dtype_ = parse_dtype(options.cache_type);
    if (!options.lora.empty()) {
      const engine::LoraInfo info = engine::parse_lora(options.lora);
      if (model_.group) model_.group->on_lora({.slot = kLoraSlot, .path = info.path});
      models::LoraAdapter(info.path, *model_.model).put(kLoraSlot);
      lora_ = {{.slot = kLoraSlot, .scale = info.scale}};
    }
    stepper_.emplace(*model_.model, *model_.device,
                     engine::StepperOptions{.cache_tokens = cache_tokens(),
                                            .kv_dtype = kv_dtype_,
                                            .kv_offload = options.model.gpu_layers.kv_offload,
                                            .sequences = *std::ranges::max_element(options.batches),
                                            .listener = model_.group.get()});
    const TokenWork::Parts bytes = token_.bytes(1);
    limits_ = measure_limits(*model_.device, options.model.threads, bytes.all());
    if (bytes.host > 0) {
      host_limits_ = measure_limits(engine::host_device(), options.model.threads, bytes.host);
    }
  }

  int run() {
    for (const int tokens : options_.prompts) time_prompt_of(tokens);
    for (const int tokens : options_.generations) {
      for (const int sequences : options_.batches) {
        time_generation_of({.tokens = tokens, .sequences = sequences, .depth = options_.depth});
      }
    }
    if (options_.json) {
      print_json(results_, model_);
    } else {
      print_table(results_, model_, limits_);
    }
    return 0;
  }

 private:
  Setting setting() { return {.stepper = *stepper_, .vocab = vocab_, .lora = lora_}; }

  // Each sequence begins a block of its own.
  int64_t cache_tokens() const {
    const int64_t block = engine::StepperOptions{}.block_size;
    const int64_t each = options_.depth + *std::ranges::max_element(options_.generations) + 1;
    const int64_t sequences = *std::ranges::max_element(options_.batches);
    const int64_t prompt = *std::ranges::max_element(options_.prompts);
    return std::max(prompt, (each + block - 1) / block * block * sequences);
  }

  void time_prompt_of(int tokens) {
    const int64_t chunk = options_.chunk > 0                 ? options_.chunk
                          : model_.device->host_accessible() ? 512
                                                             : 2048;
    results_.push_back(repeat(cat("pp", tokens), options_.repetitions,
                              [&] { return time_prompt(setting(), tokens, chunk); }));
    results_.back().prompt = tokens;
    const auto set = [&](Result& of, const HardwareLimits& limits) {
      set_prompt_limit(of, model_, token_, limits);
    };
    double moved = 0;
    for (int64_t at = 0; at < tokens; at += chunk) {
      moved += static_cast<double>(model_.model->visiting_bytes(std::min(chunk, tokens - at)));
    }
    if (moved == 0) return set_limit(token_.operations(), set);
    set(results_.back(), limits_);
    set_bus_limit(results_.back(), moved / tokens);
  }

  // The device computes one layer while it is sent the next one's experts.
  void set_bus_limit(Result& result, double bytes_per_token) {
    if (bus_ == 0) bus_ = measure_bus(*model_.device);
    const double limit = bus_ / bytes_per_token;
    if (limit >= result.limit) return;
    result.limit = limit;
    result.limit_name = "the bus to the device";
  }

  // Of the last result. set: sets the limit of one device for all of a token's work.
  template <typename Set>
  void set_limit(const TokenWork::Parts& work, const Set& set) {
    Result& result = results_.back();
    Result on_host = result;
    set(result, limits_);
    if (!host_limits_) return;
    set(on_host, *host_limits_);
    set_shared_limit(result, on_host.limit, work);
  }

  void time_generation_of(const Generation& of) {
    results_.push_back(
        repeat(name_of(of), options_.repetitions, [&] { return time_generation(setting(), of); }));
    const auto cached =
        static_cast<double>(engine::cache_token_bytes(*model_.model, kv_dtype_).all());
    set_limit(token_.bytes(of.sequences), [&](Result& result, const HardwareLimits& limits) {
      set_generation_limit(result, of, token_, cached, model_, limits);
    });
  }

  const BenchOptions& options_;
  const engine::TextModel model_;
  const int64_t vocab_;
  const TokenWork token_;
  std::optional<DType> kv_dtype_;
  double bus_ = 0;  // bytes per second; 0: not measured
  std::vector<engine::LoraSlot> lora_;
  std::optional<engine::Stepper> stepper_;
  HardwareLimits limits_;
  std::optional<HardwareLimits> host_limits_;  // where the CPU has some of the weights
  std::vector<Result> results_;
};

}  // namespace

Command add_bench(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "bench", "measure prompt and generation speed beside the machine's limits");
  auto options = std::make_shared<BenchOptions>();
  add_model_options(*app, options->model);
  const Command serve = add_bench_serve(*app), draft = add_bench_speculative(*app);
  app->get_option("--model")->required(false);  // each of those has its own
  app->add_option("-p,--prompt-tokens", options->prompts, "prompt lengths to time")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("-n,--generate-tokens", options->generations, "generation lengths to time")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("-b,--batch", options->batches, "sequences that generate at once, to time")
      ->check(CLI::Range(1, 4096));
  app->add_option("-d,--depth", options->depth, "tokens in each sequence's cache before")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app->add_option("--cache-type", options->cache_type, "what keys and values are kept in")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "f8e4m3", "q8_0"}))
      ->capture_default_str();
  app->add_option("--chunk", options->chunk,
                  "prompt tokens in one step; 0 = 512 on a CPU, 2048 on a GPU")
      ->check(CLI::Range(0, 1 << 20));
  app->add_option("-r,--repetitions", options->repetitions,
                  "timed runs of each; the median is shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--lora", options->lora, "PATH[:SCALE]: a LoRA adapter that all sequences take");
  app->add_flag("--json", options->json, "one JSON object a line");
  return {app, [options, serve, draft] {
            if (serve.app->parsed()) return serve.run();
            if (draft.app->parsed()) return draft.run();
            check(!options->model.model.empty(), "--model", "is required");
            follow_if_rank(options->model, options->cache_type);
            use_local_paths(options->model);
            use_local_path(options->lora, options->model.device);
            return Bench(*options).run();
          }};
}

}  // namespace rbee::tools
