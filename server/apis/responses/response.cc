#include "server/apis/responses/response.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "server/apis/llama/timings.h"
#include "server/apis/openai/logprobs.h"
#include "server/wire/json_body.h"
#include "server/wire/json_text.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

using Kind = AnswerItem::Kind;

bool is_custom(const ResponseAnswer& answer, const AnswerItem& item) {
  return item.kind == Kind::call &&
         std::ranges::any_of(answer.request.generate.chat.tools, [&](const SentTool& tool) {
           return tool.custom && tool.name == item.name;
         });
}

// The id of an answer's item at its index in the output.
std::string item_id(const ResponseAnswer& answer, const AnswerItem& item, size_t index) {
  const char* prefix = is_custom(answer, item)   ? "ctc_"
                       : item.kind == Kind::call ? "fc_"
                       : item.kind == Kind::text ? "msg_"
                                                 : "rs_";
  return index == 0 ? prefix + answer.id : cat(prefix, answer.id, "-", index);
}

bool complete(const EndEvent& end) {
  return end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE";
}

Json figures(const std::vector<TokenLogprobs>& tokens) {
  return logprobs_json(true, {.tokens = tokens}).at("content");
}

Json part(const AnswerItem& item) {
  if (item.kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
  return {{"type", "output_text"},
          {"text", item.text},
          {"annotations", Json::array()},
          {"logprobs", figures(item.scored)}};
}

Json empty_item(const ResponseAnswer& answer, const AnswerItem& item, size_t index,
                std::string_view status) {
  Json out = {{"id", item_id(answer, item, index)}};
  if (item.kind == Kind::call) {
    const bool custom = is_custom(answer, item);
    out["type"] = custom ? "custom_tool_call" : "function_call";
    out["status"] = status;
    out["call_id"] = item.call_id;
    out["name"] = item.name;
    out[custom ? "input" : "arguments"] = "";
    return out;
  }
  out["type"] = item.kind == Kind::text ? "message" : "reasoning";
  out["status"] = status;
  if (item.kind == Kind::text) out["role"] = "assistant";
  if (item.kind == Kind::reasoning) out["summary"] = Json::array();
  out["content"] = Json::array();
  return out;
}

Json whole_item(const ResponseAnswer& answer, const AnswerItem& item, size_t index,
                std::string_view status) {
  Json out = empty_item(answer, item, index, status);
  if (is_custom(answer, item)) {
    out["input"] = custom_input(item.text);
  } else if (item.kind == Kind::call) {
    out["arguments"] = item.text;
  } else {
    out["content"].push_back(part(item));
  }
  return out;
}

Json tools_json(const ChatFields& chat) {
  Json out = Json::array();
  for (const SentTool& tool : chat.tools) {
    const Json function = Json::parse(tool.json).at("function");
    if (tool.custom) {
      Json one = {{"type", "custom"}, {"name", tool.name}, {"format", {{"type", "text"}}}};
      if (!tool.syntax.empty()) {
        one["format"] = {
            {"type", "grammar"}, {"syntax", tool.syntax}, {"definition", tool.definition}};
      }
      if (function.contains("description")) one["description"] = function.at("description");
      out.push_back(std::move(one));
      continue;
    }
    Json one = {{"type", "function"}};
    one.update(function);
    if (!one.contains("parameters")) one["parameters"] = nullptr;
    one["strict"] = tool.strict;
    out.push_back(std::move(one));
  }
  return out;
}

Json tool_choice_json(const ChatFields& chat) {
  if (!chat.tool.empty()) {
    const auto tool = std::ranges::find(chat.tools, chat.tool, &SentTool::name);
    const bool custom = tool != chat.tools.end() && tool->custom;
    return {{"type", custom ? "custom" : "function"}, {"name", chat.tool}};
  }
  return chat.tool_choice.empty() ? Json("auto") : Json(chat.tool_choice);
}

Json object(const ResponseAnswer& answer, std::string_view status) {
  const GenerateRequest& asked = answer.request.generate;
  const std::string& instructions = answer.request.instructions;
  const bool limited = asked.max_tokens && *asked.max_tokens != INT32_MAX;
  Json out = {{"id", answer.response_id()},
              {"object", "response"},
              {"created_at", answer.created},
              {"status", status},
              {"background", answer.request.background},
              {"error", nullptr},
              {"incomplete_details", nullptr}};
  out["instructions"] = instructions.empty() ? Json(nullptr) : Json(instructions);
  out["max_output_tokens"] = limited ? Json(*asked.max_tokens) : Json(nullptr);
  out["model"] = answer.model;
  out["output"] = Json::array();
  out["parallel_tool_calls"] = asked.chat.parallel_tool_calls;
  const std::string& previous = answer.request.previous_id;
  out["previous_response_id"] = previous.empty() ? Json(nullptr) : Json(previous);
  const std::string& conversation = answer.request.conversation;
  if (!conversation.empty()) out["conversation"] = {{"id", conversation}};
  out["store"] = answer.request.store;
  out["temperature"] = decimal(asked.sampling.temperature);
  const std::string& format = answer.request.text_format;
  out["text"]["format"] = format.empty() ? Json({{"type", "text"}}) : Json::parse(format);
  out["tool_choice"] = tool_choice_json(asked.chat);
  out["tools"] = tools_json(asked.chat);
  out["top_logprobs"] = asked.logprobs.value_or(0);
  out["top_p"] = decimal(asked.sampling.top_p);
  out["truncation"] = "disabled";
  out["usage"] = nullptr;
  const std::string& metadata = answer.request.metadata;
  out["metadata"] = metadata.empty() ? Json::object() : Json::parse(metadata);
  return out;
}

Json failed(const ResponseAnswer& answer, std::string_view code, std::string_view message) {
  Json out = object(answer, "failed");
  out["error"] = {{"code", code}, {"message", message}};
  return out;
}

Json ended(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
           const EndEvent& end) {
  Json out = object(answer, complete(end) ? "completed" : "incomplete");
  if (!complete(end)) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  for (size_t i = 0; i < items.size(); ++i) {
    const bool whole = complete(end) || i + 1 < items.size();
    out["output"].push_back(whole_item(answer, items[i], i, whole ? "completed" : "incomplete"));
  }
  out["usage"] = {{"input_tokens", end.prompt_tokens},
                  {"input_tokens_details", {{"cached_tokens", end.cached_tokens}}},
                  {"output_tokens", end.tokens_out},
                  {"output_tokens_details", {{"reasoning_tokens", end.reasoning_tokens}}},
                  {"total_tokens", int64_t{end.prompt_tokens} + end.tokens_out}};
  out["timings"] = timings_json(end);
  return out;
}

// The name of a stream's events for a part.
std::string_view piece_name(const AnswerItem& item) {
  if (item.kind == Kind::call) return "response.function_call_arguments";
  return item.kind == Kind::text ? "response.output_text" : "response.reasoning_text";
}

// Numbers the events of a stream.
class Events {
 public:
  Events(const ResponseAnswer& answer, ResponsePlace place, int& number)
      : answer_(answer), place_(place), number_(number) {}

  NamedEvent item(std::string_view type, Json value) const {
    Json out = {{"type", type}, {"sequence_number", number_++}, {"output_index", place_.index}};
    out["item"] = std::move(value);
    return {std::string(type), dump(out)};
  }
  // scored: the tokens of the event's text.
  NamedEvent content(std::string_view type, const char* field, Json value,
                     const std::vector<TokenLogprobs>& scored = {}) const {
    Json out = {{"type", type},
                {"sequence_number", number_++},
                {"item_id", item_id(answer_, place_.item, place_.index)},
                {"output_index", place_.index}};
    if (place_.item.kind != Kind::call) out["content_index"] = 0;
    out[field] = std::move(value);
    if (type.starts_with("response.output_text")) out["logprobs"] = figures(scored);
    if (type == "response.function_call_arguments.done") out["name"] = place_.item.name;
    if (place_.so_far != nullptr) out["timings"] = timings_json(*place_.so_far);
    return {std::string(type), dump(out)};
  }

 private:
  const ResponseAnswer& answer_;
  const ResponsePlace place_;
  int& number_;
};

}  // namespace

