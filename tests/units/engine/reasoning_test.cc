// Reasoning of a tiny random model: its token count and its budget. The texts mean nothing; log
// probabilities identify the tokens of an answer.

#include "rbee/engine/text/form/reasoning.h"

#include <gmock/gmock.h>

#include "tests/support/expect_error.h"
#include "tests/units/engine/speculating.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;
using text::ReasoningFormat;
using text::ToolFormat;

constexpr const char* kOpens = "{{ messages[0].content }}<think>\n";
constexpr const char* kPlain = "{{ messages[0].content }}";
const std::vector<std::string> kThink{"<think>", "</think>"};
const std::vector<std::string> kHarmony{"<|start|>", "<|channel|>",   "<|message|>", "<|end|>",
                                        "<|call|>",  "<|constrain|>", "<|return|>"};

TextModel thinking_model(const char* code = kOpens, text::OutputFormat format = {},
                         const std::vector<std::string>& marks = kThink, int64_t context = 512) {
  TextModel model = tiny_model(context);
  model.tokenizer = text::tokenizer_from_json(test::tiny_tokenizer_json("</s>", marks),
                                              test::kTinyTokenizerConfig);
  model.end_tokens = model.tokenizer->end_tokens();
  model.format = format;
  if (format == text::OutputFormat{}) model.format.reasoning = ReasoningFormat::think;
  model.chat_template = std::make_unique<text::ChatTemplate>(code);
  return model;
}

// A request whose answer and reasoning never end by themselves.
TextRequest endless(std::optional<int32_t> budget, uint64_t seed = 1) {
  TextRequest request;
  request.messages = {{"user", cat("abc", seed)}};
  request.max_tokens = 24;
  request.sampling.temperature = 1.5f;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.sampling.seed = seed;
  request.sampling.ignore_eos = true;
  request.sampling.logit_bias = {{-1, "</think>", -100}};
  request.logprobs = 0;
  request.chat = {.split = true, .reasoning_budget = budget};
  return request;
}

struct Answer {
  std::string content, reasoning;
  std::vector<std::string> tokens;
  Finished finished;

  friend bool operator==(const Answer& a, const Answer& b) {
    return a.content == b.content && a.reasoning == b.reasoning && a.tokens == b.tokens;
  }
};

class Kinds final : public EventSink {
 public:
  void on_started(const Started& event) noexcept override { recorder.on_started(event); }
  void on_token(const TokenText& event) noexcept override {
    if (event.kind == TextKind::content) answer.content += event.text;
    if (event.kind == TextKind::reasoning) answer.reasoning += event.text;
    recorder.on_token(event);
  }
  void on_finished(const Finished& event) noexcept override { recorder.on_finished(event); }
  void on_failed(const Failed& event) noexcept override { recorder.on_failed(event); }
  Answer wait() {
    recorder.wait();
    EXPECT_TRUE(recorder.finished) << recorder.failed->message;
    answer.finished = *recorder.finished;
    for (const ScoredChoice& token : recorder.tokens) answer.tokens.push_back(token.chosen.text);
    return answer;
  }

  Answer answer;
  Recorder recorder;
};

std::shared_ptr<Kinds> begin(TextEngine& engine, TextRequest request, std::string id = "job") {
  auto sink = std::make_shared<Kinds>();
  request.job_id = std::move(id);
  engine.submit(std::move(request), sink);
  return sink;
}
Answer ask(TextEngine& engine, TextRequest request) {
  return begin(engine, std::move(request))->wait();
}

int64_t place_of(const Answer& answer, const std::string& token) {
  return std::ranges::find(answer.tokens, token) - answer.tokens.begin();
}

