#pragma once
// What a server sees of a language model: submit a request, receive events, cancel, read figures.
// Implemented by LlmEngine (llm_engine.h); tests of the server implement it with a script.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/engine/api/sampling.h"

namespace rbee::io {
struct Pixels;
}

namespace rbee::engine {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON
};

// Squares for the model's tower: the whole picture, then its parts where it is shown in parts too.
using PictureSquares = std::vector<std::shared_ptr<const io::Pixels>>;

// The bytes of a picture file, decoded once however many requests share it.
class PictureFile {
 public:
  explicit PictureFile(std::string bytes) : bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }
  // What `make` makes of it; calls after the first give the same. Thread-safe.
  template <typename Make>
  PictureSquares squares(const Make& make) const {
    const std::scoped_lock lock(mutex_);
    if (squares_.empty()) squares_ = make(bytes_);
    return squares_;
  }

 private:
  std::string bytes_;
  mutable std::mutex mutex_;
  mutable PictureSquares squares_;
};

// A picture within a message.
struct ChatPicture {
  size_t at = 0;  // bytes of the content in front of it
  std::shared_ptr<const PictureFile> file;
  std::string field;  // as errors name it
};

struct ChatMessage {
  std::string role;
  std::string content;
  std::string reasoning = {};              // of the assistant, in front of the content
  std::vector<ToolCall> tool_calls = {};   // of the assistant
  std::string tool_call_id = {};           // of role tool: the call that is answered
  std::string name = {};                   // who speaks; of role tool: the function, where known
  std::vector<ChatPicture> pictures = {};  // in order of `at`
};

// The form that an answer has to have; see docs/design/structured-output.md.
struct Constraint {
  enum class Kind : uint8_t { none, json_object, json_schema, regex, choice, grammar, lark };
  Kind kind = Kind::none;
  std::string text;  // a JSON schema, a regular expression, GBNF, or Lark's notation
  std::vector<std::string> choices;  // of Kind::choice
  friend bool operator==(const Constraint&, const Constraint&) = default;
};

// A function that the model may call.
struct Tool {
  std::string name;        // 1 to 128 letters, digits, _, - and .
  std::string json;        // {"type": "function", "function": {...}}, for the template
  std::string parameters;  // JSON schema; empty: none
  bool strict = false;     // the arguments have to follow the schema
  // Kind::regex or lark: the function has one parameter, the text `input`, of this form in any
  // case.
  Constraint input = {};
  friend bool operator==(const Tool&, const Tool&) = default;
};

enum class ToolChoice : uint8_t { none, automatic, required };

struct ChatOptions {
  // Reasoning and calls are told apart from the answer: see TextKind.
  bool split = false;
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::automatic;
  std::string tool;  // of ToolChoice::required: the one to call; empty: any
  bool parallel_tool_calls = true;
  std::string template_variables;  // a JSON object of more variables for the template; or empty
  // Tokens of reasoning at most, where it is told apart: then the engine ends it. Absent: no limit.
  std::optional<int32_t> reasoning_budget;
  // The answer goes on from the last message, which is the assistant's, in place of a new one.
  bool continue_last = false;
  // The prompt ends with what begins the assistant's turn.
  bool add_generation_prompt = true;

  // Tools that the model is told of.
  bool calls() const { return !tools.empty() && tool_choice != ToolChoice::none; }
  // A function that is named is called once.
  bool one_call() const { return !parallel_tool_calls || !tool.empty(); }
};

struct TokenizeOptions {
  bool add_special = false;   // tokens at the ends, as the model wants them
  bool parse_special = true;  // text such as "<|im_end|>" becomes its token
};

// An adapter (Hu et al. 2021) that an answer takes.
struct LoraChoice {
  std::string name;
  std::optional<float> scale;  // absent: the adapter's own; 0: as if it were not named
  friend bool operator==(const LoraChoice&, const LoraChoice&) = default;
};
inline constexpr float kMaxLoraScale = 100;
inline constexpr size_t kMaxLoras = 8;  // of a request

struct TextRequest {
  std::string job_id;
  std::string prompt;                 // raw text, used when `messages` is empty
  std::vector<int32_t> prompt_ids;    // tokens in the place of that text; empty: the text
  std::vector<ChatMessage> messages;  // rendered through the model's chat template
  ChatOptions chat;                   // of `messages`
  int32_t max_tokens = 512;           // tokens generated at most; 0: the prompt is evaluated alone
  SamplingParams sampling;
  std::vector<std::string> stop;  // generation ends before any of these texts
  std::vector<int32_t> stop_ids;  // and before any of these tokens
  Constraint constraint;
  std::vector<int32_t> allowed_ids;  // tokens that may come, without a constraint; empty: all
  // So many tokens of the prompt are kept, the last ones or the first; -1: as many as fit beside
  // the answer. Absent: all.
  std::optional<int32_t> kept_tokens;
  bool keeps_first = false;
  // Log probabilities of every token, and those of so many of the likeliest beside it.
  std::optional<int32_t> logprobs;
  // In place of the likeliest: these, and the one that came. Needs no `logprobs`.
  std::vector<int32_t> logprob_ids;
  std::optional<int32_t> prompt_logprobs;  // the same of the prompt's tokens, see on_prompt()
  bool token_ids = false;                  // tokens come with their texts, without figures
  // In place of `logprobs`, and of the same form: what tokens were drawn with, after all samplers.
  std::optional<int32_t> drawn_logprobs;
  bool prompt_ids_told = false;     // as Started::prompt_ids
  bool progress = false;            // on_progress() is wanted
  std::vector<LoraChoice> lora;     // none: the model alone
  std::optional<bool> speculative;  // draft tokens ahead; absent: as the engine's options say
  std::string client;               // whose it is: clients take turns
  std::string user;                 // for whom the client asks: within a client users take turns
  std::string cache_salt;           // beginnings in the cache are shared under the same one alone
  int32_t priority = 0;  // -1000 to 1000; lower goes first; below 0: if the engine's options allow
  // Waits until the request of this job_id, which follows nobody, has its prompt in the cache or
  // has ended.
  std::string follows;
};

