// OpenAI's conversations: their items, and responses that add to them.

#include <gmock/gmock.h>

#include <thread>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kConversations = "/v1/conversations";
constexpr const char* kResponses = "/v1/responses";

json said(const std::string& role, const std::string& text) {
  return {{"type", "message"}, {"role", role}, {"content", text}};
}

json ok(const RawResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

json error_of(const RawResponse& response, int status) {
  EXPECT_EQ(response.status, status) << response.body;
  return json::parse(response.body).at("error");
}

json forget(const Worker& worker, const std::string& path) {
  return ok(ask(worker.port(), request("DELETE", path)));
}

std::string path_of(const json& conversation) {
  return cat(kConversations, "/", conversation.at("id").get<std::string>());
}

json items_of(const Worker& worker, const json& conversation, const char* query = "?order=asc") {
  return ok(worker.get(path_of(conversation) + "/items" + query)).at("data");
}

std::vector<std::string> texts_of(const json& items) {
  std::vector<std::string> out;
  for (const json& item : items) out.push_back(item.at("content").at(0).at("text"));
  return out;
}

std::vector<std::string> heard(const Worker& worker) {
  std::vector<std::string> out;
  for (const auto& message : worker.engine.last_request().messages) {
    out.push_back(message.role + " " + message.content);
  }
  return out;
}

TEST(Conversations, OneHasMetadataAndItems) {
  Worker worker;
  const json made = ok(
      worker.post(kConversations, json({{"metadata", {{"z", "1"}, {"a", "2"}}},
                                        {"items", {said("user", "One"), said("assistant", "Two")}}})
                                      .dump()));
  EXPECT_EQ(made.at("object"), "conversation");
  EXPECT_THAT(made.at("id"), StartsWith("conv_"));
  EXPECT_GT(made.at("created_at"), 0);
  const std::string path = path_of(made);
  EXPECT_EQ(ok(worker.get(path)), made);
  const json changed = ok(worker.post(path, R"({"metadata":{"b":"3"}})"));
  EXPECT_EQ(changed.at("metadata"), json({{"b", "3"}}));
  EXPECT_EQ(ok(worker.get(path)), changed);
  EXPECT_THAT(texts_of(items_of(worker, made)), ElementsAre("One", "Two"));

  json third = said("user", "Three");
  third["id"] = "mine";
  const json added = ok(worker.post(path + "/items", json({{"items", {third}}}).dump()));
  EXPECT_EQ(added.at("object"), "list");
  EXPECT_EQ(added.at("has_more"), false);
  const json item = added.at("data").at(0);
  EXPECT_NE(item.at("id"), "mine");
  EXPECT_EQ(added.at("first_id"), item.at("id"));
  EXPECT_EQ(ok(worker.get(cat(path, "/items/", item.at("id").get<std::string>()))), item);

  EXPECT_THAT(texts_of(items_of(worker, made, "?limit=2")), ElementsAre("Three", "Two"));
  const std::string after = items_of(worker, made, "?limit=2").at(1).at("id");
  EXPECT_THAT(texts_of(items_of(worker, made, cat("?after=", after).c_str())), ElementsAre("One"));
  EXPECT_EQ(error_of(worker.get(path + "/items?after=none"), 400).at("param"), "after");
  EXPECT_EQ(error_of(worker.get(path + "/items?limit=0"), 400).at("param"), "limit");

  EXPECT_EQ(forget(worker, path),
            json({{"id", made.at("id")}, {"object", "conversation.deleted"}, {"deleted", true}}));
  EXPECT_EQ(worker.service.responses().bytes(), 0u);
}

TEST(Conversations, AResponseReadsItAndAddsToIt) {
  Worker worker;
  const json made =
      ok(worker.post(kConversations, json({{"items", {said("user", "One")}}}).dump()));
  json body = {{"instructions", "Be brief."}, {"input", "Two"}, {"conversation", made.at("id")}};
  const json first = ok(worker.post(kResponses, body.dump()));
  EXPECT_EQ(first.at("conversation"), json({{"id", made.at("id")}}));
  EXPECT_THAT(heard(worker), ElementsAre("system Be brief.", "user One", "user Two"));
  EXPECT_THAT(texts_of(items_of(worker, made)), ElementsAre("One", "Two", "Hello, world"));
  EXPECT_EQ(items_of(worker, made).at(2), first.at("output").at(0));

  // In the other form, as a stream, and without an answer of its own.
  body = {{"input", "Three"},
          {"conversation", {{"id", made.at("id")}}},
          {"stream", true},
          {"store", false}};
  EXPECT_EQ(worker.post(kResponses, body.dump()).status, 200);
  EXPECT_THAT(heard(worker),
              ElementsAre("user One", "user Two", "assistant Hello, world", "user Three"));
  EXPECT_THAT(texts_of(items_of(worker, made)),
              ElementsAre("One", "Two", "Hello, world", "Three", "Hello, world"));
  // Without an input the chat goes on as it is.
  const json last = ok(worker.post(kResponses, json({{"conversation", made.at("id")}}).dump()));
  EXPECT_EQ(heard(worker).size(), 5u);
  EXPECT_EQ(items_of(worker, made).size(), 6u);
  // An answer has what it read, whatever becomes of the conversation.
  forget(worker, path_of(made));
  const std::string id = last.at("id");
  EXPECT_EQ(ok(worker.get(cat(kResponses, "/", id, "/input_items"))).at("data").size(), 5u);
  ok(worker.post(kResponses, json({{"input", "x"}, {"previous_response_id", id}}).dump()));
  EXPECT_EQ(heard(worker).size(), 7u);
}

TEST(Conversations, TokensAreCountedWithIt) {
  Worker worker;
  const json made =
      ok(worker.post(kConversations, json({{"items", {said("user", "One")}}}).dump()));
  const auto tokens = [&](const json& body) {
    return ok(worker.post("/v1/responses/input_tokens", body.dump())).at("input_tokens");
  };
  EXPECT_EQ(tokens({{"input", "Two"}, {"conversation", made.at("id")}}),
            tokens({{"input", {said("user", "One"), said("user", "Two")}}}));
}

TEST(Conversations, AResponseInTheBackgroundAddsToItWhenItEnds) {
  Worker worker({.script = {.hold_before = true}});
  const json made = ok(worker.post(kConversations, "{}"));
  const json body = {{"input", "Hi"}, {"background", true}, {"conversation", made.at("id")}};
  const json cancelled = ok(worker.post(kResponses, body.dump()));
  ok(worker.post(cat(kResponses, "/", cancelled.at("id").get<std::string>(), "/cancel"), ""));
  const json kept = ok(worker.post(kResponses, body.dump()));
  const std::string path = cat(kResponses, "/", kept.at("id").get<std::string>());
  EXPECT_THAT(items_of(worker, made), IsEmpty());
  worker.engine.release();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ok(worker.get(path)).at("status") != "completed") {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_THAT(texts_of(items_of(worker, made)), ElementsAre("Hi", "Hello, world"));
}

TEST(Conversations, AnAnswerThatFailsAddsNothing) {
  Worker worker({.script = {.failure = engine::Failed{Code::internal, "broken"}}});
  const json made = ok(worker.post(kConversations, "{}"));
  json body = {{"input", "Hi"}, {"conversation", made.at("id")}};
  // And lets the next one begin.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(worker.post(kResponses, body.dump()).status, 500);
  EXPECT_THAT(items_of(worker, made), IsEmpty());
  body["top_logprobs"] = 99;
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(error_of(worker.post(kResponses, body.dump()), 400).at("code"),
              "conversation_locked");
  }
}

