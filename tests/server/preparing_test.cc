// Requests that need much work before they are queued, such as making a grammar.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "rbee/core/cancel.h"
#include "server/apis/openai/chat_routes.h"
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

// A short template may need much work.
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

// The server tokenizes texts in every field, each as often as the request needs.
TEST(Preparing, LongTextsAreReadBesideTheConnections) {
  using Work = server::LlmService::Preparation;
  const std::string text(5000, 'x');
  const auto chat = [](const std::vector<json>& messages, json fields = json::object()) {
    fields["messages"] = messages;
    const auto request = server::parse_openai_chat(fields.dump());
    return server::LlmService::preparation(request.generate, server::plan_of(request));
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
    const auto request = server::parse_openai_completion(fields.dump());
    return server::LlmService::preparation(request.generate, server::plan_of(request));
  };
  const std::vector<std::string> prompts(128, "Hi");
  const json words = json::array({std::string(100, 'x')});
  const json bias = json::array({json::array({std::string(100, 'x'), 1})});
  EXPECT_EQ(completion(prompts), Work::little);
  EXPECT_EQ(completion("Hi", {{"bad_words", words}, {"logit_bias", bias}}), Work::little);
  EXPECT_EQ(completion(prompts, {{"bad_words", words}}), Work::text);
  EXPECT_EQ(completion(prompts, {{"logit_bias", bias}}), Work::text);
}

// Submits work of its own that runs until the test releases it.
class Held {
 public:
  Held(server::SideWork& work, const std::string& client) {
    // The work owns its data, because the test may end first.
    const auto begun = std::make_shared<std::promise<void>>();
    answer = work.submit({.client = client, .work = [begun, go = go_.get_future().share()] {
                            begun->set_value();
                            go.wait();
                            return server::text_response(200, "held");
                          }});
    begun->get_future().wait();
  }
  void let_go() { go_.set_value(); }

  std::shared_ptr<server::DelayedResponse> answer;

 private:
  std::promise<void> go_;
};

// Notes the order in which clients get turns.
class Turns {
 public:
  explicit Turns(server::SideWork& work) : work_(work) {}
  std::shared_ptr<server::DelayedResponse> submit(const std::string& client) {
    const std::string name = cat(client, ++made_[client]);
    return work_.submit({.client = client, .work = [this, name] {
                           const std::lock_guard lock(mutex_);
                           order_.push_back(name);
                           return server::text_response(200, name);
                         }});
  }
  std::vector<std::string> order() {
    while (work_.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return order_;
  }

 private:
  server::SideWork& work_;
  std::map<std::string, int> made_;
  std::mutex mutex_;
  std::vector<std::string> order_;
};

using ::testing::ElementsAre;

TEST(SideWork, RunsSoManyAtOnceAndRefusesWhatIsTooMuch) {
  int refused = 0;
  server::SideWork work({.most_waiting = 2, .threads = 2, .on_refused = [&] { ++refused; }});
  Held first(work, "a"), second(work, "a");  // neither waits for the other
  Turns turns(work);
  turns.submit("a");
  const auto left = turns.submit("a");
  EXPECT_THROW(turns.submit("a"), server::Refused);
  EXPECT_EQ(refused, 1);
  left->abandon();  // its place is free again
  const auto last = turns.submit("a");
  first.let_go();
  second.let_go();
  turns.order();
  EXPECT_EQ(first.answer->take()->body, "held");
  EXPECT_FALSE(left->take().has_value());
  EXPECT_EQ(last->take()->body, "a4");
}

TEST(SideWork, ClientsTakeTurns) {
  server::SideWork work({});
  Held held(work, "crowd");
  Turns turns(work);
  for (int i = 0; i < 40; ++i) turns.submit("crowd");
  for (const char* client : {"b", "c", "b"}) turns.submit(client);
  held.let_go();
  const std::vector<std::string> order = turns.order();
  ASSERT_EQ(order.size(), 43u);
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 6),
              ElementsAre("b1", "c1", "crowd1", "b2", "crowd2", "crowd3"));
  EXPECT_EQ(order.back(), "crowd40");
}

