// Jobs over the wire: creation, events, cancellation, refusals.

#include <gmock/gmock.h>

#include <cmath>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Jobs, ReceiptHoldsIdAndPath) {
  Worker worker;
  const RawResponse response = worker.post("/v1/jobs", R"({"prompt":"Hi","max_tokens":3})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  const json receipt = json::parse(response.body);
  const std::string id = receipt.at("job_id");
  EXPECT_THAT(id, MatchesRegex("job-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                               "[0-9a-f]{12}"));
  EXPECT_EQ(receipt.at("sse_url"), "/v1/jobs/" + id + "/stream");
  EXPECT_EQ(receipt.size(), 2u);
}

TEST(Jobs, StreamHoldsStartedTokensMetricsEndAndDone) {
  Worker worker;
  const RawResponse response = worker.get(
      worker.new_stream(R"({"prompt":"Hi","max_tokens":9,"seed":18446744073709551615})"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(response.headers.at("cache-control"), "no-cache");
  EXPECT_EQ(response.headers.at("x-accel-buffering"), "no");
  const std::vector<std::string> events = payloads(response.body);
  ASSERT_EQ(events.size(), 7u) << response.body;
  const json started = json::parse(events[0]);
  EXPECT_EQ(started.at("type"), "started");
  EXPECT_EQ(started.at("model"), "fake-model");
  EXPECT_EQ(started.at("seed"), UINT64_MAX);
  EXPECT_EQ(started.at("prompt_tokens"), 5);
  EXPECT_THAT(started.at("started_at").get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"));
  EXPECT_EQ(events[1], R"({"type":"token","t":"Hello","i":0})");
  EXPECT_EQ(events[2], R"({"type":"token","t":", ","i":1})");
  EXPECT_EQ(events[3], R"({"type":"token","t":"world","i":2})");
  const json metrics = json::parse(events[4]);
  EXPECT_EQ(metrics.at("type"), "metrics");
  EXPECT_EQ(metrics.at("tokens_per_sec"), 200);
  EXPECT_EQ(metrics.at("vram_bytes"), 1024);
  const json end = json::parse(events[5]);
  EXPECT_EQ(end.at("type"), "end");
  EXPECT_EQ(end.at("tokens_out"), 3);
  EXPECT_EQ(end.at("decode_time_ms"), 10);
  EXPECT_EQ(end.at("prompt_time_ms"), 2);
  EXPECT_EQ(end.at("stop_reason"), "EOS");
  EXPECT_FALSE(end.contains("stop_sequence_matched"));
  EXPECT_EQ(events[6], "[DONE]");
}

TEST(Jobs, EndTellsTheMatchedStopSequence) {
  Worker worker({.script = {.reason = engine::StopReason::stop_sequence, .stop_sequence = "###"}});
  const std::vector<std::string> events = payloads(worker.get(worker.new_stream()).body);
  const json end = json::parse(events.at(5));
  EXPECT_EQ(end.at("stop_reason"), "STOP_SEQUENCE");
  EXPECT_EQ(end.at("stop_sequence_matched"), "###");
}

TEST(Jobs, TaggedBareAndAliasBodiesAreTaken) {
  Worker worker;
  const std::string tagged = R"({"operation":"infer","hive_id":"h","model":"m","prompt":"Hi",
      "max_tokens":2,"temperature":0.5,"top_p":null,"device":"gpu","new_field":[1]})";
  for (const char* path : {"/v1/jobs", "/v1/inference"}) {
    EXPECT_EQ(worker.post(path, tagged).status, 200);
    EXPECT_EQ(worker.post(path, R"({"prompt":"Hi","max_tokens":2,"temperature":0.5})").status, 200);
  }
  EXPECT_EQ(worker.engine.last_request().sampling.temperature, 0.5f);
  std::string alias = worker.new_stream();
  alias.replace(0, std::string("/v1/jobs").size(), "/v1/inference");
  EXPECT_EQ(worker.get(alias).status, 200);
}

TEST(Jobs, EveryFieldReachesTheEngine) {
  Worker worker;
  worker.post("/v1/jobs", R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":11,
      "temperature":0.1,"top_k":7,"top_p":0.2,"min_p":0.3,"repetition_penalty":1.5,
      "frequency_penalty":-1,"presence_penalty":2,"repeat_last_n":5,"seed":9,"stop":["a","b"],
      "user":"somebody","priority":-3,"cache_salt":"own"})");
  const engine::TextRequest request = worker.engine.last_request();
  EXPECT_EQ(request.messages.at(0).content, "Hi");
  EXPECT_EQ(request.max_tokens, 11);
  EXPECT_EQ(request.sampling.temperature, 0.1f);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.top_p, 0.2f);
  EXPECT_EQ(request.sampling.min_p, 0.3f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(request.sampling.frequency_penalty, -1);
  EXPECT_EQ(request.sampling.presence_penalty, 2);
  EXPECT_EQ(request.sampling.repeat_last_n, 5);
  EXPECT_EQ(request.sampling.seed, 9u);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.client, "127.0.0.1");  // the body cannot change it
  EXPECT_EQ(request.user, "somebody");
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.cache_salt, "own");
}

