// Both Metal workers' own programs, `rbee` and `rbee serve` over the fake Metal, which runs the
// text that they carry: what clients see agrees with the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kExperimental = "experimental: made and tested without an Apple machine";

class MetalWorker : public ::testing::Test {
 protected:
  // What clang makes of the text is kept for all tests: it takes longer than all that runs.
  static void SetUpTestSuite() {
    std::string pattern = (fs::temp_directory_path() / "rbee-metal-text-XXXXXX").string();
    texts_ = mkdtemp(pattern.data());
  }
  static void TearDownTestSuite() { fs::remove_all(texts_); }
  void TearDown() override {
    std::ifstream told(file("mistakes"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(told), {}), "");
  }

  std::string file(const char* name) const { return (model_.path() / name).string(); }
  // The first value of a name wins.
  Words environment(const Words& more = {}) const {
    Words out = more;
    // The fake looks for clang and its linker.
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
    out.insert(out.end(), {cat("PATH=", path != nullptr ? path : "/usr/bin:/bin"),
                           "RBEE_METAL_LIBRARY=" RBEE_FAKE_METAL, "RBEE_FAKE_METAL_SEED=1",
                           cat("RBEE_FAKE_METAL_CACHE=", texts_.string()),
                           "LSAN_OPTIONS=suppressions=" RBEE_FAKE_METAL_LEAKS,
                           "RBEE_FAKE_MISTAKES=" + file("mistakes")});
    return out;
  }
  Process chat_worker(const char* program, const Words& more = {}, const Words& flags = {}) const {
    Words all{"--model", model_.path().string(), "--port", "0"};
    all.insert(all.end(), kFlags.begin(), kFlags.end());
    all.insert(all.end(), flags.begin(), flags.end());
    return {program, all, environment(more)};
  }

  // Few steps, of few tokens, are tried at the start.
  static inline const Words kFlags{"--threads",     "1",  "--dtype",       "f32", "--context", "64",
                                   "--step-tokens", "16", "--max-running", "2"};
  static fs::path texts_;
  test::ModelFolder model_{test::data_folder()};
};

fs::path MetalWorker::texts_;

void end(Process& worker) {
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
}

json get(uint16_t port, const char* path) {
  return json::parse(ask(port, request("GET", path)).body);
}

// The text of a greedy answer.
std::string answer(uint16_t port, const std::string& prompt) {
  const json body{{"model", "m"}, {"prompt", prompt}, {"max_tokens", 6}, {"temperature", 0}};
  const RawResponse got = ask(port, request("POST", "/v1/completions", body.dump()));
  EXPECT_EQ(got.status, 200) << got.body;
  return got.status == 200 ? json::parse(got.body).at("choices").at(0).at("text") : json("none");
}

// A token, a few, and more than the kernels for few rows take.
constexpr const char* kPrompts[] = {"a", "some words",
                                    "some words that are more than eight tokens"};

TEST_F(MetalWorker, AnswersAsTheCpuDoesAlsoBehindServeAndSaysThatItIsExperimental) {
  Process cpu = chat_worker(CPU_LLM_WORKER);
  Process metal = chat_worker(METAL_LLM_WORKER, {}, {"--device", "auto"});
  const uint16_t from = cpu.port(), port = metal.port();
  EXPECT_EQ(get(port, "/info").at("device"), "metal:0");
  EXPECT_EQ(get(port, "/health").at("experimental"), kExperimental);
  EXPECT_FALSE(get(from, "/health").contains("experimental"));
  EXPECT_THAT(metal.text(), HasSubstr(kExperimental));
  for (const char* prompt : kPrompts) {
    EXPECT_EQ(answer(port, prompt), answer(from, prompt)) << prompt;
  }
  end(metal);

  Words serve{"serve",  "--port", "0",        "--model", model_.path().string(),
              "--name", "m",      "--device", "metal:0"};
  for (const std::string& word : kFlags) serve.push_back("--worker-flag=" + word);
  Process front(RBEE_PROGRAM, serve, environment());
  EXPECT_EQ(answer(front.port(), kPrompts[1]), answer(from, kPrompts[1]));
  end(front);
  EXPECT_THAT(front.text(), HasSubstr(kExperimental)) << "the worker's log";
  end(cpu);
}

