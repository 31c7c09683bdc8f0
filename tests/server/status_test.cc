// The worker's description of itself, and who may request it.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <fstream>
#include <regex>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kUuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";

TEST(Status, RootAnswersHives) {
  Worker worker;
  const RawResponse response = worker.get("/");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body).at("name"), "llm-worker-rbee-test");
  const RawResponse page = worker.get("/", "Accept: text/html,*/*\r\n");
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("default-src 'none'"));
  EXPECT_THAT(page.headers.at("content-security-policy"), Not(HasSubstr("unsafe")));
}

TEST(Status, ThePageLoadsNothingFromElsewhere) {
  Worker worker({.token = "secret"});
  const std::string page = worker.get("/", "Accept: text/html\r\n").body;
  const std::regex link(R"re((?:src|href)="([^"#][^"]*)")re");
  int loaded = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), link), end; it != end; ++it) {
    const std::string target = (*it)[1];
    if (target == "data:,") continue;
    ++loaded;
    const RawResponse file = worker.get(target);
    EXPECT_EQ(file.status, 200) << target;
    EXPECT_GT(file.body.size(), 500U) << target;
    EXPECT_THAT(file.headers.at("cache-control"), HasSubstr("immutable")) << target;
  }
  EXPECT_EQ(loaded, 6);
}

TEST(Status, TheOpenApiDocumentHasEveryRouteAndNoOther) {
  Worker worker({.token = "secret"});
  const RawResponse response = worker.get("/openapi.json");
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  const json paths = json::parse(response.body).at("paths");
  size_t documented = 0;
  for (const auto& [path, methods] : paths.items()) documented += methods.size();
  size_t routes = 0;
  const server::Router router = server::chat_routes(worker.service, [] {});
  for (const server::Route& route : router.routes()) {
    if (route.pattern.starts_with("/page/")) continue;  // for the page itself
    if (std::regex_search(route.pattern, std::regex("embed|rerank|score|pooling|classify")))
      continue;  // refused
    ++routes;
    std::string method = route.method;
    std::transform(method.begin(), method.end(), method.begin(), ::tolower);
    // OpenAPI's path templates cannot say how much of a path a parameter matches.
    const std::string path = std::regex_replace(route.pattern, std::regex(R"(\{\+)"), "{");
    ASSERT_TRUE(paths.contains(path)) << path;
    ASSERT_TRUE(paths[path].contains(method)) << method << " " << path;
    const json& operation = paths[path][method];
    EXPECT_EQ(operation.contains("security"), route.access == server::Access::anyone)
        << route.pattern;
    EXPECT_EQ(operation.contains("requestBody"), route.body != server::Body::none) << route.pattern;
  }
  EXPECT_EQ(routes, documented);
}