TEST(Jobs, EverySamplerReachesTheEngine) {
  Worker worker;
  worker.post("/v1/jobs",
              R"({"prompt":"Hi","typical_p":0.5,"top_n_sigma":1.5,"xtc_probability":0.25,
      "xtc_threshold":0.125,"dry_multiplier":0.75,"dry_base":1.5,"dry_allowed_length":3,
      "dry_penalty_last_n":100,"dry_sequence_breakers":["x"],"dynatemp_range":0.5,
      "dynatemp_exponent":2,"mirostat":2,"mirostat_tau":4,"mirostat_eta":0.5,
      "logit_bias":[[7,1.5],["word",false]],"min_tokens":4,"ignore_eos":true,"bad_words":["bad"],
      "samplers":["dry","top_p","temperature"],"speculative":false})");
  EXPECT_EQ(worker.engine.last_request().speculative, false);
  const engine::SamplingParams sampling = worker.engine.last_request().sampling;
  EXPECT_EQ(sampling.typical_p, 0.5f);
  EXPECT_EQ(sampling.top_n_sigma, 1.5f);
  EXPECT_EQ(sampling.xtc_probability, 0.25f);
  EXPECT_EQ(sampling.xtc_threshold, 0.125f);
  EXPECT_EQ(sampling.dry_multiplier, 0.75f);
  EXPECT_EQ(sampling.dry_base, 1.5f);
  EXPECT_EQ(sampling.dry_allowed_length, 3);
  EXPECT_EQ(sampling.dry_penalty_last_n, 100);
  EXPECT_EQ(sampling.dry_sequence_breakers, std::vector<std::string>{"x"});
  EXPECT_EQ(sampling.dynatemp_range, 0.5f);
  EXPECT_EQ(sampling.dynatemp_exponent, 2);
  EXPECT_EQ(sampling.mirostat, 2);
  EXPECT_EQ(sampling.mirostat_tau, 4);
  EXPECT_EQ(sampling.mirostat_eta, 0.5f);
  ASSERT_EQ(sampling.logit_bias.size(), 2u);
  EXPECT_EQ(sampling.logit_bias[0].id, 7);
  EXPECT_EQ(sampling.logit_bias[0].bias, 1.5f);
  EXPECT_EQ(sampling.logit_bias[1].text, "word");
  EXPECT_TRUE(std::isinf(sampling.logit_bias[1].bias));
  EXPECT_EQ(sampling.min_tokens, 4);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_EQ(sampling.bad_words, std::vector<std::string>{"bad"});
  using engine::SamplerKind;
  EXPECT_EQ(sampling.samplers,
            (std::vector{SamplerKind::dry, SamplerKind::top_p, SamplerKind::temperature}));
}

TEST(Jobs, WhoAsksIsKnownByTheAddress) {
  Worker worker;
  for (const char* path : {"/v1/jobs", "/v1/infer"}) {
    worker.post(path, R"({"prompt":"Hi"})");
    EXPECT_EQ(worker.engine.last_request().client, "127.0.0.1") << path;
    EXPECT_EQ(worker.engine.last_request().priority, 0) << path;
  }
}

TEST(Jobs, TextIsEscapedAndStaysUtf8) {
  Worker worker({.script = {.pieces = {"\"\n\\\xE2\x82\xAC", "\xff"}}});
  const std::vector<std::string> events = payloads(worker.get(worker.new_stream()).body);
  EXPECT_EQ(json::parse(events.at(1)).at("t"), "\"\n\\\xE2\x82\xAC");
  EXPECT_EQ(json::parse(events.at(2)).at("t"), "\xEF\xBF\xBD");
}

