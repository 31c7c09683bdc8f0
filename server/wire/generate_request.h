#pragma once
// A text request as every API reads it, and the errors of an invalid body.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/engine/api/fields.h"

namespace rbee::server {

// One error in a body.
struct FieldError {
  std::string field;       // e.g. "max_tokens" or "messages[2].role"; "body" for the whole
  std::string constraint;  // e.g. "range(0..=2)", "type(string)", "required"
  std::string message;     // for people
  std::string value;       // the JSON that was sent, shortened; empty if absent
};

// Thrown by the parsers with all errors.
class InvalidBody : public std::runtime_error {
 public:
  explicit InvalidBody(std::vector<FieldError> errors);
  const std::vector<FieldError>& errors() const { return errors_; }

 private:
  std::vector<FieldError> errors_;
};

// A function call that the model made.
struct SentCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON
};

// A picture within a message, as sent.
struct SentPicture {
  size_t at = 0;       // bytes of the content before it
  std::string base64;  // perhaps as a data: URL
  std::string field;   // its name in errors
};

struct SentMessage {
  std::string role;
  std::string content;
  std::string reasoning = {};              // of the assistant
  std::vector<SentCall> tool_calls = {};   // of the assistant
  std::string tool_call_id = {};           // of role tool: the call that it answers
  std::string name = {};                   // the speaker's; of role tool: the function's
  std::vector<SentPicture> pictures = {};  // of the user
};

// A function that the model may call.
struct SentTool {
  std::string name;
  std::string json;        // in the form of OpenAI's chats, for every API
  std::string parameters;  // JSON schema; may be empty
  bool strict = false;
  bool custom = false;      // OpenAI's custom tool: a function of one text
  std::string syntax = {};  // regex or lark, the form of that text; empty: any text
  std::string definition = {};
};

struct ChatFields {
  bool split = false;  // split reasoning and calls from the answer
  std::vector<SentTool> tools;
  std::string tool_choice;  // none or required; empty: the model decides
  std::string tool;         // with required: the function to call; empty: any
  bool parallel_tool_calls = true;
  bool older_calls = false;                 // send calls as OpenAI's older "function_call"
  std::string template_variables;           // a JSON object; may be empty
  std::optional<int32_t> reasoning_budget;  // tokens; -1: no limit
  bool continue_last = false;               // the answer continues the last message
  bool add_generation_prompt = true;        // the prompt begins the assistant's turn
};

// Sets the budget if the client gave none.
void set_default_budget(ChatFields& chat, int32_t budget);

// One prompt.
struct SentPrompt {
  std::string text;          // empty: use the tokens
  std::vector<int32_t> ids;  // empty: use the text
};

// The required form of an answer; see engine::Constraint.
struct ConstraintFields {
  std::string kind;  // json_object, json_schema, regex, choice or grammar; empty: none
  std::string text;
  std::vector<std::string> choices;
};

// An adapter for an answer, by its index in the list of adapters or its name.
struct LoraField {
  std::optional<int32_t> id;
  std::string name;
  std::optional<float> scale;  // absent: the adapter's own
};

// Absent and null fields are empty.
struct GenerateRequest {
  engine::SamplingParams sampling;
  engine::SamplingFieldSet given;  // fields that the request gives, or defaults that were set

  template <typename T, typename Value>
  void set(T engine::SamplingParams::* member, Value&& value) {
    sampling.*member = std::forward<Value>(value);
    given.add(member);
  }
  // Only if the request does not give it.
  template <typename T, typename Value>
  void set_default(T engine::SamplingParams::* member, Value&& value) {
    if (!given.has(member)) set(member, std::forward<Value>(value));
  }

  std::string prompt;               // exactly one of prompt, prompt_ids and messages
  std::vector<int32_t> prompt_ids;  // the prompt's tokens; OpenAI's completions only
  std::vector<SentMessage> messages;
  ChatFields chat;
  std::optional<int32_t> max_tokens;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_ids;
  ConstraintFields constraint;
  std::optional<bool> stream;
  std::optional<bool> speculative;
  std::optional<int32_t> logprobs;   // likeliest tokens to show for each; OpenAI's routes only
  std::vector<int32_t> logprob_ids;  // in place of the likeliest; OpenAI's routes only
  std::optional<int32_t> prompt_logprobs;  // the same for the prompt's tokens
  bool token_ids = false;                  // send ids with the texts, without figures
  // In place of `logprobs`: the probabilities used to draw. llama-server's routes only.
  std::optional<int32_t> drawn_logprobs;
  bool return_prompt_ids = false;      // send the ids of the prompt's tokens
  bool progress = false;               // report the prompt's evaluation
  std::vector<int32_t> allowed_ids;    // the only tokens that may come; empty: all
  std::optional<int32_t> kept_tokens;  // truncate_prompt_tokens: of the prompt; -1: what fits
  bool keeps_first = false;            // keep the first tokens, not the last
  std::string client;                  // the sender; no field of a body
  std::optional<std::string> user;     // the client's user: users of a client take turns
  std::optional<int32_t> priority;
  std::optional<std::string> cache_salt;
  std::string model;  // as sent: an adapter's name, or anything
  std::optional<std::vector<LoraField>> lora;
};

}  // namespace rbee::server
