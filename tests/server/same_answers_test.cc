// Two chat workers of different devices or instruction sets give the same answers in f32 over tiny
// models, one with f16 weights: the CPU's worker beside one with another instruction set, or, if
// RBEE_TEST_DEVICE names a GPU, beside that GPU's.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "rbee/core/cat.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/png.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"
#include "tests/support/data_folder.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using Words = std::vector<std::string>;

struct WorkerKind {
  std::string program;
  Words flags;
  Words environment;
};

WorkerKind other_kind() {
  const char* device = std::getenv("RBEE_TEST_DEVICE");
  if (device == nullptr) return {LLM_WORKER, {"--threads", "2"}, {"RBEE_CPU_ISA=portable"}};
  const std::string name = device;
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  return {kind == "cuda" ? CUDA_WORKER : ROCM_WORKER,
          {cat("--", kind, "-device"), name.substr(colon + 1)},
          {}};
}

constexpr const char* kChat = "/v1/chat/completions";

struct Asked {
  std::string path;
  json body;
};

// A greedy chat with log probabilities.
Asked chat(json content, const json& more = json::object()) {
  json body = {{"messages", {{{"role", "user"}, {"content", std::move(content)}}}},
               {"temperature", 0},
               {"max_tokens", 24},
               {"logprobs", true}};
  body.update(more);
  return {kChat, std::move(body)};
}

// Sends all of them at once.
std::vector<json> answers(const WorkerKind& kind, Words flags, const std::vector<Asked>& asked) {
  flags.insert(flags.end(), {"--port", "0", "--dtype", "f32", "--cache-type", "f32"});
  flags.insert(flags.end(), kind.flags.begin(), kind.flags.end());
  Process worker(kind.program, flags, kind.environment);
  const uint16_t port = worker.port();
  std::vector<json> out(asked.size());
  std::vector<std::thread> clients;
  clients.reserve(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    clients.emplace_back([&, i] {
      const RawResponse response = ask(port, request("POST", asked[i].path, asked[i].body.dump()));
      out[i] = response.status == 200 ? json::parse(response.body) : json(response.body);
    });
  }
  for (std::thread& client : clients) client.join();
  return out;
}

void expect_same_chat(const json& one, const json& two) {
  ASSERT_TRUE(one.is_object()) << one;
  ASSERT_TRUE(two.is_object()) << two;
  const json& first = one.at("choices").at(0);
  const json& second = two.at("choices").at(0);
  EXPECT_EQ(first.at("message").at("content"), second.at("message").at("content"));
  EXPECT_EQ(first.at("finish_reason"), second.at("finish_reason"));
  EXPECT_EQ(one.at("usage").at("prompt_tokens"), two.at("usage").at("prompt_tokens"));
  const json& tokens = first.at("logprobs").at("content");
  const json& others = second.at("logprobs").at("content");
  ASSERT_GT(tokens.size(), 0u);
  ASSERT_EQ(tokens.size(), others.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].at("bytes"), others[i].at("bytes")) << i;
    EXPECT_NEAR(tokens[i].at("logprob").get<double>(), others[i].at("logprob").get<double>(), 2e-3)
        << i;
  }
}

void expect_same_chats(const Words& flags, const std::vector<Asked>& asked) {
  const std::vector<json> ours = answers({LLM_WORKER, {"--threads", "1"}, {}}, flags, asked);
  const std::vector<json> theirs = answers(other_kind(), flags, asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    SCOPED_TRACE(asked[i].body.dump().substr(0, 200));
    expect_same_chat(ours[i], theirs[i]);
  }
}

class SameAnswers : public ::testing::Test {
 protected:
  SameAnswers() {
    if (std::getenv("RBEE_TEST_DEVICE") != nullptr) missing_ = missing_reason();
  }
  void SetUp() override {
    if (!missing_.empty()) {
      GTEST_SKIP() << "skipped: no " << std::getenv("RBEE_TEST_DEVICE") << ": " << missing_;
    }
  }

