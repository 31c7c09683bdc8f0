// /tokenize, /detokenize and /apply-template over an engine whose tokens are bytes.

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

json ask_json(const Worker& worker, std::string_view path, const json& body) {
  const RawResponse response = worker.post(path, body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

TEST(TextRoutes, LlamaServersForms) {
  Worker worker;
  EXPECT_EQ(ask_json(worker, "/tokenize", {{"content", "Hi"}}), json({{"tokens", {1072, 1105}}}));
  const json all = {{"content", "H\xc3\xa9"}, {"add_special", true}, {"with_pieces", true}};
  const json wanted = json::parse(R"({"tokens":[{"id":1,"piece":"<s>"},{"id":1072,"piece":"H"},
      {"id":1195,"piece":[195]},{"id":1169,"piece":[169]}]})");
  EXPECT_EQ(ask_json(worker, "/tokenize", all), wanted);
  EXPECT_EQ(ask_json(worker, "/tokenize", {{"content", ""}}).at("tokens"), json::array());
}

TEST(TextRoutes, VllmsForms) {
  Worker worker;
  const json plain = ask_json(worker, "/tokenize", {{"model", "x"}, {"prompt", "Hi"}});
  EXPECT_EQ(plain, json::parse(R"({"count":3,"max_model_len":2048,"tokens":[1,1072,1105],
                                   "token_strs":null})"));
  const json chat = {{"messages", {{{"role", "u"}, {"content", "x"}}}},
                     {"return_token_strs", true}};
  EXPECT_EQ(ask_json(worker, "/tokenize", chat).at("token_strs"), json({"u", ":", " ", "x", "\n"}));
}

TEST(TextRoutes, DetokenizeAnswersUnderBothNames) {
  Worker worker;
  const json wanted = {{"content", "Hi"}, {"prompt", "Hi"}};
  EXPECT_EQ(ask_json(worker, "/detokenize", {{"tokens", {1072, 1105}}}), wanted);
}

Script two_tokens() {
  return {.pieces = {"Hello", " you"},
          .tokens = {{{.chosen = {.id = 7, .text = "Hello", .logprob = -0.5F}}},
                     {{.chosen = {.id = 8, .text = " y", .logprob = -1}},
                      {.chosen = {.id = 9, .text = "ou", .logprob = -2}}}},
          .end_id = 2};
}

TEST(TextRoutes, TextGenerationInferencesForm) {
  Worker worker({.script = two_tokens()});
  const json plain = {{"inputs", "Hi"}};
  EXPECT_EQ(ask_json(worker, "/generate", plain), json({{"generated_text", "Hello you"}}));
  EXPECT_EQ(worker.engine.last_request().sampling.temperature, 0);
  EXPECT_EQ(worker.engine.last_request().max_tokens, 100);
  EXPECT_EQ(ask_json(worker, "/", plain), json::parse(R"([{"generated_text":"Hello you"}])"));
  const json more = {{"inputs", "Hi"},
                     {"parameters",
                      {{"details", true},
                       {"return_full_text", true},
                       {"top_k", 5},
                       {"max_new_tokens", 3},
                       {"grammar", {{"type", "json"}, {"value", {{"type", "object"}}}}}}}};
  const json answer = ask_json(worker, "/generate", more);
  EXPECT_EQ(answer.at("generated_text"), "HiHello you");
  EXPECT_EQ(answer.at("details").at("finish_reason"), "eos_token");
  EXPECT_EQ(answer.at("details").at("tokens").size(), 3U);
  EXPECT_EQ(worker.engine.last_request().sampling.temperature, 1);
  EXPECT_EQ(worker.engine.last_request().max_tokens, 3);
}

TEST(TextRoutes, TextGenerationInferencesStream) {
  Worker worker({.script = two_tokens()});
  for (const auto& [path, more] :
       {std::pair{"/generate_stream", ""}, std::pair{"/", R"(,"stream":true)"}}) {
    const auto events = payloads(worker.post(path, cat(R"({"inputs":"Hi")", more, "}")).body);
    ASSERT_EQ(events.size(), 4U) << path;
    std::string text;
    for (size_t i = 0; i < events.size(); ++i) {
      const json event = json::parse(events[i]);
      EXPECT_EQ(event.at("index"), i + 1);
      const json id = event.at("token").at("id");
      EXPECT_EQ(id, (std::vector<int>{7, 8, 9, 2}.at(i)));
      EXPECT_EQ(event.at("token").at("special"), i == 3);
      EXPECT_EQ(event.at("details").is_null(), i != 3);
      text += event.at("token").at("text");
    }
    EXPECT_EQ(text, "Hello you");
    EXPECT_EQ(json::parse(events.back()).at("generated_text"), "Hello you");
  }
}

TEST(TextRoutes, TokenizeReadsOneForm) {
  Worker worker;
  for (const char* wrong : {R"({"content":"a","prompt":"b"})", R"({"content":"a","messages":[]})",
                            R"({"prompt":"a","messages":[{"role":"user","content":"b"}]})"}) {
    const RawResponse response = worker.post("/tokenize", wrong);
    EXPECT_EQ(response.status, 400) << wrong;
    EXPECT_THAT(response.body, ::testing::HasSubstr("cannot be given together with")) << wrong;
  }
}

