// Spans: the header of W3C Trace Context, and a collector that is down, slow or full.

#include "server/http/trace.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/http/mailbox.h"
#include "server/http/server.h"
#include "server/http/tracer.h"
#include "tests/server/certificate.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The example of W3C Trace Context, section 3.2.3.
constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kParent = "00f067aa0ba902b7";

TEST(TraceParent, IsReadAsTheSpecificationSays) {
  const auto parsed = server::parse_traceparent(cat("00-", kTrace, "-", kParent, "-01"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->trace_id, kTrace);
  EXPECT_EQ(parsed->span_id, kParent);
  EXPECT_TRUE(parsed->sampled);
  EXPECT_FALSE(server::parse_traceparent(cat("00-", kTrace, "-", kParent, "-00"))->sampled);
  EXPECT_EQ(server::traceparent(*parsed), cat("00-", kTrace, "-", kParent, "-01"));
  // A later version may have more fields; this one may not.
  EXPECT_TRUE(server::parse_traceparent(cat("cc-", kTrace, "-", kParent, "-01-what-comes")));
}

TEST(TraceParent, WhatDoesNotFollowItIsLeftOut) {
  const std::string zeros(32, '0');
  for (const std::string& bad :
       {std::string(), cat("00-", kTrace, "-", kParent, "-01-more"),
        cat("ff-", kTrace, "-", kParent, "-01"), cat("cc-", kTrace, "-", kParent, "-01.more"),
        cat("00-", zeros, "-", kParent, "-01"), cat("00-", kTrace, "-0000000000000000-01"),
        cat("00_", kTrace, "-", kParent, "-01"),
        cat("00-4BF92F3577B34DA6A3CE929D0E0E4736-", kParent, "-01"),
        cat("00-", kTrace, "-", kParent, "-0g"), cat("00-", kTrace, "-", kParent, "-1")}) {
    EXPECT_FALSE(server::parse_traceparent(bad)) << bad;
  }
}

// The answers of opentelemetry.sdk.trace.sampling.TraceIdRatioBased (Python, 1.45.2).
TEST(TraceSampler, TakesAShareByTheIdsLastBytes) {
  const auto taken = [](double share, const char* id) {
    return server::samples({.share = share}, id, std::nullopt);
  };
  EXPECT_TRUE(taken(0.7, kTrace));
  EXPECT_FALSE(taken(0.6, kTrace));
  EXPECT_TRUE(taken(1e-6, "ffffffffffffffff0000000000000001"));
  EXPECT_FALSE(taken(0, "ffffffffffffffff0000000000000001"));
  EXPECT_FALSE(taken(0.7, "0000000000000001ffffffffffffffff"));
  EXPECT_TRUE(taken(1, "0000000000000001ffffffffffffffff"));
  EXPECT_TRUE(taken(0.5, "00000000000000017fffffffffffffff"));
  EXPECT_FALSE(taken(0.5, "00000000000000018000000000000000"));
  EXPECT_TRUE(taken(0.1, "00000000000000011999999999999999"));
  EXPECT_FALSE(taken(0.1, "0000000000000001199999999999a000"));
}

TEST(TraceSampler, FollowsAParentWhereItIsTo) {
  const server::TraceParent yes{.trace_id = kTrace, .span_id = kParent, .sampled = true};
  const server::TraceParent no{.trace_id = kTrace, .span_id = kParent, .sampled = false};
  EXPECT_TRUE(server::samples({.share = 0}, kTrace, yes));
  EXPECT_FALSE(server::samples({.share = 1}, kTrace, no));
  EXPECT_FALSE(server::samples({.follows_parent = false, .share = 0}, kTrace, yes));
  EXPECT_TRUE(server::samples({.follows_parent = false, .share = 1}, kTrace, no));
}

// Accepts messages; answers the first with the given statuses, later ones with 200.
class Collector {
 public:
  explicit Collector(std::vector<int> statuses = {}, bool silent = false)
      : statuses_(std::move(statuses)), silent_(silent), server_({}, routes(), server::ApiKeys()) {}
  // Uses TLS, as localhost.
  explicit Collector(const Certificate& certificate)
      : silent_(false),
        host_("localhost"),
        server_({.tls_certificate = certificate.file(), .tls_key = certificate.key()}, routes(),
                server::ApiKeys()) {}

  server::TracerOptions options() const {
    server::TracerOptions options;
    options.endpoint = {
        .host = host_, .port = server_.port(), .path = "/v1/traces", .tls = host_ == "localhost"};
    options.headers = {{"x-tenant", "bees"}};
    options.resource = {{"service.name", "a \"worker\""}};
    options.delay = options.retry = milliseconds(1);
    return options;
  }
  std::vector<json> wait(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return messages_.size() >= count; });
    return messages_;
  }

 private:
  server::Router routes() {
    server::Router router;
    router.add({.method = "POST",
                .pattern = "/v1/traces",
                .handler = [this](const server::Request& request) { return take(request); },
                .body = server::Body::json});
    return router;
  }
  server::Response take(const server::Request& request) {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(request.header("x-tenant"), "bees");
    messages_.push_back(json::parse(request.body));
    changed_.notify_all();
    const size_t index = messages_.size() - 1;
    server::Response response =
        server::json_response(index < statuses_.size() ? statuses_[index] : 200, "{}");
    if (silent_) response.later = std::make_shared<server::DelayedResponse>(nullptr);
    return response;
  }

  const std::vector<int> statuses_;
  const bool silent_;
  const std::string host_ = "127.0.0.1";
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<json> messages_;
  server::Server server_;  // last: it calls take()
};

