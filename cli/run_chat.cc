// rbee run: one prompt, one answer. rbee chat: a conversation in the terminal.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <deque>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/speculative_options.h"
#include "cli/terminal_sink.h"
#include "rbee/core/input_file.h"
#include "rbee/core/printable.h"

namespace rbee::tools {
namespace {

struct RunOptions {
  ModelOptions model;
  SamplingFlags sampling;
  std::vector<std::string> texts;  // of no flag
  std::string prompt;
  std::string system;
  std::vector<std::string> images;  // files, before the first message
  std::vector<std::string> stop;
  std::vector<std::string> loras;
  std::string grammar, json_schema, regex;  // at most one is not empty
  int32_t max_tokens = 512;
  std::optional<int32_t> reasoning_budget;
  std::string reasoning_effort;
  bool hide_reasoning = false;
  bool raw = false;
  bool logprobs = false;
  bool quiet = false;
  workers::SpeculativeFlags draft;
};

std::shared_ptr<RunOptions> add_options(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  add_model_options(app, options->model);
  add_sampling_options(app, options->sampling);
  app.add_option("-n,--max-tokens", options->max_tokens, "tokens generated at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--system", options->system, "system message");
  app.add_option("--reasoning-budget", options->reasoning_budget,
                 "at most this many tokens of reasoning; then the answer begins")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--reasoning-effort", options->reasoning_effort,
                 "how much the chat template asks the model to reason")
      ->check(CLI::IsMember({"none", "minimal", "low", "medium", "high", "xhigh"}));
  app.add_flag("--hide-reasoning", options->hide_reasoning, "the answer alone, without reasoning");
  app.add_option(
         "--image", options->images,
         "a PNG, JPEG, WebP, GIF or BMP file for a model that reads pictures, before the first "
         "message; may be given several times")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false);
  app.add_option("--pan-and-scan", options->model.pan_and_scan,
                 "long pictures are shown in parts too; auto = as the model's files say")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--stop", options->stop, "text that ends the answer; may be given several times");
  app.add_option("--lora", options->loras,
                 "PATH[:SCALE]: a LoRA adapter, PEFT's folder or a GGUF file; may be given several "
                 "times")
      ->allow_extra_args(false);
  auto* form = app.add_option_group("form", "the form that the answer must have");
  form->add_option("--grammar", options->grammar, "a file with a grammar in GBNF")
      ->check(CLI::ExistingFile);
  form->add_option("--json-schema", options->json_schema, "a file with a JSON schema")
      ->check(CLI::ExistingFile);
  form->add_option("--regex", options->regex, "a regular expression for the whole answer");
  form->require_option(0, 1);
  workers::add_speculative_flags(app, options->draft);
  app.add_flag("-q,--quiet", options->quiet, "only the answer");
  return options;
}

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

engine::ChatMessage first_message(const RunOptions& options, const std::string& text) {
  engine::ChatMessage out{.role = "user", .content = text};
  for (const std::string& path : options.images) {
    out.pictures.push_back({.at = 0,
                            .file = std::make_shared<const engine::PictureFile>(read_file(path)),
                            .field = path});
  }
  return out;
}

engine::Constraint constraint_of(const RunOptions& options) {
  using Kind = engine::Constraint::Kind;
  if (!options.grammar.empty()) return {Kind::grammar, read_file(options.grammar), {}};
  if (!options.json_schema.empty()) return {Kind::json_schema, read_file(options.json_schema), {}};
  if (!options.regex.empty()) return {Kind::regex, options.regex, {}};
  return {};
}

// Sets the same template variables as the worker's API.
void ask_for_reasoning(const RunOptions& options, engine::ChatOptions& chat) {
  const bool off = options.reasoning_effort == "none" || options.reasoning_budget == 0;
  nlohmann::json variables = nlohmann::json::object();
  chat.reasoning_budget = off ? std::optional(0) : options.reasoning_budget;
  if (!options.reasoning_effort.empty()) variables["reasoning_effort"] = options.reasoning_effort;
  if (chat.reasoning_budget) variables["thinking_budget"] = *chat.reasoning_budget;
  if (off) variables["enable_thinking"] = variables["thinking"] = false;
  if (!variables.empty()) chat.template_variables = variables.dump();
}

engine::Finished answer(engine::TextEngine& engine, engine::TextRequest request,
                        const RunOptions& options, engine::ChatMessage* said) {
  const bool hidden = options.hide_reasoning || options.quiet;
  auto sink = std::make_shared<TerminalSink>(
      hidden ? TerminalSink::Thoughts::hidden : TerminalSink::Thoughts::shown,
      options.logprobs ? TerminalSink::Answer::tokens : TerminalSink::Answer::text);
  if (options.logprobs) request.logprobs = 0;
  request.job_id = "terminal";
  request.chat.split = true;
  ask_for_reasoning(options, request.chat);
  request.max_tokens = options.max_tokens;
  request.sampling = sampling_of(options.sampling);
  request.stop = options.stop;
  request.constraint = constraint_of(options);
  for (const engine::LoraInfo& info : engine.loras()) request.lora.push_back({info.name, {}});
  engine.submit(std::move(request), sink);
  const engine::Finished finished = sink->wait();
  if (!options.logprobs) std::printf("\n");
  std::fflush(stdout);
  // The template decides whether the model sees earlier reasoning.
  if (said != nullptr) {
    *said = {.role = "assistant", .content = sink->text(), .reasoning = sink->reasoning()};
  }
  if (!options.quiet) {
    std::fprintf(stderr, "\n[%s]\n", summary(finished, sink->seed()).c_str());
  }
  return finished;
}

