#include "server/apis/tgi/request.h"

#include "rbee/core/cat.h"
#include "server/wire/generate_fields.h"
#include "server/wire/json_object.h"
#include "server/wire/json_text.h"
#include "server/wire/sampling_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr int32_t kMaxNewTokens = 100;  // TGI's default

// "grammar": {"type": "json", "regex" or "json_schema", "value"}.
void read_grammar(ObjectReader& reader, const JsonBody& body, ConstraintFields& out) {
  const json* grammar = reader.find("grammar");
  if (grammar == nullptr) return;
  const json type = grammar->is_object() ? grammar->value("type", json()) : json();
  const json value = grammar->is_object() ? grammar->value("value", json()) : json();
  const bool named = type == "json_schema";
  const bool has_schema =
      value.is_object() && (!named || value.value("schema", json()).is_object());
  if (type == "regex" && value.is_string()) {
    out = {.kind = "regex", .text = value.get<std::string>(), .choices = {}};
  } else if (type == "json" && value.is_string()) {
    out = {.kind = "json_schema", .text = value.get<std::string>(), .choices = {}};
  } else if ((type == "json" || named) && has_schema) {
    const Json ordered = body.in_order("parameters").at("grammar").at("value");
    out = {.kind = "json_schema",
           .text = dump_in_order(named ? ordered.at("schema") : ordered),
           .choices = {}};
  } else {
    reader.note("grammar", "one_of(json, regex, json_schema)",
                "must have the type json, regex or json_schema, and a value", grammar);
  }
}

void read_parameters(ObjectReader& reader, const JsonBody& body, TgiRequest& out) {
  using P = engine::SamplingParams;
  GenerateRequest& request = out.generate;
  read_sampling(reader, request);
  const bool sampled = reader.boolean("do_sample").value_or(false) ||
                       request.given.has(&P::temperature) || request.given.has(&P::top_k) ||
                       request.given.has(&P::top_p) || request.given.has(&P::typical_p);
  if (!sampled) request.set(&P::temperature, 0.0f);
  request.max_tokens = reader.integer("max_new_tokens", {1, INT32_MAX}).value_or(kMaxNewTokens);
  request.kept_tokens = reader.integer("truncate", {1, INT32_MAX});
  read_stop(reader, request);
  read_grammar(reader, body, request.constraint);
  out.full_text = reader.boolean("return_full_text").value_or(false);
  out.details = reader.boolean("details").value_or(false);
  if (const auto adapter = reader.text("adapter_id")) {
    request.lora = std::vector<LoraField>{{.id = {}, .name = *adapter, .scale = {}}};
  }
  refuse_unless(reader, "best_of", 1);
  refuse_unless(reader, "watermark", false);
  refuse_unless(reader, "decoder_input_details", false);
  refuse_unless(reader, "top_n_tokens", 0);
}

const char* finish_reason(const EndEvent& end) {
  if (end.stop_reason == "EOS") return "eos_token";
  return end.stop_reason == "STOP_SEQUENCE" ? "stop_sequence" : "length";
}

Json token_json(const TgiPiece& piece) {
  return {{"id", piece.id ? Json(*piece.id) : Json(nullptr)},
          {"text", piece.text},
          {"logprob", piece.logprob ? Json(*piece.logprob) : Json(nullptr)},
          {"special", piece.special}};
}

Json details_json(const EndEvent& end) {
  return {{"finish_reason", finish_reason(end)},
          {"generated_tokens", end.tokens_out},
          {"seed", end.seed}};
}

}  // namespace

TgiRequest parse_tgi(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  TgiRequest out;
  out.generate.prompt = reader.text("inputs").value_or("");
  if (reader.find("inputs") == nullptr) {
    reader.note("inputs", "required", "is missing", nullptr);
  } else if (out.generate.prompt.empty()) {
    reader.note("inputs", "non_empty", "is empty", reader.find("inputs"));
  }
  out.generate.stream = reader.boolean("stream").value_or(false);
  const json none = json::object();
  const json* sent = reader.find("parameters");
  const bool object = sent == nullptr || sent->is_object();
  if (!object) reader.note("parameters", "type(object)", "must be an object", sent);
  ObjectReader parameters(sent != nullptr && object ? *sent : none, "parameters.", errors);
  read_parameters(parameters, body, out);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::string tgi_text_json(std::string_view text, const std::optional<EndEvent>& end,
                          const std::vector<TokenLogprobs>& tokens) {
  Json out = {{"generated_text", text}};
  if (!end) return dump(out);
  out["details"] = details_json(*end);
  out["details"]["prefill"] = Json::array();
  Json& list = out["details"]["tokens"] = Json::array();
  for (const TokenLogprobs& token : tokens) {
    list.push_back(token_json(
        {.id = token.chosen.id, .text = token.chosen.bytes, .logprob = token.chosen.logprob}));
  }
  return dump(out);
}

std::string tgi_list_json(std::string_view answer) {
  return cat("[", answer, "]");
}

std::string tgi_piece_json(int32_t index, const TgiPiece& piece, const EndEvent* end,
                           std::string_view text) {
  Json out = {{"index", index},
              {"token", token_json(piece)},
              {"generated_text", nullptr},
              {"details", nullptr}};
  if (end != nullptr) {
    out["generated_text"] = text;
    out["details"] = details_json(*end);
    out["details"]["input_length"] = end->prompt_tokens;
  }
  return dump(out);
}

std::string tgi_error_json(int status, std::string_view message) {
  const char* type = status == 429 || status == 503 ? "overloaded"
                     : status < 499                 ? "validation"
                                                    : "generation";
  return dump({{"error", message}, {"error_type", type}});
}

}  // namespace rbee::server
