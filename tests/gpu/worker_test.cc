// The chat workers' own programs over the fake drivers: what clients and supervisors see if memory
// runs out, or if the device is lost, unusable or accepts no kernels.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/checkpoints/model_folder.h"
#include "tests/gpu/fake/shared_use.h"
#include "tests/gpu/gpu_worker.h"
#include "tests/server/raw_client.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuWorker : public ::testing::TestWithParam<Target> {
 protected:
  std::string file(const char* name) const { return (model_.path() / name).string(); }

  // Starts a worker over the fake driver with these extra variables.
  Process start(const std::vector<std::string>& environment,
                const std::vector<std::string>& flags = {"--context", "64"}) const {
    std::vector<std::string> all{"--model", model_.path().string(), "--port", "0"};
    all.insert(all.end(), flags.begin(), flags.end());
    std::vector<std::string> variables = environment_of(GetParam(), environment);
    variables.push_back(tells_mistakes(file("mistakes")));
    return {GetParam().llm_worker, all, variables};
  }
  void TearDown() override { expect_no_mistakes(file("mistakes")); }
  // The same on a device of kMemory that other processes use, too. Fresh memory is zeros, so the
  // logits of kernels that do nothing give text.
  Process start_shared() const {
    return start({"RBEE_FAKE_SHARED=" + file("use"), "RBEE_FAKE_FILL=0",
                  cat("RBEE_FAKE_MEMORY_MIB=", kMemory >> 20)});
  }

  test::ModelFolder model_{test::data_folder()};
};

std::string body_of(const std::string& prompt) {
  return json{{"prompt", prompt}, {"max_tokens", 5}, {"temperature", 0}}.dump();
}

// More tokens than the kernels for few rows accept.
constexpr const char* kLongPrompt = "some words that are more than eight tokens together";

std::string events_of(uint16_t port, const std::string& prompt) {
  return job_events(port, body_of(prompt));
}

int64_t metric(uint16_t port, const std::string& name) {
  const std::string all = ask(port, request("GET", "/metrics")).body;
  const size_t at = all.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? 0 : std::stoll(all.substr(at + name.size() + 2));
}

TEST_P(GpuWorker, EndsWhenItsDeviceIsLostWhileNobodyAsks) {
  const std::string lost = file("lost");
  Process worker = start({"RBEE_FAKE_LOST=" + lost});
  const uint16_t port = worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("warmed up"));
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);

  std::ofstream(lost).close();
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 503);
  const RawResponse refused = ask(port, request("POST", "/v1/jobs", body_of("some words")));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("WORKER_UNHEALTHY"));
  EXPECT_EQ(worker.wait(), 3) << worker.text();
  EXPECT_THAT(worker.text(), HasSubstr("the device is lost"));
}

TEST_P(GpuWorker, AutoTakesTheGpuThatTheModelFitsElseTheCpu) {
  Process on_gpu = start({"RBEE_FAKE_FILL=0", "RBEE_FAKE_MEMORY_MIB=1024"},
                         {"--context", "64", "--device", "auto"});
  const json info = json::parse(ask(on_gpu.port(), request("GET", "/info")).body);
  EXPECT_EQ(info.at("device"), cat(GetParam().name, ":0")) << info;
  EXPECT_THAT(on_gpu.text(), HasSubstr(cat("the model runs on ", GetParam().name, ":0 (")));

  // The estimate has room for kernels and steps.
  Process on_cpu = start({"RBEE_FAKE_MEMORY_MIB=256"}, {"--context", "64", "--device", "auto"});
  const json other = json::parse(ask(on_cpu.port(), request("GET", "/info")).body);
  EXPECT_EQ(other.at("device"), "cpu:0") << other;
  EXPECT_THAT(on_cpu.text(), HasSubstr("are needed, free are " + std::string(GetParam().name)));
}

