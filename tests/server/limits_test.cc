// Limits on the cost of a hostile or broken client.

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(Limits, HugeBodiesGet413) {
  Worker worker;
  RawClient declared(worker.port());
  declared.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(declared.read_response().status, 413);
  EXPECT_TRUE(declared.wait_closed());

  RawClient chunked(worker.port());
  chunked.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  const std::string piece = cat("10000\r\n", std::string(65536, ' '), "\r\n");
  for (int i = 0; i < 17; ++i) chunked.send(piece);
  EXPECT_EQ(chunked.read_response().status, 413);
}

TEST(Limits, BodyOfTheLimitIsRead) {
  Worker worker({.server = {.max_body_bytes = 100}});
  std::string body = R"({"prompt":"Hi","x":")";
  body += std::string(98 - body.size(), 'x') + "\"}";
  EXPECT_EQ(worker.post("/v1/jobs", body).status, 200);
  EXPECT_EQ(worker.post("/v1/jobs", body + " ").status, 413);
}

TEST(Limits, HugeHeadersGet431) {
  Worker worker;
  EXPECT_EQ(worker.get("/health", cat("X-Big: ", std::string(16384, 'x'), "\r\n")).status, 431);
  EXPECT_EQ(worker.get("/" + std::string(20000, 'x')).status, 431);
  std::string many;
  for (int i = 0; i < 100; ++i) many += cat("X-", i, ": y\r\n");
  EXPECT_EQ(worker.get("/health", many).status, 431);
  EXPECT_EQ(worker.get("/health", many.substr(0, many.rfind("X-"))).status, 200);
}