TEST_F(MetalWorker, WhatCannotStartIsALine) {
  Process none = chat_worker(METAL_LLM_WORKER, {"RBEE_FAKE_DEVICES=0"});
  EXPECT_EQ(none.wait(), 1);
  EXPECT_THAT(none.text(), HasSubstr("Metal finds no GPU of Apple's"));
  Process second = chat_worker(METAL_LLM_WORKER, {}, {"--metal-device", "1"});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.text(), HasSubstr("metal:1 is not there, only metal:0"));
  Process small =
      chat_worker(METAL_LLM_WORKER, {"RBEE_FAKE_MEMORY_MIB=4"}, {"--cache-tokens", "32768"});
  EXPECT_EQ(small.wait(), 1);
  EXPECT_THAT(small.text(),
              AllOf(HasSubstr("kv_cache: 32768 tokens in"), HasSubstr("of 4 MiB are free")));
}

TEST_F(MetalWorker, AutoPassesItOverAndTheListNamesIt) {
  Process list(RBEE_PROGRAM, {"devices"}, environment());
  EXPECT_EQ(list.wait(), 0) << list.text();
  EXPECT_THAT(list.text(), AllOf(HasSubstr("metal:0  Fake Apple GPU with 10 cores, apple8, "),
                                 HasSubstr(kExperimental)));
  Process run(RBEE_PROGRAM,
              {"run", "-m", model_.path().string(), "--raw", "-n", "2", "-c", "64", "some words"},
              environment());
  EXPECT_EQ(run.wait(), 0) << run.text();
  EXPECT_THAT(run.text(), AllOf(HasSubstr("the model runs on cpu:0; metal:0 is passed over"),
                                HasSubstr("--device metal:0 takes it")));
}

// The values of the picture that a worker draws.
std::vector<uint8_t> picture(uint16_t port) {
  const json body{{"prompt", "x"}, {"steps", 1}, {"width", 64},
                  {"height", 64},  {"seed", 1},  {"cfg_scale", 1}};
  const RawResponse got = ask(port, request("POST", "/sdapi/v1/txt2img", body.dump()));
  EXPECT_EQ(got.status, 200) << got.body;
  if (got.status != 200) return {};
  const std::string png =
      io::decode_base64(json::parse(got.body).at("images").at(0).get<std::string>(), "images");
  return io::decode_png(png, "images").values;
}

TEST_F(MetalWorker, DrawsAsTheCpuDoes) {
  const test::ImageFolder model("sd1");
  // No picture is drawn at the start, since none may be so small.
  model.edit("unet/config.json", R"("sample_size": 16)", R"("sample_size": 8)");
  fs::copy(test::image_data("tokenizer"), model.path() / "tokenizer", fs::copy_options::recursive);
  const auto start = [&](const char* program) {
    return Process(
        program,
        {"--model-path", model.path().string(), "--port", "0", "--threads", "1", "--dtype", "f32"},
        environment());
  };
  Process cpu = start(CPU_SD_WORKER), metal = start(METAL_SD_WORKER);
  const uint16_t from = cpu.port(), port = metal.port();
  EXPECT_EQ(get(port, "/health").at("device"), "metal:0");
  EXPECT_EQ(get(port, "/health").at("experimental"), kExperimental);
  const std::vector<uint8_t> wanted = picture(from), drawn = picture(port);
  ASSERT_EQ(drawn.size(), wanted.size());
  int64_t sum = 0;
  for (size_t i = 0; i < wanted.size(); ++i) sum += std::abs(drawn[i] - wanted[i]);
  // Of 255.
  EXPECT_LE(static_cast<double>(sum) / static_cast<double>(wanted.size()), 2);
  end(metal);
  end(cpu);
}

}  // namespace
}  // namespace rbee::testing