TEST_P(GpuWorker, TheCommandLineTakesTheGpuThatTheModelFitsElseTheCpu) {
  const auto told = [&](const char* memory) {
    Process run(RBEE_PROGRAM,
                {"run", "-m", model_.path().string(), "--raw", "-n", "2", "-c", "64", "some words"},
                environment_of(GetParam(), {"RBEE_FAKE_FILL=0", memory}));
    EXPECT_EQ(run.wait(), 0) << run.text();
    return run.text();
  };
  EXPECT_THAT(told("RBEE_FAKE_MEMORY_MIB=1024"), HasSubstr(cat("runs on ", GetParam().name, ":0")));
  EXPECT_THAT(told("RBEE_FAKE_MEMORY_MIB=256"), HasSubstr("the model runs on cpu:0"));
}

TEST_P(GpuWorker, EndsWhenItsDeviceIsLostInTheMiddleOfAnswers) {
  const std::string lost = file("lost");
  Process worker = start({"RBEE_FAKE_LOST=" + lost, "RBEE_FAKE_FILL=0"},
                         {"--context", "32768", "--max-running", "2"});
  const uint16_t port = worker.port();
  const std::string body =
      json{{"prompt", "some words"}, {"max_tokens", 30000}, {"temperature", 0}}.dump();
  std::vector<std::unique_ptr<RawClient>> readers;  // two get answers, one waits
  for (int i = 0; i < 3; ++i) {
    const RawResponse job = ask(port, request("POST", "/v1/jobs", body));
    readers.push_back(std::make_unique<RawClient>(port));
    readers.back()->send(request("GET", json::parse(job.body).at("sse_url").get<std::string>()));
    if (i < 2) readers.back()->read_until(R"("type":"started")");
  }
  std::ofstream(lost).close();
  for (const auto& reader : readers) {
    EXPECT_THAT(reader->read_until("[DONE]"), HasSubstr(R"("code":"WORKER_UNHEALTHY")"));
  }
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 503);
  EXPECT_EQ(worker.wait(), 3) << worker.text();
}