engine::LlmOptions engine_options(const RunOptions& options) {
  engine::LlmOptions out{.max_running = 1, .max_pictures = 1024};
  for (const std::string& text : options.loras) out.loras.push_back(engine::parse_lora(text));
  return out;
}

int run(const RunOptions& options) {
  follow_if_rank(options.model);  // before standard input, which other ranks do not have
  const std::string prompt = options.prompt.empty() ? read_standard_input() : options.prompt;
  const auto engine = make_engine(options.model, options.draft, engine_options(options));
  engine::TextRequest request;
  if (options.raw) {
    check(options.images.empty(), "--image", "pictures are for chats; leave out --raw");
    request.prompt = prompt;
  } else {
    if (!options.system.empty()) request.messages.push_back({"system", options.system});
    request.messages.push_back(first_message(options, prompt));
  }
  answer(*engine, std::move(request), options, nullptr);
  return 0;
}

engine::TextEngine* interrupted_engine = nullptr;

// Ctrl-C ends the answer, not the conversation. cancel() takes a lock, so a thread waits for the
// signal instead of a handler.
void cancel_on_interrupt(engine::TextEngine& engine) {
  interrupted_engine = &engine;
  std::thread([] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    for (int signal = 0; sigwait(&set, &signal) == 0;) {
      if (interrupted_engine == nullptr || !interrupted_engine->cancel("terminal")) _exit(0);
    }
  }).detach();
}

int chat(const RunOptions& options) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const auto engine = make_engine(options.model, options.draft, engine_options(options));
  cancel_on_interrupt(*engine);
  std::fprintf(stderr, "%s. Ctrl-C stops an answer, Ctrl-D or /exit ends, /clear starts again.\n",
               printable_line(engine->model().id).c_str());
  std::vector<engine::ChatMessage> messages;
  const auto restart = [&] {
    messages.clear();
    if (!options.system.empty()) messages.push_back({"system", options.system});
  };
  restart();
  std::string line;
  while (std::fprintf(stderr, "> "), std::getline(std::cin, line)) {
    if (line == "/exit") break;
    if (line == "/clear") {
      restart();
      continue;
    }
    if (line.empty()) continue;
    const bool first = messages.empty() || messages.back().role == "system";
    messages.push_back(first ? first_message(options, line)
                             : engine::ChatMessage{.role = "user", .content = line});
    engine::TextRequest request;
    request.messages = messages;
    try {
      engine::ChatMessage said;
      answer(*engine, std::move(request), options, &said);
      messages.push_back(std::move(said));
    } catch (const Error& error) {
      std::fprintf(stderr, "error: %s\n", printable_text(error.what()).c_str());
      messages.pop_back();
    }
  }
  interrupted_engine = nullptr;
  return 0;
}

struct TextsHelp {
  const char* name;
  const char* help;
  int most;
};

// Arguments that belong to no flag, in the order of other programs: MODEL, PROMPT.
void add_texts(CLI::App& app, const std::shared_ptr<RunOptions>& options, const TextsHelp& help) {
  app.get_option("--model")->required(false);
  app.add_option(help.name, options->texts, help.help)->expected(0, help.most);
  app.callback([&app, options, help] {
    std::deque<std::string> texts(options->texts.begin(), options->texts.end());
    const auto take = [&](std::string& to) {
      if (!to.empty() || texts.empty()) return;
      to = std::move(texts.front());
      texts.pop_front();
    };
    take(options->model.model);
    if (help.most > 1) take(options->prompt);
    if (options->model.model.empty()) {
      throw CLI::RequiredError(cat("a model (rbee ", app.get_name(), " hf:org/repo)"));
    }
    if (!texts.empty()) throw CLI::ExtrasError(app.get_name(), {texts.begin(), texts.end()});
  });
}

}  // namespace

Command add_run(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("run", "answer one prompt");
  auto options = add_options(*app);
  app->add_option("-p,--prompt", options->prompt, "the prompt; absent = standard input");
  add_texts(*app, options,
            {.name = "text",
             .help = "the model unless -m names it, then the prompt unless -p has it",
             .most = 2});
  app->add_flag("--raw", options->raw, "continue the text itself, without the chat template");
  app->add_flag("--logprobs", options->logprobs,
                "instead of the text, a line of JSON for each token: id, logprob and text");
  return {app, [options] { return run(*options); }};
}

Command add_chat(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("chat", "talk to a model in the terminal");
  auto options = add_options(*app);
  add_texts(*app, options, {.name = "model", .help = "the model unless -m names it", .most = 1});
  return {app, [options] { return chat(*options); }};
}

}  // namespace rbee::tools
