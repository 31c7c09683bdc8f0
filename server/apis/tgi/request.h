#pragma once
// Text generation in the form of text-generation-inference (TGI): POST /generate, /generate_stream
// and /.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/apis/openai/logprobs.h"
#include "server/wire/generate_request.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

struct TgiRequest {
  GenerateRequest generate;  // `stream`: as in the body, default false
  bool full_text = false;    // the answer begins with the prompt
  bool details = false;      // send tokens and the reason of the end
};

// {"inputs", "stream", "parameters": {...}}. As in TGI, it samples if do_sample, temperature,
// top_k, top_p or typical_p asks for it. Throws InvalidBody.
TgiRequest parse_tgi(std::string_view body);

// {"generated_text","details"}; tokens: for the details. end: absent if no details are wanted.
std::string tgi_text_json(std::string_view text, const std::optional<EndEvent>& end,
                          const std::vector<TokenLogprobs>& tokens);
// [answer], for POST /.
std::string tgi_list_json(std::string_view answer);

// A token of a stream.
struct TgiPiece {
  std::optional<int32_t> id = {};
  std::string text = {};
  std::optional<float> logprob = {};
  bool special = false;  // it ends the answer
};
// {"index","token","generated_text","details"}; the last two are null except in the last piece,
// which has `end`. text: the whole answer. index: from 1.
std::string tgi_piece_json(int32_t index, const TgiPiece& piece, const EndEvent* end,
                           std::string_view text);
// {"error","error_type"}.
std::string tgi_error_json(int status, std::string_view message);

}  // namespace rbee::server
