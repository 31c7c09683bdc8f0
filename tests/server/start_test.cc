// The order of a worker's start, and its reports to the hive.

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "tests/server/hive.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;

// A model that is loaded when open() is called.
class Gate {
 public:
  Gate() {
    std::string pattern = (fs::temp_directory_path() / "rbee-gate-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    if (mkfifo(path().c_str(), 0600) != 0) throw std::runtime_error("no fifo");
  }
  ~Gate() { fs::remove_all(folder_); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  std::string path() const { return (folder_ / "gate").string(); }
  void open() const { std::ofstream(path()) << "open"; }

 private:
  fs::path folder_;
};

uint16_t free_port() {
  return Hive().port();
}

bool listens(uint16_t port) {
  try {
    const RawClient client(port);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::vector<std::string> statuses(Hive& hive) {
  std::vector<std::string> out;
  for (const std::string& message : hive.messages()) {
    out.push_back(json::parse(message).at("worker").at("status"));
  }
  return out;
}

TEST(Start, ListensAndIsReadyOnlyWhenTheModelIsLoaded) {
  const uint16_t port = free_port();
  std::atomic<bool> listened = false;
  Hive hive({.on_message = [&] { listened = listens(port); }});
  const Gate gate;
  Process worker(FAKE_WORKER, {"--model", cat("gate:", gate.path()), "--port", cat(port),
                               "--hive-url", hive.url(), "--worker-id", "w-7"});
  ASSERT_TRUE(hive.wait_messages(1));
  EXPECT_FALSE(listened);
  const json first = json::parse(hive.messages()[0]).at("worker");
  EXPECT_EQ(first.at("status"), "starting");
  EXPECT_EQ(first.at("id"), "w-7");
  EXPECT_EQ(first.at("port"), port);
  EXPECT_EQ(first.at("device"), "cpu:0");

  gate.open();
  EXPECT_EQ(worker.port(), port);
  EXPECT_TRUE(listens(port));
  ASSERT_TRUE(hive.wait_messages(2));
  EXPECT_TRUE(listened);  // a ready worker answers requests
  const json message = json::parse(hive.messages()[1]);
  EXPECT_EQ(message.at("worker").at("id"), "w-7");
  EXPECT_EQ(message.at("worker").at("status"), "ready");
  EXPECT_EQ(message.at("worker").at("port"), port);

  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(statuses(hive), ElementsAre("starting", "ready", "stopping", "stopped"));
}

TEST(Start, AWorkerThatCannotStartSaysThatItHasStopped) {
  Hive hive;
  Process worker(FAKE_WORKER, {"--model", "missing", "--port", "0", "--hive-url", hive.url()});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(statuses(hive), Contains("stopped"));
}

TEST(Start, TheHiveHearsOfEveryChange) {
  Hive hive;
  Process worker(FAKE_WORKER, {"--model", "hold", "--port", "0", "--hive-url", hive.url()});
  const uint16_t port = worker.port();
  size_t heard = 0;
  const auto hears = [&](const std::string& status) {
    while (heard < 20 && hive.wait_messages(heard + 1)) {
      if (statuses(hive)[heard++] == status) return true;
    }
    return false;
  };
  ASSERT_TRUE(hears("ready"));
  const RawResponse job = ask(port, request("POST", "/v1/jobs", R"({"prompt":"Hi"})"));
  ASSERT_TRUE(hears("busy"));
  const std::string id = json::parse(job.body).at("job_id");
  EXPECT_EQ(ask(port, request("DELETE", cat("/v1/jobs/", id))).status, 202);
  ASSERT_TRUE(hears("ready"));
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait(), 0);
  std::vector<std::string> last = statuses(hive);
  last.erase(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(heard));
  EXPECT_THAT(last, ElementsAre("stopping", "stopped"));
}

}  // namespace
}  // namespace rbee::testing
