// What `rbee serve` answers itself under the names that workers and other servers have.

#include <gtest/gtest.h>

#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

TEST(Front, NamesOfRequestsComeBackOnce) {
  Front front(json::array({fake("a", "any")}));
  front.wait_ready();
  for (const char* path : {"/v1/infer", "/workers"}) {  // of a worker, and its own
    RawClient client(front.port());
    const bool post = std::string_view(path) == "/v1/infer";
    client.send(request(post ? "POST" : "GET", path, post ? R"({"prompt":"Hi"})" : "",
                        "X-Request-ID: r-1\r\n"));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.headers.at("x-request-id"), "r-1") << path;
    EXPECT_EQ(response.headers.at("x-correlation-id"), "r-1") << path;
  }
}

TEST(Front, AnswersUnderTheNamesOfWorkers) {
  Front front(json::array({fake("a", "any")}));
  front.wait_ready();
  for (const char* path : {"/health/ready", "/ready", "/v1/ready"}) {
    EXPECT_EQ(front.get(path).body, R"({"ready":true})") << path;
  }
  EXPECT_EQ(front.get("/v1/health").body, front.get("/health").body);
  EXPECT_TRUE(json::parse(front.get("/version").body).at("version").is_string());
  EXPECT_EQ(front.get("/models").body, front.get("/v1/models").body);
  EXPECT_EQ(front.get("/models/a").body, front.get("/v1/models/a").body);
  EXPECT_EQ(front.post("/chat/completions", chat("a", "Hi", false)).status, 200);
}

}  // namespace
}  // namespace rbee::testing
