#include "server/apis/open_defaults.h"

namespace rbee::server {

void set_open_defaults(GenerateRequest& request, const engine::SamplingDefaults& model) {
  using P = engine::SamplingParams;
  request.set_default(&P::temperature, model.temperature.value_or(1.0f));
  request.set_default(&P::top_p, model.top_p.value_or(1.0f));
  request.set_default(&P::top_k, model.top_k.value_or(0));
  if (model.min_p) request.set_default(&P::min_p, *model.min_p);
  if (model.repetition_penalty) {
    request.set_default(&P::repetition_penalty, *model.repetition_penalty);
  }
  // A request with a window gets llama-server's way to count tokens.
  if (request.given.has(&P::repeat_last_n)) return;
  request.set(&P::repeat_last_n, 0);
  request.sampling.penalise_prompt = false;
}

}  // namespace rbee::server
