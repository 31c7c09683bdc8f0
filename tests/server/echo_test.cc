// Echoed prompts and their tokens' log probabilities, in OpenAI's form and in vLLM's.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

constexpr const char* kCompletions = "/v1/completions";

engine::PromptToken first(std::string text) {
  return {.scored = {.chosen = {1, std::move(text), 0}, .top = {}}, .rank = 0};
}

engine::PromptToken token(int32_t id, std::string text, float logprob, int32_t rank) {
  return {.scored = {.chosen = {id, std::move(text), logprob},
                     .top = {{8, "top", -0.25f}, {9, "next", -0.5f}}},
          .rank = rank};
}

// A special token without text, and a leading blank as SentencePiece writes it.
Script scored_prompt() {
  return {.pieces = {"!"},
          .tokens = {{{{5, "!", -1}, {{5, "!", -1}}}}},
          .prompt_tokens = {first("<s>"), token(3, " h\xc3\xa9", -0.75f, 3),
                            token(9, " llo", -0.5f, 2)}};
}

json choice(const Worker& worker, const json& body) {
  const RawResponse response = worker.post(kCompletions, body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body).at("choices").at(0);
}

constexpr const char* kEchoed = R"({"tokens":["<s>"," h\u00e9"," llo","!"],
    "token_logprobs":[null,-0.75,-0.5,-1.0],
    "top_logprobs":[null,{"top":-0.25," h\u00e9":-0.75},{"top":-0.25," llo":-0.5},{"!":-1.0}],
    "text_offset":[0,0,2,6]})";

TEST(Echo, ThePromptIsInFrontOfTheAnswer) {
  Worker worker({.script = scored_prompt()});
  const json plain = choice(worker, {{"prompt", "h\xc3\xa9 llo"}, {"echo", true}});
  EXPECT_EQ(plain.at("text"), "h\xc3\xa9 llo!");
  EXPECT_EQ(plain.at("logprobs"), nullptr);
  EXPECT_FALSE(worker.engine.last_request().prompt_logprobs);
  const json echoed =
      choice(worker, {{"prompt", "h\xc3\xa9 llo"}, {"echo", true}, {"logprobs", 1}});
  EXPECT_EQ(echoed.at("text"), "h\xc3\xa9 llo!");
  EXPECT_EQ(echoed.at("logprobs"), json::parse(kEchoed));
  EXPECT_EQ(worker.engine.last_request().prompt_logprobs, 1);
  EXPECT_EQ(worker.engine.last_request().logprobs, 1);
}

TEST(Echo, WithoutAnAnswer) {
  Script script = scored_prompt();
  script.reason = engine::StopReason::max_tokens;
  Worker worker({.script = script});
  const json body = {
      {"prompt", "h\xc3\xa9 llo"}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 0}};
  const json echoed = choice(worker, body);
  EXPECT_EQ(worker.engine.last_request().max_tokens, 0);
  EXPECT_EQ(echoed.at("text"), "h\xc3\xa9 llo");
  EXPECT_EQ(echoed.at("finish_reason"), "length");
  EXPECT_EQ(echoed.at("logprobs").at("token_logprobs"), json::parse("[null,-0.75,-0.5]"));
  EXPECT_EQ(echoed.at("logprobs").at("top_logprobs"),
            json::parse(R"([null,{" h\u00e9":-0.75},{" llo":-0.5}])"));
}

// lm-evaluation-harness sends such requests.
TEST(Echo, PromptsAreListsOfTokens) {
  Worker worker({.script = scored_prompt()});
  const json body = {{"prompt", {{1104, 1105}, {1106}}},
                     {"echo", true},
                     {"logprobs", 1},
                     {"max_tokens", 1},
                     {"n", 2}};
  const RawResponse response = worker.post(kCompletions, body.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const json answer = json::parse(response.body);
  const json choices = answer.at("choices");
  ASSERT_EQ(choices.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(choices[i].at("index"), i);
    EXPECT_EQ(choices[i].at("text"), i < 2 ? "hi!" : "j!");
    EXPECT_EQ(choices[i].at("logprobs").at("tokens").size(), 4u);
  }
  EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 10);  // two prompts, each counted once
  EXPECT_EQ(answer.at("usage").at("completion_tokens"), 4);
  const engine::TextRequest last = worker.engine.last_request();
  EXPECT_EQ(last.prompt_ids, std::vector<int32_t>{1106});
  EXPECT_EQ(last.prompt, "");
  EXPECT_FALSE(last.prompt_logprobs);  // they belong to its first choice
  EXPECT_TRUE(last.follows.ends_with("-2")) << last.follows;
}

