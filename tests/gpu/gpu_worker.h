#pragma once
// The GPU workers' own programs over the fake drivers.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rbee/core/cat.h"
#include "tests/gpu/fake/fake_runtime.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {

inline constexpr int64_t kMemory = int64_t{64} << 20;  // bytes of a device that is shared

struct Target {
  const char* name;
  const char* llm_worker;
  const char* sd_worker;
  const char* driver;        // "NAME=path" of the environment
  const char* products;      // the same
  const char* unknown;       // an architecture without kernels
  const char* embedded;      // part of the list of architectures with kernels
  const char* architecture;  // of the fake device
  const char* bad_image;     // its driver's message for a module that is none
};

// For the backends in this build.
inline auto targets() {
  const Target all[] = {
#ifdef CUDA_LLM_WORKER
      {.name = "cuda",
       .llm_worker = CUDA_LLM_WORKER,
       .sd_worker = CUDA_SD_WORKER,
       .driver = "RBEE_CUDA_LIBRARY=" RBEE_FAKE_CUDA,
       .products = "RBEE_CUBLASLT_LIBRARY=" RBEE_FAKE_CUBLASLT,
       .unknown = "sm_50",
       .embedded = "for compute capability",
       .architecture = "sm_90",
       .bad_image = "cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE (200, device kernel image is "
                    "invalid)"},
#endif
#ifdef ROCM_LLM_WORKER
      {.name = "rocm",
       .llm_worker = ROCM_LLM_WORKER,
       .sd_worker = ROCM_SD_WORKER,
       .driver = "RBEE_HIP_LIBRARY=" RBEE_FAKE_HIP,
       .products = "RBEE_HIPBLASLT_LIBRARY=" RBEE_FAKE_HIPBLASLT,
       .unknown = "gfx700",
       .embedded = "gfx942",
       .architecture = "gfx942",
       .bad_image = "hipModuleLoadData: hipErrorInvalidImage (200, device kernel image is "
                    "invalid)"},
#endif
  };
  return ::testing::ValuesIn(all);
}

// The environment of a worker over the fake driver; `more` goes first.
inline std::vector<std::string> environment_of(const Target& target,
                                               const std::vector<std::string>& more) {
  std::vector<std::string> all = more;  // the first value of a name wins
  all.insert(all.end(), {target.driver, target.products, "RBEE_HIPBLASLT=1"});
  return all;
}

// The fake driver writes the mistakes it finds to `path`.
inline std::string tells_mistakes(const std::string& path) {
  return "RBEE_FAKE_MISTAKES=" + path;
}
inline void expect_no_mistakes(const std::string& path) {
  std::ifstream told(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(told), {}), "");
}

// The driver loads only the first `count` modules; others fail with `status`. `path`: the file that
// RBEE_FAKE_MODULES names.
inline void refuse_modules(const std::string& path, int count, int status = fake::kInvalidImage) {
  std::ofstream(path) << count << ' ' << status;
}

// The error text for a module that the driver rejects as an image.
inline std::string refused_module(const Target& target) {
  return cat("the kernels cannot be loaded on ", target.name, ":0 (", target.architecture,
             "): ", target.bad_image);
}

// Starts a job; returns all events of its stream.
inline std::string job_events(uint16_t port, const std::string& body) {
  const RawResponse job = ask(port, request("POST", "/v1/jobs", body));
  EXPECT_EQ(job.status, 200) << job.body;
  RawClient reader(port);
  reader.send(request("GET", nlohmann::json::parse(job.body).at("sse_url").get<std::string>()));
  return reader.read_until("[DONE]");
}

}  // namespace rbee::testing
