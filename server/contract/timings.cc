#include "server/contract/timings.h"

#include <string>

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// Of so many tokens in so much time.
void add_times(Json& out, const std::string& of, int32_t count, double ms) {
  out[of + "_n"] = count;
  out[of + "_ms"] = ms;
  out[of + "_per_token_ms"] = count > 0 ? ms / count : 0;
  out[of + "_per_second"] = ms > 0 ? count * 1000 / ms : 0;
}

}  // namespace

Json timings_json(const EndEvent& end) {
  Json out = {{"cache_n", end.cached_tokens}};
  add_times(out, "prompt", end.prompt_tokens - end.cached_tokens, end.prompt_ms);
  add_times(out, "predicted", end.tokens_out, end.decode_ms);
  return out;
}

}  // namespace rbee::server
