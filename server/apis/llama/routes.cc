#include "server/apis/llama/routes.h"

#include <algorithm>
#include <array>
#include <optional>

#include "server/apis/llama/reply.h"
#include "server/apis/openai/error.h"
#include "server/apis/openai/response.h"
#include "server/apis/text_answers.h"

namespace rbee::server {
namespace {

using Ids = std::vector<int32_t>;

// Special tokens of a model that was trained to infill. file, repository: empty if it has none.
struct InfillMarks {
  std::string_view before, after, middle, file, repository;
};
constexpr std::array<InfillMarks, 6> kMarks{{
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|repo_name|>"},
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>", ""},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>", "<repo_name>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "", ""},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "hole\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     "", ""},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", ""},
}};
constexpr int64_t kRoomForAnswer = 256;  // tokens, if a request has no limit

struct InfillTokens {
  int32_t before = 0, after = 0, middle = 0;
  std::optional<int32_t> file, repository;
};

std::optional<int32_t> token_of(const engine::TextEngine& engine, std::string_view mark) {
  if (mark.empty()) return std::nullopt;
  const Ids ids = engine.tokenize(mark, {.add_special = false, .parse_special = true});
  return ids.size() == 1 ? std::optional(ids.front()) : std::nullopt;
}

// Prefers a set whose file token the model has too; else the first whose other tokens it has.
std::optional<InfillTokens> infill_tokens(const engine::TextEngine& engine) {
  std::optional<InfillTokens> out;
  for (const InfillMarks& marks : kMarks) {
    const auto before = token_of(engine, marks.before), after = token_of(engine, marks.after);
    const auto middle = token_of(engine, marks.middle);
    if (!before || !after || !middle) continue;
    const InfillTokens found{*before, *after, *middle, token_of(engine, marks.file),
                             token_of(engine, marks.repository)};
    if (found.file) return found;
    if (!out) out = found;
  }
  return out;
}

Ids plain_tokens(const engine::TextEngine& engine, std::string_view text) {
  return engine.tokenize(text, {.add_special = false, .parse_special = false});
}

void append(Ids& to, const Ids& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Other files, under their names; the farthest are left out if there is no room.
Ids file_tokens(const engine::TextEngine& engine, const InfillTokens& marks,
                const std::vector<LlamaFile>& files, int64_t room) {
  Ids out;
  if (files.empty()) return out;
  for (const LlamaFile& file : files) {
    if (marks.file) out.push_back(*marks.file);
    append(out, plain_tokens(engine, cat(marks.file ? "" : "\n\n--- ", file.name, "\n")));
    append(out, plain_tokens(engine, file.text));
  }
  if (marks.file) {
    out.push_back(*marks.file);
    append(out, plain_tokens(engine, "filename\n"));
  }
  const int64_t spare = std::ssize(out) - std::max<int64_t>(room, 0);
  if (spare > 0) out.erase(out.begin(), out.begin() + spare);
  return out;
}

// Other files, the text before and after the cursor, and the middle token. Texts that are too long
// lose their far ends; three quarters of the room are for the text before the cursor.
Ids infill_prompt(const engine::TextEngine& engine, const LlamaRequest& request) {
  const std::optional<InfillTokens> marks = infill_tokens(engine);
  if (!marks) {
    fail(Code::unsupported, "infill", "the model has no tokens to fill in between two texts with");
  }
  const Ids begin = engine.tokenize("", {.add_special = true});
  Ids before = plain_tokens(engine, request.before), after = plain_tokens(engine, request.after);
  const int64_t context = engine.model().context_length;
  const int64_t answer =
      std::min<int64_t>(*request.generate.max_tokens, std::min(kRoomForAnswer, context / 4));
  const int64_t room = std::max<int64_t>(context - answer - std::ssize(begin) - 4, 0);
  const int64_t behind = std::min(std::ssize(after), std::max(room / 4, room - std::ssize(before)));
  after.resize(static_cast<size_t>(behind));
  const int64_t spare = std::ssize(before) - (room - behind);
  if (spare > 0) before.erase(before.begin(), before.begin() + spare);
  const int64_t left = room - std::ssize(before) - std::ssize(after);
  Ids out = begin;
  if (marks->repository && !request.files.empty()) {
    Ids name = {*marks->repository};
    append(name, plain_tokens(engine, "repository\n"));
    if (std::ssize(name) < left) append(out, name);
  }
  const int64_t for_files = left - (std::ssize(out) - std::ssize(begin));
  append(out, file_tokens(engine, *marks, request.files, for_files));
  out.push_back(marks->before);
  append(out, before);
  out.push_back(marks->after);
  append(out, after);
  out.push_back(marks->middle);
  return out;
}

// Texts and tokens, in order.
Ids joined_prompt(const engine::TextEngine& engine, const LlamaPrompt& parts) {
  Ids out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const SentPrompt& part = parts[i];
    append(out, part.ids.empty() ? engine.tokenize(part.text, {.add_special = i == 0}) : part.ids);
  }
  return out;
}

// The prompts to answer.
AnswerPlan plan_of(const engine::TextEngine& engine, const LlamaRequest& request) {
  AnswerPlan out;
  if (request.infill) out.prompts.push_back({.text = {}, .ids = infill_prompt(engine, request)});
  for (const LlamaPrompt& prompt : request.prompts) {
    out.prompts.push_back(prompt.size() > 1
                              ? SentPrompt{.text = {}, .ids = joined_prompt(engine, prompt)}
                              : prompt.front());
  }
  return out;
}

// OneReply: answers one prompt of the request.
template <typename OneReply, typename To>
std::shared_ptr<To> start(LlmService& service, const LlamaRequest& request) {
  const AnswerPlan plan = plan_of(service.engine(), request);
  auto answers = std::make_shared<LlamaAnswers>();
  answers->left = plan.prompts.size();
  answers->whole.resize(plan.prompts.size());
  LlamaAnswer answer{.model = service.answering_model(request.generate),
                     .request = request,
                     .sampling = request.generate.sampling,
                     .context = service.engine().model().context_length};
  answer.request.prompts.clear();  // every answer has a copy
  const LlmService::MakePart<To> make = [&](size_t index, const std::function<void()>& cancel,
                                            std::shared_ptr<To> to) {
    LlamaAnswer one = answer;
    one.index = static_cast<int32_t>(index);
    const SentPrompt& asked = plan.prompts[index];
    one.prompt = asked.ids.empty() ? asked.text : service.engine().detokenize(asked.ids);
    if (index == 0) answers->cancel = cancel;  // before any job runs
    return std::make_unique<OneReply>(std::move(to), std::move(one), answers);
  };
  return service.start_all(service.new_job_id(), request.generate, plan, make);
}

Response answer(LlmService& service, const LlamaRequest& request) {
  if (*request.generate.stream) {
    return event_stream(start<LlamaStream, EventQueue>(service, request));
  }
  return answer_of(start<LlamaText, DelayedResponse>(service, request));
}

template <LlamaRequest (*kParse)(std::string_view)>
Response complete(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    LlamaRequest body = kParse(request.body);
    fill_in(service, request, Defaults::own, body.generate);
    auto work = LlmService::preparation(body.generate);
    // Several texts are tokenized before the jobs are queued.
    const bool texts = body.infill || body.prompts.size() > 1 || body.prompts.front().size() > 1;
    if (texts && work == LlmService::Preparation::little) work = LlmService::Preparation::text;
    return prepared(service, request, work, openai_error,
                    [&service, body = std::move(body)] { return answer(service, body); });
  });
}