TEST(Echo, InAStream) {
  Worker worker({.script = scored_prompt()});
  const auto events = [&](const json& more) {
    json body = {{"prompt", "h\xc3\xa9 llo"}, {"echo", true}, {"stream", true}};
    body.update(more);
    return payloads(worker.post(kCompletions, body.dump()).body);
  };
  const auto piece = [](const std::string& event) {
    return json::parse(event).at("choices").at(0);
  };
  const std::vector<std::string> plain = events(json::object());
  EXPECT_EQ(piece(plain.at(0)).at("text"), "h\xc3\xa9 llo");
  EXPECT_EQ(piece(plain.at(0)).at("logprobs"), nullptr);
  EXPECT_EQ(piece(plain.at(1)).at("text"), "!");
  const std::vector<std::string> scored = events({{"logprobs", 1}, {"n", 2}});
  const json wanted = json::parse(kEchoed);
  std::vector<std::string> texts(2);
  std::vector<json> offsets(2, json::array()), figures(2, json::array());
  for (size_t i = 0; i + 1 < scored.size(); ++i) {
    const json one = piece(scored[i]);
    const auto at = one.at("index").get<size_t>();
    texts[at] += one.at("text").get<std::string>();
    if (one.at("logprobs").is_null()) continue;
    for (const json& x : one.at("logprobs").at("text_offset")) offsets[at].push_back(x);
    for (const json& x : one.at("logprobs").at("token_logprobs")) figures[at].push_back(x);
  }
  for (size_t at = 0; at < 2; ++at) {
    EXPECT_EQ(texts[at], "h\xc3\xa9 llo!");
    EXPECT_EQ(offsets[at], wanted.at("text_offset"));
    EXPECT_EQ(figures[at], wanted.at("token_logprobs"));
  }
}

TEST(PromptLogprobs, InVllmsForm) {
  Worker worker({.script = scored_prompt()});
  const json wanted = json::parse(R"([null,
      {"3":{"logprob":-0.75,"rank":3,"decoded_token":" h\u00e9"},
       "8":{"logprob":-0.25,"rank":1,"decoded_token":"top"},
       "9":{"logprob":-0.5,"rank":2,"decoded_token":"next"}},
      {"9":{"logprob":-0.5,"rank":2,"decoded_token":" llo"},
       "8":{"logprob":-0.25,"rank":1,"decoded_token":"top"}}])");
  const json own = choice(worker, {{"prompt", "x"}, {"prompt_logprobs", 2}});
  EXPECT_EQ(own.at("prompt_logprobs"), wanted);
  EXPECT_EQ(own.at("text"), "!");
  EXPECT_EQ(own.at("logprobs"), nullptr);
  const json chat = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"prompt_logprobs", 2}};
  const json answer = json::parse(worker.post("/v1/chat/completions", chat.dump()).body);
  EXPECT_EQ(answer.at("prompt_logprobs"), wanted);
  EXPECT_FALSE(answer.at("choices")[0].contains("prompt_logprobs"));
  // Together with an echo that lists fewer top tokens.
  const json both = choice(
      worker,
      {{"prompt", "h\xc3\xa9 llo"}, {"prompt_logprobs", 2}, {"echo", true}, {"logprobs", 1}});
  EXPECT_EQ(worker.engine.last_request().prompt_logprobs, 2);
  EXPECT_EQ(both.at("prompt_logprobs"), wanted);
  EXPECT_EQ(both.at("logprobs"), json::parse(kEchoed));
}

TEST(Echo, WhatIsWrongIsNamed) {
  Worker worker;
  const auto param = [&](const char* path, json body) {
    const RawResponse response = worker.post(path, body.dump());
    EXPECT_EQ(response.status, 400) << body;
    return json::parse(response.body).at("error").value("param", "");
  };
  const auto completion = [&](const json& more) {
    json body = {{"prompt", "x"}};
    body.update(more);
    return param(kCompletions, body);
  };
  EXPECT_EQ(completion({{"prompt_logprobs", 21}}), "prompt_logprobs");
  EXPECT_EQ(completion({{"prompt_logprobs", -1}}), "prompt_logprobs");
  EXPECT_EQ(completion({{"prompt_logprobs", 1}, {"stream", true}}), "prompt_logprobs");
  EXPECT_EQ(completion({{"max_tokens", 0}}), "max_tokens");
  EXPECT_EQ(completion({{"max_tokens", -2}, {"echo", true}}), "max_tokens");
  EXPECT_EQ(completion({{"echo", 7}}), "echo");
  EXPECT_EQ(completion({{"prompt", {1, -1}}}), "prompt[1]");
  EXPECT_EQ(completion({{"prompt", {{1}, json::array()}}}), "prompt[1]");
  EXPECT_EQ(completion({{"prompt", {"a", ""}}}), "prompt[1]");
  EXPECT_EQ(completion({{"prompt", {"a", 7}}}), "prompt[1]");
  EXPECT_EQ(completion({{"prompt", json::array()}}), "prompt");
  EXPECT_EQ(completion({{"prompt", std::vector<std::string>(129, "a")}}), "prompt");
  const json chat = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  json echo = chat, none = chat;
  echo["echo"] = 7;
  none["max_tokens"] = 0;
  EXPECT_EQ(param("/v1/chat/completions", echo), "echo");
  EXPECT_EQ(param("/v1/chat/completions", none), "max_tokens");
}

}  // namespace
}  // namespace rbee::testing
