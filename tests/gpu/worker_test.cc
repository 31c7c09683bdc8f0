// The GPU workers' own programs over the fake drivers: what clients and supervisors see when the
// device is lost.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/checkpoints/tiny_tokenizer.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Target {
  const char* name;
  const char* program;
  const char* driver;    // "NAME=path" of the environment
  const char* products;  // the same
};

class GpuWorker : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rbee-gpu-worker-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    fs::copy(fs::path(RBEE_TEST_DATA) / "models/data/smollm/hf", folder_,
             fs::copy_options::recursive);
    std::ofstream(folder_ / "tokenizer.json") << test::tiny_tokenizer_json("<none>");
    std::ofstream(folder_ / "tokenizer_config.json") << R"({"bos_token": "<s>"})";
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_P(GpuWorker, EndsWhenItsDeviceIsLost) {
  const fs::path lost = folder_ / "lost";
  Process worker(GetParam().program,
                 {"--model", folder_.string(), "--port", "0", "--context", "64"},
                 {GetParam().driver, GetParam().products, "RBEE_FAKE_LOST=" + lost.string()});
  const uint16_t port = worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("warmed up"));
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);

  std::ofstream{lost};
  const std::string_view body = R"({"prompt":"some words","max_tokens":9})";
  const RawResponse job = ask(port, request("POST", "/v1/jobs", body));
  ASSERT_EQ(job.status, 200) << job.body;
  RawClient reader(port);
  reader.send(request("GET", nlohmann::json::parse(job.body).at("sse_url").get<std::string>()));
  const std::string events = reader.read_until("[DONE]");
  EXPECT_THAT(events, HasSubstr(R"("code":"WORKER_UNHEALTHY")"));
  EXPECT_EQ(ask(port, request("GET", "/health")).status, 503);
  const RawResponse refused = ask(port, request("POST", "/v1/jobs", body));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("WORKER_UNHEALTHY"));
  EXPECT_EQ(worker.wait(), 3) << worker.text();
}

INSTANTIATE_TEST_SUITE_P(
    Vendors, GpuWorker,
    ::testing::Values(Target{"cuda", CUDA_WORKER, "RBEE_CUDA_LIBRARY=" RBEE_FAKE_CUDA,
                             "RBEE_CUBLASLT_LIBRARY=" RBEE_FAKE_CUBLASLT},
                      Target{"rocm", ROCM_WORKER, "RBEE_HIP_LIBRARY=" RBEE_FAKE_HIP,
                             "RBEE_HIPBLASLT_LIBRARY=" RBEE_FAKE_HIPBLASLT}),
    [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace rbee::testing
