// HTTP/1.1 in practice: fragments, pipelines, half-closed connections, methods, versions.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob = R"({"prompt":"Hi","max_tokens":3})";

TEST(Http, RequestInSingleBytes) {
  Worker worker;
  RawClient client(worker.port());
  for (const char byte : request("POST", "/v1/jobs", kJob)) {
    ASSERT_TRUE(client.send(std::string_view(&byte, 1)));
  }
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, PipelinedRequestsAreAnsweredInOrder) {
  Worker worker;
  RawClient client(worker.port());
  client.send(request("GET", "/health") + request("GET", "/unknown") +
              request("POST", "/v1/jobs", kJob) + request("GET", "/v1/loading/progress"));
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_EQ(client.read_response().status, 404);
  EXPECT_THAT(client.read_response().body, HasSubstr("job_id"));
  EXPECT_EQ(client.read_response().body, "Model not loading");
}

// RFC 9112 section 2.2: some clients send an empty line after a body.
TEST(Http, EmptyLinesBeforeARequestAreSkipped) {
  Worker worker;
  RawClient client(worker.port());
  client.send("\r\n" + request("POST", "/v1/jobs", kJob) + "\r\n" + request("GET", "/health"));
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_EQ(client.read_response().status, 200);
  for (const char byte : "\r\n\r\n" + request("GET", "/health")) {
    ASSERT_TRUE(client.send(std::string_view(&byte, 1)));
  }
  EXPECT_EQ(client.read_response().status, 200);

  RawClient many(worker.port());
  for (int i = 0; i < 100; ++i) many.send("\r\n");
  EXPECT_EQ(many.read_response().status, 400);
  RawClient half(worker.port());
  half.send("\r" + request("GET", "/health"));
  EXPECT_EQ(half.read_response().status, 400);
  RawClient nothing(worker.port());
  nothing.send("\r\n\r");
  nothing.half_close();
  EXPECT_EQ(nothing.read_response().status, 0);
}