server::Span span(std::string name) {
  const auto self = server::begin_span(nullptr, std::nullopt);
  const auto now = steady_clock::now();
  return server::make_span(self, std::move(name), now - milliseconds(1500), now);
}

std::vector<std::string> names(const json& message) {
  std::vector<std::string> out;
  for (const json& entry : message["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
    out.push_back(entry["name"]);
  }
  return out;
}

TEST(Tracer, WritesOtlpInJson) {
  Collector collector;
  server::Tracer tracer(collector.options());
  server::Span sent = span("chat");
  sent.kind = server::SpanKind::server;
  sent.failed = true;
  sent.attributes = {{"text", "a\n\"b\""},
                     {"number", int64_t{1} << 60},
                     {"share", 0.5},
                     {"list", std::vector<std::string>{"a", "b"}}};
  tracer.record(sent);
  const json message = collector.wait(1).at(0);
  EXPECT_EQ(message["resourceSpans"][0]["resource"]["attributes"][0],
            json::parse(R"({"key":"service.name","value":{"stringValue":"a \"worker\""}})"));
  const json got = message["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(got["traceId"], sent.trace_id);
  EXPECT_EQ(got["spanId"], sent.span_id);
  EXPECT_FALSE(got.contains("parentSpanId"));
  EXPECT_EQ(got["kind"], 2);
  EXPECT_EQ(got["status"]["code"], 2);
  EXPECT_EQ(std::stoll(got["endTimeUnixNano"].get<std::string>()) -
                std::stoll(got["startTimeUnixNano"].get<std::string>()),
            1'500'000'000);
  EXPECT_EQ(got["attributes"], json::parse(R"([
      {"key":"text","value":{"stringValue":"a\n\"b\""}},
      {"key":"number","value":{"intValue":"1152921504606846976"}},
      {"key":"share","value":{"doubleValue":0.5}},
      {"key":"list",
       "value":{"arrayValue":{"values":[{"stringValue":"a"},{"stringValue":"b"}]}}}])"));
}

TEST(Tracer, SendsAgainWhatMayBeSentAgain) {
  Collector collector({503, 429});
  server::Tracer tracer(collector.options());
  tracer.record(span("one"));
  const std::vector<json> messages = collector.wait(3);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_THAT(names(messages[2]), ElementsAre("one"));
  tracer.stop(std::chrono::seconds(60));
  EXPECT_EQ(tracer.counts().sent, 1u);
}

TEST(Tracer, LeavesOutWhatTheCollectorRefuses) {
  Collector collector({400});
  server::Tracer tracer(collector.options());
  tracer.record(span("one"));
  collector.wait(1);
  tracer.record(span("two"));
  EXPECT_THAT(names(collector.wait(2).at(1)), ElementsAre("two"));
  tracer.stop(std::chrono::seconds(60));
  EXPECT_EQ(tracer.counts().refused, 1u);
  EXPECT_EQ(tracer.counts().sent, 1u);
}

TEST(Tracer, DropsWhatAFullQueueCannotHold) {
  Collector collector({}, true);  // never answers
  server::TracerOptions options = collector.options();
  options.max_queued = 3;
  options.max_batch = 2;
  server::Tracer tracer(options);
  for (int i = 0; i < 10; ++i) tracer.record(span("one"));
  EXPECT_EQ(tracer.counts().dropped, 7u);
  tracer.stop(milliseconds(1));
  EXPECT_EQ(tracer.counts().dropped, 10u);
  EXPECT_EQ(tracer.counts().sent, 0u);
}

TEST(Tracer, SendsTheRestAtTheEnd) {
  Collector collector;
  server::TracerOptions options = collector.options();
  options.delay = std::chrono::hours(1);
  options.max_batch = 2;
  server::Tracer tracer(options);
  tracer.record(span("one"));
  tracer.stop(std::chrono::seconds(60));
  EXPECT_EQ(collector.wait(1).size(), 1u);
  EXPECT_EQ(tracer.counts().sent, 1u);
  tracer.record(span("late"));
  EXPECT_EQ(tracer.counts().dropped, 1u);
}

TEST(Tracer, SendsThroughTls) {
  const Certificate certificate;
  Collector collector(certificate);
  server::TracerOptions options = collector.options();
  options.tls.authorities = certificate.file();
  server::Tracer tracer(options);
  tracer.record(span("one"));
  EXPECT_THAT(names(collector.wait(1).at(0)), ElementsAre("one"));
  tracer.stop(std::chrono::seconds(60));
  EXPECT_EQ(tracer.counts().sent, 1u);
}

// Why a message to `url` failed; empty if it arrived.
std::string refusal(const server::Url& url, const std::string& authorities) {
  server::PostClient client(
      {.headers = {{"x-tenant", "bees"}}, .tls = {.authorities = authorities}});
  try {
    client.post(url, "", "{}", std::chrono::seconds(60));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(PostClient, TrustsNobodyElse) {
  const Certificate certificate;
  const Certificate other;
  Collector collector(certificate);
  const server::Url url = collector.options().endpoint;
  EXPECT_EQ(refusal(url, certificate.file()), "");
  EXPECT_THAT(refusal(url, other.file()), HasSubstr("self-signed certificate"));
  EXPECT_THAT(refusal(url, ""), HasSubstr("self-signed certificate"));
  server::Url address = url;  // the certificate is for the name only
  address.host = "127.0.0.1";
  EXPECT_THAT(refusal(address, certificate.file()), HasSubstr("mismatch"));
  EXPECT_THAT(refusal(url, "/nowhere/ca.pem"), HasSubstr("/nowhere/ca.pem"));
  const std::string empty = (certificate.folder() / "empty.pem").string();
  std::ofstream(empty) << "nothing";
  EXPECT_THAT(refusal(url, empty), HasSubstr(empty));
  EXPECT_EQ(collector.wait(1).size(), 1u);
  // A server without TLS.
  Collector open;
  server::Url plain = open.options().endpoint;
  plain.tls = true;
  EXPECT_NE(refusal(plain, certificate.file()), "");
}

TEST(PostClient, TrustsWhomTheSystemTrusts) {
  const Certificate certificate;
  Collector collector(certificate);
  ::setenv("SSL_CERT_FILE", certificate.file().c_str(), 1);
  EXPECT_EQ(refusal(collector.options().endpoint, ""), "");
  ::unsetenv("SSL_CERT_FILE");
}

}  // namespace
}  // namespace rbee::testing
