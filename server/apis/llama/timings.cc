#include "server/apis/llama/timings.h"

#include <cmath>
#include <string>

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// Of `count` tokens; the time is that of `timed` of them.
struct Times {
  int32_t count;
  int32_t timed;
  double ms;
};

void add_times(Json& out, const std::string& of, const Times& times) {
  const bool any = times.timed > 0 && times.ms > 0;
  out[of + "_n"] = times.count;
  out[of + "_ms"] = times.ms;
  out[of + "_per_token_ms"] = any ? times.ms / times.timed : 0;
  out[of + "_per_second"] = any ? times.timed * 1000 / times.ms : 0;
}

}  // namespace

// The prompt's evaluation gives the first token.
Json timings_json(const ProgressEvent& progress) {
  Json out = {{"cache_n", progress.cached_tokens}};
  const int32_t prompt = progress.evaluated - progress.cached_tokens;
  add_times(out, "prompt", {prompt, prompt, progress.prompt_ms});
  add_times(out, "predicted", {progress.tokens_out, progress.tokens_out - 1, progress.decode_ms});
  return out;
}

Json timings_json(const EndEvent& end) {
  return timings_json(ProgressEvent{.prompt_tokens = end.prompt_tokens,
                                    .cached_tokens = end.cached_tokens,
                                    .evaluated = end.prompt_tokens,
                                    .prompt_ms = end.prompt_ms,
                                    .tokens_out = end.tokens_out,
                                    .decode_ms = end.decode_ms});
}

Json metrics_json(const EndEvent& end) {
  Json out = {{"time_to_first_token_ms", end.first_token_ms},
              {"generation_time_ms", end.generation_ms},
              {"queue_time_ms", end.queue_ms}};
  if (end.tokens_out > 1) out["mean_itl_ms"] = end.generation_ms / (end.tokens_out - 1);
  const double all = end.first_token_ms + end.generation_ms;
  if (all > 0) out["tokens_per_second"] = end.tokens_out * 1000 / all;
  return out;
}

Json prompt_progress_json(const ProgressEvent& progress) {
  return {{"total", progress.prompt_tokens},
          {"cache", progress.cached_tokens},
          {"processed", progress.evaluated},
          {"time_ms", std::llround(progress.prompt_ms)}};
}

}  // namespace rbee::server