TEST(Jobs, WrongFieldsAreAllNamed) {
  Worker worker;
  const RawResponse response =
      worker.post("/v1/jobs", R"({"prompt":"","max_tokens":-2,"temperature":"hot"})");
  EXPECT_EQ(response.status, 400);
  const json error = json::parse(response.body).at("error");
  EXPECT_EQ(error.at("code"), "INVALID_REQUEST");
  std::vector<std::string> fields;
  for (const json& field : error.at("fields")) fields.push_back(field.at("field"));
  EXPECT_EQ(fields, (std::vector<std::string>{"prompt", "max_tokens", "temperature"}));
  EXPECT_EQ(error.at("fields")[1].at("value"), "-2");
  EXPECT_EQ(error.at("fields")[1].at("constraint"), "range(1..=2147483647)");
}

TEST(Jobs, StreamIsReadOnce) {
  Worker worker;
  const std::string path = worker.new_stream();
  EXPECT_EQ(ask(worker.port(), "HEAD " + path + " HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_EQ(worker.get(path).status, 200);
  const RawResponse second = worker.get(path);
  EXPECT_EQ(second.status, 500);
  EXPECT_THAT(second.body, MatchesRegex("Job job-.* has no token receiver"));
  EXPECT_THAT(second.headers.at("content-type"), HasSubstr("text/plain"));
}

TEST(Jobs, UnknownJobIsNotFound) {
  Worker worker;
  const RawResponse response = worker.get("/v1/jobs/job-x/stream");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "Job job-x not found");
}

TEST(Jobs, EngineFailureBecomesAnEvent) {
  Worker worker({.script = {.failure = engine::Failed{Code::internal, "layer 3: NaN"}}});
  const std::vector<std::string> events = payloads(worker.get(worker.new_stream()).body);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(
      events[4],
      R"({"type":"error","code":"INFERENCE_FAILED","message":"layer 3: NaN","retriable":true})");
  EXPECT_EQ(events[5], "[DONE]");
}

TEST(Jobs, DeleteCancels) {
  Worker worker({.script = {.hold_after = true}});
  const std::string path = worker.new_stream();
  RawClient reader(worker.port());
  reader.send(request("GET", path));
  reader.read_until("world");
  const std::string job = path.substr(0, path.rfind('/'));
  EXPECT_EQ(ask(worker.port(), request("DELETE", job)).status, 202);
  EXPECT_THAT(reader.read_until("[DONE]"), HasSubstr(R"("type":"error","code":"CANCELLED")"));
  EXPECT_EQ(ask(worker.port(), request("DELETE", job)).status, 202);
  EXPECT_EQ(ask(worker.port(), request("DELETE", "/v1/jobs/unknown")).status, 202);
}

TEST(Jobs, CancelByBody) {
  Worker worker({.script = {.hold_after = true}});
  const std::string path = worker.new_stream();
  const std::string id = path.substr(9, path.rfind('/') - 9);
  EXPECT_EQ(worker.post("/v1/cancel", R"({"job_id":")" + id + R"("})").status, 202);
  EXPECT_TRUE(worker.engine.wait_ended(1));
  EXPECT_EQ(worker.engine.cancelled(), 1);
  EXPECT_EQ(worker.post("/v1/cancel", R"({"job_id":7})").status, 400);
}

TEST(Jobs, DisconnectCancels) {
  Worker worker({.script = {.hold_after = true}});
  {
    RawClient reader(worker.port());
    reader.send(request("GET", worker.new_stream()));
    reader.read_until("world");
  }
  EXPECT_TRUE(worker.engine.wait_ended(1));
  EXPECT_EQ(worker.engine.cancelled(), 1);
}

TEST(Jobs, UnreadJobsAreForgottenAndCancelled) {
  Worker worker({.script = {.hold_after = true}, .jobs = {.unread_time = std::chrono::seconds(5)}});
  const std::string path = worker.new_stream();
  worker.service.tick(server::Clock::now() + std::chrono::seconds(4));
  EXPECT_NE(worker.service.find_job(path.substr(9, path.rfind('/') - 9)), nullptr);
  worker.service.tick(server::Clock::now() + std::chrono::seconds(6));
  EXPECT_TRUE(worker.engine.wait_ended(1));
  EXPECT_EQ(worker.engine.cancelled(), 1);
  EXPECT_EQ(worker.get(path).status, 404);
}

TEST(Jobs, ReadJobsAreForgottenLater) {
  Worker worker({.jobs = {.kept_time = std::chrono::seconds(5)}});
  const std::string path = worker.new_stream();
  worker.get(path);
  worker.service.tick(server::Clock::now() + std::chrono::seconds(4));
  EXPECT_EQ(worker.get(path).status, 500);
  worker.service.tick(server::Clock::now() + std::chrono::seconds(6));
  EXPECT_EQ(worker.get(path).status, 404);
}

TEST(Jobs, TooManyUnreadJobsAreRefused) {
  Worker worker({.jobs = {.max_unread = 2}});
  worker.new_stream();
  const std::string second = worker.new_stream();
  const RawResponse refused = worker.post("/v1/jobs", R"({"prompt":"Hi"})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_THAT(refused.body, HasSubstr("OVERLOADED"));
  EXPECT_EQ(worker.post("/v1/infer", R"({"prompt":"Hi"})").status, 200);  // its client reads it
  worker.get(second);
  EXPECT_EQ(worker.post("/v1/jobs", R"({"prompt":"Hi"})").status, 200);
  EXPECT_EQ(worker.post("/v1/jobs", R"({"prompt":"Hi"})").status, 429);
  worker.service.tick(server::Clock::now() + std::chrono::seconds(301));
  worker.new_stream();
  worker.new_stream();
  EXPECT_EQ(worker.post("/v1/jobs", R"({"prompt":"Hi"})").status, 429);
}

TEST(Jobs, EngineRefusalsHaveTheirStatus) {
  Worker worker;
  const auto status = [&](Code code) {
    worker.engine.refuse_with(code);
    return worker.post("/v1/jobs", R"({"prompt":"Hi"})").status;
  };
  EXPECT_EQ(status(Code::out_of_memory), 429);
  EXPECT_EQ(status(Code::unsupported), 503);
  EXPECT_EQ(status(Code::device), 503);
  EXPECT_EQ(status(Code::invalid_argument), 400);
  EXPECT_EQ(status(Code::internal), 500);
  EXPECT_THAT(worker.get("/metrics").body,
              HasSubstr("worker_requests_total{outcome=\"rejected\"} 5"));
}

TEST(Infer, AnswersWithTheWholeText) {
  Worker worker;
  const RawResponse response = worker.post("/v1/infer", R"({"prompt":"Hi"})");
  EXPECT_EQ(response.status, 200);
  const json answer = json::parse(response.body);
  EXPECT_EQ(answer.at("text"), "Hello, world");
  EXPECT_EQ(answer.at("tokens_generated"), 3);
  EXPECT_TRUE(answer.at("duration_ms").is_number_integer());
  EXPECT_EQ(worker.engine.last_request().sampling.temperature, 0.7f);
}

TEST(Infer, StreamsTokens) {
  Worker worker;
  const RawResponse response = worker.post("/v1/infer", R"({"prompt":"Hi","stream":true})");
  EXPECT_EQ(payloads(response.body),
            (std::vector<std::string>{R"({"token":"Hello"})", R"({"token":", "})",
                                      R"({"token":"world"})", "[DONE]"}));
}

TEST(Infer, FailureHasItsStatus) {
  Worker worker(
      {.script = {.failure = engine::Failed{Code::invalid_argument, "prompt: too long"}}});
  const RawResponse response = worker.post("/v1/infer", R"({"prompt":"Hi"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("too long"));
  const RawResponse stream = worker.post("/v1/infer", R"({"prompt":"Hi","stream":true})");
  EXPECT_THAT(stream.body, HasSubstr(R"(data: {"error":{"code":"INVALID_REQUEST")"));
  EXPECT_THAT(stream.body, HasSubstr("[DONE]"));
}

TEST(Infer, DisconnectCancels) {
  Worker worker({.script = {.hold_after = true}});
  {
    RawClient client(worker.port());
    client.send(request("POST", "/v1/infer", R"({"prompt":"Hi"})"));
    EXPECT_TRUE(worker.engine.wait_texts_sent(1));
  }
  EXPECT_TRUE(worker.engine.wait_ended(1));
  EXPECT_EQ(worker.engine.cancelled(), 1);
}

}  // namespace
}  // namespace rbee::testing