Response props(LlmService& service, const Request&) {
  const engine::ModelInfo& model = service.engine().model();
  const WorkerInfo worker = service.info();
  GenerateRequest defaults;
  service.set_defaults(defaults);
  set_llama_defaults(defaults);
  return json_response(200,
                       llama_props_json({.model = service.model_id(),
                                         .path = service.options().model_file,
                                         .build = cat(worker.implementation, " ", worker.version),
                                         .chat_template = model.chat_template,
                                         .bos = model.bos_text,
                                         .eos = model.eos_text,
                                         .context = model.context_length,
                                         .slots = model.max_running,
                                         .pictures = model.max_pictures > 0,
                                         .aliases = service.options().aliases,
                                         .sampling = defaults.sampling,
                                         .max_tokens = defaults.max_tokens.value_or(-1)}));
}

Response slots(LlmService& service, const Request& request) {
  const engine::ModelInfo& model = service.engine().model();
  const int32_t running = service.engine().stats().running;
  const bool all_used = running >= model.max_running;
  if (all_used && request.query.find("fail_on_no_slot=1") != request.query.npos) {
    return json_response(503, openai_error_json(503, "OVERLOADED", "no slot available"));
  }
  return json_response(200, llama_slots_json(model.max_running, running, model.context_length));
}

constexpr auto complete_text = complete<parse_llama_completion>;

constexpr ChatRoute kRoutes[] = {
    {"POST", "/completion", complete_text, Body::json, ErrorForm::openai},
    {"POST", "/completions", complete_text, Body::json, ErrorForm::openai},
    {"POST", "/infill", complete<parse_llama_infill>, Body::json, ErrorForm::openai},
    {"GET", "/props", props, Body::none, ErrorForm::openai},
    {"GET", "/slots", slots, Body::none, ErrorForm::openai},
};

}  // namespace

std::span<const ChatRoute> llama_routes() {
  return kRoutes;
}

}  // namespace rbee::server
