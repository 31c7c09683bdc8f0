// OpenAI's stored responses: what a later request gets of them, and who may.

#include <gmock/gmock.h>

#include <set>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kResponses = "/v1/responses";

json answer(const Worker& worker, const json& body) {
  const RawResponse response = worker.post(kResponses, body.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

std::string id_of(const json& answer) {
  return answer.at("id");
}

std::vector<std::string> heard(const Worker& worker) {
  std::vector<std::string> out;
  for (const auto& message : worker.engine.last_request().messages) {
    out.push_back(message.role + " " + message.content);
  }
  return out;
}

json error_of(const RawResponse& response, int status) {
  EXPECT_EQ(response.status, status) << response.body;
  return json::parse(response.body).at("error");
}

TEST(ResponseMemory, AFollowUpHasTheChatBeforeItButNotItsInstructions) {
  Worker worker;
  const json first = answer(worker, {{"instructions", "Be brief."}, {"input", "One"}});
  EXPECT_EQ(first.at("store"), true);
  EXPECT_EQ(first.at("previous_response_id"), nullptr);
  const json second = answer(worker, {{"instructions", "Be long."},
                                      {"input", {{{"role", "user"}, {"content", "Two"}}}},
                                      {"previous_response_id", id_of(first)}});
  EXPECT_EQ(second.at("previous_response_id"), id_of(first));
  EXPECT_NE(id_of(second), id_of(first));
  EXPECT_THAT(heard(worker),
              ElementsAre("system Be long.", "user One", "assistant Hello, world", "user Two"));
  const json third = {{"input", "Three"}, {"previous_response_id", id_of(second)}};
  answer(worker, third);
  EXPECT_THAT(heard(worker), ElementsAre("user One", "assistant Hello, world", "user Two",
                                         "assistant Hello, world", "user Three"));
  // A chat may go on in two ways.
  answer(worker, {{"input", "Other"}, {"previous_response_id", id_of(first)}});
  EXPECT_THAT(heard(worker), ElementsAre("user One", "assistant Hello, world", "user Other"));
}

TEST(ResponseMemory, CallsAndReasoningAreInIt) {
  const Script script{
      .pieces = {"<think>Hm</think>Yes. <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
                 "</tool_call>"},
      .format = {text::ToolFormat::hermes, text::ReasoningFormat::think}};
  Worker worker({.script = script});
  const json tools = json::parse(R"([{"type":"function","name":"f"}])");
  const json first = answer(worker, {{"input", "Hi"}, {"tools", tools}});
  const json result = {{"type", "function_call_output"}, {"call_id", "call_0"}, {"output", "7"}};
  answer(worker, {{"input", {result}}, {"previous_response_id", id_of(first)}, {"tools", tools}});
  const auto messages = worker.engine.last_request().messages;
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(messages[1].reasoning, "Hm");
  EXPECT_EQ(messages[1].content, "Yes.");
  ASSERT_EQ(messages[1].tool_calls.size(), 1u);
  EXPECT_EQ(messages[1].tool_calls[0].arguments, R"({"a": 1})");
  EXPECT_EQ(messages[2].role, "tool");
  EXPECT_EQ(messages[2].tool_call_id, "call_0");
}

TEST(ResponseMemory, AStoredResponseIsTheAnswerAsItWasSent) {
  Worker worker;
  const json first = answer(worker, {{"input", "Hi"}, {"metadata", {{"z", "1"}, {"a", "2"}}}});
  for (const char* base : {"/v1/responses/", "/responses/"}) {
    EXPECT_EQ(json::parse(worker.get(base + id_of(first)).body), first);
  }
  const RawResponse stream = worker.post(kResponses, R"({"input":"Hi","stream":true})");
  const json last = json::parse(payloads(stream.body).back()).at("response");
  json kept = json::parse(worker.get("/v1/responses/" + id_of(last)).body);
  EXPECT_EQ(kept, last);
  const RawResponse again = worker.get(cat("/v1/responses/", id_of(last), "?stream=true"));
  EXPECT_EQ(error_of(again, 400).at("param"), "stream");
}

TEST(ResponseMemory, WhatIsForgottenOrWasNeverThereIsNotFound) {
  Worker worker;
  const std::string id = id_of(answer(worker, {{"input", "Hi"}}));
  const json second = answer(worker, {{"input", "Two"}, {"previous_response_id", id}});
  const std::string path = "/v1/responses/" + id;
  const RawResponse forgotten = ask(worker.port(), request("DELETE", path));
  EXPECT_EQ(json::parse(forgotten.body),
            json({{"id", id}, {"object", "response"}, {"deleted", true}}));
  const json lost = error_of(worker.get(path), 404);
  EXPECT_EQ(lost.at("type"), "invalid_request_error");
  EXPECT_EQ(lost.at("message"), cat("Response with id '", id, "' not found."));
  EXPECT_EQ(ask(worker.port(), request("DELETE", path)).status, 404);
  EXPECT_EQ(worker.get(path + "/input_items").status, 404);
  const json body = {{"input", "x"}, {"previous_response_id", id}};
  for (const char* to : {"/v1/responses", "/v1/responses/input_tokens"}) {
    EXPECT_EQ(error_of(worker.post(to, body.dump()), 400),
              json({{"message", cat("Previous response with id '", id, "' not found.")},
                    {"type", "invalid_request_error"},
                    {"param", "previous_response_id"},
                    {"code", "previous_response_not_found"}}));
  }
  // What follows it goes on.
  answer(worker, {{"input", "Three"}, {"previous_response_id", id_of(second)}});
  EXPECT_EQ(heard(worker).size(), 5u);
}

TEST(ResponseMemory, APathOfItsOwnIsNoId) {
  Worker worker;
  for (const char* method : {"GET", "DELETE"}) {
    const RawResponse response = ask(worker.port(), request(method, "/v1/responses/input_tokens"));
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.headers.at("allow"), "POST") << method;
  }
}

TEST(ResponseMemory, NothingIsKeptUnlessItIsWanted) {
  Worker worker;
  const json first = answer(worker, {{"input", "Hi"}, {"store", false}});
  EXPECT_EQ(first.at("store"), false);
  EXPECT_EQ(worker.get("/v1/responses/" + id_of(first)).status, 404);
  EXPECT_EQ(worker.service.responses().bytes(), 0u);
  // An answer that fails is not kept either.
  Worker broken({.script = {.failure = engine::Failed{Code::internal, "broken"}}});
  EXPECT_EQ(broken.post(kResponses, R"({"input":"Hi"})").status, 500);
  EXPECT_EQ(broken.service.responses().bytes(), 0u);

  Worker off({.stored = {.bytes = 0}});
  const json unkept = answer(off, {{"input", "Hi"}});
  EXPECT_EQ(unkept.at("store"), false);
  EXPECT_THAT(id_of(unkept), StartsWith("resp_"));
  const json body = {{"input", "x"}, {"previous_response_id", id_of(unkept)}};
  EXPECT_THAT(error_of(off.post(kResponses, body.dump()), 400).at("message").get<std::string>(),
              HasSubstr("--response-store-mib"));
  EXPECT_THAT(off.get("/v1/responses/" + id_of(unkept)).body, HasSubstr("--response-store-mib"));
}

TEST(ResponseMemory, AnotherClientDoesNotFindIt) {
  Worker worker({.token = "secret"});
  const auto as = [&](const char* sender, const char* method, std::string_view path,
                      const json& body) {
    return ask(worker.port(),
               request(method, path, body.is_null() ? "" : body.dump(),
                       cat("Authorization: Bearer secret\r\nX-Rbee-Sender: ", sender, "\r\n")));
  };
  const json first = json::parse(as("ann", "POST", kResponses, {{"input", "Hi"}}).body);
  const std::string id = first.at("id");
  const json reference = {{"type", "item_reference"}, {"id", first.at("output").at(0).at("id")}};
  EXPECT_EQ(as("bob", "POST", kResponses, {{"input", {reference}}}).status, 404);
  EXPECT_EQ(as("ann", "POST", kResponses, {{"input", {reference}}}).status, 200);
  const json more = {{"input", "x"}, {"previous_response_id", id}};
  EXPECT_EQ(as("bob", "POST", kResponses, more).status, 400);
  EXPECT_EQ(as("bob", "GET", "/v1/responses/" + id, nullptr).status, 404);
  EXPECT_EQ(as("bob", "DELETE", "/v1/responses/" + id, nullptr).status, 404);
  EXPECT_EQ(as("ann", "POST", kResponses, more).status, 200);
}

std::vector<std::string> texts_of(const json& list) {
  std::vector<std::string> out;
  for (const json& item : list.at("data")) {
    out.push_back(cat(item.at("role").get<std::string>(), " ",
                      item.at("content").at(0).at("text").get<std::string>()));
  }
  return out;
}

TEST(ResponseMemory, InputItemsAreAllThatTheModelRead) {
  Worker worker;
  const json first = answer(worker, {{"instructions", "Be brief."}, {"input", "One"}});
  const json second = answer(
      worker, {{"input",
                {{{"role", "user"}, {"content", "Two"}},
                 {{"type", "message"}, {"id", "mine"}, {"role", "assistant"}, {"content", "Three"}},
                 {{"role", "user"}, {"content", "Four"}}}},
               {"previous_response_id", id_of(first)}});
  const std::string path = cat("/v1/responses/", id_of(second), "/input_items");
  const auto list = [&](std::string_view query) {
    return json::parse(worker.get(cat(path, query)).body);
  };
  const json all = list("?order=asc");
  EXPECT_EQ(all.at("object"), "list");
  EXPECT_THAT(texts_of(all), ElementsAre("user One", "assistant Hello, world", "user Two",
                                         "assistant Three", "user Four"));
  EXPECT_EQ(all.at("has_more"), false);
  EXPECT_EQ(all.at("data").at(0).at("type"), "message");
  EXPECT_EQ(all.at("data").at(0).at("content").at(0).at("type"), "input_text");
  EXPECT_EQ(all.at("data").at(1), first.at("output").at(0));
  EXPECT_EQ(all.at("data").at(3).at("id"), "mine");
  EXPECT_EQ(all.at("first_id"), all.at("data").at(0).at("id"));
  // The newest first, in pages.
  const json newest = list("?limit=2");
  EXPECT_THAT(texts_of(newest), ElementsAre("user Four", "assistant Three"));
  EXPECT_EQ(newest.at("has_more"), true);
  EXPECT_EQ(newest.at("last_id"), "mine");
  const json rest = list("?limit=3&after=mine");
  EXPECT_THAT(texts_of(rest), ElementsAre("user Two", "assistant Hello, world", "user One"));
  EXPECT_EQ(rest.at("has_more"), false);
  EXPECT_THAT(list(cat("?after=", rest.at("last_id").get<std::string>())).at("data"), IsEmpty());
  EXPECT_EQ(error_of(worker.get(path + "?after=none"), 400).at("param"), "after");
  EXPECT_EQ(error_of(worker.get(path + "?limit=0"), 400).at("param"), "limit");
  EXPECT_EQ(error_of(worker.get(path + "?limit=101"), 400).at("param"), "limit");
  EXPECT_EQ(error_of(worker.get(path + "?order=up"), 400).at("param"), "order");
}

TEST(ResponseMemory, ReferencesAreTheItemsThatTheyName) {
  Worker worker;
  const json first = answer(worker, {{"input", "One"}});
  const std::string said = first.at("output").at(0).at("id");
  const json items =
      json::parse(worker.get(cat("/v1/responses/", id_of(first), "/input_items")).body);
  const std::string asked = items.at("data").at(0).at("id");
  const json reference = {{"type", "item_reference"}, {"id", said}};
  const json body = {
      {"input", {{{"id", asked}}, reference, {{"role", "user"}, {"content", "Two"}}}}};
  const json second = answer(worker, body);
  EXPECT_THAT(heard(worker), ElementsAre("user One", "assistant Hello, world", "user Two"));
  const json whole = {{"input",
                       {{{"role", "user"}, {"content", "One"}},
                        first.at("output").at(0),
                        {{"role", "user"}, {"content", "Two"}}}}};
  const std::string counts = "/v1/responses/input_tokens";
  EXPECT_EQ(worker.post(counts, body.dump()).body, worker.post(counts, whole.dump()).body);
  // What goes on from it has the items, though the answer that they came from is deleted.
  ask(worker.port(), request("DELETE", cat("/v1/responses/", id_of(first))));
  answer(worker, {{"input", "Three"}, {"previous_response_id", id_of(second)}});
  EXPECT_THAT(heard(worker), ElementsAre("user One", "assistant Hello, world", "user Two",
                                         "assistant Hello, world", "user Three"));
  const json gone = error_of(worker.post(kResponses, body.dump()), 404);
  EXPECT_THAT(gone.at("message"), HasSubstr("not found"));
  for (const json& wrong : {json("msg_none"), json("none"), json(), json(5)}) {
    const json broken = {{"input", {{{"type", "item_reference"}, {"id", wrong}}}}};
    error_of(worker.post(kResponses, broken.dump()), 404);
  }
}

// Nobody reads these fields of an input's items before.
TEST(ResponseMemory, InputItemsHaveIdsOfTheirOwn) {
  Worker worker;
  const json odd = {{"type", "message"}, {"role", "user"}, {"content", "Hi"}};
  json items = json::array({odd, odd, odd});
  items[0].update({{"id", 5}, {"status", nullptr}});
  items[1].update({{"id", nullptr}, {"status", json::array()}});
  items[2].update({{"id", "mine"}, {"status", "incomplete"}});
  const std::string id = id_of(answer(worker, {{"input", items}}));
  const RawResponse response = worker.get(cat("/v1/responses/", id, "/input_items?order=asc"));
  ASSERT_EQ(response.status, 200) << response.body;
  const json page = json::parse(response.body);
  EXPECT_EQ(page.at("data")[0].at("status"), "completed");
  EXPECT_EQ(page.at("data")[1].at("status"), "completed");
  EXPECT_EQ(page.at("data")[2].at("status"), "incomplete");
  EXPECT_EQ(page.at("data")[2].at("id"), "mine");
  EXPECT_THAT(page.at("first_id"), StartsWith("in_"));
  EXPECT_THAT(page.at("data")[1].at("id"), StartsWith("in_"));
  EXPECT_NE(page.at("data")[0].at("id"), page.at("data")[1].at("id"));
}

// Clients send items of an answer again, with their ids. The pages still come to an end.
TEST(ResponseMemory, InputItemsWithTheSameIdAreApart) {
  Worker worker;
  const json item = {{"type", "message"}, {"id", "mine"}, {"role", "user"}, {"content", "Hi"}};
  json taken = item;
  taken["id"] = "mine-2";
  const json first = answer(worker, {{"input", {item, item, taken}}});
  const json second = answer(worker, {{"input", {item}}, {"previous_response_id", id_of(first)}});
  const std::string path = cat("/v1/responses/", id_of(second), "/input_items?limit=1");
  for (const char* order : {"asc", "desc"}) {
    std::vector<std::string> ids;
    std::string after;
    bool more = true;
    while (more && ids.size() < 9) {
      const std::string next = after.empty() ? "" : "&after=" + after;
      const json page = json::parse(worker.get(cat(path, "&order=", order, next)).body);
      after = page.at("last_id");
      more = page.at("has_more");
      ids.push_back(after);
    }
    EXPECT_EQ(ids.size(), 5) << order;
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size()) << order;
  }
}

