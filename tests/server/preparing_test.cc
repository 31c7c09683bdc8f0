// Requests of which an engine has much to make before they are queued, such as a grammar.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "rbee/core/cancel.h"
#include "server/worker/side_work.h"
#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

struct Case {
  const char* path;
  json body;
};

std::vector<Case> slow_requests() {
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const json format = {
      {"format", {{"type", "json_schema"}, {"name", "x"}, {"schema", {{"type", "object"}}}}}};
  return {
      {"/v1/chat/completions", {{"messages", messages}, {"guided_regex", "a+"}}},
      {"/v1/chat/completions", {{"messages", messages}, {"guided_regex", "a+"}, {"stream", true}}},
      {"/v1/completions", {{"prompt", "x"}, {"json_schema", {{"type", "object"}}}}},
      {"/v1/responses", {{"input", "x"}, {"text", format}}},
      {"/v1/infer", {{"prompt", "x"}, {"grammar", "root ::= \"a\""}}},
      {"/v1/jobs", {{"prompt", "x"}, {"guided_choice", {"a", "b"}}}}};
}

TEST(Preparing, OthersAreServedMeanwhile) {
  for (const Case& slow : slow_requests()) {
    Worker worker({.script = {.hold_submit = true}});
    RawClient client(worker.port());
    client.send(request("POST", slow.path, slow.body.dump()));
    ASSERT_TRUE(worker.engine.wait_submitting(1)) << slow.path;
    const RawResponse other = worker.post(
        "/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}],"stream":true})");
    EXPECT_TRUE(other.body.ends_with("data: [DONE]\n\n")) << slow.path;
    EXPECT_EQ(json::parse(worker.get("/info").body).at("status"), "busy") << slow.path;
    worker.engine.let_submit();
    const RawResponse answer = client.read_response();
    EXPECT_EQ(answer.status, 200) << slow.path << answer.body;
    EXPECT_FALSE(answer.body.empty()) << slow.path;
  }
}

// A template may do much with little.
TEST(Preparing, TemplatesHoldUpNoConnection) {
  const std::string messages = R"("messages":[{"role":"user","content":"Hi"}])";
  const std::string kwargs = R"("chat_template_kwargs":{"a":"hold"},"max_tokens":9)";
  for (const char* path : {"/v1/chat/completions", "/v1/responses"}) {
    Worker worker({.script = {.hold_submit = true}});
    RawClient client(worker.port());
    const bool chat = path == std::string("/v1/chat/completions");
    client.send(
        request("POST", path, cat("{", chat ? messages : R"("input":"Hi")", ",", kwargs, "}")));
    ASSERT_TRUE(worker.engine.wait_submitting(1)) << path;
    EXPECT_EQ(json::parse(worker.get("/info").body).at("status"), "busy") << path;
    EXPECT_EQ(worker.post("/v1/completions", R"({"prompt":"Hi"})").status, 200) << path;
    worker.engine.let_submit();
    EXPECT_EQ(client.read_response().status, 200) << path;
  }
}

TEST(Preparing, WhatIsWrongIsSaidInTheFormOfThePath) {
  Worker worker;
  worker.engine.refuse_with(Code::invalid_argument);
  for (const Case& slow : slow_requests()) {
    const RawResponse answer = worker.post(slow.path, slow.body.dump());
    EXPECT_EQ(answer.status, 400) << slow.path;
    const bool own = slow.path == std::string("/v1/infer") || slow.path == std::string("/v1/jobs");
    EXPECT_EQ(json::parse(answer.body).at("error").contains("param"), !own) << answer.body;
  }
}

TEST(Preparing, AClientThatLeavesMeanwhileCancels) {
  Worker worker({.script = {.hold_submit = true, .hold_after = true}});
  for (const char* stream : {"true", "false"}) {
    RawClient client(worker.port());
    client.send(request("POST", "/v1/completions",
                        cat(R"({"prompt":"x","guided_regex":"a+","stream":)", stream, "}")));
    ASSERT_TRUE(worker.engine.wait_submitting(stream == std::string("true") ? 1 : 2));
    client.close();
    worker.engine.let_submit();
    EXPECT_TRUE(worker.engine.wait_ended(stream == std::string("true") ? 1 : 2));
  }
  EXPECT_EQ(worker.engine.cancelled(), 2);
}