// What is refused after its history was found, beside the connection.
TEST(Conversations, ARefusedResponseLetsTheNextBegin) {
  Worker worker;
  worker.engine.refuse_with(Code::invalid_argument);
  const json made = ok(worker.post(kConversations, json({{"items", {said("user", "a")}}}).dump()));
  json body = {{"input", "Hi"}, {"conversation", made.at("id")}};
  for (const char* form : {"whole", "stream", "background"}) {
    body["stream"] = std::string(form) == "stream";
    body["background"] = std::string(form) == "background";
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(error_of(worker.post(kResponses, body.dump()), 400).dump(),
                  Not(HasSubstr("locked")))
          << form;
    }
  }
}

TEST(Conversations, OnlyOneResponseAtATimeWorksOnIt) {
  Worker worker({.script = {.hold_before = true}});
  const json made = ok(worker.post(kConversations, "{}"));
  json body = {{"input", "Hi"}, {"background", true}, {"conversation", made.at("id")}};
  const json first = ok(worker.post(kResponses, body.dump()));
  const std::string path = cat(kResponses, "/", first.at("id").get<std::string>());
  const auto refuse = [&](const json& what) {
    const json error = error_of(worker.post(kResponses, what.dump()), 400);
    EXPECT_EQ(error.at("code"), "conversation_locked");
    EXPECT_EQ(error.at("type"), "invalid_request_error");
    EXPECT_EQ(error.at("param"), "conversation");
  };
  refuse(body);
  // A change of the conversation is none of its holders.
  ok(worker.post(path_of(made), R"({"metadata":{"a":"b"}})"));
  refuse({{"input", "Hi"}, {"conversation", made.at("id")}, {"stream", true}, {"store", false}});
  // Others go on: one without it, one of another conversation, and who only counts.
  const json other = ok(worker.post(kConversations, "{}"));
  ok(worker.post(kResponses, R"({"input":"Hi","background":true})"));
  ok(worker.post(
      kResponses,
      json({{"input", "Hi"}, {"background", true}, {"conversation", other.at("id")}}).dump()));
  ok(worker.post("/v1/responses/input_tokens",
                 json({{"input", "Hi"}, {"conversation", made.at("id")}}).dump()));
  // It is free as soon as a client knows that the response is gone.
  ok(worker.post(path + "/cancel", ""));
  const json second = ok(worker.post(kResponses, body.dump()));
  refuse(body);
  forget(worker, cat(kResponses, "/", second.at("id").get<std::string>()));
  ok(worker.post(kResponses, body.dump()));
  refuse(body);
  worker.engine.release();
}

