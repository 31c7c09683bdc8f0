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
  GenerateRequest generate;  // `stream`: as the body says, false without
  bool full_text = false;    // the prompt is in front of the answer
  bool details = false;      // tokens and the end's reason come with it
};

// {"inputs", "stream", "parameters": {...}}. Samples where one of do_sample, temperature, top_k,
// top_p and typical_p asks for it, as TGI. Throws InvalidBody.
TgiRequest parse_tgi(std::string_view body);

// {"generated_text","details"}; tokens: of the details, absent: none are asked for.
std::string tgi_text_json(std::string_view text, const std::optional<EndEvent>& end,
                          const std::vector<TokenLogprobs>& tokens);
// [answer], as POST / gives it.
std::string tgi_list_json(std::string_view answer);

// A token of a stream.
struct TgiPiece {
  std::optional<int32_t> id = {};
  std::string text = {};
  std::optional<float> logprob = {};
  bool special = false;  // it ends the answer
};
// {"index","token","generated_text","details"}; the latter two are null but of the last piece,
// which has `end`. text: the whole answer. index: from 1.
std::string tgi_piece_json(int32_t index, const TgiPiece& piece, const EndEvent* end,
                           std::string_view text);
// {"error","error_type"}.
std::string tgi_error_json(int status, std::string_view message);

}  // namespace rbee::server
