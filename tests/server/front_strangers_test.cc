// The front with expensive requests, and with workers that hang.

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "tests/checkpoints/model_folder.h"
#include "tests/server/front_harness.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string head(std::string_view path, std::string_view more) {
  return cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
             more, "\r\n");
}

// Sends no byte of the body: the front must refuse its Content-Length.
TEST(Front, BodiesThatItsWorkersWouldRefuseAreNotRead) {
  json small = fake("a", "echo"), large = fake("b", "echo");
  small["flags"] = {"--max-body-bytes", "1000"};
  large["flags"] = {"--max-body-bytes", "3000"};
  Front front(json::array({small, large}));
  front.wait_ready();
  const auto status = [&](std::string_view path, std::string_view more) {
    RawClient client(front.port());
    client.send(head(path, more));
    const RawResponse answer = client.read_response();
    return cat(answer.status, " ", answer.body);
  };
  for (const char* path : {"/v1/chat/completions", "/v1/jobs"}) {
    EXPECT_THAT(status(path, "Content-Length: 3001\r\n"), HasSubstr("exceeds 3000 bytes"));
  }
  EXPECT_THAT(status("/v1/chat/completions", "Expect: 100-continue\r\nContent-Length: 3001\r\n"),
              HasSubstr("413"));
  EXPECT_THAT(status("/nothing", "Content-Length: 900\r\n"), HasSubstr("404"));
  EXPECT_THAT(status("/workers", "Content-Length: 900\r\n"), HasSubstr("405"));

  RawClient chunks(front.port());
  chunks.send(head("/v1/chat/completions", "Transfer-Encoding: chunked\r\n"));
  for (int i = 0; i < 4; ++i) chunks.send(cat("3e8\r\n", std::string(1000, ' '), "\r\n"));
  EXPECT_EQ(chunks.read_response().status, 413);

  RawClient fits(front.port());
  const std::string body = chat("b", std::string(2000, 'x')).dump();
  fits.send(head("/v1/chat/completions",
                 cat("Expect: 100-continue\r\nContent-Length: ", body.size(), "\r\n")));
  EXPECT_THAT(fits.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  fits.send(body);
  EXPECT_EQ(fits.read_response().status, 200);
}

struct Stream {
  const char* path;
  const char* error;  // in its last event
};

// A stopped worker does not answer health probes, so the front kills it.
TEST(Front, StreamsOfAWorkerThatStandsStillEndWithAnError) {
  Front front(json::array({fake("a", "hold")}),
              {{"health_interval_ms", 50}, {"health_timeout_ms", 200}});
  front.wait_ready();
  const json job = json::parse(front.post("/v1/jobs", {{"prompt", "Hi"}}).body);
  const std::string of_job = job.at("sse_url");
  for (const auto& [path, error] : {
           Stream{of_job.c_str(),
                  "event: error\ndata: {\"type\":\"error\",\"code\":"
                  "\"WORKER_LOST\""},
           Stream{"/v1/chat/completions", "data: {\"error\":{\"message\":"},
           Stream{"/v1/messages",
                  "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
                  "\"api_error\""},
           Stream{"/v1/infer", "data: {\"error\":{\"code\":\"WORKER_LOST\""},
       }) {
    RawClient client(front.port());
    json body = chat("a", "Hi", true);
    body["max_tokens"] = 8;
    if (path == std::string("/v1/infer")) body = {{"prompt", "Hi"}, {"stream", true}};
    client.send(path == of_job ? request("GET", path) : request("POST", path, body.dump()));
    client.read_until("world");
    const json worker = front.workers(0, 1)[0];
    kill(worker.at("pid").get<pid_t>(), SIGSTOP);
    EXPECT_THAT(client.read_until("no such text"), HasSubstr(error)) << path;
    while (front.workers(0, 1)[0].at("pid") == worker.at("pid")) {
    }
  }
  EXPECT_EQ(front.metric("rbee_front_requests_total{outcome=\"broken\"}"), 4);
}

// A short run of tools/hostile.py. Its times mean nothing because tests share the machine.
TEST(Front, StrangersEndNothing) {
  const test::ModelFolder model(test::data_folder());
  const std::string most = "1000000000";
  Process trial("/usr/bin/python3",
                {HOSTILE,
                 "--programs",
                 std::filesystem::path(RBEE).parent_path().string(),
                 "--model",
                 model.path().string(),
                 "--front",
                 "--families",
                 "lists,heads,bodies,large_crowds,connections",
                 "--seconds",
                 "0.1",
                 "--patience",
                 "0.3",
                 "--settle",
                 "0",
                 "--most-request-mib",
                 "0.2",
                 "--most-wait-ms",
                 most,
                 "--most-health-ms",
                 most,
                 "--most-mib",
                 most,
                 "--most-stayed-mib",
                 most,
                 "--",
                 "--threads",
                 "1",
                 "--context",
                 "256"},
                {"PATH=/usr/bin:/bin", "no_proxy=*"});
  EXPECT_EQ(trial.wait(), 0) << trial.text();
  EXPECT_THAT(trial.text(), HasSubstr("connections"));
}

}  // namespace
}  // namespace rbee::testing
