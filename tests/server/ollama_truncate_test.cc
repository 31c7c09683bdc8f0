// Ollama's "truncate" and "shift": prompts that are longer than the context of 2048 tokens. The
// scripted engine's tokens are bytes.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

engine::TextRequest asked(const Worker& worker, const char* path, json body) {
  body["model"] = "hf:fake";
  body["stream"] = false;
  const RawResponse response = worker.post(path, body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  return worker.engine.last_request();
}

json said(const char* role, const std::string& name, size_t bytes) {
  return {{"role", role}, {"content", name + std::string(bytes, '.')}};
}

// The first letter of each message that the engine got.
std::string kept(const engine::TextRequest& request) {
  std::string out;
  for (const auto& message : request.messages) out += message.content[0];
  return out;
}

json long_chat() {
  return {said("system", "S", 300), said("user", "a", 500),      said("assistant", "b", 500),
          said("user", "c", 500),   said("assistant", "d", 500), said("system", "T", 10),
          said("user", "e", 500),   said("assistant", "f", 300), said("user", "g", 300)};
}

TEST(OllamaTruncate, AChatLosesItsOldestTurnsButNoSystemMessage) {
  Worker worker;
  const json chat = long_chat();
  // From "c" on it would have some 2,450 tokens.
  EXPECT_EQ(kept(asked(worker, "/api/chat", {{"messages", chat}})), "STefg");
  EXPECT_EQ(worker.engine.last_request().kept_tokens, std::nullopt);
  json shorter = chat;
  shorter.erase(1);
  shorter.erase(1);
  shorter[1] = said("user", "c", 10);
  EXPECT_EQ(kept(asked(worker, "/api/chat", {{"messages", shorter}})), "ScdTefg");
}

TEST(OllamaTruncate, AnAnswerHasAQuarterOfTheContextUnlessItNeedsLess) {
  Worker worker;
  json chat = json::array();
  for (const char* name : {"a", "b", "c", "d"}) {
    chat.push_back(said("user", name, 440));
    chat.push_back(said("assistant", name, 60));
  }
  chat.push_back(said("user", "e", 400));
  // Without "a" it would have some 1,900 tokens.
  EXPECT_EQ(kept(asked(worker, "/api/chat", {{"messages", chat}})), "ccdde");
  EXPECT_EQ(
      kept(asked(worker, "/api/chat", {{"messages", chat}, {"options", {{"num_predict", 20}}}})),
      "bbccdde");
}

TEST(OllamaTruncate, WhatIsBeforeTheFirstQuestionGoesToo) {
  Worker worker;
  const json chat = {said("system", "S", 10), said("assistant", "a", 3000), said("user", "b", 10)};
  EXPECT_EQ(kept(asked(worker, "/api/chat", {{"messages", chat}})), "Sb");
  EXPECT_EQ(worker.engine.last_request().kept_tokens, std::nullopt);
}

TEST(OllamaTruncate, TheLastTurnStays) {
  Worker worker;
  const json call = {{"role", "assistant"},
                     {"content", "c"},
                     {"tool_calls", {{{"function", {{"name", "look"}, {"arguments", {}}}}}}}};
  json chat = {said("user", "a", 10), said("assistant", "b", 10), said("user", "u", 10), call,
               said("tool", "t", 3000)};
  chat[3]["tool_calls"][0]["function"]["arguments"] = json::object();
  // What is too long without the older turns too loses its first tokens.
  const engine::TextRequest request = asked(worker, "/api/chat", {{"messages", chat}});
  EXPECT_EQ(kept(request), "uct");
  EXPECT_EQ(request.kept_tokens, -1);
  EXPECT_EQ(asked(worker, "/api/chat", {{"messages", chat}, {"shift", false}}).kept_tokens,
            std::nullopt);
  EXPECT_EQ(kept(worker.engine.last_request()), "uct");
}

TEST(OllamaTruncate, APromptLosesItsFirstTokens) {
  Worker worker;
  const std::string text(3000, 'x');
  for (const json& more : {json{{"raw", true}}, json{{"system", "Be brief."}}}) {
    json body = more;
    body["prompt"] = text;
    EXPECT_EQ(asked(worker, "/api/generate", body).kept_tokens, -1) << more;
    for (const char* field : {"truncate", "shift"}) {
      json whole = body;
      whole[field] = false;
      EXPECT_EQ(asked(worker, "/api/generate", whole).kept_tokens, std::nullopt) << field;
    }
    // It stays whole if it fits, though it fills more than half of the context.
    body["prompt"] = text.substr(0, 1900);
    EXPECT_EQ(asked(worker, "/api/generate", body).kept_tokens, std::nullopt) << more;
  }
}

TEST(OllamaTruncate, NothingIsLeftOutIfTheClientSaysSo) {
  Worker worker;
  const json body = {{"messages", long_chat()}, {"truncate", false}};
  const engine::TextRequest request = asked(worker, "/api/chat", body);
  EXPECT_EQ(kept(request), "SabcdTefg");
  EXPECT_EQ(request.kept_tokens, std::nullopt);
}

}  // namespace
}  // namespace rbee::testing