TEST(Conversations, AnItemThatIsTakenOutIsNotReadAgain) {
  Worker worker;
  const json made = ok(worker.post(
      kConversations,
      json({{"items", {said("user", "a"), said("user", "b"), said("user", "c")}}}).dump()));
  // Two items of one name, of which the second goes by another.
  json mine = said("user", "d");
  mine["id"] = "mine";
  for (int i = 0; i < 2; ++i) {
    ok(worker.post(kResponses, json({{"input", {mine}}, {"conversation", made.at("id")}}).dump()));
  }
  const json before = items_of(worker, made);
  ASSERT_EQ(before.size(), 7u);
  EXPECT_EQ(before[3].at("id"), "mine");
  EXPECT_EQ(before[5].at("id"), "mine-2");
  const auto take_out = [&](const json& item) {
    EXPECT_EQ(forget(worker, cat(path_of(made), "/items/", item.at("id").get<std::string>())),
              made);
  };
  for (const size_t i : {1, 3, 4}) take_out(before[i]);
  // All others are as they were, also their names.
  EXPECT_EQ(items_of(worker, made), json({before[0], before[2], before[5], before[6]}));
  ok(worker.post(kResponses, json({{"input", "e"}, {"conversation", made.at("id")}}).dump()));
  EXPECT_THAT(heard(worker),
              ElementsAre("user a", "user c", "user d", "assistant Hello, world", "user e"));
  const std::string gone = cat(path_of(made), "/items/", before[1].at("id").get<std::string>());
  EXPECT_EQ(error_of(worker.get(gone), 404).at("param"), "item_id");
  EXPECT_EQ(ask(worker.port(), request("DELETE", gone)).status, 404);
}

