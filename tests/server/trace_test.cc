// Spans: the header of W3C Trace Context, and what reaches a collector that is away, slow or full.

#include "server/http/trace.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "server/http/mailbox.h"
#include "server/http/server.h"
#include "server/http/tracer.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;

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
  // A later version may have more; this one may not.
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

// Takes messages; the first ones get the statuses that it is given, the others 200.
class Collector {
 public:
  explicit Collector(std::vector<int> statuses = {}, bool silent = false)
      : statuses_(std::move(statuses)), silent_(silent), server_({}, routes(), server::ApiKeys()) {}

  server::TracerOptions options() const {
    server::TracerOptions options;
    options.endpoint = {.host = "127.0.0.1", .port = server_.port(), .path = "/v1/traces"};
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

}  // namespace
}  // namespace rbee::testing
