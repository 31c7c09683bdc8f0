// /tokenize, /detokenize and /apply-template over an engine whose tokens are bytes.

#include <gmock/gmock.h>

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