TEST(Conversations, WhatIsWrongIsNamed) {
  Worker worker;
  const json made = ok(worker.post(kConversations, "{}"));
  const std::string path = path_of(made);
  const auto wrong = [&](const std::string& to, const json& body, const char* param) {
    EXPECT_EQ(error_of(worker.post(to, body.dump()), 400).at("param"), param) << body;
  };
  wrong(kConversations, {{"metadata", 5}}, "metadata");
  wrong(kConversations, {{"items", "Hi"}}, "items");
  wrong(kConversations, {{"items", {{{"type", "odd"}}}}}, "items[0].type");
  wrong(path, json::object(), "metadata");
  wrong(path + "/items", json::object(), "items");
  wrong(path + "/items", {{"items", json::array()}}, "items");
  wrong(path + "/items", {{"items", {"Hi"}}}, "items[0]");
  for (const json& id : {json(5), json(""), json::object(), json({{"id", 5}})}) {
    wrong(kResponses, {{"input", "Hi"}, {"conversation", id}}, "conversation");
  }
  const json both = {
      {"input", "Hi"}, {"conversation", made.at("id")}, {"previous_response_id", "x"}};
  wrong(kResponses, both, "conversation");
  const json lost = {{"input", "Hi"}, {"conversation", "conv_none"}};
  EXPECT_EQ(error_of(worker.post(kResponses, lost.dump()), 404).at("message"),
            "Conversation with id 'conv_none' not found.");
  for (const char* rest : {"", "/items", "/items/x"}) {
    EXPECT_EQ(worker.get(cat(kConversations, "/conv_none", rest)).status, 404) << rest;
  }
  EXPECT_EQ(worker.get(path + "/items/x").status, 404);
  // A response and a conversation are not each other.
  EXPECT_EQ(worker.get(cat(kResponses, "/", made.at("id").get<std::string>())).status, 404);
  const std::string answer = ok(worker.post(kResponses, R"({"input":"Hi"})")).at("id");
  EXPECT_EQ(worker.get(cat(kConversations, "/", answer)).status, 404);
  EXPECT_EQ(ask(worker.port(), request("DELETE", cat(kConversations, "/", answer))).status, 404);
  EXPECT_EQ(worker.get(cat(kResponses, "/", answer)).status, 200);

  Worker off({.stored = {.bytes = 0}});
  EXPECT_THAT(error_of(off.post(kConversations, "{}"), 400).at("message").get<std::string>(),
              HasSubstr("--response-store-mib"));
}

TEST(Conversations, AnotherClientDoesNotFindOne) {
  Worker worker({.token = "secret"});
  const auto as = [&](const char* sender, const char* method, std::string_view path,
                      const json& body) {
    return ask(worker.port(),
               request(method, path, body.is_null() ? "" : body.dump(),
                       cat("Authorization: Bearer secret\r\nX-Rbee-Sender: ", sender, "\r\n")));
  };
  const json made = ok(as("ann", "POST", kConversations, json::object()));
  const json body = {{"input", "Hi"}, {"conversation", made.at("id")}};
  EXPECT_EQ(as("bob", "GET", path_of(made), nullptr).status, 404);
  EXPECT_EQ(as("bob", "DELETE", path_of(made), nullptr).status, 404);
  EXPECT_EQ(as("bob", "POST", kResponses, body).status, 404);
  EXPECT_EQ(as("ann", "POST", kResponses, body).status, 200);
}

// ---- the room

TEST(Conversations, OneThatIsTooLargeStaysAsItIs) {
  Worker worker({.stored = {.bytes = 8000}});
  const json made = ok(worker.post(kConversations, "{}"));
  const json large = {{"items", {said("user", std::string(9000, 'x'))}}};
  EXPECT_EQ(error_of(worker.post(kConversations, large.dump()), 400).at("param"), "items");
  const std::string items = path_of(made) + "/items";
  EXPECT_THAT(error_of(worker.post(items, large.dump()), 400).at("message").get<std::string>(),
              HasSubstr("--response-store-mib"));
  const json body = {{"input", std::string(9000, 'x')}, {"conversation", made.at("id")}};
  EXPECT_EQ(error_of(worker.post(kResponses, body.dump()), 400).at("param"), "conversation");
  EXPECT_THAT(items_of(worker, made), IsEmpty());
}

