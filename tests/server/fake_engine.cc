#include "tests/server/fake_engine.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rbee::testing {

constexpr std::chrono::seconds kPatience{60};

namespace {

// Cuts a text into pieces of four characters.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  int characters = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins && characters++ % 4 == 0) pieces.emplace_back();
    pieces.back() += c;
  }
  return pieces;
}

std::string text_to_repeat(const engine::TextRequest& request) {
  if (request.messages.empty()) return request.prompt;
  const engine::ChatMessage& first = request.messages.front();
  return first.role == "system" ? first.content : request.messages.back().content;
}

}  // namespace

FakeEngine::FakeEngine(Script script) : script_(std::move(script)) {
  model_ = {.id = "fake-model",
            .architecture = "llama",
            .device = "cpu:0",
            .quantization = "q4_1",
            .tokenizer_kind = "gguf-bpe",
            .vocab_size = 49152,
            .context_length = 2048,
            .parameters = 135,
            .weight_bytes = 1000,
            .kv_cache_bytes = 24,
            .max_pictures = script_.max_pictures,
            .max_running = 1,
            .max_waiting = 255,
            .chat_template = "{{ messages }}",
            .bos_text = "<s>",
            .eos_text = "</s>",
            .calls_tools = script_.format.tools != text::ToolFormat::none,
            .reasons = script_.format.reasoning != text::ReasoningFormat::none,
            .sampling = script_.sampling,
            .capture_refusal = script_.capture_refusal};
  thread_ = std::thread([this] { loop(); });
}

void FakeEngine::submit(engine::TextRequest request, std::shared_ptr<engine::EventSink> sink) {
  const bool much = request.constraint.kind != engine::Constraint::Kind::none ||
                    request.chat.template_variables.find("hold") != std::string::npos;
  if (script_.hold_submit && much) {
    std::unique_lock lock(mutex_);
    ++submitting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return may_submit_ || stopping_; });
  }
  validate(request);
  if (const std::optional<Code> code = refusal_.load()) fail(*code, "engine", "as scripted");
  const std::string text =
      request.messages.empty() ? request.prompt : render(request.messages, request.chat);
  if (std::ssize(text) > context_) throw engine::PromptTooLong(std::ssize(text), context_);
  const std::lock_guard lock(mutex_);
  if (stopping_) fail(Code::unsupported, "engine", "stopping");
  last_ = request;
  alive_.insert(request.job_id);
  queue_.push_back({std::move(request), std::move(sink)});
  changed_.notify_all();
}

bool FakeEngine::cancel(const std::string& job_id) {
  const std::lock_guard lock(mutex_);
  if (!alive_.contains(job_id)) return false;
  cancel_ids_.insert(job_id);
  changed_.notify_all();
  return true;
}

engine::EngineStats FakeEngine::stats() const {
  const std::lock_guard lock(mutex_);
  engine::EngineStats stats;
  stats.running = alive_.size() > queue_.size() ? 1 : 0;
  stats.waiting = static_cast<int32_t>(queue_.size());
  stats.generated_tokens = tokens_;
  stats.device_memory_bytes = 4096;
  stats.device_memory_free_bytes = 1000;
  stats.healthy = healthy_;
  return stats;
}

void FakeEngine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::vector<int32_t> FakeEngine::tokenize(std::string_view text,
                                          const engine::TokenizeOptions& options) const {
  std::vector<int32_t> ids;
  if (options.add_special) ids.push_back(1);
  constexpr std::array<std::string_view, 5> kMarks{
      "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|repo_name|>"};
  const auto mark = std::ranges::find(kMarks, text);
  if (script_.fills_in && options.parse_special && mark != kMarks.end()) {
    return {static_cast<int32_t>(2 + (mark - kMarks.begin()))};
  }
  for (const char c : text) ids.push_back(1000 + static_cast<unsigned char>(c));
  return ids;
}

std::string FakeEngine::detokenize(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) text += token_bytes(id);
  return text;
}

std::string FakeEngine::token_bytes(int32_t id) const {
  return id < 1000 ? "<s>" : std::string(1, static_cast<char>(id - 1000));
}

std::string FakeEngine::render(const std::vector<engine::ChatMessage>& messages,
                               const engine::ChatOptions& options) const {
  {
    const std::lock_guard lock(mutex_);
    rendered_ = options;
  }
  std::string text;
  for (const engine::Tool& tool : options.tools) text += cat(tool.name, " ");
  if (!text.empty()) text.back() = '\n';
  for (const engine::ChatMessage& message : messages) {
    text += cat(message.role, ": ", message.content, "\n");
  }
  return text;
}

engine::ChatOptions FakeEngine::last_rendered() const {
  const std::lock_guard lock(mutex_);
  return rendered_;
}

void FakeEngine::let_submit() {
  const std::lock_guard lock(mutex_);
  may_submit_ = true;
  changed_.notify_all();
}

void FakeEngine::release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

bool FakeEngine::wait_count(const int& count, int wanted) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return count >= wanted; });
}

bool FakeEngine::wait_ended(int count) const {
  return wait_count(ended_, count);
}

bool FakeEngine::wait_texts_sent(int count) const {
  return wait_count(texts_sent_, count);
}

engine::TextRequest FakeEngine::last_request() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

bool FakeEngine::is_cancelled(const std::string& id) const {
  return stopping_ || cancel_ids_.contains(id);
}

void FakeEngine::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    play(item);
    lock.lock();
    alive_.erase(item.request.job_id);
    ++ended_;
    changed_.notify_all();
  }
}