// Another process takes the device's memory, including what the worker may still give back: steps
// then fail at different places.
TEST_P(GpuWorker, ARequestWithoutMemoryFailsAloneAndTheNextIsServed) {
  Process worker = start_shared();
  const uint16_t port = worker.port();
  fake::SharedUse device(file("use").c_str());
  int failed = 0;
  std::string prompt = "a";
  for (const int64_t more : {64 << 20, 1 << 20, 256 << 10, 64 << 10, 16 << 10, 0}) {
    prompt += " bcd";  // of a length without cached memory
    const int64_t others = kMemory + more - device.bytes();
    device.bytes() += others;
    const std::string without = events_of(port, prompt);
    device.bytes() -= others;
    if (without.find(R"("type":"error")") != std::string::npos) {
      ++failed;
      EXPECT_THAT(without, HasSubstr(R"("code":"VRAM_OOM")"));
      EXPECT_THAT(without, HasSubstr(" bytes) on "));
      EXPECT_THAT(without, HasSubstr("0 MiB of 64 MiB are free"));
    }
    const std::string with = events_of(port, prompt);
    EXPECT_THAT(with, HasSubstr(R"("type":"end","tokens_out":5)")) << more;
    EXPECT_THAT(with, Not(HasSubstr(R"("type":"error")"))) << more;
  }
  EXPECT_GE(failed, 1);
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
  EXPECT_EQ(metric(port, "rbee_kv_cache_blocks_used"), 0);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

TEST_P(GpuWorker, ManyRequestsWithoutMemoryFailAndTheNextAreServed) {
  Process worker = start_shared();
  const uint16_t port = worker.port();
  fake::SharedUse device(file("use").c_str());
  const auto answers = [&](const std::string& prompt) {
    std::vector<std::string> urls, all;
    for (int i = 0; i < 16; ++i) {
      const std::string body = body_of(prompt + std::string(static_cast<size_t>(i), 'x'));
      const RawResponse job = ask(port, request("POST", "/v1/jobs", body));
      urls.push_back(json::parse(job.body).at("sse_url").get<std::string>());
    }
    for (const std::string& url : urls) {
      RawClient reader(port);
      reader.send(request("GET", url));
      all.push_back(reader.read_until("[DONE]"));
    }
    return all;
  };
  const int64_t others = 2 * kMemory - device.bytes();
  device.bytes() += others;
  const std::vector<std::string> without = answers("some words, more than eight");
  device.bytes() -= others;
  int failed = 0;
  for (const std::string& events : without) {
    if (events.find(R"("type":"error")") == std::string::npos) continue;
    ++failed;
    EXPECT_THAT(events, HasSubstr(R"("code":"VRAM_OOM")"));
  }
  EXPECT_GE(failed, 1);
  for (const std::string& events : answers("other words, as many")) {
    EXPECT_THAT(events, HasSubstr(R"("type":"end","tokens_out":5)"));
  }
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
  EXPECT_EQ(metric(port, "rbee_kv_cache_blocks_used"), 0);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

TEST_P(GpuWorker, TwoWorkersShareADeviceAndSeeWhatTheOtherLeaves) {
  Process first = start_shared();
  const int64_t before = metric(first.port(), "rbee_device_memory_free_bytes");
  Process second = start_shared();
  const int64_t after = metric(second.port(), "rbee_device_memory_free_bytes");
  EXPECT_EQ(metric(first.port(), "rbee_device_memory_bytes"), kMemory);
  EXPECT_LT(before, kMemory);
  EXPECT_LT(after, before);
  EXPECT_EQ(metric(first.port(), "rbee_device_memory_free_bytes"), after);
  for (Process* worker : {&first, &second}) {
    EXPECT_THAT(events_of(worker->port(), "some words"), HasSubstr(R"("tokens_out":5)"));
    worker->signal(SIGTERM);
    EXPECT_EQ(worker->wait(), 0) << worker->text();
  }
}

TEST_P(GpuWorker, WithoutMemoryAtLoadSaysHowMuchAndWhatToDo) {
  // The weights fit; the cache for such a long context does not.
  Process worker = start({"RBEE_FAKE_MEMORY_MIB=4"}, {"--context", "32768"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("kv_cache: 32768 tokens in"));
  EXPECT_THAT(worker.text(), HasSubstr("of 4 MiB are free"));
  EXPECT_THAT(worker.text(),
              HasSubstr("a smaller --context or --cache-tokens, --cache-type q8_0 or f8e4m3"));
}

TEST_P(GpuWorker, WithoutCodeForTheDeviceListsWhatIsEmbedded) {
  Process worker = start({"RBEE_FAKE_ARCH=" + std::string(GetParam().unknown)});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr(GetParam().unknown));
  EXPECT_THAT(worker.text(), HasSubstr(GetParam().embedded));
}

// Modules are loaded at first use. If any module fails, the worker must not start.
TEST_P(GpuWorker, DoesNotStartWithAModuleThatDoesNotLoad) {
  constexpr int kMost = 40;  // modules
  int taken = 0;
  for (; taken < kMost; ++taken) {
    refuse_modules(file("modules"), taken);
    Process worker = start({"RBEE_FAKE_MODULES=" + file("modules")});
    if (worker.read_until("\"ready\"").find("\"ready\"") != std::string::npos) break;
    EXPECT_EQ(worker.wait(), 1);
    EXPECT_THAT(worker.text(), HasSubstr(refused_module(GetParam())));
  }
  EXPECT_GT(taken, 3);
  EXPECT_LT(taken, kMost);
}

TEST_P(GpuWorker, ARequestWhoseModuleDoesNotLoadFailsAlone) {
  const std::string modules = file("modules");
  Process worker = start({"RBEE_FAKE_MODULES=" + modules, "RBEE_FAKE_FILL=0"},
                         {"--context", "64", "--lora",
                          "poet=" + test::data_folder() + "/models/language/data/lora/smollm"});
  const uint16_t port = worker.port();
  // The first request with an adapter loads the kernels for adapters.
  const std::string adapted =
      json{{"prompt", "some words"}, {"model", "poet"}, {"max_tokens", 5}}.dump();
  for (const auto& [status, code] :
       {std::pair{fake::kInvalidImage, "UNSUPPORTED"}, std::pair{fake::kOutOfMemory, "VRAM_OOM"}}) {
    refuse_modules(modules, 0, status);
    const std::string without = job_events(port, adapted);
    EXPECT_THAT(without, HasSubstr(cat(R"("code":")", code, '"')));
    EXPECT_THAT(without, HasSubstr("the kernels cannot be loaded on"));
    EXPECT_THAT(events_of(port, "some words"), HasSubstr(R"("tokens_out":5)"));
    EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
  }
  std::filesystem::remove(modules);
  EXPECT_THAT(job_events(port, adapted), HasSubstr(R"("tokens_out":5)"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

TEST_P(GpuWorker, AFaultThatEndsItIsToldWithTheKernelsUnderWay) {
  Process worker = start({"RBEE_FAKE_FAULT=" + file("fault"), "RBEE_FAKE_FILL=0"});
  const uint16_t port = worker.port();
  std::ofstream(file("fault")).close();
  RawClient client(port);
  client.send(request("POST", "/completion", R"({"prompt":"some words","n_predict":5})"));
  EXPECT_EQ(worker.wait(), 128 + SIGABRT);
  EXPECT_THAT(worker.text(), HasSubstr(": ended by SIGABRT; kernels under way: "));
  const size_t last = worker.text().rfind("kernels under way: ");
  EXPECT_THAT(worker.text().substr(last), HasSubstr("linear "));
}

// hipBLASLt does so on cards without kernels.
TEST_P(GpuWorker, StartsWhereTheLibraryOfProductsDoesNot) {
  std::ofstream(file("products")) << "Create 1";
  Process worker = start({"RBEE_FAKE_LT=" + file("products"), "RBEE_FAKE_FILL=0"});
  EXPECT_THAT(events_of(worker.port(), kLongPrompt), HasSubstr(R"("tokens_out":5)"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

// hipBLASLt does so without the files for a card; the worker first tries it in a child process.
TEST_P(GpuWorker, ALibraryOfProductsThatEndsProcessesIsNotUsed) {
  if (GetParam().name != std::string("rocm"))
    GTEST_SKIP() << "cuBLASLt is part of the driver's kit";
  Process worker = start({"RBEE_FAKE_LT_EXIT=1", "RBEE_FAKE_FILL=0"});
  EXPECT_THAT(events_of(worker.port(), kLongPrompt), HasSubstr(R"("tokens_out":5)"));
  EXPECT_THAT(worker.text(), HasSubstr("hipBLASLt ends a process that starts it with status 1"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

TEST_P(GpuWorker, ALibraryOfProductsIsOffUntilItIsAskedFor) {
  if (GetParam().name != std::string("rocm")) GTEST_SKIP() << "of AMD's";
  Process worker = start({"RBEE_HIPBLASLT=", "RBEE_FAKE_LT_EXIT=1", "RBEE_FAKE_FILL=0"});
  EXPECT_THAT(events_of(worker.port(), kLongPrompt), HasSubstr(R"("tokens_out":5)"));
  EXPECT_THAT(worker.text(), Not(HasSubstr("hipBLASLt")));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

TEST_P(GpuWorker, ALibraryOfProductsWithoutMemoryFailsARequestAlone) {
  const std::string told = file("products");
  Process worker = start({"RBEE_FAKE_LT=" + told, "RBEE_FAKE_FILL=0"});
  const uint16_t port = worker.port();
  std::ofstream(told) << "Matmul " << (GetParam().name == std::string("cuda") ? 3 : 2);
  EXPECT_THAT(events_of(port, kLongPrompt), HasSubstr(R"("code":"VRAM_OOM")"));
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
  std::filesystem::remove(told);
  EXPECT_THAT(events_of(port, kLongPrompt), HasSubstr(R"("tokens_out":5)"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

TEST_P(GpuWorker, CapturesStepsUnlessItIsToldOtherwise) {
  using Words = std::vector<std::string>;
  const Words plain{"--context", "64"}, off{"--context", "64", "--no-graphs"};
  const std::string told = "RBEE_GRAPHS is 0";
  for (const auto& [environment, flags, reason] :
       {std::tuple{Words{}, plain, std::string()}, std::tuple{Words{}, off, told},
        std::tuple{Words{"RBEE_GRAPHS=0"}, plain, told},
        std::tuple{Words{"RBEE_FAKE_GRAPHS=stale_uploads"}, plain,
                   std::string("replay 50 of the self-test gave wrong bytes")}}) {
    const bool captured = reason.empty();
    Words variables = environment;
    variables.emplace_back("RBEE_FAKE_FILL=0");
    Process worker = start(variables, flags);
    EXPECT_THAT(events_of(worker.port(), "some words"), HasSubstr(R"("tokens_out":5)"));
    EXPECT_THAT(worker.text(),
                HasSubstr(cat(R"("captured_steps":")", captured ? "yes" : "no", '"')));
    const bool says = worker.text().find("steps are not captured") != std::string::npos;
    EXPECT_EQ(says, !captured) << worker.text();
    const json health = json::parse(ask(worker.port(), request("GET", "/health")).body);
    json graphs{{"captured", captured}};
    if (!captured) graphs["reason"] = reason;
    EXPECT_EQ(health.at("graphs"), graphs);
    EXPECT_EQ(metric(worker.port(), "rbee_graphs_captured"), captured ? 1 : 0);
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0) << worker.text();
  }
}

TEST_P(GpuWorker, TakesTheDeviceThatItIsTold) {
  const std::string kind = GetParam().name;
  const std::string flag = "--" + kind + "-device";
  // The fake devices' names end with their numbers.
  Process second =
      start({"RBEE_FAKE_DEVICES=2", "RBEE_FAKE_FILL=0"}, {"--context", "64", flag, "1"});
  EXPECT_THAT(events_of(second.port(), "some words"), HasSubstr(R"("tokens_out":5)"));
  EXPECT_THAT(second.text(), HasSubstr("GPU 1"));
  EXPECT_THAT(second.text(), Not(HasSubstr("GPU 0")));

  Process third = start({"RBEE_FAKE_DEVICES=2"}, {flag, "2"});
  EXPECT_EQ(third.wait(), 1);
  EXPECT_THAT(third.text(),
              HasSubstr(cat(kind, ":2 is not there, only ", kind, ":0 to ", kind, ":1")));
}

TEST_P(GpuWorker, HasItsDevicesListed) {
  const std::string kind = GetParam().name;
  Process list(RBEE_PROGRAM, {"devices"}, {"RBEE_FAKE_DEVICES=2", GetParam().driver});
  EXPECT_EQ(list.wait(), 0) << list.text();
  for (const char* number : {"0", "1"}) {
    const size_t line = list.text().find(cat(kind, ':', number, "  "));
    ASSERT_NE(line, std::string::npos) << list.text();
    EXPECT_EQ(list.text().substr(list.text().find(" GPU ", line) + 5, 1), number);
  }
  EXPECT_THAT(list.text(), HasSubstr(" GB free\n"));

  Process without(RBEE_PROGRAM, {"devices"}, {"RBEE_GRAPHS=0", GetParam().driver});
  EXPECT_EQ(without.wait(), 0) << without.text();
  EXPECT_THAT(without.text(), HasSubstr(" GB free, steps are not captured: RBEE_GRAPHS is 0\n"));
}

TEST_P(GpuWorker, HasTheOthersListedWhereADeviceCannotBeUsed) {
  const std::string kind = GetParam().name;
  const bool cuda = kind == "cuda";
  Process list(RBEE_PROGRAM, {"devices"},
               {"RBEE_FAKE_DEVICES=2", GetParam().driver,
                cat("RBEE_FAKE_FAIL=", cuda ? "cuDevicePrimaryCtxRetain" : "hipMalloc", " 1 2")});
  EXPECT_EQ(list.wait(), 0) << list.text();
  EXPECT_THAT(list.text(), HasSubstr(cat(kind, ":0  cannot be used: ")));
  EXPECT_THAT(list.text(), HasSubstr(" (2, out of memory)"));
  const size_t line = list.text().find(kind + ":1  ");
  ASSERT_NE(line, std::string::npos) << list.text();
  EXPECT_EQ(list.text().substr(list.text().find(" GPU ", line) + 5, 1), "1");
}

TEST_P(GpuWorker, WithoutADeviceSaysSo) {
  Process worker = start({"RBEE_FAKE_DEVICES=0"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("finds no GPU"));

  // A driver without devices is closed again; the fake then frees its memory.
  Process list(RBEE_PROGRAM, {"devices"},
               {"RBEE_FAKE_DEVICES=0", "CUDA_VISIBLE_DEVICES=7", "ASAN_OPTIONS=detect_leaks=0",
                GetParam().driver});
  EXPECT_EQ(list.wait(), 0) << list.text();
  EXPECT_THAT(list.text(), HasSubstr(cat("\n", GetParam().name, "  none: the ")));
  EXPECT_THAT(list.text(), HasSubstr("finds no GPU ("));
}

// Both are the same program.
TEST_P(GpuWorker, OpensTheDriverThatACpuWorkerLeavesClosed) {
  const std::string driver = GetParam().driver;
  const std::string file = driver.substr(driver.find('=') + 1);
  const auto maps = [&](Process& worker) {
    worker.port();
    std::ostringstream out;
    out << std::ifstream(cat("/proc/", worker.pid(), "/maps")).rdbuf();
    return out.str();
  };
  Process gpu = start({});
  EXPECT_THAT(maps(gpu), HasSubstr(file));
  Process cpu(
      RBEE_PROGRAM,
      {"llm-worker-rbee-cpu", "--model", model_.path().string(), "--port", "0", "--context", "64"},
      {driver});
  EXPECT_THAT(maps(cpu), Not(HasSubstr(file)));
}

TEST_P(GpuWorker, WithoutADriverSaysSo) {
  const std::string driver = GetParam().driver;
  const std::string name = driver.substr(0, driver.find('='));
  Process worker = start({name + "=/nowhere/driver.so"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("is not installed (/nowhere/driver.so: cannot open"));
}

TEST_P(GpuWorker, WithAnOldDriverSaysWhichIsNeeded) {
  const bool cuda = GetParam().name == std::string("cuda");
  Process worker = start({cat("RBEE_FAKE_VERSION=", cuda ? 11080 : 40521153)});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(),
              HasSubstr(cuda ? "CUDA 11.8) is too old: CUDA 12.0 is needed"
                             : "version 4.5.21153) is too old: 5.2.21153 (ROCm 5.2.3) is needed"));
}

TEST_P(GpuWorker, WithALibraryThatIsNoDriverSaysWhatItLacks) {
  const std::string driver = GetParam().driver;
  const std::string name = driver.substr(0, driver.find('='));
  Process worker = start({name + "=libm.so.6"});
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("it lacks "));
}

#ifdef ROCM_LLM_WORKER
// Debian's package is this version.
TEST(GpuWorkerHip5, ServesItsRequests) {
  const test::ModelFolder model{test::data_folder()};
  Process worker(
      ROCM_LLM_WORKER, {"--model", model.path().string(), "--port", "0", "--context", "64"},
      {"RBEE_HIP_LIBRARY=" RBEE_FAKE_HIP_5, "RBEE_FAKE_ARCH=gfx90a", "RBEE_FAKE_FILL=0"});
  EXPECT_THAT(events_of(worker.port(), kLongPrompt), HasSubstr(R"("tokens_out":5)"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

// NVIDIA's one image is for all cards: there, the driver reports it on loading.
TEST(GpuWorkerArchitecture, ThatThereAreNoKernelsForIsSaidBeforeTheModelIsRead) {
  const test::ModelFolder model{test::data_folder()};
  const std::vector<std::string> environment = {"RBEE_HIP_LIBRARY=" RBEE_FAKE_HIP,
                                                "RBEE_FAKE_ARCH=gfx700"};
  const std::string says =
      "this program has no kernels for gfx700 (Fake AMD GPU 0); it has them for ";
  Process worker(ROCM_LLM_WORKER, {"--model", model.path().string(), "--port", "0"}, environment);
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr("device: rocm:0: " + says));
  EXPECT_THAT(worker.text(), Not(HasSubstr("loading")));

  Process list(RBEE_PROGRAM, {"devices"}, environment);
  EXPECT_EQ(list.wait(), 0) << list.text();
  EXPECT_THAT(list.text(), HasSubstr("cpu:0  "));
  EXPECT_THAT(list.text(), HasSubstr("rocm:0  cannot be used: " + says));
}
#endif

INSTANTIATE_TEST_SUITE_P(Vendors, GpuWorker, targets(), [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace rbee::testing