server::Conversation conversation(const std::string& id, size_t bytes) {
  const server::StoredTurn turn{
      .id = id, .input = std::make_shared<const std::string>(bytes, 'x'), .output = "[]"};
  return {.id = id, .metadata = "{}", .turns = {std::make_shared<const server::StoredTurn>(turn)}};
}

TEST(Conversations, TheyCountInTheStoreAsAnswersDo) {
  server::ResponseStore store({.bytes = 100'000, .most = 4});
  EXPECT_TRUE(store.add_conversation("small", conversation("s", 10'000)));
  for (const char* id : {"a", "b", "c"}) store.add_conversation("large", conversation(id, 25'000));
  ASSERT_NE(store.find_conversation("large", "a"), nullptr);  // and so "b" was used longest ago
  const auto turn = conversation("d", 25'000).turns.front();
  using Changed = server::ResponseStore::Changed;
  EXPECT_EQ(store.change_conversation("large", "c", [&](auto& it) { it.turns.push_back(turn); }),
            Changed::done);
  EXPECT_EQ(store.find_conversation("large", "b"), nullptr);
  EXPECT_EQ(store.find_conversation("large", "c")->turns.size(), 2u);
  EXPECT_NE(store.find_conversation("small", "s"), nullptr);
  EXPECT_LE(store.bytes(), 100'000u);
  EXPECT_EQ(store.change_conversation("large", "b", [](auto&) {}), Changed::not_found);
  const size_t before = store.bytes();
  EXPECT_EQ(store.change_conversation("large", "c",
                                      [&](auto& it) { it.metadata = std::string(100'000, 'x'); }),
            Changed::too_large);
  EXPECT_EQ(store.bytes(), before);
  // An answer shares its turn with the conversation.
  store.add("large", {.object = "{}", .turns = {turn}});
  EXPECT_LT(store.bytes(), before + 1000);
  EXPECT_TRUE(store.remove("large", "c"));
  EXPECT_EQ(store.find_conversation("large", "c"), nullptr);
  for (const char* id : {"a", "d"}) EXPECT_TRUE(store.remove("large", id)) << id;
  EXPECT_TRUE(store.remove("small", "s"));
  EXPECT_EQ(store.bytes(), 0u);
}

// Whoever holds most makes room, also with what it has just changed, and is told.
TEST(Conversations, OneThatLeavesNoRoomForOthersIsNotKept) {
  server::ResponseStore store({.bytes = 100'000});
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_TRUE(store.add_conversation("small", conversation(id, 15'000)));
  }
  EXPECT_FALSE(store.add_conversation("large", conversation("x", 70'000)));
  EXPECT_EQ(store.find_conversation("large", "x"), nullptr);
  for (const char* id : {"a", "b", "c"}) EXPECT_NE(store.find_conversation("small", id), nullptr);
}

std::chrono::steady_clock::time_point g_now;

TEST(Conversations, ChangesKeepOneYoung) {
  server::ResponseStore store({.age = std::chrono::hours(1), .now = +[] { return g_now; }});
  store.add_conversation("c", conversation("a", 10));
  store.add_conversation("c", conversation("b", 10));
  g_now += std::chrono::minutes(50);
  store.change_conversation("c", "a", [](auto& it) { it.metadata = R"({"x":"y"})"; });
  g_now += std::chrono::minutes(20);
  EXPECT_NE(store.find_conversation("c", "a"), nullptr);
  EXPECT_EQ(store.find_conversation("c", "b"), nullptr);
}

}  // namespace
}  // namespace rbee::testing
