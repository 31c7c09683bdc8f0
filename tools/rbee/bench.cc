// rbee bench: prompt and generation speed, the physical limit beside them.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "rbee/engine/stepper.h"
#include "rbee/io/checkpoint.h"
#include "tools/rbee/commands.h"
#include "tools/rbee/limits.h"
#include "tools/rbee/model_options.h"

namespace rbee::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  ModelOptions model;
  std::vector<int> prompts = {512};
  std::vector<int> generations = {128};
  int repetitions = 5;
  std::string cache_type = "auto";  // of keys and values
  int chunk = 0;                    // prompt tokens in one step; 0 = 512 on a CPU, 2048 on a GPU
  bool json = false;
};

struct Result {
  std::string test;
  double median;  // tokens per second
  double lowest;
  double highest;
  double limit;  // tokens per second; 0 = not known
  const char* limit_name;
  double work = 0;  // for a token: bytes to read (generation), operations (prompts)
  int prompt = 0;   // tokens that were evaluated to choose a first one; 0: the test is another
};

// Until the first token's candidates are on the host, in ms.
double first_token_ms(const Result& result) {
  return result.prompt * 1000 / result.median;
}

double tokens_per_second(int tokens, Clock::time_point start) {
  return tokens / std::chrono::duration<double>(Clock::now() - start).count();
}

// Ids spread over the vocabulary, the same in every run.
std::vector<int32_t> some_tokens(int count, int64_t vocab) {
  std::vector<int32_t> ids;
  uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(vocab)));
  }
  return ids;
}

// What the engine asks for at temperature 0.
engine::LeadersWanted likeliest(int64_t vocab) {
  return {.count = engine::lead_count(1, vocab), .vocab = vocab, .scales = {}};
}

double time_prompt(engine::Stepper& stepper, int tokens, int64_t chunk, int64_t vocab) {
  engine::Sequence sequence(stepper.pool());
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

double time_generation(engine::Stepper& stepper, int tokens, int64_t vocab) {
  engine::Sequence sequence(stepper.pool());
  sequence.tokens = some_tokens(tokens + 1, vocab);
  const int32_t rows[] = {0};
  const engine::Stepper::Work work[] = {{&sequence, 1}};
  stepper.step(work, rows, likeliest(vocab));  // pays for first-touched memory
  const auto start = Clock::now();
  for (int i = 0; i < tokens; ++i) stepper.step(work, rows, likeliest(vocab));
  return tokens_per_second(tokens, start);
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
                 const Limits& limits) {
  std::printf("%s, %s, %.1f MB of weights, %.1f M parameters, %s (%s)\n", model.info.id.c_str(),
              model.info.quantization.c_str(), static_cast<double>(model.info.weight_bytes) / 1e6,
              static_cast<double>(model.info.parameters) / 1e6, model.info.device.c_str(),
              model.device->description().c_str());
  std::printf("measured limits: memory %.1f GB/s, f32 %.0f GFLOP/s, bf16 %.0f, int8 %.0f GOP/s\n\n",
              limits.bytes_per_second / 1e9, limits.f32_flops / 1e9, limits.bf16_flops / 1e9,
              limits.int8_ops / 1e9);
  std::printf("%-10s %12s %21s %12s  %s\n", "test", "tokens/s", "lowest .. highest", "limit",
              "share of the limit");
  for (const Result& r : results) {
    std::printf("%-10s %12.1f %10.1f ..%9.1f %12.1f  %.0f %% of %s\n", r.test.c_str(), r.median,
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

// The unit that a weight type's products could use at best.
void set_prompt_limit(Result& result, const engine::TextModel& model, const Limits& limits) {
  // Looking up the token table and the last row's logits cost next to nothing for a long prompt.
  const models::ModelConfig& config = model.model->config();
  const int64_t tables = (config.tied_embeddings ? 1 : 2) * config.vocab_size * config.dim;
  result.work = 2.0 * static_cast<double>(model.model->parameters() - tables);
  const Unit unit = limits.unit_for(model.info.quantization);
  result.limit = unit.operations_per_second / result.work;
  result.limit_name = unit.name;
}

// Bytes of weights that one generated token needs: all but the rows of the table that it skips.
double bytes_per_token(const std::string& path, const models::ModelConfig& config) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  double bytes = 0;
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    const bool table = tensor.shape == Shape{config.vocab_size, config.dim};
    const bool looked_up = table && (tensor.name.find("embd") != std::string::npos ||
                                     tensor.name.find("embed") != std::string::npos);
    if (!looked_up || config.tied_embeddings) bytes += static_cast<double>(tensor.data.size());
  }
  return bytes;
}

int bench(const BenchOptions& options) {
  const engine::TextModel model = load(options.model);
  const int64_t longest = std::max(*std::ranges::max_element(options.prompts),
                                   *std::ranges::max_element(options.generations) + 1);
  engine::StepperOptions stepping{.cache_tokens = longest};
  if (options.cache_type != "auto") stepping.kv_dtype = parse_dtype(options.cache_type);
  engine::Stepper stepper(*model.model, *model.device, stepping);
  const int64_t vocab = model.tokenizer->vocab_size();
  const double token_bytes = bytes_per_token(options.model.model, model.model->config());
  const Limits limits = measure_limits(*model.device, options.model.threads, token_bytes);
  const int64_t chunk = options.chunk > 0                 ? options.chunk
                        : model.device->host_accessible() ? 512
                                                          : 2048;
  std::vector<Result> results;
  for (int tokens : options.prompts) {
    results.push_back(repeat(cat("pp", tokens), options.repetitions,
                             [&] { return time_prompt(stepper, tokens, chunk, vocab); }));
    results.back().prompt = tokens;
    set_prompt_limit(results.back(), model, limits);
  }
  for (int tokens : options.generations) {
    results.push_back(repeat(cat("tg", tokens), options.repetitions,
                             [&] { return time_generation(stepper, tokens, vocab); }));
    results.back().work = token_bytes;
    results.back().limit = limits.weights_bytes_per_second / token_bytes;
    results.back().limit_name = "reading the weights";
  }
  if (options.json) {
    print_json(results, model);
  } else {
    print_table(results, model, limits);
  }
  return 0;
}

}  // namespace

Command add_bench(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("bench", "prompt and generation speed beside the limits");
  auto options = std::make_shared<BenchOptions>();
  add_model_options(*app, options->model);
  app->add_option("-p,--prompt-tokens", options->prompts, "prompt lengths to time")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("-n,--generate-tokens", options->generations, "generation lengths to time")
      ->check(CLI::Range(1, 1 << 20));
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
  app->add_flag("--json", options->json, "one JSON object a line");
  return {app, [options] { return bench(*options); }};
}

}  // namespace rbee::tools
