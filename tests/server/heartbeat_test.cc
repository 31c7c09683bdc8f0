// Heartbeats to a hive, which our own server plays.

#include "server/worker/heartbeat.h"

#include <gmock/gmock.h>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "server/http/mailbox.h"
#include "server/http/server.h"
#include "tests/server/hive.h"

namespace rbee::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

server::HeartbeatOptions options(uint16_t port, milliseconds interval) {
  return {.hive = server::parse_url(cat("http://127.0.0.1:", port, "/base/")),
          .interval = interval,
          .timeout = milliseconds(2000)};
}

// Collects warnings during its lifetime.
class Warnings {
 public:
  Warnings() {
    set_log_sink(
        [this](LogLevel level, std::string_view message, std::span<const LogField>) {
          const std::lock_guard lock(mutex_);
          if (level >= LogLevel::warn) texts_.emplace_back(message);
        },
        LogLevel::warn);
  }
  ~Warnings() { set_log_sink(nullptr, LogLevel::error); }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return texts_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

TEST(Heartbeat, SendsAtOnceWhenAskedAndAtTheEnd) {
  Hive hive;
  std::atomic<int> state = 0;
  server::Heartbeat heartbeat(options(hive.port(), std::chrono::seconds(30)),
                              [&] { return cat("{\"state\":", state.load(), "}"); });
  ASSERT_TRUE(hive.wait_messages(1));
  state = 1;
  heartbeat.send_now();
  ASSERT_TRUE(hive.wait_messages(2));
  state = 2;
  heartbeat.stop();
  EXPECT_THAT(hive.messages(), ElementsAre(R"({"state":0})", R"({"state":1})", R"({"state":2})"));
}

TEST(Heartbeat, RepeatsAtItsInterval) {
  Hive hive;
  server::Heartbeat heartbeat(options(hive.port(), milliseconds(5)), [] { return "{}"; });
  EXPECT_TRUE(hive.wait_messages(4));
}

TEST(Heartbeat, DeadHiveIsLoggedOnce) {
  uint16_t port = 0;
  {
    port = Hive().port();
  }
  Warnings warnings;
  std::atomic<int> asked = 0;
  server::Heartbeat heartbeat(options(port, milliseconds(1)), [&] {
    ++asked;
    return std::string("{}");
  });
  while (asked < 5) std::this_thread::yield();
  heartbeat.stop();
  EXPECT_EQ(warnings.count(), 1u);
}

TEST(Heartbeat, TheLastMessageGoesAlsoToAHiveThatWasDown) {
  uint16_t port = 0;
  {
    port = Hive().port();
  }
  Warnings warnings;
  server::Heartbeat heartbeat({.hive = {.host = "127.0.0.1", .port = port, .path = "/base"},
                               .retry = std::chrono::seconds(30)},
                              [] { return "{}"; });
  while (warnings.count() == 0) std::this_thread::yield();
  Hive hive({.port = port});
  heartbeat.stop();
  EXPECT_EQ(hive.messages().size(), 1u);
}

TEST(Heartbeat, RefusalOfTheHiveIsLogged) {
  Hive hive({.status = 500});
  Warnings warnings;
  server::Heartbeat heartbeat(options(hive.port(), milliseconds(1)), [] { return "{}"; });
  EXPECT_TRUE(hive.wait_messages(3));
  heartbeat.stop();
  EXPECT_EQ(warnings.count(), 1u);
}

TEST(Heartbeat, StopDoesNotWaitForASilentHive) {
  // Listens and never answers: the server never reads.
  server::Router router;
  auto never = std::make_shared<server::DelayedResponse>(nullptr);
  std::atomic<bool> asked = false;
  router.add({.method = "POST", .pattern = "/v1/worker-heartbeat", .handler = [&](const auto&) {
                server::Response response;
                response.later = never;
                asked = true;
                return response;
              }});
  server::Server hive({}, std::move(router), server::ApiKeys());
  server::Heartbeat heartbeat({.hive = {.host = "127.0.0.1", .port = hive.port(), .path = ""},
                               .last_timeout = milliseconds(50)},
                              [] { return "{}"; });
  while (!asked) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  heartbeat.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(4000));  // timeout is 5000
}

TEST(PostClient, ReportsWhatIsWrong) {
  server::PostClient client;
  const auto problem = [&](uint16_t port) {
    try {
      client.post({.host = "127.0.0.1", .port = port, .path = ""}, "/", "{}", milliseconds(1000));
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  uint16_t port = 0;
  {
    port = Hive().port();
  }
  EXPECT_THAT(problem(port), HasSubstr("refused"));
}

}  // namespace
}  // namespace rbee::testing