TEST(Status, LiveAndReady) {
  Worker worker({.script = {.hold_before = true}, .token = "secret"});
  EXPECT_EQ(worker.get("/health/live").status, 200);
  EXPECT_EQ(worker.get("/health/ready").status, 200);
  worker.service.drain();
  EXPECT_EQ(worker.get("/health/live").status, 200);
  EXPECT_EQ(worker.get("/health/ready").status, 503);
  const RawResponse refused = ask(worker.port(), request("POST", "/v1/infer", R"({"prompt":"Hi"})",
                                                         "Authorization: Bearer secret\r\n"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("STOPPING"));
}

TEST(Status, Health) {
  Worker worker;
  const json health = json::parse(worker.get("/health", "Accept: */*\r\n").body);
  EXPECT_EQ(health.at("status"), "healthy");
  EXPECT_EQ(health.at("model"), "hf:fake");
  EXPECT_EQ(health.at("vram_bytes_used"), 1024);
  EXPECT_EQ(health.at("context_length"), 2048);
  EXPECT_EQ(worker.get("/health", "Accept: text/plain\r\n").body, "ok");
  worker.engine.set_healthy(false);
  const RawResponse sick = worker.get("/health");
  EXPECT_EQ(sick.status, 503);
  EXPECT_EQ(json::parse(sick.body).at("status"), "unhealthy");
}

TEST(Status, HealthAndMetricsSayWhetherStepsAreCaptured) {
  const Worker captures;
  EXPECT_EQ(json::parse(captures.get("/health").body).at("graphs"), json({{"captured", true}}));
  EXPECT_THAT(captures.get("/metrics").body, HasSubstr("\nrbee_graphs_captured 1\n"));
  const Worker does_not({.script = {.capture_refusal = "the driver forgets"}});
  EXPECT_EQ(json::parse(does_not.get("/health").body).at("graphs"),
            json({{"captured", false}, {"reason", "the driver forgets"}}));
  EXPECT_THAT(does_not.get("/metrics").body, HasSubstr("\nrbee_graphs_captured 0\n"));
}

TEST(Status, Info) {
  Worker worker({.script = {.hold_after = true}});
  json info = json::parse(worker.get("/info").body);
  EXPECT_EQ(info, json({{"id", "w-1"},
                        {"model_id", "hf:fake"},
                        {"device", "cpu:0"},
                        {"port", worker.port()},
                        {"status", "ready"},
                        {"implementation", "llm-worker-rbee-test"},
                        {"version", "1.2.3"}}));
  worker.new_stream();
  EXPECT_TRUE(worker.engine.wait_texts_sent(1));
  EXPECT_EQ(json::parse(worker.get("/info").body).at("status"), "busy");
  EXPECT_EQ(json::parse(worker.get("/v1/ready").body).at("state"), "busy");
}

TEST(Status, ReadyAndProgress) {
  Worker worker;
  EXPECT_EQ(worker.get("/v1/ready").body, R"({"ready":true,"state":"idle","model_loaded":true})");
  const RawResponse progress = worker.get("/v1/loading/progress");
  EXPECT_EQ(progress.status, 503);
  EXPECT_EQ(progress.body, "Model not loading");
}

TEST(Status, MetricsCountRequests) {
  Worker worker;
  worker.get(worker.new_stream());
  const RawResponse response = worker.get("/metrics");
  EXPECT_EQ(response.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line : {
           "worker_requests_total{outcome=\"completed\"} 1\n",
           "worker_tokens_generated_total 3\n",
           "worker_vram_bytes 1024\n",
           "rbee_device_memory_bytes 4096\n",
           "rbee_device_memory_free_bytes 1000\n",
           "worker_inference_duration_ms_bucket{le=\"50\"} 1\n",
           "worker_inference_duration_ms_sum 12\n",
           "vllm:request_time_per_output_token_seconds_bucket{model_name=\"fake-model\",le=\"0."
           "0025\"} 0\n",
           "vllm:request_time_per_output_token_seconds_bucket{model_name=\"fake-model\",le=\"0."
           "005\"} 1\n",
           "vllm:time_to_first_token_seconds_count{model_name=\"fake-model\"} 1\n",
           "# TYPE vllm:e2e_request_latency_seconds histogram\n",
           "vllm:request_queue_time_seconds_count{model_name=\"fake-model\"} 1\n",
           "vllm:request_prefill_time_seconds_count{model_name=\"fake-model\"} 1\n",
           "vllm:request_decode_time_seconds_count{model_name=\"fake-model\"} 1\n",
           "vllm:request_inference_time_seconds_count{model_name=\"fake-model\"} 1\n",
           // The engine's script says 5 and 3.
           "vllm:request_prompt_tokens_sum{model_name=\"fake-model\"} 5\n",
           "vllm:request_generation_tokens_sum{model_name=\"fake-model\"} 3\n",
       }) {
    EXPECT_THAT(response.body, HasSubstr(line));
  }
}

TEST(Status, MetricsTellOfTheProcess) {
  Worker worker;
  const auto metric = [&](const std::string& name) {
    const std::string all = "\n" + worker.get("/metrics").body;
    const size_t at = all.find("\n" + name + " ");
    EXPECT_NE(at, std::string::npos) << name;
    return at == std::string::npos ? -1 : std::stod(all.substr(at + name.size() + 2));
  };
  std::ifstream status("/proc/self/status");  // must not be the file that the worker reads
  double resident = 0;
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> resident;
  }
  EXPECT_NEAR(metric("process_resident_memory_bytes"), resident * 1024, resident * 1024 * 0.2);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  EXPECT_GE(metric("process_cpu_seconds_total") + 1, seconds);
  const auto now = static_cast<double>(time(nullptr));
  EXPECT_NEAR(metric("process_start_time_seconds"), now, 24 * 3600);
  EXPECT_LE(metric("process_start_time_seconds"), now + 1);
  const double files = metric("process_open_fds");
  const int more[] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};
  EXPECT_GE(metric("process_open_fds"), files + 1);
  for (const int file : more) close(file);
  EXPECT_GT(metric("process_max_fds"), files);
}