TEST(Http, ConnectionGoesOnAfterAStream) {
  Worker worker({.script = {.hold_before = true}});
  RawClient client(worker.port());
  // The second request arrives while the first is still being answered.
  client.send(request("GET", worker.new_stream()) + request("GET", "/health"));
  worker.engine.release();
  EXPECT_THAT(client.read_response().body, HasSubstr("[DONE]"));
  EXPECT_EQ(client.read_response().status, 200);
  client.send(request("GET", worker.new_stream()));
  EXPECT_THAT(client.read_response().body, HasSubstr("[DONE]"));
  client.send(request("GET", "/info"));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, CloseIsHonoured) {
  Worker worker;
  RawClient client(worker.port());
  client.send(request("GET", "/health", {}, "Connection: close\r\n"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.wait_closed());
}

TEST(Http, Version10) {
  Worker worker;
  RawClient plain(worker.port());
  plain.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_THAT(plain.read_until("\r\n"), HasSubstr("HTTP/1.0 200"));
  EXPECT_TRUE(plain.wait_closed());

  RawClient kept(worker.port());
  kept.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.read_response().headers.at("connection"), "keep-alive");
  kept.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(kept.read_response().status, 200);

  const RawResponse stream = ask(worker.port(), "GET " + worker.new_stream() + " HTTP/1.0\r\n\r\n");
  EXPECT_FALSE(stream.headers.contains("transfer-encoding"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

TEST(Http, HeadHasNoBody) {
  Worker worker;
  RawClient client(worker.port());
  client.send(request("HEAD", "/v1/ready") + request("GET", "/health"));
  const RawResponse head = client.read_response(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.headers.at("content-length"), "0");
  EXPECT_THAT(client.read_response().body, HasSubstr("healthy"));
}

TEST(Http, WrongMethodNamesTheRightOnes) {
  Worker worker;
  const RawResponse post = ask(worker.port(), request("POST", "/health", "{}"));
  EXPECT_EQ(post.status, 405);
  EXPECT_EQ(post.headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(ask(worker.port(), request("GET", "/v1/jobs")).headers.at("allow"), "POST");
  EXPECT_EQ(ask(worker.port(), request("BREW", "/health")).status, 405);
  EXPECT_EQ(ask(worker.port(), request("OPTIONS", "*")).status, 404);
}

TEST(Http, TargetForms) {
  Worker worker;
  EXPECT_EQ(worker.get("/health?x=1&y=/v1").status, 200);
  EXPECT_EQ(worker.get("http://worker:80/health").status, 200);
  EXPECT_EQ(worker.get("http://worker").status, 200);
  EXPECT_EQ(worker.get("/health/").status, 404);
  EXPECT_EQ(worker.get("//health").status, 404);
}

TEST(Http, ContentTypeMustBeJson) {
  Worker worker;
  const auto status = [&](std::string_view type) {
    return ask(worker.port(), cat("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n", type,
                                  "Content-Length: 30\r\n\r\n", kJob))
        .status;
  };
  EXPECT_EQ(status(""), 415);
  EXPECT_EQ(status("Content-Type: text/plain\r\n"), 415);
  EXPECT_EQ(status("Content-Type: application/jsonx\r\n"), 415);
  EXPECT_EQ(status("Content-Type: Application/JSON; charset=utf-8\r\n"), 200);
  EXPECT_EQ(status("content-type: application/vnd.rbee+json\r\n"), 200);
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Encoding: identity\r\n"), 200);
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Encoding: gzip\r\n"), 415);
}

// The bytes after such a head must not count as a request.
TEST(Http, UnknownTransferCodingsEndTheConnection) {
  Worker worker;
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, identity"}) {
    RawClient client(worker.port());
    client.send(cat("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: ", coding,
                    "\r\n\r\n", request("GET", "/health")));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 501) << coding;
    EXPECT_THAT(response.body, HasSubstr("Transfer-Encoding must be chunked"));
    EXPECT_EQ(client.read_response().status, 0) << coding;
  }
}

// Answers quote paths, and JSON is UTF-8.
TEST(Http, PathsArePrintableAscii) {
  Worker worker;
  for (const char* path : {"/\xff", "/v1/jobs/\xc3\x28", "/v1/jobs/\xff/stream"}) {
    const RawResponse response = worker.get(path);
    EXPECT_EQ(response.status, 400) << path;
    EXPECT_THAT(response.body, HasSubstr("percent-encode"));
  }
}

TEST(Http, ChunkedBodies) {
  Worker worker;
  const std::string head =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  const std::string body(kJob);
  EXPECT_EQ(ask(worker.port(), cat(head, "5;ext=1\r\n", body.substr(0, 5), "\r\n19\r\n",
                                   body.substr(5), "\r\n0\r\nTrailer: x\r\n\r\n"))
                .status,
            200);
  EXPECT_EQ(ask(worker.port(), head + "xyz\r\n").status, 400);
  EXPECT_EQ(ask(worker.port(), head + "ffffffffffffffff1\r\n").status, 400);
  EXPECT_EQ(ask(worker.port(), head + "-5\r\n").status, 400);
  EXPECT_EQ(ask(worker.port(), head + "2\r\n{}xx0\r\n\r\n").status, 400);
}

TEST(Http, ExpectContinue) {
  Worker worker;
  RawClient client(worker.port());
  const std::string whole = request("POST", "/v1/jobs", kJob, "Expect: 100-Continue\r\n");
  const size_t body = whole.find("\r\n\r\n") + 4;
  client.send(whole.substr(0, body));
  EXPECT_EQ(client.read_head().status, 100);
  client.send(whole.substr(body));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, OtherExpectationsGet417) {
  Worker worker;
  for (const char* expect :
       {"Expect: 200-ok\r\n", "Expect: 100-continue, x\r\n", "Expect: 100-continue;a=b\r\n",
        "Expect: 100-continue\r\nExpect: later\r\n"}) {
    const RawResponse refused = ask(worker.port(), request("POST", "/v1/jobs", kJob, expect));
    EXPECT_EQ(refused.status, 417) << expect;
    EXPECT_THAT(refused.body, HasSubstr("EXPECTATION_FAILED"));
  }
  for (const char* expect : {"Expect:\r\n", "Expect: ,\r\n"}) {
    EXPECT_EQ(ask(worker.port(), request("POST", "/v1/jobs", kJob, expect)).status, 200) << expect;
  }
  // An HTTP/1.0 request gets the same answer with and without it.
  for (const char* expect : {"100-continue", "200-ok"}) {
    const std::string old =
        cat("POST /v1/jobs HTTP/1.0\r\nExpect: ", expect,
            "\r\nContent-Type: application/json\r\nContent-Length: ", std::string_view(kJob).size(),
            "\r\n\r\n", kJob);
    EXPECT_EQ(ask(worker.port(), old).status, 200) << expect;
  }
}

TEST(Http, MalformedRequestsGet400) {
  Worker worker;
  for (const char* bytes : {
           "garbage\r\n\r\n",
           "GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
           "GET /health HTTP/1.1\r\nHost t\r\n\r\n",
           "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: u\r\n\r\n",
           "GET /health HTTP/1.1\r\n\r\n",
           "GET /he\x01lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
           "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
           "POST /v1/jobs HTTP/1.1\r\nHost: 127.1\r\nContent-Length: 2\r\nContent-Length: "
           "3\r\n\r\n",
           "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
           "Content-Length: 2\r\n\r\n0\r\n\r\n",
           "\x16\x03\x01\x02\x01\x01",
       }) {
    RawClient client(worker.port());
    client.send(bytes);
    client.half_close();
    EXPECT_EQ(client.read_response().status, 400) << bytes;
    EXPECT_TRUE(client.wait_closed());
  }
  EXPECT_EQ(ask(worker.port(), "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n").status, 505);
}

TEST(Http, HalfClosedClientGetsItsAnswer) {
  Worker worker;
  RawClient client(worker.port());
  client.send(request("GET", "/health"));
  client.half_close();
  EXPECT_EQ(client.read_response().status, 200);
  EXPECT_TRUE(client.wait_closed());

  RawClient midway(worker.port());
  midway.send("GET /health HT");
  midway.half_close();
  EXPECT_EQ(midway.read_response().status, 400);
}

// A server that answers when the test supplies the answer.
class Waits {
 public:
  Waits() {
    server::Router router;
    router.add({.method = "GET", .pattern = "/later", .handler = [this](const server::Request&) {
                  server::Response response;
                  later = response.later =
                      std::make_shared<server::DelayedResponse>([this] { ++left; });
                  ++asked;
                  return response;
                }});
    router.add({.method = "GET", .pattern = "/events", .handler = [this](const server::Request&) {
                  server::Response response;
                  response.content_type = "text/event-stream";
                  events = response.events =
                      std::make_shared<server::EventQueue>([this] { ++left; });
                  ++asked;
                  return response;
                }});
    server_.emplace(server::ServerOptions{}, std::move(router), server::ApiKeys());
  }
  uint16_t port() const { return server_->port(); }
  static bool reach(const std::atomic<int>& count, int value) {
    for (int i = 0; i < 10'000 && count < value; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return count == value;
  }

  std::shared_ptr<server::DelayedResponse> later;
  std::shared_ptr<server::EventQueue> events;
  std::atomic<int> asked = 0, left = 0;

 private:
  std::optional<server::Server> server_;
};

// Like `nc -N` and HAProxy: they close their sending side, and wait.
TEST(Http, HalfClosedClientWaitsForALaterAnswer) {
  Waits waits;
  RawClient client(waits.port());
  client.send(request("GET", "/later") + request("GET", "/later"));
  client.half_close();
  for (int i = 1; i <= 2; ++i) {  // the second one arrived before the end, too
    ASSERT_TRUE(Waits::reach(waits.asked, i));
    EXPECT_EQ(client.read_head().status, 100);
    waits.later->set(server::text_response(200, "made"));
    EXPECT_EQ(client.read_response().body, "made");
  }
  EXPECT_TRUE(client.wait_closed());
  EXPECT_EQ(waits.left, 0);
}

TEST(Http, HalfClosedClientGetsItsEvents) {
  for (const char* version : {"1.0", "1.1"}) {
    Waits waits;
    RawClient client(waits.port());
    client.send(cat("GET /events HTTP/", version, "\r\nHost: localhost\r\n\r\n"));
    client.half_close();
    EXPECT_THAT(client.read_until(": keep-alive\n\n"), HasSubstr("200 OK"));
    waits.events->push_data("one");
    waits.events->close();
    EXPECT_THAT(client.read_until("one\n\n"), HasSubstr("data: one"));
    EXPECT_TRUE(client.wait_closed());
    EXPECT_EQ(waits.left, 0);
  }
}

TEST(Http, ClientsThatCloseAllAreNotWaitedFor) {
  Waits waits;
  int count = 0;
  for (const char* path : {"/later", "/events"}) {
    for (const char* version : {"1.0", "1.1"}) {
      for (const bool half_first : {false, true}) {
        RawClient client(waits.port());
        client.send(cat("GET ", path, " HTTP/", version, "\r\nHost: localhost\r\n\r\n"));
        ASSERT_TRUE(Waits::reach(waits.asked, ++count));
        if (half_first) client.half_close();
        client.close();
        EXPECT_TRUE(Waits::reach(waits.left, count)) << path << version << half_first;
      }
    }
  }
}

TEST(Http, HandlersThatThrowGive500) {
  server::Router router;
  router.add({.method = "GET", .pattern = "/", .handler = [](const server::Request&) {
                throw std::runtime_error("secret detail");
                return server::Response{};
              }});
  server::Server server({}, std::move(router), server::ApiKeys());
  const RawResponse response = ask(server.port(), request("GET", "/"));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, R"({"error":{"code":"INTERNAL","message":"Internal error"}})");
}

TEST(Http, PagesOfAllowedOriginsMayAsk) {
  Worker worker({.server = {.cors_origins = {"https://a.example"}}, .token = "secret"});
  const std::string ask_for =
      "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
  const auto preflight = [&](std::string_view origin) {
    return ask(worker.port(),
               request("OPTIONS", "/v1/infer", {}, cat("Origin: ", origin, "\r\n", ask_for)));
  };
  const RawResponse yes = preflight("https://a.example");
  EXPECT_EQ(yes.status, 204);
  EXPECT_EQ(yes.headers.at("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(yes.headers.at("access-control-allow-headers"), "authorization");
  EXPECT_EQ(yes.headers.at("vary"), "Origin");
  EXPECT_EQ(yes.headers.count("content-length"), 0U);
  const RawResponse no = preflight("https://b.example");
  EXPECT_EQ(no.status, 401);
  EXPECT_EQ(no.headers.count("access-control-allow-origin"), 0U);
  const std::string origin = "Origin: https://a.example\r\n";
  const RawResponse health = worker.get("/health", origin);
  EXPECT_EQ(health.headers.at("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(health.headers.at("access-control-expose-headers"),
            "X-Correlation-ID, X-Request-ID, request-id, Retry-After");
  EXPECT_EQ(worker.get("/health").headers.count("access-control-allow-origin"), 0U);
  Worker open({.server = {.cors_origins = {"*"}}});
  EXPECT_EQ(open.get("/health", origin).headers.at("access-control-allow-origin"), "*");
}

// A page may send these without a preflight request: forms, plain texts, empty bodies.
TEST(Http, PagesOfOtherOriginsMayNotAsk) {
  Worker worker({.server = {.cors_origins = {"https://a.example"}}});
  const auto post = [&](const std::string& headers, std::string_view host = "localhost:80") {
    return ask(worker.port(), cat("POST /v1/infer HTTP/1.1\r\nHost: ", host, "\r\n", headers,
                                  "Content-Length: 0\r\n\r\n"));
  };
  const std::string text = "Content-Type: text/plain\r\n";
  for (const std::string& foreign :
       {"Origin: https://b.example\r\n", "Origin: null\r\n", "Origin: http://localhost:81\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n"}) {
    const RawResponse refused = post(foreign + text);
    EXPECT_EQ(refused.status, 403) << foreign;
    EXPECT_THAT(refused.body, HasSubstr("FORBIDDEN_ORIGIN"));
    EXPECT_EQ(worker.get("/health", foreign).status, 200);
    EXPECT_EQ(ask(worker.port(), request("DELETE", "/v1/jobs/x", {}, foreign)).status, 403);
    // Reading a job's stream takes it from others; a probe by POST takes nothing.
    EXPECT_EQ(worker.get("/v1/jobs/x/stream", foreign).status, 403);
    EXPECT_EQ(ask(worker.port(), request("POST", "/ping", {}, foreign)).status, 200);
  }
  // Its own page, an allowed origin and clients other than browsers get as far as the type.
  EXPECT_EQ(post("Origin: http://localhost:80\r\nSec-Fetch-Site: same-origin\r\n").status, 415);
  EXPECT_EQ(post("Origin: http://[::1]:80\r\n", "[::1]:80").status, 415);
  EXPECT_EQ(post("Origin: https://a.example\r\nSec-Fetch-Site: cross-site\r\n").status, 415);
  EXPECT_EQ(post(text).status, 415);
  Worker locked({.token = "secret"});
  EXPECT_EQ(ask(locked.port(), request("POST", "/v1/infer", kJob,
                                       "Authorization: Bearer secret\r\nOrigin: null\r\n"))
                .status,
            200);
}

// The I/O thread must not wait for the work on a large body.
TEST(Http, LargeBodiesAreHandledBesideOtherRequests) {
  std::promise<void> gate;
  server::Router router;
  router.add({.method = "POST",
              .pattern = "/slow",
              .handler =
                  [opened = gate.get_future().share()](const server::Request& request) {
                    opened.wait();
                    return server::text_response(200, cat(request.body.size()));
                  },
              .body = server::Body::json});
  router.add({.method = "GET", .pattern = "/", .handler = [](const server::Request&) {
                return server::text_response(200, "here");
              }});
  server::Server server({}, std::move(router), server::ApiKeys());
  RawClient slow(server.port());
  slow.send(request("POST", "/slow", std::string(100'000, ' ')));
  EXPECT_EQ(ask(server.port(), request("GET", "/")).body, "here");
  gate.set_value();
  EXPECT_EQ(slow.read_response().body, "100000");
}

// The server reads one large body of a client at a time, and other clients' meanwhile.
TEST(Http, LargeBodiesOfOneClientLeaveAThreadToOthers) {
  std::promise<void> gate;
  std::atomic<int> most = 0, now = 0;
  server::Router router;
  router.add({.method = "POST",
              .pattern = "/slow",
              .handler =
                  [&, opened = gate.get_future().share()](const server::Request& request) {
                    if (request.sender() != "127.0.0.1") return server::text_response(200, "read");
                    most = std::max(most.load(), ++now);
                    opened.wait();
                    --now;
                    return server::text_response(200, "held");
                  },
              .body = server::Body::json});
  server::Server server({}, std::move(router), server::ApiKeys());
  const std::string large = request("POST", "/slow", std::string(100'000, ' '));
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 6; ++i) {
    crowd.push_back(std::make_unique<RawClient>(server.port()));
    crowd.back()->send(large);
  }
  while (now == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask(server.port(), large, "127.0.0.2").body, "read");
  }
  gate.set_value();
  for (const auto& client : crowd) EXPECT_EQ(client->read_response().body, "held");
  EXPECT_EQ(most, 1);
}

TEST(Http, BusyPortIsAnError) {
  Worker worker;
  try {
    server::Server second({.port = worker.port()}, server::Router(), server::ApiKeys());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
    EXPECT_THAT(error.what(), HasSubstr(cat(worker.port())));
  }
}

}  // namespace
}  // namespace rbee::testing
