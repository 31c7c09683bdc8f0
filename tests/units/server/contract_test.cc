// The worker's JSON and its error table.

#include <gmock/gmock.h>

#include <ctime>
#include <set>

#include "rbee/core/cat.h"
#include "server/apis/a1111/response.h"
#include "server/apis/own/response.h"
#include "server/wire/error_map.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {
namespace {

TEST(ErrorMap, EveryCodeHasItsStatus) {
  const auto row = [](Code code) {
    const WireError error = wire_error(code);
    return cat(error.status, " ", error.code, error.retriable ? " again" : "");
  };
  EXPECT_EQ(row(Code::invalid_argument), "400 INVALID_REQUEST");
  EXPECT_EQ(row(Code::unsupported), "422 UNSUPPORTED");
  EXPECT_EQ(row(Code::not_found), "404 NOT_FOUND");
  EXPECT_EQ(row(Code::out_of_memory), "503 VRAM_OOM again");
  EXPECT_EQ(row(Code::device), "503 WORKER_UNHEALTHY again");
  EXPECT_EQ(row(Code::io), "500 IO_ERROR again");
  EXPECT_EQ(row(Code::cancelled), "499 CANCELLED");
  EXPECT_EQ(row(Code::internal), "500 INFERENCE_FAILED again");
}

TEST(Responses, Bodies) {
  const WorkerInfo info{.id = "w",
                        .model_id = "m",
                        .device = "cpu:0",
                        .port = 8080,
                        .implementation = "i",
                        .version = "1"};
  const std::string worker =
      R"({"id":"w","model_id":"m","device":"cpu:0","port":8080,"status":"ready",)"
      R"("implementation":"i","version":"1"})";
  EXPECT_EQ(to_json(info), worker);
  EXPECT_EQ(heartbeat_json(info, {.used = 5, .device = 80, .device_free = 70},
                           "2025-01-02T03:04:05.000Z"),
            cat(R"({"worker":)", worker, R"(,"timestamp":"2025-01-02T03:04:05.000Z",)",
                R"("vram_bytes_used":5,"device_memory_bytes":80,"device_memory_free_bytes":70})"));
  EXPECT_EQ(job_json("job-1", "/x"), R"({"job_id":"job-1","sse_url":"/x"})");
  EXPECT_EQ(cancel_json("job-1"), R"({"job_id":"job-1","status":"cancelling"})");
  EXPECT_EQ(ready_json(true, "idle"), R"({"ready":true,"state":"idle","model_loaded":true})");
  EXPECT_EQ(error_json("C", "m"), R"({"error":{"code":"C","message":"m"}})");
  EXPECT_EQ(infer_token_json("a"), R"({"token":"a"})");
}

TEST(Responses, OfAWorkerThatStarts) {
  const WorkerInfo info{.id = "w", .model_id = "m", .device = "cpu:0", .status = "starting"};
  EXPECT_EQ(starting_json(info, std::nullopt, 1.5),
            R"({"status":"starting","worker_id":"w","model":"m","resident":false,)"
            R"("uptime_seconds":1.5})");
  const LoadProgress fetching{.phase = LoadPhase::fetching,
                              .done = 5'000'000'000,
                              .total = 9'000'000'000,
                              .bytes_per_second = 1000.12345,
                              .seconds_left = 4.0};
  EXPECT_EQ(starting_json(info, fetching, 0),
            R"({"status":"starting","worker_id":"w","model":"m","resident":false,)"
            R"("uptime_seconds":0.0,"progress":{"phase":"fetching","done":5000000000,)"
            R"("total":9000000000,"bytes_per_second":1000.123,"seconds_left":4.0}})");
  EXPECT_THAT(heartbeat_json(info, {}, "t", LoadProgress{.done = 1, .total = 2}),
              ::testing::EndsWith(R"("device_memory_free_bytes":0,"progress":{"phase":"loading",)"
                                  R"("done":1,"total":2}})"));
  EXPECT_EQ(not_loaded_json(), R"({"ready":false,"state":"starting","model_loaded":false})");
}

TEST(Responses, Events) {
  EXPECT_EQ(to_json(StartedEvent{"job-1", "m", "now", 7, 3}),
            R"({"type":"started","job_id":"job-1","model":"m","started_at":"now","seed":7,)"
            R"("prompt_tokens":3})");
  EXPECT_EQ(token_json("a\nb\xf0\x9f\x90\x9d", 4),
            "{\"type\":\"token\",\"t\":\"a\\nb\xf0\x9f\x90\x9d\",\"i\":4}");
  EXPECT_EQ(to_json(EndEvent{.tokens_out = 2, .decode_ms = 1.23456, .stop_reason = "EOS"}),
            R"({"type":"end","tokens_out":2,"decode_time_ms":1.235,"prompt_tokens":0,)"
            R"("prompt_time_ms":0.0,"stop_reason":"EOS","seed":0})");
  EXPECT_EQ(error_event_json(wire_error(Code::cancelled), "gone"),
            R"({"type":"error","code":"CANCELLED","message":"gone","retriable":false})");
}

// A file of 3 MB has this many; quadratic look-ups would take minutes.
TEST(Responses, PicturesMayHaveManySettings) {
  SdapiPngInfo info;
  for (int i = 0; i < 200'000; ++i) info.fields.emplace_back(cat("k", i), "v");
  info.fields.emplace_back("k1", "last");
  const std::clock_t begin = std::clock();
  const std::string json = sdapi_png_info_json(info);
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 20);
  EXPECT_THAT(json, ::testing::HasSubstr(R"("parameters":{"k0":"v","k1":"last","k2":"v",)"));
}

TEST(Responses, InvalidBodyListsFields) {
  const InvalidBody error({{"a", "required", "a is missing", ""}, {"b", "x", "b is \"7\"", "7"}});
  EXPECT_EQ(invalid_body_json(error),
            R"({"error":{"code":"INVALID_REQUEST","message":"a is missing; b is \"7\"","fields":[)"
            R"({"field":"a","constraint":"required","message":"a is missing"},)"
            R"({"field":"b","constraint":"x","message":"b is \"7\"","value":"7"}]}})");
}

}  // namespace
}  // namespace rbee::server