TEST(Status, EveryResponseCarriesItsHeaders) {
  Worker worker;
  const RawResponse response = worker.get("/health", "X-Correlation-ID: req-7:a.b_c\r\n");
  EXPECT_EQ(response.headers.at("x-correlation-id"), "req-7:a.b_c");
  EXPECT_EQ(response.headers.at("server"), "rbee");
  EXPECT_THAT(response.headers.at("date"),
              MatchesRegex("(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [0-9]{4} "
                           "[0-9]{2}:[0-9]{2}:[0-9]{2} GMT"));
  EXPECT_THAT(worker.get("/health").headers.at("x-correlation-id"), MatchesRegex(kUuid));
  EXPECT_THAT(worker.get("/health", "X-Correlation-ID: a b\r\n").headers.at("x-correlation-id"),
              MatchesRegex(kUuid));
}

TEST(Status, RequestsAreNamedByEitherHeader) {
  Worker worker;
  const auto names = [&](std::string_view headers) {
    const RawResponse response = worker.get("/health", headers);
    return cat(response.headers.at("x-correlation-id"), " ", response.headers.at("x-request-id"));
  };
  EXPECT_EQ(names("X-Request-ID: r-1\r\n"), "r-1 r-1");
  EXPECT_EQ(names("X-Correlation-ID: c-1\r\n"), "c-1 c-1");
  EXPECT_EQ(names("X-Correlation-ID: c-1\r\nX-Request-ID: r-1\r\n"), "c-1 r-1");
  const std::string made = names("X-Request-ID: a b\r\n");
  EXPECT_THAT(made, MatchesRegex(cat(kUuid, " ", kUuid)));
  EXPECT_EQ(made.substr(0, 36), made.substr(37));
  // Also for input that is not HTTP.
  EXPECT_THAT(ask(worker.port(), "nonsense\r\n\r\n").headers.at("x-request-id"),
              MatchesRegex(kUuid));
}

TEST(Status, AnswersUnderOtherServersNames) {
  Worker worker({.token = "secret"});
  EXPECT_EQ(worker.get("/v1/health").status, 200);
  EXPECT_EQ(worker.get("/ready").body, worker.get("/health/ready").body);
  EXPECT_EQ(worker.get("/version").body, R"({"version":"1.2.3"})");
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(worker.get("/models").status, 401);
  EXPECT_EQ(worker.get("/models", key).body, worker.get("/v1/models", key).body);
  EXPECT_EQ(worker.get("/models/hf:fake", key).body, worker.get("/v1/models/hf:fake", key).body);
}

