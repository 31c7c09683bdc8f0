// The picture workers' own programs over the fake drivers.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/checkpoints/image_folder.h"
#include "tests/gpu/fake/shared_use.h"
#include "tests/gpu/gpu_worker.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuImageWorker : public ::testing::TestWithParam<Target> {
 protected:
  GpuImageWorker() {
    std::filesystem::copy(test::image_data("tokenizer"), model_.path() / "tokenizer",
                          std::filesystem::copy_options::recursive);
  }
  std::string file(const char* name) const { return (model_.path() / name).string(); }

  // Starts a worker over the fake driver with these extra variables. Fresh memory is zeros, so
  // pictures of kernels that do nothing are grey.
  Process start(const std::vector<std::string>& environment,
                const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> all{"--model-path", model_.path().string(), "--port", "0"};
    all.insert(all.end(), flags.begin(), flags.end());
    std::vector<std::string> variables = environment_of(GetParam(), environment);
    variables.emplace_back("RBEE_FAKE_FILL=0");
    variables.push_back(tells_mistakes(file("mistakes")));
    return {GetParam().sd_worker, all, variables};
  }

  void TearDown() override { expect_no_mistakes(file("mistakes")); }

  test::ImageFolder model_{"sd1"};
};

std::string generation(int steps = 2) {
  return json{{"operation", "image_generation"},
              {"prompt", "x"},
              {"steps", steps},
              {"width", 64},
              {"height", 64}}
      .dump();
}

constexpr const char* kComplete = "event: complete\n";

TEST_P(GpuImageWorker, SaysWhetherStepsAreCaptured) {
  const json captured{{"captured", true}};
  const json told{{"captured", false}, {"reason", "RBEE_GRAPHS is 0"}};
  for (const auto& [flags, graphs] : {std::pair{std::vector<std::string>{}, captured},
                                      std::pair{std::vector<std::string>{"--no-graphs"}, told}}) {
    Process worker = start({}, flags);
    const json health = json::parse(ask(worker.port(), request("GET", "/health")).body);
    EXPECT_EQ(health.at("graphs"), graphs);
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0) << worker.text();
  }
}

TEST_P(GpuImageWorker, EndsWhenItsDeviceIsLost) {
  const std::string lost = file("lost");
  Process worker = start({"RBEE_FAKE_LOST=" + lost});
  const uint16_t port = worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("warmed up"));
  EXPECT_THAT(job_events(port, generation()), HasSubstr(kComplete));
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);

  // One picture is running, one waits.
  const RawResponse long_job = ask(port, request("POST", "/v1/jobs", generation(150)));
  RawClient first(port);
  first.send(request("GET", json::parse(long_job.body).at("sse_url").get<std::string>()));
  first.read_until("event: progress");
  const RawResponse waiting = ask(port, request("POST", "/v1/jobs", generation()));
  RawClient second(port);
  second.send(request("GET", json::parse(waiting.body).at("sse_url").get<std::string>()));
  std::ofstream(lost).close();
  EXPECT_THAT(first.read_until("[DONE]"), HasSubstr(R"("code":"WORKER_UNHEALTHY")"));
  EXPECT_THAT(second.read_until("[DONE]"), HasSubstr(R"("code":"WORKER_UNHEALTHY")"));
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 503);
  const RawResponse refused = ask(port, request("POST", "/v1/jobs", generation()));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("WORKER_UNHEALTHY"));
  EXPECT_EQ(worker.wait(), 3) << worker.text();
}

TEST_P(GpuImageWorker, EndsWhenItsDeviceIsLostWhileNobodyAsks) {
  const std::string lost = file("lost");
  Process worker = start({"RBEE_FAKE_LOST=" + lost});
  const uint16_t port = worker.port();
  std::ofstream(lost).close();
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 503);
  EXPECT_EQ(worker.wait(), 3) << worker.text();
}

