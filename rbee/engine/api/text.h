#pragma once
// A language model as a server sees it: submit a request, receive events, cancel, read figures.
// make_llm_engine() (text/llm_engine.h) implements it; server tests implement it with a script.

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

// Squares for the vision tower: the whole picture, then its parts if it is shown in parts too.
using PictureSquares = std::vector<std::shared_ptr<const io::Pixels>>;

// The bytes of a picture file, decoded once even if many requests share it.
class PictureFile {
 public:
  explicit PictureFile(std::string bytes) : bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }
  // The result of make(bytes()); later calls return the first result. Thread-safe.
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
  size_t at = 0;  // bytes of the content before it
  std::shared_ptr<const PictureFile> file;
  std::string field;  // its name in errors
};

struct ChatMessage {
  std::string role;
  std::string content;
  std::string reasoning = {};              // of the assistant, before the content
  std::vector<ToolCall> tool_calls = {};   // of the assistant
  std::string tool_call_id = {};           // of role tool: the call that it answers
  std::string name = {};                   // the speaker's; of role tool: the function's, if known
  std::vector<ChatPicture> pictures = {};  // in order of `at`
};

// The required form of an answer; see docs/design/structured-output.md.
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
  bool strict = false;     // the arguments must follow the schema
  // Kind::regex or lark: the function has one parameter, the text `input`, which must have this
  // form even if not strict.
  Constraint input = {};
  friend bool operator==(const Tool&, const Tool&) = default;
};

enum class ToolChoice : uint8_t { none, automatic, required };

struct ChatOptions {
  // Split reasoning and calls from the answer: see TextKind.
  bool split = false;
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::automatic;
  std::string tool;  // for ToolChoice::required: the one to call; empty: any
  bool parallel_tool_calls = true;
  std::string template_variables;  // a JSON object of more variables for the template; or empty
  // Most reasoning tokens if reasoning is split off; the engine then ends it. Absent: no limit.
  std::optional<int32_t> reasoning_budget;
  // The answer continues the last message, which must be the assistant's.
  bool continue_last = false;
  // The prompt ends with the beginning of the assistant's turn.
  bool add_generation_prompt = true;

  // Whether the model sees the tools.
  bool calls() const { return !tools.empty() && tool_choice != ToolChoice::none; }
  // A function that is named is called once.
  bool one_call() const { return !parallel_tool_calls || !tool.empty(); }
};

struct TokenizeOptions {
  bool add_special = false;   // add the model's special tokens at the ends
  bool parse_special = true;  // text such as "<|im_end|>" becomes its token
};

// An adapter (Hu et al. 2021) for an answer.
struct LoraChoice {
  std::string name;
  std::optional<float> scale;  // absent: the adapter's own; 0: as if it were not named
  friend bool operator==(const LoraChoice&, const LoraChoice&) = default;
};
inline constexpr float kMaxLoraScale = 100;
inline constexpr size_t kMaxLoras = 8;  // of one request

struct TextRequest {
  std::string job_id;
  std::string prompt;                 // raw text, used if `messages` is empty
  std::vector<int32_t> prompt_ids;    // tokens in place of that text; empty: the text
  std::vector<ChatMessage> messages;  // rendered through the model's chat template
  ChatOptions chat;                   // for `messages`
  int32_t max_tokens = 512;           // most generated tokens; 0: only evaluate the prompt
  SamplingParams sampling;
  std::vector<std::string> stop;  // generation ends before any of these texts
  std::vector<int32_t> stop_ids;  // and before any of these tokens
  Constraint constraint;
  std::vector<int32_t> allowed_ids;  // the only tokens allowed, without a constraint; empty: all
  // Keep only this many prompt tokens, the last ones or the first; -1: as many as fit beside the
  // answer. Absent: all.
  std::optional<int32_t> kept_tokens;
  bool keeps_first = false;
  // Log probabilities of every token, and of this many likeliest tokens at its position.
  std::optional<int32_t> logprobs;
  // In place of the likeliest: these tokens, and the chosen one. Needs no `logprobs`.
  std::vector<int32_t> logprob_ids;
  std::optional<int32_t> prompt_logprobs;  // the same for the prompt's tokens, see on_prompt()
  bool token_ids = false;                  // send token ids with the texts, without figures
  // In place of `logprobs`, in the same form: the probabilities used to draw, after all samplers.
  std::optional<int32_t> drawn_logprobs;
  bool return_prompt_ids = false;   // send Started::prompt_ids
  bool progress = false;            // send on_progress()
  std::vector<LoraChoice> lora;     // none: the model alone
  std::optional<bool> speculative;  // use draft tokens; absent: as the engine's options say
  std::string client;               // clients take turns
  std::string user;                 // the client's user: users of a client take turns
  std::string cache_salt;           // cached prefixes are shared only under the same salt
  int32_t priority = 0;  // -1000 to 1000; lower goes first; below 0: if the engine allows it
  // Start only after this job's prompt is cached or the job has ended. That job must not follow
  // another.
  std::string follows;
};