TEST(Reasoning, EndsWhereItsBudgetIsSpent) {
  const auto engine = make_llm_engine(thinking_model(), {});
  for (const int32_t budget : {0, 1, 7}) {
    const Answer answer = ask(*engine, endless(budget));
    EXPECT_EQ(place_of(answer, "</think>"), budget);
    EXPECT_EQ(answer.finished.reasoning_tokens, budget);
    EXPECT_EQ(answer.finished.tokens_out, 24);
    EXPECT_EQ(answer.finished.reason, StopReason::max_tokens);
    EXPECT_FALSE(answer.content.empty());
    EXPECT_EQ(answer.reasoning.empty(), budget == 0);
  }
  const Answer free = ask(*engine, endless(std::nullopt));
  EXPECT_EQ(free.finished.reasoning_tokens, 24);
  EXPECT_TRUE(free.content.empty());
  const Answer ample = ask(*engine, endless(24));
  EXPECT_EQ(ample, free);
}

TEST(Reasoning, CountsTokensBetweenTheMarks) {
  const auto engine = make_llm_engine(thinking_model(kPlain), {});
  int ended = 0, none = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    TextRequest request = endless(std::nullopt, seed);
    request.sampling.logit_bias = {{-1, "</think>", 4}, {-1, "<think>", 6}};
    const Answer answer = ask(*engine, request);
    const int64_t open = place_of(answer, "<think>"), close = place_of(answer, "</think>");
    if (open != 0) {  // either it reasons first or not at all
      EXPECT_EQ(answer.finished.reasoning_tokens, 0);
      ++none;
    } else {
      EXPECT_EQ(answer.finished.reasoning_tokens, close - 1);
      ++ended;
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(none, 0);
}

TEST(Reasoning, ThatTheModelBeginsHasTheBudgetToo) {
  const auto engine = make_llm_engine(thinking_model(kPlain), {});
  TextRequest request = endless(3);
  request.sampling.logit_bias.push_back({-1, "<think>", 50});
  const Answer answer = ask(*engine, request);
  EXPECT_EQ(place_of(answer, "<think>"), 0);
  EXPECT_EQ(place_of(answer, "</think>"), 4);
  EXPECT_EQ(answer.finished.reasoning_tokens, 3);
}

// No token of the vocabulary is the mark, so the engine spells it.
TEST(Reasoning, EndsByASpelledMark) {
  const auto engine = make_llm_engine(thinking_model(kOpens, {}, {"<|x|>"}), {});
  TextRequest request = endless(5);
  request.sampling.logit_bias.clear();
  const Answer answer = ask(*engine, request);
  EXPECT_EQ(answer.finished.reasoning_tokens, 5);
  std::string text;
  for (const std::string& token : answer.tokens) text += token;
  const size_t close = text.find("</think>");
  ASSERT_NE(close, std::string::npos) << text;
  size_t begin = 0;
  for (size_t i = 0; i < 5; ++i) begin += answer.tokens[i].size();
  EXPECT_EQ(close, begin);
  EXPECT_THAT(text.substr(close), HasSubstr(answer.content));
}

TEST(Reasoning, TheMarkThatAModelSpellsIsNotCounted) {
  const auto tokenizer = text::tokenizer_from_json(test::tiny_tokenizer_json());
  const text::OutputParserOptions options{
      .format = {.reasoning = ReasoningFormat::think}, .reasoning_open = true, .functions = {}};
  Reasoning reasoning(*tokenizer, options, std::nullopt);
  const auto take = [&](const char* text) {
    const auto ids = tokenizer->encode(text, {.add_special = false});
    for (const int32_t id : ids) reasoning.take(id);
    return static_cast<int32_t>(ids.size());
  };
  const int32_t thoughts = take("x y </thin z");
  EXPECT_EQ(reasoning.tokens(), thoughts);
  EXPECT_GT(take("</think>"), 1);
  EXPECT_EQ(reasoning.tokens(), thoughts);
  take("done </think>");
  EXPECT_EQ(reasoning.tokens(), thoughts);
}

TEST(Reasoning, ACharacterIsFinishedFirst) {
  // Bytes as tokens: 0 to 255, then the mark.
  class Bytes final : public text::Tokenizer {
   public:
    std::vector<text::TokenId> encode(std::string_view, text::EncodeOptions) const override {
      return {256};
    }
    std::string piece(text::TokenId id, bool) const override {
      return id == 256 ? "</think>" : std::string(1, static_cast<char>(id));
    }
    int64_t vocab_size() const override { return 257; }
    std::optional<text::TokenId> find(std::string_view) const override { return std::nullopt; }
    bool is_special(text::TokenId) const override { return false; }

   private:
    int leading_spaces_dropped() const override { return 0; }
  };
  const Bytes tokenizer;
  const text::OutputParserOptions options{
      .format = {.reasoning = ReasoningFormat::think}, .reasoning_open = true, .functions = {}};
  Reasoning mended(tokenizer, options, 2);
  for (const int32_t id : {0x61, 0xE2, 0x82}) {
    EXPECT_EQ(mended.forced(), std::nullopt);
    mended.take(id);
  }
  EXPECT_EQ(mended.forced(), std::nullopt);
  mended.take(0xAC);
  EXPECT_EQ(mended.forced(), 256);
  EXPECT_EQ(mended.tokens(), 4);
  mended.take(256);
  EXPECT_EQ(mended.forced(), std::nullopt);
  EXPECT_EQ(mended.tokens(), 4);

  Reasoning broken(tokenizer, options, 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(broken.forced(), std::nullopt) << i;
    broken.take(0xF0);
  }
  EXPECT_EQ(broken.forced(), 256);  // three more are enough
}

TEST(Reasoning, TheBudgetDoesNotDependOnTheOthers) {
  constexpr int kTogether = 16;
  const auto request = [](int i) {
    TextRequest out = endless(i % 5, static_cast<uint64_t>(i));
    out.sampling.temperature = 0;
    return out;
  };
  std::vector<Answer> alone;
  {
    const auto engine = make_llm_engine(thinking_model(kOpens, {}, kThink, 64), {.max_running = 1});
    for (int i = 0; i < kTogether; ++i) alone.push_back(ask(*engine, request(i)));
  }
  // The last cache is too small, so some requests are evaluated again.
  for (const int64_t cache : {0, 256}) {
    const auto engine = make_llm_engine(
        thinking_model(kOpens, {}, kThink, 64),
        {.max_running = kTogether, .step_tokens = 64, .cache_tokens = cache, .block_size = 4});
    const auto holder = hold(*engine, greedy("hold", 1));
    std::vector<std::shared_ptr<Kinds>> sinks;
    for (int i = 0; i < kTogether; ++i) sinks.push_back(begin(*engine, request(i), cat("job", i)));
    holder->let_go();
    for (int i = 0; i < kTogether; ++i) {
      const Answer answer = sinks[static_cast<size_t>(i)]->wait();
      EXPECT_EQ(answer, alone[static_cast<size_t>(i)]) << i;
      EXPECT_EQ(answer.finished.reasoning_tokens, i % 5);
    }
    EXPECT_EQ(engine->stats().preemptions > 0, cache > 0);
  }
}

TEST(Reasoning, TheBudgetHoldsWhereTokensAreDrafted) {
  for (const bool by_model : {false, true}) {
    const auto model = [] { return thinking_model(kOpens, {}, kThink, 128); };
    const auto without = make_llm_engine(model(), plain());
    const auto with = make_llm_engine(model(), speculating(),
                                      by_model ? std::optional<TextModel>(model()) : std::nullopt);
    for (const int32_t budget : {0, 4, 9, 13}) {
      TextRequest request = endless(budget);
      request.sampling.temperature = 0;
      // Only two different tokens, so every continuation has occurred before.
      request.sampling.logit_bias.push_back({-1, "ca", 100});
      request.sampling.logit_bias.push_back({-1, "fe", 100});
      request.sampling.frequency_penalty = 0.2f;
      const Answer answer = ask(*with, request);
      EXPECT_EQ(answer, ask(*without, request));
      EXPECT_EQ(place_of(answer, "</think>"), budget);
      EXPECT_EQ(answer.finished.reasoning_tokens, budget);
    }
    EXPECT_GT(with->stats().accepted_tokens, 0u);
  }
}

TEST(Reasoning, AGrammarHoldsBehindTheBudget) {
  for (const auto& marks : {kThink, std::vector<std::string>{"<|x|>"}}) {
    const auto engine = make_llm_engine(thinking_model(kOpens, {}, marks), {});
    for (const int32_t budget : {0, 6}) {
      TextRequest request = endless(budget);
      request.sampling.ignore_eos = false;
      request.sampling.logit_bias.clear();
      if (marks == kThink) request.sampling.logit_bias = {{-1, "</think>", -100}};
      request.constraint = {.kind = Constraint::Kind::regex, .text = "[0-9]{3}", .choices = {}};
      const Answer answer = ask(*engine, request);
      EXPECT_EQ(answer.finished.complete, true);
      EXPECT_EQ(answer.finished.reasoning_tokens, budget);
      EXPECT_EQ(answer.content.size(), 3u) << answer.content;
      EXPECT_EQ(answer.content.find_first_not_of("0123456789"), std::string::npos);
    }
  }
}

// The grammar makes the random model write headers.
TEST(Reasoning, HarmonyGoesOnWithTheAnswer) {
  const text::OutputFormat format{ToolFormat::harmony, ReasoningFormat::harmony};
  const auto engine = make_llm_engine(thinking_model(kPlain, format, kHarmony), {});
  int thoughts = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    TextRequest request = endless(4, seed);
    request.max_tokens = 60;
    request.sampling.ignore_eos = false;
    // Neither the reasoning nor a commentary ends by itself.
    request.sampling.logit_bias = {{-1, "<|end|>", -100}, {-1, "c", -100}, {-1, "co", -100}};
    request.constraint = {.kind = Constraint::Kind::regex, .text = "[0-9]{3}", .choices = {}};
    const Answer answer = ask(*engine, request);
    EXPECT_EQ(answer.finished.complete, true) << answer.reasoning;
    EXPECT_EQ(answer.content.size(), 3u) << answer.content;
    EXPECT_EQ(answer.finished.reasoning_tokens, answer.reasoning.empty() ? 0 : 4);
    thoughts += !answer.reasoning.empty();
  }
  EXPECT_GT(thoughts, 0);
}

