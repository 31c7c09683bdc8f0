// Many streams, slow readers, and the end of a server with streams open.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A limit for work that takes well under two seconds, for busy machines.
constexpr milliseconds kSoon{5000};
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Streams, HundredAtOnce) {
  constexpr int kStreams = 100;
  Worker worker({.script = {.pieces = std::vector<std::string>(50, "word "), .hold_before = true}});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<RawClient>(worker.port()));
    clients.back()->send(request("GET", worker.new_stream()));
  }
  for (const auto& client : clients) EXPECT_EQ(client->read_head().status, 200);
  worker.engine.release();
  for (const auto& client : clients) {
    const std::string body = client->read_until("[DONE]");
    const std::vector<std::string> events = payloads(body + "\n\n");
    ASSERT_EQ(events.size(), 54u);
    EXPECT_EQ(events[50], R"({"type":"token","t":"word ","i":49})");
    EXPECT_THAT(body, Not(HasSubstr("error")));
  }
  EXPECT_TRUE(worker.engine.wait_ended(kStreams));
}

TEST(Streams, SlowReaderDoesNotHoldTheEngine) {
  constexpr int kTokens = 1'000;
  Worker worker({.script = {.pieces = std::vector<std::string>(kTokens, std::string(6'000, 'x'))}});
  RawClient slow(worker.port(), 4096);
  slow.send(request("GET", worker.new_stream()));
  // The engine finishes, and serves other clients, before this client has read anything.
  ASSERT_TRUE(worker.engine.wait_ended(1));
  EXPECT_EQ(worker.get("/health").status, 200);
  // Nothing is lost by waiting.
  const std::vector<std::string> events = payloads(slow.read_response().body);
  ASSERT_EQ(events.size(), static_cast<size_t>(kTokens) + 4);
  EXPECT_THAT(events[kTokens], HasSubstr(cat("\"i\":", kTokens - 1, "}")));
}

// The whole answer takes longer than the limit on a client that reads nothing.
TEST(Streams, SlowReadersOfOneLargeAnswerGetItWhole) {
  constexpr int kPieces = 40;
  std::vector<std::string> pieces;
  for (int i = 0; i < kPieces; ++i) pieces.push_back(std::string(500'000, 'x') + cat("<", i, ">"));
  Worker worker(
      {.script = {.pieces = std::move(pieces)}, .server = {.write_timeout = milliseconds(1500)}});
  RawClient slow(worker.port(), 4096);
  slow.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  for (int i = 0; i < kPieces; ++i) {
    ASSERT_THAT(slow.read_until(cat("<", i, ">")), EndsWith(cat("<", i, ">")));
    std::this_thread::sleep_for(milliseconds(75));
  }
}

TEST(Streams, CommentsKeepSilentStreamsOpen) {
  Worker worker(
      {.script = {.hold_before = true}, .server = {.comment_interval = milliseconds(20)}});
  RawClient client(worker.port());
  client.send(request("GET", worker.new_stream()));
  EXPECT_THAT(client.read_until(": keep-alive\n\n"), HasSubstr(": keep-alive"));
  client.read_until(": keep-alive\n\n");
  worker.engine.release();
  EXPECT_THAT(client.read_until("[DONE]"), HasSubstr("\"t\":\"world\""));
}

TEST(Streams, StopEndsThemWithAnError) {
  Worker worker({.script = {.hold_after = true}});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {  // one runs, two wait
    clients.push_back(std::make_unique<RawClient>(worker.port()));
    clients.back()->send(request("GET", worker.new_stream()));
    EXPECT_EQ(clients.back()->read_head().status, 200);
  }
  RawClient asking(worker.port());
  asking.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
  RawClient chat(worker.port());
  chat.send(request("POST", "/v1/chat/completions",
                    R"({"messages":[{"role":"user","content":"Hi"}],"stream":true})"));
  RawClient idle(worker.port());
  EXPECT_TRUE(worker.engine.wait_texts_sent(1));
  while (worker.engine.stats().waiting < 4) std::this_thread::yield();

  const auto begin = steady_clock::now();
  worker.service.shutdown();
  worker.server.stop(milliseconds(1500));
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  for (const auto& client : clients) {
    EXPECT_THAT(
        client->read_until("[DONE]"),
        HasSubstr(R"({"type":"error","code":"CANCELLED","message":"the worker is stopping")"));
  }
  // OpenAI's clients send such a request again.
  const RawResponse unanswered = asking.read_response();
  EXPECT_EQ(unanswered.status, 503);
  EXPECT_THAT(unanswered.body, HasSubstr("STOPPING"));
  EXPECT_EQ(unanswered.headers.at("retry-after"), "1");
  EXPECT_THAT(chat.read_until("[DONE]"), HasSubstr(R"("code":"STOPPING")"));
  EXPECT_TRUE(idle.wait_closed());
  EXPECT_THROW(RawClient(worker.port()), std::runtime_error);
}

TEST(Streams, StopDoesNotWaitForClientsThatDoNotRead) {
  Worker worker({.script = {.pieces = std::vector<std::string>(300, std::string(20'000, 'x'))}});
  RawClient client(worker.port(), 4096);
  client.send(request("GET", worker.new_stream()));
  ASSERT_TRUE(worker.engine.wait_ended(1));
  const auto begin = steady_clock::now();
  worker.service.shutdown();
  worker.server.stop(milliseconds(200));
  EXPECT_LT(steady_clock::now() - begin, kSoon);
}

TEST(Streams, NoNewWorkWhileStopping) {
  Worker worker;
  worker.service.shutdown();
  const RawResponse refused = worker.post("/v1/jobs", R"({"prompt":"Hi"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("STOPPING"));
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(worker.get("/health").status, 503);
}

}  // namespace
}  // namespace rbee::testing
