// The image worker's command line and environment.

#include "workers/sd/flags.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace rbee::workers {
namespace {

class SdFlagsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"WORKER_ID", "SD_VERSION", "PORT", "CALLBACK_URL", "MODEL_PATH",
                             "CUDA_DEVICE", "ROCM_DEVICE", "USE_F16"}) {
      unsetenv(name);
    }
  }
  static std::variant<SdFlags, int> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "sd-worker");
    return parse_sd_flags(static_cast<int>(arguments.size()), arguments.data(),
                          {.name = "sd-worker", .kind = DeviceKind::cuda});
  }
  static SdFlags flags(std::vector<const char*> arguments) {
    return std::get<SdFlags>(parse(std::move(arguments)));
  }
  static int status(std::vector<const char*> arguments) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int result = std::get<int>(parse(std::move(arguments)));
    ::testing::internal::GetCapturedStdout();
    ::testing::internal::GetCapturedStderr();
    return result;
  }
};

TEST_F(SdFlagsTest, Defaults) {
  const SdFlags parsed = flags({"--model-path", "m"});
  EXPECT_EQ(parsed.model, "m");
  EXPECT_EQ(parsed.port, 8081);
  EXPECT_EQ(parsed.worker_id, "sd-worker-8081");
  EXPECT_EQ(parsed.dtype, "auto");
}

// Both spellings of stable-diffusion.cpp's users.
TEST_F(SdFlagsTest, PartsInFilesOfTheirOwn) {
  const SdFlags parsed = flags({"--model", "flux.gguf", "--clip_l", "l", "--clip-g", "g", "--t5xxl",
                                "t.gguf", "--llm", "q.gguf", "--vae", "ae.safetensors"});
  EXPECT_EQ(parsed.clip_l, "l");
  EXPECT_EQ(parsed.clip_g, "g");
  EXPECT_EQ(parsed.t5xxl, "t.gguf");
  EXPECT_EQ(parsed.llm, "q.gguf");
  EXPECT_EQ(parsed.vae, "ae.safetensors");
}

TEST_F(SdFlagsTest, WhatAHivePasses) {
  const SdFlags parsed =
      flags({"--worker-id", "w", "--sd-version", "v1-5", "--port", "9000", "--callback-url",
             "http://localhost:7835", "--model-path", "m", "--rocm-device", "2", "--use-f16",
             "--use-flash-attn", "--unheard-of", "x"});
  EXPECT_EQ(parsed.worker_id, "w");
  EXPECT_EQ(parsed.version, "v1-5");
  EXPECT_EQ(parsed.port, 9000);
  EXPECT_EQ(parsed.hive_url, "http://localhost:7835");
  EXPECT_EQ(parsed.device, 2);
  EXPECT_EQ(parsed.dtype, "f16");
  EXPECT_THAT(parsed.ignored, ::testing::ElementsAre("--unheard-of", "x"));
}

TEST_F(SdFlagsTest, EverythingFromTheEnvironment) {
  setenv("WORKER_ID", "w", 1);
  setenv("SD_VERSION", "xl", 1);
  setenv("PORT", "9001", 1);
  setenv("CALLBACK_URL", "http://h", 1);
  setenv("MODEL_PATH", "m", 1);
  setenv("CUDA_DEVICE", "3", 1);
  const SdFlags parsed = flags({});
  EXPECT_EQ(parsed.worker_id, "w");
  EXPECT_EQ(parsed.version, "xl");
  EXPECT_EQ(parsed.port, 9001);
  EXPECT_EQ(parsed.hive_url, "http://h");
  EXPECT_EQ(parsed.model, "m");
  EXPECT_EQ(parsed.device, 3);
  EXPECT_EQ(flags({"--cuda-device", "1"}).device, 1);
  EXPECT_EQ(flags({"--device", "cuda:2"}).device, 2);
  setenv("ROCM_DEVICE", "x", 1);
  EXPECT_EQ(flags({}).device, 3) << "for workers of another kind";
}

TEST_F(SdFlagsTest, LessMemory) {
  EXPECT_TRUE(flags({"--model", "m"}).offload.empty());
  const SdFlags some = flags({"--model", "m", "--offload", "text,vae", "--vae-tiling"});
  EXPECT_THAT(some.offload, ::testing::ElementsAre("text", "vae"));
  EXPECT_TRUE(some.vae_tiling);
  const SdFlags all = flags({"--model", "m", "--offload-to-cpu"});
  EXPECT_THAT(all.offload, ::testing::ElementsAre("all"));
  EXPECT_EQ(status({"--model", "m", "--offload", "unet"}), 2);
}

TEST_F(SdFlagsTest, WrongUsageIsTwo) {
  EXPECT_EQ(status({}), 2);
  EXPECT_EQ(status({"--model-path", "m", "--sd-version", "v9"}), 2);
  EXPECT_EQ(status({"--model-path", "m", "--port", "70000"}), 2);
  EXPECT_EQ(status({"--model-path", "m", "stray"}), 2);
  setenv("CUDA_DEVICE", "first", 1);
  EXPECT_EQ(status({"--model-path", "m"}), 2);
  EXPECT_EQ(status({"--help"}), 0);
  EXPECT_EQ(status({"--version"}), 0);
}

}  // namespace
}  // namespace rbee::workers