enum class StopReason : uint8_t { eos, max_tokens, stop_sequence, context_full, cancelled };

struct Started {
  std::string model;
  uint64_t seed;
  int32_t prompt_tokens;
  int32_t cached_tokens = 0;             // of these, found in the cache
  std::vector<int32_t> prompt_ids = {};  // if the request asks for them
};
// How far the prompt's evaluation is.
struct Progress {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache
  int32_t evaluated = 0;      // prompt tokens evaluated, cached ones included
  double ms = 0;              // since the request got its place
};
// A token with its log probability by the model, before samplers change anything.
struct ScoredToken {
  int32_t id = 0;
  std::string text;  // bytes, perhaps half a character; of special tokens too
  float logprob = 0;
};
struct ScoredChoice {
  ScoredToken chosen;
  std::vector<ScoredToken> top;  // the likeliest tokens, or the requested ones; likeliest first
};
// A prompt token with its figures, given the tokens before it.
struct PromptToken {
  ScoredChoice scored;
  int32_t rank = 0;  // 1 + number of likelier tokens; 0 for the first token, which has no figures
};
enum class TextKind : uint8_t { content, reasoning, call };
struct CallBegin {
  std::string id;
  std::string name;
};
struct TokenText {
  std::string text;  // whole UTF-8 characters; in a call, a piece of its arguments
  int32_t index;     // 0-based count of text pieces
  // The tokens since the last piece, if the request asks for figures or ids. The text may be empty
  // for them.
  std::vector<ScoredChoice> tokens = {};
  TextKind kind = TextKind::content;
  int32_t call = -1;                         // for TextKind::call: which one, from 0
  std::optional<CallBegin> call_begin = {};  // in its first piece
};
struct Finished {
  StopReason reason = StopReason::eos;
  std::string stop_sequence;  // the text that matched, for StopReason::stop_sequence
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache when the request got its place
  int32_t tokens_out = 0;
  int32_t reasoning_tokens = 0;  // of these, inside the reasoning marks, if reasoning is split off
  double prompt_ms = 0;          // wall time of the prompt's evaluation
  double decode_ms = 0;          // wall time of generation after the prompt
  // For an answer with a constraint: whether it is complete; max_tokens, for one, can cut it off.
  std::optional<bool> complete;
  std::optional<int32_t> end_id = {};  // the token that ended it; no piece contains it
};
struct Failed {
  Code code;
  std::string message;
};

// Receives one request's events, in order: Started, then on request Progress and the prompt's
// tokens, then TokenText ..., then Finished or Failed exactly once. Called on the engine's thread;
// must return at once and must not throw.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_started(const Started&) noexcept = 0;
  // At the start and after each step of the prompt, if the request asks for it.
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
  int64_t weight_bytes = 0;      // resident bytes of the weights, of all ranks and a draft model
  int64_t kv_cache_bytes = 0;    // the same of the KV cache
  int64_t host_cache_bytes = 0;  // of host memory for blocks that the KV cache gave up
  int32_t picture_tokens = 0;    // context tokens for one picture; 0 = the model reads only text
  int32_t max_pictures = 0;      // of one request
  int32_t ranks = 1;             // processes that hold the model together
  // Of several, each one's bytes of weights and cache; a draft model's are rank 0's.
  std::vector<int64_t> rank_bytes = {};
  int32_t max_running = 1;                   // most requests that share a step
  int32_t max_waiting = 0;                   // most requests that wait beside them
  std::string chat_template = {};            // its Jinja source; empty: the checkpoint has none
  std::string bos_text = {}, eos_text = {};  // of the begin and end tokens; empty: none
  bool calls_tools = false;                  // chats can offer it functions
  bool reasons = false;                      // its reasoning has marks that can be split off
  SamplingDefaults sampling = {};            // of its generation_config.json
  // Why steps are not captured and replayed, in one line; empty: they are.
  std::string capture_refusal = {};
};

