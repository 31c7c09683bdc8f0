#pragma once
// A request for text as every API reads it, and what is wrong with a body that cannot be read.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/engine/api/fields.h"

namespace rbee::server {

// One thing that is wrong with a body.
struct FieldError {
  std::string field;       // e.g. "max_tokens" or "messages[2].role"; "body" for the whole
  std::string constraint;  // e.g. "range(0..=2)", "type(string)", "required"
  std::string message;     // for people
  std::string value;       // the JSON that was sent, shortened; empty when absent
};

// Thrown by the parsers with everything that is wrong.
class InvalidBody : public std::runtime_error {
 public:
  explicit InvalidBody(std::vector<FieldError> errors);
  const std::vector<FieldError>& errors() const { return errors_; }

 private:
  std::vector<FieldError> errors_;
};

// A call of a function that the model made.
struct SentCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON
};

// A picture within a message, as it was sent.
struct SentPicture {
  size_t at = 0;       // bytes of the content in front of it
  std::string base64;  // perhaps as a data: URL
  std::string field;   // as errors name it
};

struct SentMessage {
  std::string role;
  std::string content;
  std::string reasoning = {};              // of the assistant
  std::vector<SentCall> tool_calls = {};   // of the assistant
  std::string tool_call_id = {};           // of role tool: the call that it answers
  std::string name = {};                   // who speaks; of role tool: the function
  std::vector<SentPicture> pictures = {};  // of the user
};

// A function that the model may call.
struct SentTool {
  std::string name;
  std::string json;        // in the form of OpenAI's chats, whatever it came in
  std::string parameters;  // JSON schema; may be empty
  bool strict = false;
  bool custom = false;      // a function of one text, which its calls are told as; OpenAI's
  std::string syntax = {};  // regex or lark, of that text's form; empty: any text
  std::string definition = {};
};

struct ChatFields {
  bool split = false;  // reasoning and calls are told apart from the answer
  std::vector<SentTool> tools;
  std::string tool_choice;  // none or required; empty: as the model likes
  std::string tool;         // with required: the function to call; empty: any
  bool parallel_tool_calls = true;
  bool older_calls = false;                 // a call is told as OpenAI's older "function_call"
  std::string template_variables;           // a JSON object; may be empty
  std::optional<int32_t> reasoning_budget;  // tokens; -1: no limit
  bool continue_last = false;               // the answer goes on from the last message
  bool add_generation_prompt = true;        // the prompt begins the assistant's turn
};

// As if the client had asked for this budget, where it says nothing of one.
void set_default_budget(ChatFields& chat, int32_t budget);

// What an answer goes on from.
struct SentPrompt {
  std::string text;          // empty: the tokens
  std::vector<int32_t> ids;  // empty: the text
};

// The form that an answer has to have; see engine.h.
struct ConstraintFields {
  std::string kind;  // json_object, json_schema, regex, choice or grammar; empty: none is asked for
  std::string text;
  std::vector<std::string> choices;
};

// An adapter that an answer takes, by its place in the list of adapters or its name.
struct LoraField {
  std::optional<int32_t> id;
  std::string name;
  std::optional<float> scale;  // absent: the adapter's own
};

// Fields that were absent or null are empty.
struct GenerateRequest {
  engine::SamplingParams sampling;
  engine::SamplingFieldSet given;  // what of it the request says, or a default that was set for it

  template <typename T, typename Value>
  void set(T engine::SamplingParams::* member, Value&& value) {
    sampling.*member = std::forward<Value>(value);
    given.add(member);
  }
  // Where the request says nothing.
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
  std::optional<int32_t> logprobs;   // likeliest tokens shown beside each; OpenAI's routes only
  std::vector<int32_t> logprob_ids;  // in place of the likeliest; OpenAI's routes only
  std::optional<int32_t> prompt_logprobs;  // the same of the prompt's tokens
  bool token_ids = false;                  // ids come with the texts, without figures
  // In place of `logprobs`: what tokens were drawn with. llama-server's routes only.
  std::optional<int32_t> drawn_logprobs;
  bool prompt_ids_told = false;        // ids of the prompt's tokens come, too
  bool progress = false;               // of the prompt's evaluation
  std::vector<int32_t> allowed_ids;    // tokens that may come; empty: all
  std::optional<int32_t> kept_tokens;  // truncate_prompt_tokens: of the prompt; -1: what fits
  bool keeps_first = false;            // these are its first ones, not its last
  std::string client;                  // who sent it, which no body says
  std::optional<std::string> user;     // for whom: whose turn it is among the client's
  std::optional<int32_t> priority;
  std::optional<std::string> cache_salt;
  std::string model;  // as sent: an adapter's name, or anything
  std::optional<std::vector<LoraField>> lora;
};

}  // namespace rbee::server