std::string response_json(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                          const EndEvent& end) {
  return dump(ended(answer, items, end));
}

ResponseParts response_parts(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                             const EndEvent& end) {
  Json out = ended(answer, items, end);
  const Json output = std::exchange(out["output"], Json::array());
  return {.object = dump(out), .output = dump(output)};
}

std::string join_response(const std::string& object, const std::string& output) {
  Json out = parse_in_order(object);
  out["output"] = parse_in_order(output);
  return dump_in_order(out);
}

std::string response_without_answer(const ResponseAnswer& answer, std::string_view status) {
  return dump(object(answer, status));
}

std::string response_failed_json(const ResponseAnswer& answer, std::string_view code,
                                 std::string_view message) {
  return dump(failed(answer, code, message));
}

NamedEvent response_state(const ResponseAnswer& answer, std::string_view type, int& number) {
  const bool waits = answer.request.background && type != "response.in_progress";
  Json out = {{"type", type}, {"sequence_number", number++}};
  out["response"] = object(answer, waits ? "queued" : "in_progress");
  return {std::string(type), dump(out)};
}

NamedEvent response_progress(const ResponseAnswer& answer, const ProgressEvent& progress,
                             int& number) {
  constexpr const char* kType = "response.in_progress";
  Json out = {{"type", kType}, {"sequence_number", number++}};
  out["response"] = object(answer, "in_progress");
  out["prompt_progress"] = prompt_progress_json(progress);
  if (answer.request.timings_per_token) out["timings"] = timings_json(progress);
  return {kType, dump(out)};
}