enum class StopReason : uint8_t { eos, max_tokens, stop_sequence, context_full, cancelled };

struct Started {
  std::string model;
  uint64_t seed;
  int32_t prompt_tokens;
  int32_t cached_tokens = 0;             // of these, found in the cache
  std::vector<int32_t> prompt_ids = {};  // where the request asks for them
};
// How far the prompt's evaluation is.
struct Progress {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache
  int32_t evaluated = 0;      // of the prompt, cached ones included
  double ms = 0;              // since the request got its place
};
// A token with its log probability by the model, before anything that samplers change.
struct ScoredToken {
  int32_t id = 0;
  std::string text;  // bytes, perhaps half a character; of special tokens too
  float logprob = 0;
};
struct ScoredChoice {
  ScoredToken chosen;
  std::vector<ScoredToken> top;  // the likeliest of all tokens, or those asked for; likeliest first
};
// A token of the prompt, scored by what is in front of it.
struct PromptToken {
  ScoredChoice scored;
  int32_t rank = 0;  // 1 + the tokens that were likelier; 0 of the first, which has no figures
};
enum class TextKind : uint8_t { content, reasoning, call };
struct CallBegin {
  std::string id;
  std::string name;
};
struct TokenText {
  std::string text;  // whole UTF-8 characters; of a call, a piece of its arguments
  int32_t index;     // 0-based count of text pieces
  // Where the request asks for figures or ids: of the tokens since the last piece. The text of one
  // may be empty for them.
  std::vector<ScoredChoice> tokens = {};
  TextKind kind = TextKind::content;
  int32_t call = -1;                         // of TextKind::call: which, from 0
  std::optional<CallBegin> call_begin = {};  // its first piece
};
struct Finished {
  StopReason reason = StopReason::eos;
  std::string stop_sequence;  // the text that matched, for StopReason::stop_sequence
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache when the request got its place
  int32_t tokens_out = 0;
  int32_t reasoning_tokens =
      0;                 // of these, inside of the reasoning's marks, where it is told apart
  double prompt_ms = 0;  // wall time of the prompt's evaluation
  double decode_ms = 0;  // wall time of generation after the prompt
  // Of an answer with a constraint: whether it is a whole one; max_tokens, for one, can cut it off.
  std::optional<bool> complete;
  std::optional<int32_t> end_id = {};  // the token that ended it, which is not told before
};
struct Failed {
  Code code;
  std::string message;
};

// Receives one request's events, in order: Started, where the request asks for it Progress ... and
// the prompt's tokens, TokenText ..., then Finished or Failed exactly once. Called on the engine's
// thread; must return at once and must not throw.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_started(const Started&) noexcept = 0;
  // At the start and after each step of the prompt, where the request asks for it.
  virtual void on_progress(const Progress&) noexcept {}
  virtual void on_prompt(const std::vector<PromptToken>&) noexcept {}
  virtual void on_token(const TokenText&) noexcept = 0;
  virtual void on_finished(const Finished&) noexcept = 0;
  virtual void on_failed(const Failed&) noexcept = 0;
};

struct ModelInfo {
  std::string id;              // reported name
  std::string architecture;    // e.g. "llama"
  std::string device;          // e.g. "cpu:0"
  std::string quantization;    // most common weight type, e.g. "q4_1"
  std::string tokenizer_kind;  // e.g. "gguf-bpe", "hf-json"
  int64_t vocab_size = 0;
  int32_t context_length = 0;  // tokens, as configured
  int64_t parameters = 0;
  int64_t weight_bytes = 0;    // resident bytes of the weights, of a draft model's too
  int64_t kv_cache_bytes = 0;  // resident bytes of the KV cache, of a draft model's too
  int32_t picture_tokens =
      0;                     // that a picture takes of the context; 0 = the model reads text alone
  int32_t max_pictures = 0;  // of a request
  int32_t max_running = 1;   // requests that share a step at most
  int32_t max_waiting = 0;   // and that wait besides
  std::string chat_template = {};            // its Jinja source; empty: the checkpoint has none
  std::string bos_text = {}, eos_text = {};  // of the marks of begin and end; empty: none
  SamplingDefaults sampling = {};            // of its generation_config.json
  // Why steps are not captured and replayed, one line; empty: they are.
  std::string capture_refusal = {};
};