TEST(ResponseMemory, AnInputMayBeAbsentAfterAnAnswer) {
  Worker worker;
  const json first = answer(worker, {{"input", "One"}});
  const json second = answer(worker, {{"previous_response_id", id_of(first)}});
  const std::string path = cat("/v1/responses/", id_of(second), "/input_items?order=asc");
  EXPECT_THAT(texts_of(json::parse(worker.get(path).body)),
              ElementsAre("user One", "assistant Hello, world"));
  EXPECT_EQ(error_of(worker.post(kResponses, "{}"), 400).at("param"), "input");
  EXPECT_EQ(error_of(worker.post(kResponses, R"({"previous_response_id":""})"), 400).at("param"),
            "input");
}

TEST(ResponseMemory, TokensAreCountedWithTheChatBefore) {
  Worker worker;
  const json first = answer(worker, {{"input", "One"}});
  const auto tokens = [&](const json& body) {
    const RawResponse counted = worker.post("/v1/responses/input_tokens", body.dump());
    return json::parse(counted.body).at("input_tokens").get<int>();
  };
  const json chat = json::parse(R"([{"role":"user","content":"One"},
      {"role":"assistant","content":"Hello, world"},{"role":"user","content":"Two"}])");
  EXPECT_EQ(tokens({{"input", "Two"}, {"previous_response_id", id_of(first)}}),
            tokens({{"input", chat}}));
}