TEST(TextRoutes, TextGenerationInferencesErrors) {
  Worker worker;
  for (const char* wrong :
       {R"({"inputs":""})", R"({"inputs":"a","parameters":7})",
        R"({"inputs":"a","parameters":{"best_of":2}})",
        R"({"inputs":"a","parameters":{"max_new_tokens":0}})",
        R"({"inputs":"a","parameters":{"grammar":{"type":"xml","value":"x"}}})"}) {
    const RawResponse response = worker.post("/generate", wrong);
    EXPECT_EQ(response.status, 400) << wrong;
    EXPECT_EQ(json::parse(response.body).at("error_type"), "validation") << wrong;
  }
}

TEST(TextRoutes, UnknownTokensAreNoText) {
  Worker worker;
  const RawResponse response = worker.post("/detokenize", R"({"tokens":[1072,49152]})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, ::testing::HasSubstr("token 49152 is outside of the 49152 known"));
}

TEST(TextRoutes, ApplyTemplateShowsThePrompt) {
  Worker worker;
  const json body = {
      {"messages",
       {{{"role", "system"}, {"content", "Be brief."}}, {{"role", "user"}, {"content", "Hi"}}}}};
  EXPECT_EQ(ask_json(worker, "/apply-template", body).at("prompt"),
            "system: Be brief.\nuser: Hi\n");
}

TEST(TextRoutes, EveryRouteRendersWithTheWorkersDefaults) {
  Worker worker({.defaults = {.reasoning_budget = 0}});
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const json chat = {{"messages", messages}, {"max_tokens", 1}};
  const json counted = {{"object", "response.input_tokens"}, {"input_tokens", 9}};
  EXPECT_EQ(ask_json(worker, "/v1/chat/completions/input_tokens", chat), counted);
  EXPECT_EQ(ask_json(worker, "/v1/responses/input_tokens", {{"input", "Hi"}}), counted);
  EXPECT_EQ(ask_json(worker, "/v1/messages/count_tokens", chat).at("input_tokens"), 9);
  EXPECT_EQ(ask_json(worker, "/tokenize", chat).at("count"), 9);
  for (const char* path : {"/tokenize", "/apply-template", "/v1/messages/count_tokens",
                           "/v1/messages", "/v1/chat/completions", "/chat/completions/input_tokens",
                           "/v1/responses", "/responses", "/responses/input_tokens"}) {
    json body = chat;
    body["input"] = "Hi";
    ask_json(worker, path, body);
    const engine::ChatOptions options = worker.engine.last_rendered();
    EXPECT_EQ(options.reasoning_budget, 0) << path;
    EXPECT_THAT(options.template_variables, ::testing::HasSubstr(R"("enable_thinking":false)"))
        << path;
    ask_json(worker, "/apply-template", {{"messages", messages}, {"reasoning_budget", 5}});
    EXPECT_EQ(worker.engine.last_rendered().reasoning_budget, 5);
  }
}

TEST(TextRoutes, ATemplateIsShownWithoutTheNextTurn) {
  Worker worker;
  json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  ask_json(worker, "/apply-template", body);
  EXPECT_TRUE(worker.engine.last_rendered().add_generation_prompt);
  body["add_generation_prompt"] = false;
  for (const char* path : {"/apply-template", "/tokenize"}) {
    ask_json(worker, path, body);
    EXPECT_FALSE(worker.engine.last_rendered().add_generation_prompt) << path;
  }
}

TEST(TextRoutes, EmbeddingsAreRefusedWithAReason) {
  Worker worker;
  for (const char* path : {"/v1/embeddings", "/embeddings", "/rerank", "/v1/rerank",
                           "/v1/reranking", "/v1/score", "/pooling", "/classify", "/embed"}) {
    const RawResponse response = worker.post(path, R"({"input":"Hi"})");
    EXPECT_EQ(response.status, 400) << path;
    const json error = json::parse(response.body).at("error");
    EXPECT_EQ(error.at("param"), "model");
    EXPECT_THAT(error.at("message"), ::testing::HasSubstr("hf:fake makes text"));
  }
}

TEST(TextRoutes, WrongBodiesAreNamed) {
  Worker worker;
  const auto field = [&](const char* path, const char* body) {
    const RawResponse response = worker.post(path, body);
    EXPECT_EQ(response.status, 400) << body;
    const json error = json::parse(response.body).at("error");
    EXPECT_EQ(error.at("type"), "invalid_request_error");
    return error.at("param");
  };
  EXPECT_EQ(field("/tokenize", "{}"), "content");
  EXPECT_EQ(field("/tokenize", R"({"content":7})"), "content");
  EXPECT_EQ(field("/tokenize", R"({"prompt":[1]})"), "prompt");
  EXPECT_EQ(field("/detokenize", "{}"), "tokens");
  EXPECT_EQ(field("/detokenize", R"({"tokens":[1,-1]})"), "tokens[1]");
  EXPECT_EQ(field("/detokenize", R"({"tokens":[4294967296]})"), "tokens[0]");
  EXPECT_EQ(field("/apply-template", R"({"messages":[]})"), "messages");
}

}  // namespace
}  // namespace rbee::testing
