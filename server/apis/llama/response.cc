#include "server/apis/llama/response.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <type_traits>
#include <variant>

#include "rbee/core/cat.h"
#include "server/apis/llama/timings.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

Json ids_json(const LlamaAnswer& answer, const std::vector<TokenLogprobs>& tokens) {
  Json out = Json::array();
  if (!answer.request.generate.token_ids) return out;
  for (const TokenLogprobs& token : tokens) out.push_back(token.chosen.id);
  return out;
}

// drawn: the figure is a probability.
Json token_json(const TokenLogprob& token, bool drawn) {
  Json bytes = Json::array();
  for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  Json out = {{"id", token.id}, {"token", token.bytes}, {"bytes", std::move(bytes)}};
  if (drawn) {
    out["prob"] = std::exp(token.logprob);
  } else {
    out["logprob"] = token.logprob;
  }
  return out;
}

void add_probabilities(Json& out, const LlamaAnswer& answer,
                       const std::vector<TokenLogprobs>& tokens) {
  if (answer.request.probabilities == 0) return;
  const bool drawn = answer.request.drawn;
  const char* const likeliest = drawn ? "top_probs" : "top_logprobs";
  Json list = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json one = token_json(token.chosen, drawn);
    one[likeliest] = Json::array();
    for (const TokenLogprob& top : token.top) one[likeliest].push_back(token_json(top, drawn));
    list.push_back(std::move(one));
  }
  out["completion_probabilities"] = std::move(list);
}

std::string stop_type(const std::string& reason) {
  if (reason == "EOS") return "eos";
  return reason == "STOP_SEQUENCE" ? "word" : "limit";
}

Json biases_json(const std::vector<engine::LogitBias>& biases) {
  Json out = Json::array();
  for (const engine::LogitBias& bias : biases) {
    Json entry = Json::object();
    if (bias.text.empty()) {
      entry["token"] = bias.id;
    } else {
      entry["text"] = bias.text;
    }
    entry["bias"] = std::isfinite(bias.bias) ? Json(decimal(bias.bias)) : Json(false);
    out.push_back(std::move(entry));
  }
  return out;
}

// Every field of the table but the seed, under llama-server's names.
Json sampling_json(const engine::SamplingParams& params) {
  Json out = Json::object();
  for (const engine::SamplingField& field : engine::sampling_fields()) {
    const std::string name(field.alias.empty() ? field.name : field.alias);
    const auto write = [&]<typename T>(T engine::SamplingParams::* member) {
      const T& value = params.*member;
      if constexpr (std::is_same_v<T, float>) {
        out[name] = decimal(value);
      } else if constexpr (std::is_same_v<T, std::vector<engine::LogitBias>>) {
        out[name] = biases_json(value);
      } else if constexpr (std::is_same_v<T, std::vector<engine::SamplerKind>>) {
        out[name] = Json::array();
        for (const engine::SamplerKind kind : value) out[name].push_back(sampler_name(kind));
      } else if constexpr (!std::is_same_v<T, std::optional<uint64_t>>) {
        out[name] = value;
      }
    };
    std::visit(write, field.member);
  }
  return out;
}

Json settings_json(const LlamaAnswer& answer) {
  const GenerateRequest& request = answer.request.generate;
  const int32_t most = *request.max_tokens == INT32_MAX ? -1 : *request.max_tokens;
  const ConstraintFields& form = request.constraint;
  Json out = {{"n_ctx", answer.context},
              {"model", answer.model},
              {"seed", answer.seed},
              {"n_predict", most},
              {"max_tokens", most},
              {"stream", *request.stream},
              {"stop", request.stop},
              {"n_probs", answer.request.probabilities},
              {"grammar", form.kind == "grammar" ? form.text : ""}};
  out.update(sampling_json(answer.sampling));
  return out;
}

// A name with a slash selects a field of an object; the result has it under the whole name.
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

namespace {

Json piece_json(const LlamaAnswer& answer, std::string_view text,
                const std::vector<TokenLogprobs>& tokens, const ProgressEvent& so_far) {
  Json out = {{"index", answer.index},
              {"content", text},
              {"tokens", ids_json(answer, tokens)},
              {"stop", false},
              {"id_slot", -1},
              {"tokens_predicted", so_far.tokens_out},
              {"tokens_evaluated", answer.prompt_tokens}};
  if (answer.request.timings_per_token) out["timings"] = timings_json(so_far);
  return out;
}

}  // namespace

std::string llama_progress_json(const LlamaAnswer& answer, const ProgressEvent& progress) {
  Json out = piece_json(answer, "", {}, progress);
  out["prompt_progress"] = prompt_progress_json(progress);
  return dump(out);
}

std::string llama_piece_json(const LlamaAnswer& answer, std::string_view text,
                             const std::vector<TokenLogprobs>& tokens,
                             const ProgressEvent& so_far) {
  Json out = piece_json(answer, text, tokens, so_far);
  add_probabilities(out, answer, tokens);
  return dump(out);
}

std::string llama_end_json(const LlamaAnswer& answer, std::string_view text,
                           const std::vector<TokenLogprobs>& tokens, const EndEvent& end) {
  Json out = {{"index", answer.index},
              {"content", text},
              {"tokens", ids_json(answer, tokens)},
              {"id_slot", -1},
              {"stop", true},
              {"model", answer.model},
              {"tokens_predicted", end.tokens_out},
              {"tokens_evaluated", end.prompt_tokens},
              {"generation_settings", settings_json(answer)},
              {"prompt", answer.prompt},
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
  Json params = sampling_json(props.sampling);
  params["seed"] = props.sampling.seed ? Json(*props.sampling.seed) : Json(-1);
  params["n_predict"] = props.max_tokens;
  return dump({{"default_generation_settings",
                {{"id", 0}, {"n_ctx", props.context}, {"params", std::move(params)}}},
               {"total_slots", props.slots},
               {"model_alias", props.model},
               {"model_aliases", props.aliases},
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