// Texts of which tokens are made, wherever they stand, and as often as they are made.
TEST(Preparing, LongTextsAreReadBesideTheConnections) {
  using Work = server::LlmService::Preparation;
  const std::string text(5000, 'x');
  const auto chat = [](const std::vector<json>& messages, json fields = json::object()) {
    fields["messages"] = messages;
    return server::LlmService::preparation(server::parse_openai_chat(fields.dump()));
  };
  const auto turn = [](const char* role, const std::string& content, json fields = json::object()) {
    fields["role"] = role;
    fields["content"] = content;
    return fields;
  };
  const json call = {{"id", "c"}, {"function", {{"name", "f"}, {"arguments", text}}}};
  EXPECT_EQ(chat({turn("user", text)}), Work::chat);
  EXPECT_EQ(chat({turn("user", text)}, {{"n", 2}}), Work::text);
  EXPECT_EQ(chat({turn("user", text), turn("assistant", text)}), Work::text);
  EXPECT_EQ(chat({turn("assistant", text, {{"reasoning", text}})}), Work::text);
  EXPECT_EQ(chat({turn("assistant", text, {{"tool_calls", json::array({call})}})}), Work::text);
  EXPECT_EQ(chat({turn("user", text)}, {{"chat_template_kwargs", {{"a", text}}}}), Work::text);
  EXPECT_EQ(chat(std::vector<json>(100, turn("user", "x"))), Work::chat);
  EXPECT_EQ(chat(std::vector<json>(1000, turn("user", "x"))), Work::text);

  const auto completion = [](const json& prompt, json fields = json::object()) {
    fields["prompt"] = prompt;
    return server::LlmService::preparation(server::parse_openai_completion(fields.dump()));
  };
  const std::vector<std::string> prompts(128, "Hi");
  const json words = json::array({std::string(100, 'x')});
  const json bias = json::array({json::array({std::string(100, 'x'), 1})});
  EXPECT_EQ(completion(prompts), Work::little);
  EXPECT_EQ(completion("Hi", {{"bad_words", words}, {"logit_bias", bias}}), Work::little);
  EXPECT_EQ(completion(prompts, {{"bad_words", words}}), Work::text);
  EXPECT_EQ(completion(prompts, {{"logit_bias", bias}}), Work::text);
}

TEST(SideWork, RunsSoManyAtOnceAndRefusesWhatIsTooMuch) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> begun = 0;
  std::promise<void> both;
  server::SideWork work(2, 2);
  const auto wait = [&] {
    if (++begun == 2) both.set_value();
    gone.wait();
    return server::text_response(200, "done");
  };
  std::vector<std::shared_ptr<server::DelayedResponse>> answers = {work.submit(wait),
                                                                   work.submit(wait)};
  both.get_future().wait();  // neither waits for the other
  for (int i = 0; i < 2; ++i) {
    answers.push_back(work.submit([] { return server::text_response(200, "later"); }));
  }
  EXPECT_THROW(work.submit(wait), server::Refused);
  EXPECT_TRUE(work.busy());
  answers[2]->abandon();  // its place is free again
  answers.push_back(work.submit([] { return server::text_response(200, "last"); }));
  go.set_value();
  while (work.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(answers[0]->take()->body, "done");
  EXPECT_FALSE(answers[2]->take().has_value());
  EXPECT_EQ(answers[4]->take()->body, "last");
}

TEST(SideWork, IsToldThatItsClientHasLeft) {
  server::SideWork work(2);
  std::promise<void> begun, told;
  const auto answer = work.submit([&] {
    EXPECT_FALSE(is_cancelled());
    begun.set_value();
    while (!is_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    told.set_value();
    return server::text_response(200, "too late");
  });
  begun.get_future().wait();
  answer->abandon();
  told.get_future().wait();
  std::promise<bool> next;
  work.submit([&] {
    next.set_value(is_cancelled());
    return server::text_response(200, "");
  });
  EXPECT_FALSE(next.get_future().get());
}

TEST(DelayedResponse, AbandonsWhatHasComeAndWhatComes) {
  for (const bool before : {true, false}) {
    int left = 0;
    server::Response stream;
    stream.events = std::make_shared<server::EventQueue>([&] { ++left; });
    server::DelayedResponse response(nullptr);
    if (before) response.set(stream);
    EXPECT_EQ(left, 0);
    response.abandon();
    if (!before) response.set(stream);
    EXPECT_EQ(left, 1);
  }
}

}  // namespace
}  // namespace rbee::testing