// ---- the store

server::StoredResponse stored(const std::string& id, size_t bytes, server::StoredTurns turns = {}) {
  turns.push_back(std::make_shared<const server::StoredTurn>(server::StoredTurn{
      .id = id, .input = std::make_shared<const std::string>(bytes, 'x'), .output = "[]"}));
  return {.object = "{}", .turns = std::move(turns)};
}

TEST(ResponseStore, WhoHoldsMostLosesItsOldest) {
  server::ResponseStore store({.bytes = 100'000});
  store.add("small", stored("s", 10'000));
  for (const char* id : {"a", "b", "c"}) store.add("large", stored(id, 25'000));
  ASSERT_NE(store.find("large", "a"), nullptr);  // and so "b" was used longest ago
  store.add("large", stored("d", 25'000));
  EXPECT_EQ(store.find("large", "b"), nullptr);
  for (const char* id : {"a", "c", "d"}) EXPECT_NE(store.find("large", id), nullptr) << id;
  for (int i = 0; i < 100; ++i) store.add("large", stored(cat("e", i), 25'000));
  EXPECT_NE(store.find("small", "s"), nullptr);
  EXPECT_LE(store.bytes(), 100'000u);
  // One that is larger than all the room is not kept, and costs nobody else anything.
  store.add("huge", stored("h", 200'000));
  EXPECT_EQ(store.find("huge", "h"), nullptr);
  EXPECT_NE(store.find("small", "s"), nullptr);
  EXPECT_NE(store.find("large", "e99"), nullptr);
}

TEST(ResponseStore, WhatIsTooLargeAloneLeavesTheClientsOthers) {
  server::ResponseStore store({.bytes = 10'000});
  store.add("client", stored("a", 2000));
  store.add("client", stored("b", 4000, store.find("client", "a")->turns));
  const size_t before = store.bytes();
  store.add("client", stored("c", 20'000));
  store.add("client", stored("d", 4000, store.find("client", "b")->turns));  // with its chat
  EXPECT_EQ(store.bytes(), before);
  for (const char* id : {"a", "b"}) EXPECT_NE(store.find("client", id), nullptr) << id;
  for (const char* id : {"c", "d"}) EXPECT_EQ(store.find("client", id), nullptr) << id;
}

TEST(ResponseStore, HoldsAtMostSoManyAnswers) {
  server::ResponseStore store({.most = 3});
  store.add("few", stored("f", 10));
  for (const char* id : {"a", "b", "c", "d"}) store.add("many", stored(id, 10));
  EXPECT_NE(store.find("few", "f"), nullptr);
  for (const char* id : {"a", "b"}) EXPECT_EQ(store.find("many", id), nullptr) << id;
  for (const char* id : {"c", "d"}) EXPECT_NE(store.find("many", id), nullptr) << id;
}

std::chrono::steady_clock::time_point g_now;

TEST(ResponseStore, ForgetsOldAnswers) {
  server::ResponseStore store({.age = std::chrono::hours(1), .now = +[] { return g_now; }});
  store.add("c", stored("a", 10));
  store.add("c", stored("unasked", 10));
  g_now += std::chrono::minutes(50);
  EXPECT_NE(store.find("c", "a"), nullptr);  // using one does not make it younger
  store.add("c", stored("b", 10));
  const size_t before = store.bytes();
  g_now += std::chrono::minutes(20);
  EXPECT_EQ(store.find("c", "a"), nullptr);
  EXPECT_LT(store.bytes(), before);
  store.add("c", stored("d", 10));  // which also drops what nobody asks for
  EXPECT_LT(store.bytes(), before);
  EXPECT_NE(store.find("c", "b"), nullptr);
}

TEST(ResponseStore, SharedTurnsCountOnceAndUntilTheirLastAnswerGoes) {
  server::ResponseStore store({.bytes = 1'000'000});
  store.add("c", stored("a", 10'000));
  const size_t one = store.bytes();
  store.add("c", stored("b", 10'000, store.find("c", "a")->turns));
  EXPECT_LT(store.bytes(), 2 * one + 100);
  EXPECT_TRUE(store.remove("c", "a"));
  EXPECT_FALSE(store.remove("c", "a"));
  EXPECT_GT(store.bytes(), 20'000u);  // "b" still holds both turns
  EXPECT_TRUE(store.remove("c", "b"));
  EXPECT_EQ(store.bytes(), 0u);
}

}  // namespace
}  // namespace rbee::testing
