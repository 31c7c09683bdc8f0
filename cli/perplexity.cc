// rbee perplexity: exp of the mean negative log-likelihood of a text, in chunks of the context.

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/model_paths.h"
#include "rbee/core/input_file.h"
#include "rbee/engine/text/group/text_group.h"
#include "rbee/engine/text/step/stepper.h"

namespace rbee::tools {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  int64_t chunks = 0;
};

double log_likelihood(std::span<const float> logits, int32_t id) {
  float top = logits[0];
  for (float logit : logits) top = std::max(top, logit);
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit - top));
  return logits[static_cast<size_t>(id)] - top - std::log(sum);
}

// Scores the second half of a chunk, so that every scored token has at least half a chunk before
// it. Evaluates the scored half in pieces: logits of a large vocabulary take much memory.
double score_chunk(engine::Stepper& stepper, std::span<const int32_t> ids, int64_t vocab) {
  constexpr int64_t kPiece = 64;
  engine::Sequence sequence(stepper.pool());
  sequence.tokens.assign(ids.begin(), ids.end());
  const auto length = static_cast<int64_t>(ids.size());
  const int64_t first = length / 2;
  double total = 0;
  while (sequence.cached < length - 1) {
    const int64_t start = sequence.cached;
    const bool scored = start >= first;
    const int64_t count =
        scored ? std::min(kPiece, length - 1 - start) : std::min<int64_t>(512, first - start);
    std::vector<int32_t> rows(static_cast<size_t>(scored ? count : 1));
    std::iota(rows.begin(), rows.end(), 0);
    const engine::Stepper::Work work[] = {{&sequence, count}};
    const std::span<const float> logits = stepper.step(work, rows);
    for (int64_t i = 0; scored && i < count; ++i) {
      total +=
          log_likelihood(logits.subspan(static_cast<size_t>(i * vocab), static_cast<size_t>(vocab)),
                         ids[static_cast<size_t>(start + i + 1)]);
    }
  }
  return total;
}

int perplexity(PerplexityOptions options) {
  if (options.model.context == 0) options.model.context = 512;
  follow_if_rank(options.model);
  use_local_paths(options.model);
  const engine::TextModel model = load(options.model);
  const std::vector<int32_t> ids = model.tokenizer->encode(read_file(options.file));
  const int64_t window = model.info.context_length;
  const int64_t available = static_cast<int64_t>(ids.size()) / window;
  check(available > 0, "--file", ids.size(), " tokens are less than one chunk of ", window);
  const int64_t chunks = options.chunks > 0 ? std::min(options.chunks, available) : available;
  engine::Stepper stepper(*model.model, *model.device,
                          {.cache_tokens = window, .listener = model.group.get()});
  const int64_t scored_per_chunk = window - 1 - window / 2;
  double total = 0;
  double squares = 0;
  for (int64_t i = 0; i < chunks; ++i) {
    const auto chunk =
        std::span(ids).subspan(static_cast<size_t>(i * window), static_cast<size_t>(window));
    const double score =
        score_chunk(stepper, chunk, model.info.vocab_size) / static_cast<double>(scored_per_chunk);
    if (!std::isfinite(score)) {
      fail(Code::internal, "perplexity", "the model gave no finite likelihood in chunk ", i + 1);
    }
    total += score;
    squares += score * score;
    std::printf("chunk %" PRId64 " of %" PRId64 ": perplexity %.4f\n", i + 1, chunks,
                std::exp(-total / static_cast<double>(i + 1)));
    std::fflush(stdout);
  }
  const double mean = total / static_cast<double>(chunks);
  const double spread =
      std::sqrt(std::max(0.0, squares / static_cast<double>(chunks) - mean * mean) /
                static_cast<double>(chunks));
  std::printf("perplexity %.4f +- %.4f over %" PRId64 " tokens\n", std::exp(-mean),
              std::exp(-mean) * spread, chunks * scored_per_chunk);
  return 0;
}

}  // namespace

Command add_perplexity(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("perplexity", "measure the perplexity of a text file");
  auto options = std::make_shared<PerplexityOptions>();
  add_model_options(*app, options->model);
  app->add_option("-f,--file", options->file, "text file")->required()->check(CLI::ExistingFile);
  app->add_option("--chunks", options->chunks, "chunks at most; 0 = all")
      ->check(CLI::NonNegativeNumber);
  return {app, [options] { return perplexity(*options); }};
}

}  // namespace rbee::tools