// New clients keep coming; a waiting one still gets its turn.
TEST(SideWork, ClientsThatComeLaterStarveNobody) {
  server::SideWork work({});
  std::atomic<int> later = 0;
  std::promise<int> had;
  std::function<server::Response()> again = [&] {
    if (later < 100) work.submit({.client = cat("later", ++later), .work = again});
    return server::text_response(200, "");
  };
  Held held(work, "a");
  work.submit({.client = "a", .work = [&] {
                 had.set_value(later);
                 return server::text_response(200, "");
               }});
  for (int i = 0; i < 3; ++i) work.submit({.client = cat("new", i), .work = again});
  held.let_go();
  EXPECT_EQ(had.get_future().get(), 3);
  while (work.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(SideWork, ClientsShareThreads) {
  server::SideWork work({.threads = 2});
  Held first(work, "crowd"), second(work, "crowd");
  Turns turns(work);
  for (int i = 0; i < 5; ++i) turns.submit("crowd");
  turns.submit("b");
  first.let_go();
  const std::vector<std::string> order = [&] {
    second.let_go();
    return turns.order();
  }();
  EXPECT_LE(std::ranges::find(order, "b1") - order.begin(), 1);

  server::SideWork each({.threads = 2, .most_each = 1});
  Held alone(each, "a");
  Turns others(each);
  others.submit("a");
  Held beside(each, "b");  // has a thread while the second of a waits
  beside.let_go();
  alone.let_go();
  EXPECT_THAT(others.order(), ElementsAre("a1"));
}

TEST(SideWork, WhenFullTheClientWithTheMostGivesWay) {
  int refused = 0;
  server::SideWork work({.most_waiting = 4, .on_refused = [&] { ++refused; }});
  Held held(work, "crowd");
  Turns turns(work);
  std::vector<std::shared_ptr<server::DelayedResponse>> crowd;
  for (int i = 0; i < 4; ++i) crowd.push_back(turns.submit("crowd"));
  turns.submit("b");
  const auto given_up = crowd[3]->take();
  ASSERT_TRUE(given_up);
  EXPECT_EQ(given_up->status, 429);
  EXPECT_THAT(given_up->body, ::testing::HasSubstr("4 such requests wait already"));
  turns.submit("b");
  EXPECT_EQ(crowd[2]->take()->status, 429);
  EXPECT_THROW(turns.submit("b"), server::Refused);  // both have two
  turns.submit("c");                                 // one of them keeps two, the other loses one
  EXPECT_THROW(turns.submit("c"), server::Refused);
  EXPECT_THROW(turns.submit("crowd"), server::Refused);
  EXPECT_EQ(refused, 6);
  held.let_go();
  EXPECT_EQ(turns.order().size(), 4u);
}

TEST(SideWork, SaysWhatIsRefusedInTheFormOfItsPath) {
  server::SideWork work({.most_waiting = 2});
  Held held(work, "a");
  const server::ErrorBody form = [](int status, std::string_view code, const std::exception&) {
    return cat(status, " ", code);
  };
  const auto submit = [&](const char* client) {
    return work.submit({.client = client,
                        .work = [] { return server::text_response(200, ""); },
                        .error_body = form});
  };
  submit("a");
  const auto second = submit("a");
  submit("b");
  EXPECT_EQ(second->take()->body, "429 OVERLOADED");
  held.let_go();
}

TEST(SideWork, IsToldThatItsClientHasLeft) {
  server::SideWork work({});
  std::promise<void> begun, told;
  const auto answer = work.submit({.client = "a", .work = [&] {
                                     EXPECT_FALSE(is_cancelled());
                                     begun.set_value();
                                     while (!is_cancelled())
                                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                     told.set_value();
                                     return server::text_response(200, "too late");
                                   }});
  begun.get_future().wait();
  answer->abandon();
  told.get_future().wait();
  std::promise<bool> next;
  work.submit({.client = "a", .work = [&] {
                 next.set_value(is_cancelled());
                 return server::text_response(200, "");
               }});
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
