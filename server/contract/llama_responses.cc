#include "server/contract/llama_responses.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/contract/json_text.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

Json ids_json(const LlamaAnswer& answer, const std::vector<OpenAiScored>& tokens) {
  Json out = Json::array();
  if (!answer.request.return_tokens) return out;
  for (const OpenAiScored& token : tokens) out.push_back(token.chosen.id);
  return out;
}

Json token_json(const OpenAiToken& token) {
  Json bytes = Json::array();
  for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"id", token.id},
          {"token", token.bytes},
          {"bytes", std::move(bytes)},
          {"logprob", token.logprob}};
}

void add_probabilities(Json& out, const LlamaAnswer& answer,
                       const std::vector<OpenAiScored>& tokens) {
  if (answer.request.probabilities == 0) return;
  Json list = Json::array();
  for (const OpenAiScored& token : tokens) {
    Json one = token_json(token.chosen);
    one["top_logprobs"] = Json::array();
    for (const OpenAiToken& top : token.top) one["top_logprobs"].push_back(token_json(top));
    list.push_back(std::move(one));
  }
  out["completion_probabilities"] = std::move(list);
}

// Of so many tokens in so much time.
void add_times(Json& out, const std::string& of, int32_t count, double ms) {
  out[of + "_n"] = count;
  out[of + "_ms"] = ms;
  out[of + "_per_token_ms"] = count > 0 ? ms / count : 0;
  out[of + "_per_second"] = ms > 0 ? count * 1000 / ms : 0;
}

Json timings_json(const EndEvent& end) {
  Json out = {{"cache_n", end.cached_tokens}};
  add_times(out, "prompt", end.prompt_tokens - end.cached_tokens, end.prompt_ms);
  add_times(out, "predicted", end.tokens_out, end.decode_ms);
  return out;
}

std::string stop_type(const std::string& reason) {
  if (reason == "EOS") return "eos";
  return reason == "STOP_SEQUENCE" ? "word" : "limit";
}

Json settings_json(const LlamaAnswer& answer) {
  const GenerateRequest& request = answer.request.generate;
  Json out = {{"seed", answer.seed},
              {"n_predict", *request.max_tokens == INT32_MAX ? -1 : *request.max_tokens},
              {"stream", *request.stream},
              {"stop", request.stop},
              {"n_probs", answer.request.probabilities},
              {"min_p", decimal(*request.min_p)}};
  if (request.temperature) out["temperature"] = decimal(*request.temperature);
  if (request.top_k) out["top_k"] = *request.top_k;
  if (request.top_p) out["top_p"] = decimal(*request.top_p);
  return out;
}

// Fields with a slash come out of the objects that they are in, under their whole names.
Json chosen_fields(const Json& all, const std::vector<std::string>& names) {
  if (names.empty()) return all;
  Json out = Json::object();
  for (const std::string& name : names) {
    const Json* at = &all;
    for (size_t begin = 0; at != nullptr && begin <= name.size();) {
      const size_t end = std::min(name.find('/', begin), name.size());
      const auto found = at->is_object() ? at->find(name.substr(begin, end - begin)) : at->end();
      at = found == at->end() ? nullptr : &*found;
      begin = end + 1;
    }
    if (at != nullptr) out[name] = *at;
  }
  return out;
}

}  // namespace

std::string llama_piece_json(const LlamaAnswer& answer, std::string_view text,
                             const std::vector<OpenAiScored>& tokens, int32_t tokens_out) {
  Json out = {{"index", answer.index},
              {"content", text},
              {"tokens", ids_json(answer, tokens)},
              {"stop", false},
              {"id_slot", -1},
              {"tokens_predicted", tokens_out},
              {"tokens_evaluated", answer.prompt_tokens}};
  add_probabilities(out, answer, tokens);
  return dump(out);
}

std::string llama_end_json(const LlamaAnswer& answer, std::string_view text,
                           const std::vector<OpenAiScored>& tokens, const EndEvent& end) {
  Json out = {{"index", answer.index},
              {"content", text},
              {"tokens", ids_json(answer, tokens)},
              {"id_slot", -1},
              {"stop", true},
              {"model", answer.model},
              {"tokens_predicted", end.tokens_out},
              {"tokens_evaluated", end.prompt_tokens},
              {"generation_settings", settings_json(answer)},
              {"has_new_line", answer.new_line || text.find('\n') != text.npos},
              {"truncated", end.stop_reason == "CONTEXT_FULL"},
              {"stop_type", stop_type(end.stop_reason)},
              {"stopping_word", end.stop_sequence},
              {"tokens_cached", end.prompt_tokens + end.tokens_out},
              {"timings", timings_json(end)}};
  add_probabilities(out, answer, tokens);
  return dump(chosen_fields(out, answer.request.fields));
}

std::string llama_answers_json(const std::vector<std::string>& answers) {
  if (answers.size() == 1) return answers.front();
  std::string out;
  for (const std::string& answer : answers) out += cat(out.empty() ? "[" : ",", answer);
  return out + "]";
}

std::string llama_props_json(const LlamaProps& props) {
  return dump({{"default_generation_settings", {{"id", 0}, {"n_ctx", props.context}}},
               {"total_slots", props.slots},
               {"model_alias", props.model},
               {"model_path", props.path},
               {"modalities", {{"vision", props.pictures}, {"audio", false}}},
               {"endpoint_slots", true},
               {"endpoint_props", false},
               {"endpoint_metrics", true},
               {"chat_template", props.chat_template},
               {"bos_token", props.bos},
               {"eos_token", props.eos},
               {"build_info", props.build}});
}

std::string llama_slots_json(int32_t slots, int32_t running, int32_t context) {
  Json out = Json::array();
  for (int32_t i = 0; i < slots; ++i) {
    out.push_back({{"id", i}, {"n_ctx", context}, {"is_processing", i < running}});
  }
  return dump(out);
}

}  // namespace rbee::server