// An adapter that requests can name.
struct LoraInfo {
  std::string name;
  std::string path;  // of its file or folder
  float scale = 1;   // if a request gives none
};

// "NAME=PATH", "NAME=PATH:SCALE", or either without a name, which is then the file's or folder's.
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
  double prompt_seconds = 0;     // engine time, divided among a step's tokens: for prompts
  double decode_seconds = 0;     // the same for generation
  uint64_t steps = 0;            // of the model, each shared by its requests
  uint64_t step_requests = 0;    // requests in each step, summed over steps
  uint64_t longest_text = 0;     // tokens of the longest prompt with its answer so far
  uint64_t drafts = 0;           // steps of a request with draft tokens
  uint64_t draft_tokens = 0;     // tokens drafted
  uint64_t accepted_tokens = 0;  // of these, tokens accepted
  uint64_t preemptions = 0;      // times that a request lost its blocks to others for a while
  uint64_t prefix_queries = 0;   // tokens looked up in the cache when requests began
  uint64_t prefix_hits = 0;      // of these, tokens found
  uint64_t pictures = 0;         // seen by the model; equal ones count once while they are cached
  int64_t kv_blocks_total = 0;
  int64_t kv_blocks_used = 0;  // by running requests
  int64_t kv_blocks_kept = 0;  // by kept texts; given up if needed
  // Of the cache in host memory.
  int64_t host_blocks_total = 0;
  int64_t host_blocks_kept = 0;
  uint64_t host_blocks_stored = 0;   // copied there
  uint64_t host_blocks_loaded = 0;   // copied back for a prompt
  uint64_t host_blocks_dropped = 0;  // for other texts
  uint64_t host_hits = 0;            // tokens of blocks that were copied back
  // Of a device with its own memory, used by any program; 0 for a CPU, or if unknown.
  int64_t device_memory_bytes = 0;
  int64_t device_memory_free_bytes = 0;
  // Of a model that several ranks hold, what the first one tells the others.
  uint64_t group_commands = 0;
  uint64_t group_bytes = 0;
  double group_wait_seconds = 0;  // for ranks that were behind
  bool healthy = true;            // false after a device error; the engine then takes no new work
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

class KvEventLog;  // kv_events.h

class TextEngine {
 public:
  virtual ~TextEngine() = default;
  virtual const ModelInfo& model() const = 0;
  // Tokenises the prompt and queues the request; thread-safe. Throws invalid_argument for values
  // out of range (the message names field and range) and for messages that the model's template
  // rejects, PromptTooLong, and unsupported if the engine takes no new work.
  virtual void submit(TextRequest request, std::shared_ptr<EventSink> sink) = 0;
  // Ends the request, waiting or running, at the next token with StopReason::cancelled.
  // Thread-safe; false if no such request is waiting or running.
  virtual bool cancel(const std::string& job_id) = 0;
  virtual EngineStats stats() const = 0;
  // Changes of what the KV cache holds. Those that a request causes are in the log before the
  // request's last event; stop() closes the log. Null: the engine keeps none.
  virtual std::shared_ptr<const KvEventLog> kv_events() const { return nullptr; }
  // The model's tokens for a text, without evaluating it; thread-safe.
  virtual std::vector<int32_t> tokenize(std::string_view text,
                                        const TokenizeOptions& options) const = 0;
  // The text of tokens, special ones included, as valid UTF-8; unknown ids give nothing.
  virtual std::string detokenize(const std::vector<int32_t>& ids) const = 0;
  // Bytes of one token, perhaps half a character.
  virtual std::string token_bytes(int32_t id) const = 0;
  // The prompt text for `messages`. Throws invalid_argument.
  virtual std::string render(const std::vector<ChatMessage>& messages,
                             const ChatOptions& options) const = 0;
  // The adapters that requests can name, in the order of loading; thread-safe.
  virtual std::vector<LoraInfo> loras() const = 0;
  // Loads an adapter and returns when requests can name it; thread-safe. Throws invalid_argument if
  // the name is taken or the files do not fit the model, and what reading them throws.
  virtual void load_lora(LoraInfo info) = 0;
  // New requests can no longer name it; thread-safe. False: no adapter has this name.
  virtual bool unload_lora(std::string_view name) = 0;
  // The tokens of render()'s text, with those of the messages' pictures. Throws invalid_argument.
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