// After the reasoning a call must be possible; if the model reasons again, it is ended.
TEST(Reasoning, HarmonyMayCallBehindTheBudget) {
  const auto tokenizer = text::tokenizer_from_json(test::tiny_tokenizer_json("</s>", kHarmony));
  const auto forced_after = [&](Reasoning& reasoning, const char* text) {
    for (const int32_t id : tokenizer->encode(text, {.add_special = false})) reasoning.take(id);
    std::string out;
    while (const auto id = reasoning.forced()) {
      out += tokenizer->piece(*id, true);
      reasoning.take(*id);
    }
    return out;
  };
  constexpr const char* kAnalysis = "<|channel|>analysis<|message|>";
  constexpr const char* kFinal = "<|end|><|start|>assistant<|channel|>final<|message|>";
  const text::OutputParserOptions calls{.format = {ToolFormat::harmony, ReasoningFormat::harmony},
                                        .functions = {}};
  Reasoning with(*tokenizer, calls, 0);
  EXPECT_EQ(forced_after(with, kAnalysis), "<|end|><|start|>assistant");
  EXPECT_EQ(forced_after(with, kAnalysis), kFinal);
  const text::OutputParserOptions none{.format = {ToolFormat::none, ReasoningFormat::harmony},
                                       .functions = {}};
  Reasoning without(*tokenizer, none, 0);
  EXPECT_EQ(forced_after(without, kAnalysis), kFinal);
  EXPECT_EQ(without.tokens(), 0);
}

TEST(Reasoning, ABudgetBelowNothingIsRefused) {
  const auto engine = make_llm_engine(thinking_model(), {});
  harness::expect_error("reasoning_budget", "-1", "below 0",
                        [&] { engine->submit(endless(-1), std::make_shared<Kinds>()); });
}

}  // namespace
}  // namespace rbee::engine
