// Pictures in chats as each API sends them, up to the engine's request.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kUrl = "data:image/png;base64,UElDVFVSRQ==";  // "PICTURE"

void expect_picture(const engine::TextRequest& request, const std::string& field) {
  ASSERT_EQ(request.messages.size(), 1u);
  const engine::ChatMessage& message = request.messages[0];
  EXPECT_EQ(message.content, "What is this? And that?");
  ASSERT_EQ(message.pictures.size(), 1u);
  EXPECT_EQ(message.pictures[0].at, std::string("What is this?").size());
  EXPECT_EQ(message.pictures[0].file->bytes(), "PICTURE");
  EXPECT_EQ(message.pictures[0].field, field);
}

TEST(ChatPictures, OpenAisChats) {
  Worker worker;
  const json body = {
      {"messages",
       {{{"role", "user"},
         {"content",
          {{{"type", "text"}, {"text", "What is this?"}},
           {{"type", "image_url"}, {"image_url", {{"url", kUrl}, {"detail", "auto"}}}},
           {{"type", "text"}, {"text", " And that?"}}}}}}}};
  EXPECT_EQ(worker.post("/v1/chat/completions", body.dump()).status, 200);
  expect_picture(worker.engine.last_request(), "messages[0].content[1].image_url.url");
}

TEST(ChatPictures, OpenAisResponses) {
  Worker worker;
  const json body = {{"input",
                      {{{"role", "user"},
                        {"content",
                         {{{"type", "input_text"}, {"text", "What is this?"}},
                          {{"type", "input_image"}, {"image_url", kUrl}},
                          {{"type", "input_text"}, {"text", " And that?"}}}}}}}};
  EXPECT_EQ(worker.post("/v1/responses", body.dump()).status, 200);
  expect_picture(worker.engine.last_request(), "input[0].content[1].image_url");
}

TEST(ChatPictures, AnthropicsMessages) {
  Worker worker;
  const json source = {{"type", "base64"}, {"media_type", "image/png"}, {"data", "UElDVFVSRQ=="}};
  const json body = {{"max_tokens", 5},
                     {"messages",
                      {{{"role", "user"},
                        {"content",
                         {{{"type", "text"}, {"text", "What is this?"}},
                          {{"type", "image"}, {"source", source}},
                          {{"type", "text"}, {"text", " And that?"}}}}}}}};
  EXPECT_EQ(worker.post("/v1/messages", body.dump()).status, 200);
  expect_picture(worker.engine.last_request(), "messages[0].content[1].source.data");
}

// Templates accept pictures in users' turns only.
TEST(ChatPictures, ThoseOfAnthropicsResultsStandInTheTurnBehindThem) {
  Worker worker;
  const json source = {{"type", "base64"}, {"media_type", "image/png"}, {"data", "UElDVFVSRQ=="}};
  const auto body = [](const json& part) {
    return json{
        {"max_tokens", 5},
        {"messages",
         {{{"role", "user"}, {"content", "Look"}},
          {{"role", "assistant"},
           {"content",
            {{{"type", "tool_use"}, {"id", "a"}, {"name", "f"}, {"input", json::object()}}}}},
          {{"role", "user"},
           {"content",
            {{{"type", "tool_result"},
              {"tool_use_id", "a"},
              {"content", {{{"type", "text"}, {"text", "A shot"}}, part}}},
             {{"type", "text"}, {"text", "What is on it?"}}}}}}}}
        .dump();
  };
  const json picture = {{"type", "image"}, {"source", source}};
  const RawResponse response = worker.post("/v1/messages", body(picture));
  ASSERT_EQ(response.status, 200) << response.body;
  const auto& messages = worker.engine.last_request().messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2].role, "tool");
  EXPECT_EQ(messages[2].content, "A shot");
  EXPECT_TRUE(messages[2].pictures.empty());
  EXPECT_EQ(messages[3].role, "user");
  EXPECT_EQ(messages[3].content, "What is on it?");
  ASSERT_EQ(messages[3].pictures.size(), 1u);
  EXPECT_EQ(messages[3].pictures[0].at, 0u);
  const RawResponse wrong = worker.post(
      "/v1/messages", body({{"type", "image"}, {"source", {{"type", "url"}, {"url", "x"}}}}));
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("messages[2].content[0].content[1].source"));
}

TEST(ChatPictures, ChoicesShareTheFile) {
  Worker worker;
  const json body = {{"n", 2},
                     {"messages",
                      {{{"role", "user"},
                        {"content", {{{"type", "image_url"}, {"image_url", {{"url", kUrl}}}}}}}}}};
  const RawResponse response = worker.post("/v1/chat/completions", body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(worker.engine.last_request().messages[0].pictures.size(), 1u);
}

TEST(ChatPictures, WhatIsRefusedNamesItsField) {
  Worker worker;
  const auto chat = [](const json& part, const char* role = "user") {
    return json{{"max_tokens", 5},
                {"messages", {{{"role", role}, {"content", json::array({part})}}}}}
        .dump();
  };
  const auto url = [](const json& value) {
    return json{{"type", "image_url"}, {"image_url", {{"url", value}}}};
  };
  struct Case {
    const char* path;
    std::string body;
    const char* part;
  };
  const Case cases[] = {
      {"/v1/chat/completions", chat(url("https://example.com/cat.png")),
       "messages[0].content[0].image_url.url must be a data: URL in base64; this worker fetches "
       "nothing"},
      {"/v1/chat/completions", chat(url("data:image/png,raw")), "image_url.url"},
      {"/v1/chat/completions", chat(url(7)), "image_url.url"},
      {"/v1/chat/completions", chat(url("data:image/png;base64,%%%")), "image_url.url"},
      {"/v1/chat/completions", chat({{"type", "image_url"}}), "image_url.url"},
      {"/v1/chat/completions", chat(url(kUrl), "system"), "a user's message"},
      {"/v1/responses",
       R"({"input":[{"role":"user","content":[{"type":"input_image","file_id":"x"}]}]})",
       "input[0].content[0].image_url"},
      {"/v1/messages",
       chat({{"type", "image"}, {"source", {{"type", "url"}, {"url", "https://example.com"}}}}),
       "messages[0].content[0].source"},
      {"/v1/messages", chat({{"type", "image"}}), "messages[0].content[0].source"},
  };
  for (const Case& c : cases) {
    const RawResponse response = worker.post(c.path, c.body);
    EXPECT_EQ(response.status, 400) << c.body;
    EXPECT_THAT(response.body, HasSubstr(c.part)) << c.body;
  }
}

TEST(ChatPictures, HealthSaysHowManyARequestMayHave) {
  Worker worker;
  const json health = json::parse(worker.get("/health").body);
  EXPECT_EQ(health.at("max_pictures"), 0);
}

}  // namespace
}  // namespace rbee::testing