// Another process takes the device's memory, including what the worker may still give back:
// pictures then fail at different places.
TEST_P(GpuImageWorker, ARequestWithoutMemoryFailsAloneAndTheNextIsServed) {
  Process worker =
      start({"RBEE_FAKE_SHARED=" + file("use"), cat("RBEE_FAKE_MEMORY_MIB=", kMemory >> 20)});
  const uint16_t port = worker.port();
  fake::SharedUse device(file("use").c_str());
  int failed = 0;
  for (const int64_t more : {64 << 20, 1 << 20, 256 << 10, 64 << 10, 16 << 10, 0}) {
    const int64_t others = kMemory + more - device.bytes();
    device.bytes() += others;
    const std::string without = job_events(port, generation());
    device.bytes() -= others;
    if (without.find("event: error\n") != std::string::npos) {
      ++failed;
      EXPECT_THAT(without, HasSubstr(R"("code":"VRAM_OOM")"));
      EXPECT_THAT(without, HasSubstr("0 MiB of 64 MiB are free"));
    }
    EXPECT_THAT(job_events(port, generation()), HasSubstr(kComplete)) << more;
  }
  EXPECT_GE(failed, 1);
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

TEST_P(GpuImageWorker, WithoutMemoryAtLoadSaysHowMuchAndWhatToDo) {
  Process worker = start({"RBEE_FAKE_MEMORY_MIB=1"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("0 MiB of 1 MiB are free"));
  EXPECT_THAT(worker.text(), HasSubstr("--offload all"));
}

TEST_P(GpuImageWorker, WithoutCodeForTheDeviceListsWhatIsEmbedded) {
  Process worker = start({"RBEE_FAKE_ARCH=" + std::string(GetParam().unknown)});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr(GetParam().unknown));
  EXPECT_THAT(worker.text(), HasSubstr(GetParam().embedded));
}

// Modules are loaded at first use. If any module fails, the worker must not start.
TEST_P(GpuImageWorker, DoesNotStartWithAModuleThatDoesNotLoad) {
  constexpr int kMost = 40;  // modules
  int taken = 0;
  for (; taken < kMost; ++taken) {
    refuse_modules(file("modules"), taken);
    Process worker = start({"RBEE_FAKE_MODULES=" + file("modules")});
    if (worker.read_until("\"ready\"").find("\"ready\"") != std::string::npos) {
      EXPECT_THAT(worker.text(), Not(HasSubstr("the warm-up failed")));
      break;
    }
    EXPECT_EQ(worker.wait(), 1);
    EXPECT_THAT(worker.text(), HasSubstr(refused_module(GetParam())));
  }
  EXPECT_GT(taken, 3);
  EXPECT_LT(taken, kMost);
}

TEST_P(GpuImageWorker, ARequestWhoseModuleDoesNotLoadFailsAlone) {
  const std::string modules = file("modules");
  // Running out of memory during warm-up does not end it, so requests load the other modules.
  refuse_modules(modules, 3, fake::kOutOfMemory);
  Process worker = start({"RBEE_FAKE_MODULES=" + modules});
  const uint16_t port = worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("the warm-up failed"));
  for (const auto& [status, code] :
       {std::pair{fake::kInvalidImage, "UNSUPPORTED"}, std::pair{fake::kOutOfMemory, "VRAM_OOM"}}) {
    refuse_modules(modules, 4, status);
    const std::string without = job_events(port, generation());
    EXPECT_THAT(without, HasSubstr(cat(R"("code":")", code, '"')));
    EXPECT_THAT(without, HasSubstr("the kernels cannot be loaded on"));
    EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
  }
  std::filesystem::remove(modules);
  EXPECT_THAT(job_events(port, generation()), HasSubstr(kComplete));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

// Another request may need less.
TEST_P(GpuImageWorker, StartsWhereItsOwnPictureIsNotFinite) {
  Process worker = start({"RBEE_FAKE_FILL=255"});
  const uint16_t port = worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("the warm-up failed"));
  const std::string events = job_events(port, generation());
  EXPECT_THAT(events, HasSubstr(R"("code":"UNSUPPORTED")"));
  EXPECT_THAT(events, HasSubstr("not finite"));
}

INSTANTIATE_TEST_SUITE_P(Vendors, GpuImageWorker, targets(),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace rbee::testing