TEST(Token, IsNeededWhereSet) {
  Worker worker({.token = " secret "});
  const RawResponse missing = worker.get("/info");
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(missing.body, R"({"error":{"code":"MISSING_API_KEY","message":"Missing API key"}})");
  EXPECT_EQ(missing.headers.at("www-authenticate"), "Bearer");
  const RawResponse wrong = worker.get("/info", "Authorization: Bearer secret2\r\n");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.body,
            R"({"error":{"code":"INVALID_API_KEY","message":"Invalid or missing API key"}})");
  EXPECT_EQ(worker.get("/info", "Authorization: bEARER secret\r\n").status, 200);
  EXPECT_EQ(worker.get("/info", "Authorization: Basic secret\r\n").status, 401);
  EXPECT_EQ(worker.get("/info", "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(worker.get("/unknown").status, 401);
  EXPECT_EQ(worker.get("/health").status, 200);
  EXPECT_EQ(worker.get("/").status, 200);
}

// Errors from before the handler have the form of the API that the client uses.
TEST(Errors, HaveTheFormOfTheirApi) {
  Worker worker({.server = {.max_body_bytes = 100}, .token = "secret"});
  const std::string key = "Authorization: Bearer secret\r\n";
  const auto error = [&](const std::string& bytes) {
    const RawResponse response = ask(worker.port(), bytes);
    return cat(response.status, " ", response.body);
  };
  EXPECT_EQ(error(request("GET", "/v1/chat/completions", {}, key)),
            R"(405 {"error":{"message":"/v1/chat/completions takes POST",)"
            R"("type":"invalid_request_error","param":null,"code":"METHOD_NOT_ALLOWED"}})");
  EXPECT_EQ(error(request("GET", "/v1/messages", {}, key)),
            R"(405 {"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"/v1/messages takes POST"}})");
  EXPECT_EQ(error(request("GET", "/v1/messages/batches", {}, key)),
            R"(404 {"type":"error","error":{"type":"not_found_error",)"
            R"("message":"There is no such path"}})");
  for (const char* path : {"/nothing", "/v1/nothing", "/chat/nothing"}) {
    EXPECT_EQ(error(request("GET", path, {}, key)),
              R"(404 {"error":{"message":"There is no such path",)"
              R"("type":"invalid_request_error","param":null,"code":"NOT_FOUND"}})")
        << path;
  }
  EXPECT_EQ(error(request("GET", "/v1/jobs/j-1/nothing", {}, key)),
            R"(404 {"error":{"code":"NOT_FOUND","message":"There is no such path"}})");
  EXPECT_EQ(error(request("GET", "/v1/jobs", {}, key)),
            R"(405 {"error":{"code":"METHOD_NOT_ALLOWED","message":"/v1/jobs takes POST"}})");
  const auto kind = [&](const std::string& bytes) {
    const json body = json::parse(ask(worker.port(), bytes).body);
    return cat(body.at("error").at("type").get<std::string>(), body.contains("type") ? " A" : "");
  };
  const std::string large(200, ' ');
  for (const char* path : {"/v1/chat/completions", "/v1/responses", "/completion", "/v1/files"}) {
    EXPECT_EQ(kind(request("POST", path, "{}")), "authentication_error") << path;
  }
  EXPECT_EQ(kind(request("POST", "/v1/messages", "{}")), "authentication_error A");
  EXPECT_EQ(kind(request("GET", "/v1/models", {}, "anthropic-version: 2023-06-01\r\n")),
            "authentication_error A");
  EXPECT_EQ(kind(request("POST", "/v1/chat/completions", large, key)), "invalid_request_error");
  EXPECT_EQ(kind(request("POST", "/v1/messages", large, key)), "request_too_large A");
  const std::string text =
      "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: text/plain\r\nContent-Length: 2\r\n";
  EXPECT_EQ(kind(cat(text, key, "\r\n{}")), "invalid_request_error A");
}

// A web page may point its own name at this machine; the browser then sends that name.
TEST(LocalNames, OthersGet403WithoutAToken) {
  Worker worker;
  const auto status = [](const Worker& asked, std::string_view host) {
    return ask(asked.port(), cat("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n")).status;
  };
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:80"}) {
    EXPECT_EQ(status(worker, host), 200) << host;
  }
  for (const char* host : {"example.com", "127.0.0.1.example.com:8080", "0.0.0.0", ""}) {
    EXPECT_EQ(status(worker, host), 403) << host;
  }
  const RawResponse refused = ask(worker.port(), "GET /none HTTP/1.1\r\nHost: example.com\r\n\r\n");
  EXPECT_EQ(json::parse(refused.body).at("error").at("code"), "FORBIDDEN_HOST");
  EXPECT_THAT(refused.body, HasSubstr("The Host header must name localhost"));
  EXPECT_EQ(ask(worker.port(), "GET / HTTP/1.0\r\n\r\n").status, 200);  // not a browser

  const Worker guarded({.token = "secret"});
  EXPECT_EQ(status(guarded, "example.com"), 200);
  const Worker open({.server = {.host = "0.0.0.0"}});
  EXPECT_EQ(status(open, "example.com"), 200);
}

TEST(Token, BodiesOfStrangersAreNotRead) {
  Worker worker({.token = "secret"});
  RawClient client(worker.port());
  client.send("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 401);
  EXPECT_TRUE(client.wait_closed());
}

TEST(Shutdown, IsThereOnlyWhereOffered) {
  Worker plain;
  EXPECT_EQ(plain.post("/v1/shutdown", "{}").status, 404);
  std::atomic<int> calls = 0;
  Worker worker({.token = "secret", .shutdown = [&calls] { ++calls; }});
  EXPECT_EQ(worker.post("/v1/shutdown", "{}").status, 401);
  EXPECT_EQ(
      ask(worker.port(), request("POST", "/v1/shutdown", {}, "Authorization: Bearer secret\r\n"))
          .status,
      202);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace rbee::testing