// An adapter that requests can take.
struct LoraInfo {
  std::string name;
  std::string path;  // of its file or folder
  float scale = 1;   // where a request names none
};

// "NAME=PATH", "NAME=PATH:SCALE", or either without a name, which is the file's or folder's then.
// Throws invalid_argument for a scale out of range or an empty part.
LoraInfo parse_lora(std::string_view text);

// Figures since start; a consistent snapshot.
struct EngineStats {
  int32_t running = 0;
  int32_t waiting = 0;
  uint64_t requests_finished = 0;
  uint64_t requests_failed = 0;
  uint64_t requests_cancelled = 0;
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  double prompt_seconds = 0;     // engine time, shared by a step's tokens: of prompts
  double decode_seconds = 0;     // of generation
  uint64_t steps = 0;            // of the model, each for all requests that take part
  uint64_t step_requests = 0;    // requests that took part, summed over steps
  uint64_t longest_text = 0;     // tokens of the longest prompt and answer so far
  uint64_t drafts = 0;           // steps of a request with draft tokens
  uint64_t draft_tokens = 0;     // tokens drafted
  uint64_t accepted_tokens = 0;  // of these, tokens that came
  uint64_t preemptions = 0;      // requests that lost their blocks to others, for a while
  uint64_t prefix_queries = 0;   // tokens looked up in the cache when requests began
  uint64_t prefix_hits = 0;      // of these, tokens that were there
  uint64_t pictures = 0;  // that the model has looked at; equal ones once while they are kept
  int64_t kv_blocks_total = 0;
  int64_t kv_blocks_used = 0;  // by running requests
  int64_t kv_blocks_kept = 0;  // by texts that may come again; given up when needed
  // Of a device with memory of its own, whoever uses it; 0 for a CPU, and when not known.
  int64_t device_memory_bytes = 0;
  int64_t device_memory_free_bytes = 0;
  bool healthy = true;  // false after a device error; no new work is taken
};

// Thrown for a prompt that leaves no room for an answer.
class PromptTooLong : public Error {
 public:
  PromptTooLong(int64_t tokens, int64_t context);
  int64_t tokens() const { return tokens_; }    // of the prompt
  int64_t context() const { return context_; }  // the model's, as configured

 private:
  int64_t tokens_;
  int64_t context_;
};

class TextEngine {
 public:
  virtual ~TextEngine() = default;
  virtual const ModelInfo& model() const = 0;
  // Makes tokens of the request's prompt and queues it; thread-safe. Throws invalid_argument for
  // values out of range (the message names field and range) and for messages that the model's
  // template does not take, PromptTooLong, and unsupported when the engine does not take new work.
  virtual void submit(TextRequest request, std::shared_ptr<EventSink> sink) = 0;
  // Ends the request with StopReason::cancelled, waiting or running, at the next token.
  // Thread-safe; false when no such request is waiting or running.
  virtual bool cancel(const std::string& job_id) = 0;
  virtual EngineStats stats() const = 0;
  // What the model makes of text, without evaluating it; thread-safe.
  virtual std::vector<int32_t> tokenize(std::string_view text,
                                        const TokenizeOptions& options) const = 0;
  // The text of tokens, special ones included, as valid UTF-8; unknown ids give nothing.
  virtual std::string detokenize(const std::vector<int32_t>& ids) const = 0;
  // Bytes of one token, perhaps half a character.
  virtual std::string token_bytes(int32_t id) const = 0;
  // The text that is evaluated for `messages`. Throws invalid_argument.
  virtual std::string render(const std::vector<ChatMessage>& messages,
                             const ChatOptions& options) const = 0;
  // The adapters that requests can take, in the order in which they came; thread-safe.
  virtual std::vector<LoraInfo> loras() const = 0;
  // Loads one more and waits until requests can take it; thread-safe. Throws invalid_argument for a
  // name that is taken and for files that do not fit the model, and what reading them throws.
  virtual void load_lora(LoraInfo info) = 0;
  // New requests do not find it any more; thread-safe. False: there is none of this name.
  virtual bool unload_lora(std::string_view name) = 0;
  // The tokens of that text, with those of the messages' pictures. Throws invalid_argument.
  virtual std::vector<int32_t> chat_tokens(const std::vector<ChatMessage>& messages,
                                           const ChatOptions& options) const {
    return tokenize(render(messages, options), {});
  }
  // Takes no new work, cancels everything, and joins the engine's thread. Idempotent.
  virtual void stop() = 0;
};

// "EOS", "MAX_TOKENS", "STOP_SEQUENCE", "CONTEXT_FULL", "CANCELLED".
std::string_view wire_name(StopReason reason);
inline constexpr int32_t kMaxLogprobs = 100;
inline constexpr size_t kMaxStopIds = 128;
inline constexpr size_t kMaxLogprobIds = 128;
// Throws invalid_argument naming field, value and range.
void validate(const TextRequest& request);

}  // namespace rbee::engine