namespace {

// Sends pieces as an engine does: parsed if the request wants it.
class PieceSender {
 public:
  PieceSender(const engine::TextRequest& request, text::OutputFormat format,
              engine::EventSink& sink)
      : sink_(sink) {
    if (!request.chat.split) return;
    if (!request.chat.calls()) format.tools = text::ToolFormat::none;
    text::OutputParserOptions options{.format = format, .functions = {}};
    for (const engine::Tool& tool : request.chat.tools)
      options.functions.push_back({tool.name, ""});
    parser_.emplace(options);
  }

  void send(const std::string& piece, std::vector<engine::ScoredChoice> tokens) {
    if (!parser_) return sink_.on_token({piece, index_++, std::move(tokens)});
    tokens_ = std::move(tokens);
    const bool inside = parser_->reasons();
    send(parser_->push(piece));
    reasoning_ += inside && parser_->reasons();
  }
  int32_t reasoning() const { return reasoning_; }  // pieces between the marks
  void finish() {
    if (parser_) send(parser_->finish());
  }

 private:
  void send(const std::vector<text::OutputDelta>& deltas) {
    using Kind = text::OutputDelta::Kind;
    for (const text::OutputDelta& delta : deltas) {
      engine::TokenText piece{delta.text, index_++, std::exchange(tokens_, {})};
      piece.call = delta.call;
      if (delta.kind == Kind::reasoning) piece.kind = engine::TextKind::reasoning;
      if (delta.call >= 0) piece.kind = engine::TextKind::call;
      if (delta.kind == Kind::call_begin) {
        piece.call_begin = {cat("call_", delta.call), delta.text};
        piece.text.clear();
      }
      sink_.on_token(piece);
    }
  }

  engine::EventSink& sink_;
  std::optional<text::OutputParser> parser_;
  std::vector<engine::ScoredChoice> tokens_;
  int32_t index_ = 0;
  int32_t reasoning_ = 0;
};

}  // namespace

void FakeEngine::play(const Item& item) {
  const std::string& id = item.request.job_id;
  const auto hold = [&](bool wanted) {
    std::unique_lock lock(mutex_);
    if (wanted) changed_.wait(lock, [&] { return released_ || is_cancelled(id); });
    return is_cancelled(id);
  };
  const std::vector<int32_t>& ids = item.request.prompt_ids;
  std::string text;
  if (script_.echo) text = ids.empty() ? text_to_repeat(item.request) : detokenize(ids);
  const auto pieces = script_.echo ? pieces_of(text) : script_.pieces;
  int32_t sent = 0;
  bool cancelled = hold(script_.hold_before);
  engine::Started started{model_.id, item.request.sampling.seed.value_or(7), 5, 2};
  if (item.request.return_prompt_ids) started.prompt_ids = {1, 2, 3, 4, 5};
  if (!cancelled) item.sink->on_started(started);
  for (const int32_t evaluated : {2, 4, 5}) {
    if (cancelled || !item.request.progress) break;
    item.sink->on_progress({.prompt_tokens = 5,
                            .cached_tokens = 2,
                            .evaluated = evaluated,
                            .ms = evaluated == 2 ? 0.0 : 2.0});
  }
  if (!cancelled && item.request.prompt_logprobs) item.sink->on_prompt(script_.prompt_tokens);
  PieceSender sender(item.request, script_.format, *item.sink);
  for (const std::string& piece : pieces) {
    if (cancelled || sent >= item.request.max_tokens) break;
    const auto at = static_cast<size_t>(sent);
    const bool told =
        item.request.logprobs || item.request.drawn_logprobs || item.request.token_ids;
    const bool wanted = told && at < script_.tokens.size();
    sender.send(piece, wanted ? script_.tokens[at] : std::vector<engine::ScoredChoice>());
    ++sent;
    std::this_thread::sleep_for(script_.pause);
  }
  sender.finish();
  {
    const std::lock_guard lock(mutex_);
    ++texts_sent_;
    tokens_ += static_cast<uint64_t>(sent);
    changed_.notify_all();
  }
  cancelled = hold(script_.hold_after || text.starts_with("hold")) || cancelled;
  if (!cancelled && script_.failure) {
    if (script_.failure->code == Code::device) {
      set_healthy(false);
      refuse_with(Code::device);
    }
    return item.sink->on_failed(*script_.failure);
  }
  if (cancelled) ++cancelled_;
  item.sink->on_finished({.reason = cancelled ? engine::StopReason::cancelled : script_.reason,
                          .stop_sequence = script_.stop_sequence,
                          .prompt_tokens = 5,
                          .cached_tokens = 2,
                          .tokens_out = sent,
                          .reasoning_tokens = sender.reasoning(),
                          .prompt_ms = 2,
                          .decode_ms = 10,
                          .end_id = script_.end_id});
}

std::vector<engine::LoraInfo> FakeEngine::loras() const {
  const std::scoped_lock lock(mutex_);
  return loras_;
}

void FakeEngine::load_lora(engine::LoraInfo info) {
  if (info.path == "nowhere") fail(Code::not_found, info.path, "there is no such file or folder");
  const std::scoped_lock lock(mutex_);
  loras_.push_back(std::move(info));
}

bool FakeEngine::unload_lora(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  return std::erase_if(loras_, [&](const engine::LoraInfo& info) { return info.name == name; }) > 0;
}

}  // namespace rbee::testing