  Words model(Words more = {}) const {
    Words out = {"--model", model_.path().string(), "--context", "256"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::string folder() const { return model_.path().string(); }

  static std::vector<Asked> questions() {
    std::vector<Asked> out;
    out.reserve(8);
    for (int i = 0; i < 8; ++i) out.push_back(chat(cat("Question ", i, ": what is ", i * 7, "?")));
    return out;
  }

 private:
  // Starts a worker of the other kind; if it fails before it looks for its model, its last line.
  static std::string missing_reason() {
    const WorkerKind kind = other_kind();
    Words flags = kind.flags;
    flags.insert(flags.end(), {"--model", "/nowhere", "--port", "0"});
    Process worker(kind.program, flags, kind.environment);
    worker.wait();
    std::string text = worker.text();
    if (text.find("/nowhere: ") != std::string::npos) return "";
    text.erase(text.find_last_not_of('\n') + 1);
    return text.substr(text.rfind('\n') + 1);
  }

  test::ModelFolder model_{test::data_folder()};
  std::string missing_;
};

TEST_F(SameAnswers, ManyChatsAtOnce) {
  expect_same_chats(model(), questions());
}

TEST_F(SameAnswers, WithTokensDraftedAhead) {
  expect_same_chats(model({"--speculative", "ngram"}), questions());
  expect_same_chats(model({"--draft-model", folder(), "--draft-tokens", "4"}), questions());
}

TEST_F(SameAnswers, WithAdaptersSideBySide) {
  const std::string adapter = cat(test::data_folder(), "/models/language/data/lora/smollm");
  std::vector<Asked> asked;
  for (const char* name : {"any", "loud", "quiet"}) {
    for (int i = 0; i < 3; ++i) asked.push_back(chat(cat("Word ", i), {{"model", name}}));
  }
  asked.push_back(chat("Both", {{"lora", {{{"id", 0}, {"scale", 0.5}}, {{"id", 1}}}}}));
  expect_same_chats(
      model({"--lora", cat("loud=", adapter), "--lora", cat("quiet=", adapter, ":0.25")}), asked);
}

TEST_F(SameAnswers, WithFormsOfAnswers) {
  expect_same_chats(model(),
                    {chat("A word", {{"guided_regex", "[a-z]{3,9}( [a-z]{2,5})*"}}),
                     chat("A choice", {{"guided_choice", {"left", "right", "neither"}}}),
                     chat("JSON", {{"response_format", {{"type", "json_object"}}}}), chat("Free")});
}

TEST_F(SameAnswers, WithPictures) {
  const auto picture = [](int shade) {
    io::Pixels pixels{.width = 24, .height = 18, .channels = 3, .values = {}};
    for (int i = 0; i < 24 * 18 * 3; ++i) {
      pixels.values.push_back(static_cast<uint8_t>(i % 72 * shade % 256));
    }
    const std::string url = cat("data:image/png;base64,", io::encode_base64(encode_png(pixels)));
    return json{{"type", "image_url"}, {"image_url", {{"url", url}}}};
  };
  const json text = {{"type", "text"}, {"text", "What is it?"}};
  const fs::path pictures = fs::path(test::data_folder()) / "models/vision/data" / "hf";
  expect_same_chats({"--model", pictures.string(), "--context", "256"},
                    {chat({picture(3), text}), chat({picture(250), text}), chat({text}),
                     chat({picture(3), picture(250), text})});
}

TEST_F(SameAnswers, Embeddings) {
  const fs::path bert = fs::path(test::data_folder()) / "models/embedding/data" / "bert" / "hf";
  const std::vector<Asked> asked = {
      {"/v1/embeddings", {{"input", {"one text", "another, longer text", "one text"}}}}};
  const Words flags = {"--model", bert.string()};
  const json ours = answers({LLM_WORKER, {"--threads", "1"}, {}}, flags, asked).at(0);
  const json theirs = answers(other_kind(), flags, asked).at(0);
  ASSERT_TRUE(ours.is_object()) << ours;
  ASSERT_TRUE(theirs.is_object()) << theirs;
  for (size_t i = 0; i < 3; ++i) {
    const json& one = ours.at("data").at(i).at("embedding");
    const json& two = theirs.at("data").at(i).at("embedding");
    ASSERT_GT(one.size(), 0u);
    ASSERT_EQ(one.size(), two.size());
    for (size_t k = 0; k < one.size(); ++k) {
      EXPECT_NEAR(one[k].get<double>(), two[k].get<double>(), 1e-4) << i << ", " << k;
    }
  }
}

}  // namespace
}  // namespace rbee::testing
