// The parts of server/http that work without a socket.

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <set>

#include "rbee/core/error.h"
#include "server/http/auth.h"
#include "server/http/client.h"
#include "server/http/clock.h"
#include "server/http/ids.h"
#include "server/http/local_host.h"
#include "server/http/mailbox.h"
#include "server/http/message.h"
#include "server/http/router.h"
#include "server/http/turns.h"

namespace rbee::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Request with_authorization(std::vector<std::string> values) {
  Request request;
  for (std::string& value : values) request.headers.emplace_back("authorization", std::move(value));
  return request;
}

TEST(LocalHost, LoopbackIsANumberOrLocalhost) {
  for (const char* host :
       {"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "::", "10.0.0.1", "example.com", "127.example.com",
                           "127.0.0.1.example.com", "localhost.example.com", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

TEST(LocalHost, ReadsTheHostHeader) {
  EXPECT_EQ(host_of("localhost"), "localhost");
  EXPECT_EQ(host_of("localhost:8080"), "localhost");
  EXPECT_EQ(host_of("[::1]"), "::1");
  EXPECT_EQ(host_of("[::1]:8080"), "::1");
  for (const char* header : {"", ":8080", "[::1", "[::1]x", "::1", "localhost:x", "a:1:2"}) {
    EXPECT_EQ(host_of(header), "") << header;
  }
  EXPECT_TRUE(names_this_machine("My-Machine:8080", "my-machine"));
  EXPECT_TRUE(names_this_machine("127.0.0.1:8080", "my-machine"));
  EXPECT_FALSE(names_this_machine("example.com:8080", "my-machine"));
  EXPECT_FALSE(names_this_machine("", ""));
}

TEST(ApiKeys, LetEverybodyInWithoutAKey) {
  for (const char* token : {"", "  ", "\n"}) {
    EXPECT_FALSE(ApiKeys(token).enabled());
    EXPECT_FALSE(ApiKeys(token).judge({}).refusal);
    EXPECT_EQ(ApiKeys(token).describe(), "");
  }
}

TEST(ApiKeys, TakeExactlyTheToken) {
  const ApiKeys keys("abc\n");
  EXPECT_FALSE(keys.judge(with_authorization({"Bearer abc"})).refusal);
  EXPECT_FALSE(keys.judge(with_authorization({"Bearer   abc \t"})).refusal);
  EXPECT_FALSE(keys.judge(with_authorization({"bEARER abc"})).refusal);  // RFC 9110, 11.1
  for (const char* value : {"Bearer ab", "Bearer abcd", "Bearer ABC", "bearer ABC", "Bearer", "abc",
                            "Bearer ", "Basic abc", "Bearer a\x01", ""}) {
    const auto refusal = keys.judge(with_authorization({value})).refusal;
    ASSERT_TRUE(refusal) << value;
    EXPECT_EQ(refusal->status, 401);
    EXPECT_THAT(refusal->body, HasSubstr("INVALID_API_KEY"));
  }
  EXPECT_THAT(keys.judge({}).refusal->body, HasSubstr("MISSING_API_KEY"));
  EXPECT_TRUE(keys.judge(with_authorization({"Bearer abc", "Bearer abc"})).refusal);
  EXPECT_TRUE(keys.judge(with_authorization({"Bearer " + std::string(8192, 'a')})).refusal);
}

TEST(ApiKeys, MayComeInTheHeaderOfAnthropicsClients) {
  const ApiKeys keys("abc");
  EXPECT_FALSE(keys.judge({.headers = {{"x-api-key", "abc"}}}).refusal);
  EXPECT_TRUE(keys.judge({.headers = {{"x-api-key", "abd"}}}).refusal);
  const Headers both = {{"x-api-key", "abc"}, {"authorization", "Bearer abc"}};
  EXPECT_TRUE(keys.judge({.headers = both}).refusal);
}

// The hash of "abc" is that of FIPS 180-2, appendix B.1.
TEST(ApiKeys, OfAFileHaveNames) {
  ApiKeys keys("own");
  keys.add_file(
      "\xef\xbb\xbf# people\n\nann  plain key\r\n"
      "bob sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      "keys.txt");
  EXPECT_EQ(keys.judge(with_authorization({"Bearer own"})).name, "token");
  EXPECT_EQ(keys.judge(with_authorization({"Bearer plain key"})).name, "ann");
  EXPECT_EQ(keys.judge(with_authorization({"Bearer abc"})).name, "bob");
  EXPECT_TRUE(keys.judge(with_authorization({"Bearer plain"})).refusal);
  EXPECT_THAT(keys.describe(), HasSubstr("bob (ba7816)"));
  EXPECT_THAT(keys.describe(), Not(HasSubstr("plain")));
}

TEST(ApiKeys, WhatIsWrongWithAFileIsSaid) {
  const auto said = [](std::string_view text) -> std::string {
    try {
      ApiKeys().add_file(text, "keys.txt");
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(said(""), HasSubstr("keys.txt holds no key"));
  EXPECT_THAT(said("# none\n"), HasSubstr("holds no key"));
  EXPECT_THAT(said("ann x\nbob"), HasSubstr("keys.txt line 2: key"));
  EXPECT_THAT(said("a/b x"), HasSubstr("line 1: name"));
  EXPECT_THAT(said("ann x\nann y"), HasSubstr("ann is there already"));
  EXPECT_THAT(said("ann sha256:00"), HasSubstr("64 hex digits"));
  EXPECT_THAT(said("ann sha256:" + std::string(64, 'g')), HasSubstr("64 hex digits"));
}

TEST(Router, MatchesSegments) {
  Router router;
  const auto handler = [](const Request&) { return Response{}; };
  router.add({"GET", "/", handler});
  router.add({"GET", "/v1/jobs/{job_id}/stream", handler});
  router.add({"DELETE", "/v1/jobs/{job_id}", handler});
  router.add({"POST", "/v1/jobs", handler});
  router.add({"GET", "/v1/jobs", handler});
  EXPECT_NE(router.find("GET", "/").route, nullptr);
  EXPECT_NE(router.find("HEAD", "/").route, nullptr);
  const Router::Match stream = router.find("GET", "/v1/jobs/a-1/stream");
  ASSERT_NE(stream.route, nullptr);
  EXPECT_EQ(stream.params, (Headers{{"job_id", "a-1"}}));
  for (const char* path : {"", "x", "//", "/v1", "/v1/jobs/", "/v1/jobs//stream",
                           "/v1/jobs/a/stream/", "/v1/jobs/a/b/stream", "/V1/jobs"}) {
    const Router::Match match = router.find("GET", path);
    EXPECT_TRUE(match.route == nullptr && match.allow.empty()) << path;
  }
  EXPECT_EQ(router.find("PUT", "/v1/jobs").allow, "POST, GET, HEAD");
  EXPECT_THROW(router.add({"GET", "x", handler}), Error);
}

// CONNECT's target is "host:port", that of OPTIONS may be "*"; a head may have any other word.
TEST(Router, TargetsWithoutASlashHaveTheFormOfUnknownPaths) {
  Router router;
  router.add({.method = "GET", .pattern = "/v1/jobs", .handler = {}, .errors = ErrorForm::own});
  for (const char* target : {"a:1", "health", "a/b", "*", "", "v1/jobs", "?"}) {
    EXPECT_EQ(router.error_form(target), ErrorForm::openai) << target;
    EXPECT_EQ(router.find("GET", target).route, nullptr) << target;
    EXPECT_FALSE(router.find_path(target)) << target;
  }
  EXPECT_EQ(router.error_form("/v1/jobs/x"), ErrorForm::own);
}

TEST(Router, ParametersComeDecodedAndTheLastMayHoldSlashes) {
  Router router;
  const auto handler = [](const Request&) { return Response{}; };
  router.add({"GET", "/v1/models/{+id}", handler});
  router.add({"GET", "/page/{name}", handler});
  const auto param = [&](const char* path) {
    const Router::Match match = router.find("GET", path);
    return match.params.empty() ? "none" : match.params.front().second;
  };
  EXPECT_EQ(param("/v1/models/hf:org/name"), "hf:org/name");
  EXPECT_EQ(param("/v1/models/hf%3Aorg%2fname"), "hf:org/name");
  EXPECT_EQ(param("/v1/models/50%25/%"), "50%/%");
  EXPECT_EQ(param("/v1/models/%g1%4"), "%g1%4");
  EXPECT_EQ(param("/v1/models/"), "none");
  EXPECT_EQ(param("/v1/models"), "none");
  EXPECT_EQ(param("/page/a%20b"), "a b");
  EXPECT_EQ(param("/page/a/b"), "none");
}

TEST(JsonType, Forms) {
  for (const char* type : {"application/json", "Application/Json ; charset=utf-8",
                           "application/problem+json", "application/json;"}) {
    EXPECT_TRUE(is_json_type(type)) << type;
  }
  for (const char* type : {"", "text/json", "application/jsonp", "application/", "text/a+json",
                           "x application/json"}) {
    EXPECT_FALSE(is_json_type(type)) << type;
  }
}

TEST(Head, FormsOfAResponse) {
  Request request;
  request.correlation_id = "c-1";
  Response response = error_response(404, "X", "a\"b");
  response.headers.emplace_back("Allow", "GET");
  const std::string head = serialize_head(response, request, {.keep_alive = true, .server = "s"});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 404 Not Found\r\nDate: "));
  EXPECT_THAT(head, HasSubstr("\r\nServer: s\r\nContent-Type: application/json\r\n"
                              "Content-Length: 39\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nX-Correlation-ID: c-1\r\nAllow: GET\r\n\r\n"));
  EXPECT_EQ(response.body, R"({"error":{"code":"X","message":"a\"b"}})");
  EXPECT_THAT(serialize_head(response, request, {.http_1_0 = true, .keep_alive = true}),
              HasSubstr("\r\nConnection: keep-alive\r\n"));
  Response stream;
  stream.events = std::make_shared<EventQueue>(nullptr);
  const std::string stream_head = serialize_head(stream, request, {});
  EXPECT_THAT(stream_head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(stream_head, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(stream_head, HasSubstr("Connection: close\r\n"));
}

TEST(Head, Chunks) {
  EXPECT_EQ(chunk("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
  EXPECT_EQ(chunk(""), "0\r\n\r\n");
}

TEST(Head, EveryUsedStatusHasAName) {
  for (const int status :
       {100, 200, 202, 400, 401, 404, 405, 408, 413, 415, 422, 429, 431, 499, 500, 503, 505}) {
    EXPECT_NE(reason_phrase(status), "Unknown") << status;
  }
  EXPECT_EQ(reason_phrase(299), "Unknown");
}

TEST(JsonQuote, EscapesWhatMustBe) {
  EXPECT_EQ(json_quote("a\"b\\c\n\x01\x7f\xc3\xa9"), "\"a\\\"b\\\\c\\u000a\\u0001\x7f\xc3\xa9\"");
}

TEST(Clock, WritesDates) {
  const std::chrono::system_clock::time_point time{std::chrono::milliseconds(784111777042)};
  EXPECT_EQ(http_date(time), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(iso8601(time), "1994-11-06T08:49:37.042Z");
}

TEST(Ids, UuidsDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(uuid4());
  EXPECT_EQ(ids.size(), 1000u);
}

TEST(Ids, CorrelationIds) {
  EXPECT_TRUE(valid_correlation_id("aZ09._:-"));
  EXPECT_TRUE(valid_correlation_id(std::string(128, 'a')));
  for (const std::string& id : {std::string(), std::string(129, 'a'), std::string("a b"),
                                std::string("a\r\nX: y"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(valid_correlation_id(id)) << id;
  }
}

TEST(EventQueue, KeepsOrderAndWakesOnce) {
  EventQueue queue(nullptr);
  int wakes = 0;
  queue.attach([&wakes] { ++wakes; });
  EXPECT_TRUE(queue.take(100).text.empty());
  queue.push_data("1");
  queue.push_data("2");
  EXPECT_EQ(wakes, 1);  // the second needs none: the reader has not looked yet
  EXPECT_EQ(queue.take(100).text, "data: 1\n\ndata: 2\n\n");
  EXPECT_FALSE(queue.take(100).last);
  queue.close();
  queue.push_data("late");
  EXPECT_EQ(wakes, 2);
  const EventQueue::Piece end = queue.take(100);
  EXPECT_TRUE(end.text.empty());
  EXPECT_TRUE(end.last);
}

TEST(EventQueue, PiecesAreWholeEvents) {
  EventQueue queue(nullptr);
  std::string all;
  for (int i = 0; i < 50; ++i) {
    queue.push_data(std::string(static_cast<size_t>(i), 'x'));
    all += cat("data: ", std::string(static_cast<size_t>(i), 'x'), "\n\n");
  }
  queue.close();
  std::string got;
  for (EventQueue::Piece piece; !piece.last;) {
    piece = queue.take(30);
    EXPECT_TRUE(piece.text.starts_with("data: ") && piece.text.ends_with("\n\n"));
    EXPECT_LT(piece.text.size(), 90u);
    got += piece.text;
  }
  EXPECT_EQ(got, all);
}

TEST(EventQueue, CutsLargeEvents) {
  EventQueue queue(nullptr);
  const std::string large(100'000, 'x');
  queue.push_data("1");
  queue.push_event("picture", large);
  queue.push_data("2");
  queue.close();
  std::string got;
  for (EventQueue::Piece piece; !piece.last;) {
    piece = queue.take(1000);
    EXPECT_FALSE(piece.text.empty());
    EXPECT_LE(piece.text.size(), 1000u);
    got += piece.text;
  }
  EXPECT_EQ(got, cat("data: 1\n\nevent: picture\ndata: ", large, "\n\ndata: 2\n\n"));
}

TEST(Mailbox, AbandonIsToldOnce) {
  int calls = 0;
  DelayedResponse response([&calls] { ++calls; });
  response.attach([] { FAIL() << "woken after abandon"; });
  EXPECT_FALSE(response.take());
  response.abandon();
  response.abandon();
  response.set({});
  EXPECT_EQ(calls, 1);
}

TEST(Url, Parts) {
  const Url plain = parse_url("http://hive");
  EXPECT_EQ(plain.host, "hive");
  EXPECT_EQ(plain.port, 80);
  EXPECT_EQ(plain.path, "");
  const Url full = parse_url("http://10.0.0.1:7835/a/b//");
  EXPECT_EQ(full.host, "10.0.0.1");
  EXPECT_EQ(full.port, 7835);
  EXPECT_EQ(full.path, "/a/b");
  const Url six = parse_url("http://[::1]:8/");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.port, 8);
  EXPECT_EQ(parse_url("http://[::1]").host, "::1");
  EXPECT_FALSE(full.tls);
  const Url secret = parse_url("https://hive/a");
  EXPECT_TRUE(secret.tls);
  EXPECT_EQ(secret.host, "hive");
  EXPECT_EQ(secret.port, 443);
  EXPECT_EQ(secret.path, "/a");
  EXPECT_EQ(parse_url("https://[::1]:4318").port, 4318);
  for (const char* bad :
       {"", "hive", "ftp://hive", "https://", "https:/hive", "http://", "http://:80", "http://a:0",
        "http://a:65536", "http://a:x", "http://a b", "http://u@a", "http://[::1", "http://a/b?c",
        "http://a\r\nX: y", "http://a:"}) {
    EXPECT_THROW(parse_url(bad), Error) << bad;
  }
}

// Between two checks for other work, it does one piece of the work at hand.
TEST(Turns, LetOthersIn) {
  boost::asio::io_context loop;
  Turns turns;
  std::string order;
  for (const char name : {'a', 'b', 'c'}) {
    turns.add(loop.get_executor(), [&order, &turns, &loop, name] {
      order += name;
      if (name == 'a') turns.add(loop.get_executor(), [&order] { order += 'd'; });
    });
  }
  for (const char name : {'1', '2'}) boost::asio::post(loop, [&order, name] { order += name; });
  loop.run_one();
  loop.run_one();
  boost::asio::post(loop, [&order] { order += '3'; });
  loop.run();
  EXPECT_EQ(order, "a12b3cd");
}

}  // namespace
}  // namespace rbee::server