// The text around chunks is not part of the body; the limit on headers applies to it.
TEST(Limits, HugeChunkHeadsAndTrailersGet431) {
  Worker worker;
  const std::string head =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  const std::string body = R"({"prompt":"Hi"})", some = std::string(12'000, 'x');
  const std::string chunks = cat("f\r\n", body, "\r\n0\r\n");
  for (const std::string& endless :
       {cat("5;", some, some), std::string(24'000, '0'), cat(chunks, "X-T: ", some, some)}) {
    RawClient client(worker.port());
    client.send(head + endless);
    EXPECT_EQ(client.read_response().status, 431);
    EXPECT_TRUE(client.wait_closed());
  }
  RawClient client(worker.port());
  client.send(cat(head, "f;", some, "\r\n", body, "\r\n0\r\nX-T: ", some, "\r\n\r\n"));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Limits, JsonBombs) {
  Worker worker;
  const auto post = [&](const std::string& body) { return worker.post("/v1/jobs", body); };
  const std::string deep = cat(R"({"prompt":"Hi","x":)", std::string(500'000, '['));
  EXPECT_EQ(post(deep).status, 400);
  EXPECT_THAT(post(deep).body, HasSubstr("32 levels"));
  std::string objects = R"({"x":)";
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  EXPECT_EQ(post(objects).status, 400);
  EXPECT_THAT(post(R"({"prompt":"Hi","prompt":"Ho"})").body, HasSubstr("twice"));
  EXPECT_THAT(post(R"({"prompt":"Hi","seed":1e999})").body, HasSubstr("out of range"));
  EXPECT_EQ(post("{\"prompt\":\"\xff\xfe\"}").status, 400);
  EXPECT_EQ(post(R"({"prompt":"\ud800"})").status, 400);
  EXPECT_EQ(post("[]").status, 400);
  EXPECT_EQ(post("{\"prompt\":\"Hi\"} x").status, 400);
  EXPECT_EQ(post("nul").status, 400);
}

// A parsed tree is many times larger than its text, and look-ups in ordered objects are linear.
TEST(Limits, JsonOfTooManyParts) {
  Worker worker({.server = {.max_body_bytes = 8 << 20}});
  std::string lists = R"({"prompt":"Hi","x":[)", names = R"({"prompt":"Hi","x":{)";
  for (int i = 0; i < 600'000; ++i) lists += "[],";
  const RawResponse refused = worker.post("/v1/jobs", lists + "1]}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("max_count(524288)"));
  for (int i = 0; i < 4096; ++i) names += cat("\"k", i, "\":1,");
  const RawResponse named = worker.post("/v1/jobs", names + "\"last\":1}}");
  EXPECT_EQ(named.status, 400);
  EXPECT_THAT(named.body, HasSubstr("max_names(4096)"));
  names.pop_back();
  EXPECT_EQ(worker.post("/v1/jobs", names + "}}").status, 200);
}

TEST(Limits, SlowHeadersGet408) {
  Worker worker({.server = {.header_timeout = milliseconds(100)}});
  RawClient slow(worker.port());
  slow.send("GET /health HTTP/1.1\r\n");
  EXPECT_EQ(slow.read_response().status, 408);
  EXPECT_TRUE(slow.wait_closed());
  RawClient silent(worker.port());
  EXPECT_TRUE(silent.wait_closed(milliseconds(2000)));
}

TEST(Limits, HeadersThatTrickleAreCutOff) {
  Worker worker({.server = {.max_header_bytes = 1 << 20, .header_timeout = milliseconds(300)}});
  RawClient trickle(worker.port());
  trickle.send("GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
  // The deadline does not move when bytes arrive.
  int pieces = 0;
  while (pieces < 1000 && trickle.send("y") && !trickle.wait_closed(milliseconds(10))) ++pieces;
  EXPECT_LT(pieces, 100);
}

TEST(Limits, SlowBodiesGet408) {
  Worker worker({.server = {.body_timeout = milliseconds(100)}});
  const std::string head =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 10\r\n";
  RawClient slow(worker.port());
  slow.send(head + "\r\n{");
  EXPECT_EQ(slow.read_response().status, 408);

  RawClient invited(worker.port());
  invited.send(head + "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(invited.read_head().status, 100);
  EXPECT_EQ(invited.read_response().status, 408);
}

TEST(Limits, LongBodiesMayTakeTheirTimeWhileTheyCome) {
  Worker worker({.server = {.body_timeout = milliseconds(1000), .least_body_bytes = 2}});
  const std::string body = R"({"prompt":"Hello, I come slowly"})";
  const std::string whole = request("POST", "/v1/infer", body);
  RawClient slow(worker.port());
  slow.send(whole.substr(0, whole.size() - body.size()));
  for (const char c : body) {
    slow.send(std::string(1, c));
    std::this_thread::sleep_for(milliseconds(60));
  }
  EXPECT_EQ(slow.read_response().status, 200);
}

TEST(Limits, IdleConnectionsAreClosed) {
  Worker worker({.server = {.idle_timeout = milliseconds(100)}});
  RawClient client(worker.port());
  client.send(request("GET", "/health"));
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_TRUE(client.wait_closed(milliseconds(2000)));
}

TEST(Limits, TooManyConnectionsGet503) {
  Worker worker({.server = {.max_connections = 2}});
  RawClient first(worker.port());
  RawClient second(worker.port());
  for (RawClient* client : {&first, &second}) {
    client->send(request("GET", "/health"));
    EXPECT_EQ(client->read_response().status, 200);
  }
  RawClient third(worker.port());
  const RawResponse refused = third.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  first.close();
  // The place is free after the server has seen the end of the first connection.
  for (int attempt = 0; attempt < 100; ++attempt) {
    RawClient again(worker.port());
    again.send(request("GET", "/health"));
    if (again.read_response().status == 200) return;
  }
  FAIL() << "no place became free";
}

TEST(Limits, OneAddressNeverHasAllConnections) {
  Worker worker({.server = {.max_connections = 16}});
  std::vector<std::unique_ptr<RawClient>> held;
  for (int i = 0; i < 14; ++i) {
    held.push_back(std::make_unique<RawClient>(worker.port()));
    held.back()->send(request("GET", "/health"));
    EXPECT_EQ(held.back()->read_response().status, 200);
  }
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 503);
  EXPECT_EQ(ask(worker.port(), request("GET", "/health"), "127.0.0.2").status, 200);
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 503);
}

TEST(Limits, ConnectionsOfOneClientAreCounted) {
  Worker worker({.server = {.max_client_connections = 2}});
  RawClient first(worker.port());
  RawClient second(worker.port());
  first.send(request("GET", "/health"));
  EXPECT_EQ(first.read_response().status, 200);
  second.send(request("GET", "/health"));
  EXPECT_EQ(second.read_response().status, 200);
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 503);
  first.send(request("GET", "/health", {}, "Connection: close\r\n"));
  EXPECT_EQ(first.read_response().status, 200);
  first.close();
  int status = 503;
  for (int i = 0; i < 1000 && status == 503; ++i) {
    status = ask(worker.port(), request("GET", "/health")).status;
  }
  EXPECT_EQ(status, 200);
}

TEST(Limits, ClientThatReadsNothingIsLeft) {
  Worker worker({.script = {.pieces = std::vector<std::string>(300, std::string(20'000, 'x')),
                            .hold_after = true},
                 .server = {.write_timeout = milliseconds(200)}});
  RawClient client(worker.port(), 4096);
  client.send(request("GET", worker.new_stream()));
  EXPECT_TRUE(worker.engine.wait_ended(1));
  EXPECT_EQ(worker.engine.cancelled(), 1);
}

}  // namespace
}  // namespace rbee::testing