std::vector<NamedEvent> response_item_opened(const ResponseAnswer& answer, ResponsePlace place,
                                             int& number) {
  const Events events(answer, place, number);
  std::vector<NamedEvent> out{events.item(
      "response.output_item.added", empty_item(answer, place.item, place.index, "in_progress"))};
  if (place.item.kind != Kind::call) {
    out.push_back(
        events.content("response.content_part.added", "part", part({.kind = place.item.kind})));
  }
  return out;
}

std::vector<NamedEvent> response_item_grew(const ResponseAnswer& answer, ResponsePlace place,
                                           const ItemPiece& piece, int& number) {
  if (is_custom(answer, place.item)) return {};
  return {Events(answer, place, number)
              .content(cat(piece_name(place.item), ".delta"), "delta", piece.text, piece.scored)};
}

std::vector<NamedEvent> response_item_closed(const ResponseAnswer& answer, ResponsePlace place,
                                             bool whole, int& number) {
  const Events events(answer, place, number);
  const AnswerItem& item = place.item;
  const bool call = item.kind == Kind::call;
  std::vector<NamedEvent> out;
  if (is_custom(answer, item)) {
    const std::string input = custom_input(item.text);
    out.push_back(events.content("response.custom_tool_call_input.delta", "delta", input));
    out.push_back(events.content("response.custom_tool_call_input.done", "input", input));
  } else {
    out.push_back(events.content(cat(piece_name(item), ".done"), call ? "arguments" : "text",
                                 item.text, item.scored));
  }
  if (!call) {
    out.push_back(events.content("response.content_part.done", "part", part(item)));
  }
  out.push_back(
      events.item("response.output_item.done",
                  whole_item(answer, item, place.index, whole ? "completed" : "incomplete")));
  return out;
}

bool response_is_whole(const EndEvent& end) {
  return complete(end);
}

NamedEvent response_end(const ResponseAnswer& answer, const std::vector<AnswerItem>& items,
                        const EndEvent& end, int& number) {
  const char* type = complete(end) ? "response.completed" : "response.incomplete";
  Json out = {{"type", type}, {"sequence_number", number++}};
  out["response"] = ended(answer, items, end);
  out["timings"] = timings_json(end);
  return {type, dump(out)};
}

NamedEvent response_failed(const ResponseAnswer& answer, std::string_view code,
                           std::string_view message, int& number) {
  Json out = {{"type", "response.failed"}, {"sequence_number", number++}};
  out["response"] = failed(answer, code, message);
  return {"response.failed", dump(out)};
}

}  // namespace rbee::server
