// The engine over several ranks, each a process: texts of one rank, and the loss of a rank. This
// program is also the other ranks: see main().

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/units/engine/tiny_engine.h"
#include "workers/llm/group.h"
#include "workers/llm/rank_devices.h"

namespace rbee::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr int64_t kContext = 64;
constexpr int kTogether = 32;
constexpr int32_t kTokens = 10;

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(test::data_folder()) / "models/language/data" / name;
}

const workers::GroupTerms kTerms{.program = "group_engine_test", .flags = "f32"};

TextModel grouped_model(const std::string& family, int ranks) {
  if (ranks == 1) return tiny_model(kContext, cpu(), family);
  TextModelOptions options{.device = &cpu(), .context = kContext};
  const std::filesystem::path path = data(family) / "model.gguf";
  workers::start_group(
      {.place = {.tensor_parallel_size = ranks}}, path, kTerms, [](const std::string&) {}, options);
  TextModel out;
  out.device = options.device;
  out.group = options.group;
  out.model = models::load_language_model(
      io::Checkpoint::open(path),
      {.device = out.device, .context = kContext, .group = options.membership});
  out.group->wait_until_loaded();
  out.tokenizer = tiny_tokenizer();
  out.info.id = "tiny";
  out.info.vocab_size = test::kTinyVocab;
  out.info.context_length = static_cast<int32_t>(kContext);
  out.info.ranks = ranks;
  return out;
}

LlmOptions options_for(int64_t cache_tokens) {
  return {.max_running = kTogether,
          .step_tokens = 64,
          .step_seconds = 0,  // no step's contents depend on time
          .cache_tokens = cache_tokens,
          .block_size = 4,
          .kv_dtype = DType::f32};
}

std::string prompt_of(int i) {
  std::string out = i % 3 == 0 ? "a common start, " : "";
  for (int j = 0; j < i % 13; ++j) out += static_cast<char>('a' + (i * 7 + j * 5) % 26);
  return out + static_cast<char>('A' + i % 26);
}

// All wait in the queue before the first of them joins.
std::vector<std::string> texts_together(TextEngine& engine) {
  const auto holder = hold(engine, greedy("hold", 1));
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (int i = 0; i < kTogether; ++i) {
    sinks.push_back(submit(engine, greedy(prompt_of(i), kTokens), cat("job", i)));
  }
  holder->let_go();
  std::vector<std::string> out;
  for (const auto& sink : sinks) {
    sink->wait();
    EXPECT_TRUE(sink->finished.has_value());
    out.push_back(sink->text);
  }
  return out;
}

// Ranks are children of this process.
std::vector<pid_t> ranks_of_this_process() {
  std::vector<pid_t> out;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) out.push_back(child);
  }
  return out;
}

void expect_no_ranks() {
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

class EveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, RanksSayWhatOneSays) {
  const auto alone = make_llm_engine(grouped_model(GetParam(), 1), options_for(512));
  const std::vector<std::string> wanted = texts_together(*alone);
  for (const int ranks : {2, 3}) {
    for (const int64_t cache_tokens : {512, 128}) {  // the second takes places from requests
      const auto engine =
          make_llm_engine(grouped_model(GetParam(), ranks), options_for(cache_tokens));
      EXPECT_EQ(texts_together(*engine), wanted) << ranks << " ranks, " << cache_tokens;
      const EngineStats stats = engine->stats();
      EXPECT_EQ(stats.preemptions > 0, cache_tokens == 128);
      EXPECT_GT(stats.group_commands, 10U);
      EXPECT_GT(stats.group_bytes, stats.group_commands);
      EXPECT_TRUE(stats.healthy);
    }
    expect_no_ranks();
  }
}

INSTANTIATE_TEST_SUITE_P(Group, EveryFamily,
                         ::testing::Values("smollm", "llama", "qwen2", "qwen3", "phi3", "gemma2",
                                           "mixtral", "qwen3_moe", "deepseek_v2", "stablelm"));

// Which read whole rows of logits, or some of the largest.
TEST(GroupEngine, SamplersChooseWhatTheyChooseOfOneRank) {
  std::vector<std::string> wanted;
  for (const int ranks : {1, 2}) {
    const auto engine = make_llm_engine(grouped_model("smollm", ranks), options_for(512));
    std::vector<std::string> found;
    const auto ask = [&](auto change) {
      TextRequest request = greedy("once upon a time", 20);
      request.sampling.temperature = 0.8f;
      request.sampling.seed = 7;
      change(request);
      found.push_back(answer(*engine, std::move(request))->text);
    };
    ask([](TextRequest&) {});
    ask([](TextRequest& request) { request.sampling.top_k = 3; });
    ask([](TextRequest& request) { request.sampling.typical_p = 0.6f; });
    ask([](TextRequest& request) { request.sampling.top_p = 0.3f; });
    ask([](TextRequest& request) { request.sampling.xtc_probability = 0.5f; });
    ask([](TextRequest& request) { request.speculative = true; });
    if (ranks == 1) wanted = found;
    EXPECT_EQ(found, wanted);
  }
}

TEST(GroupEngine, AnAdapterThatComesLaterIsOnAllRanks) {
  std::vector<std::string> wanted;
  for (const int ranks : {1, 2, 3}) {
    const auto engine = make_llm_engine(grouped_model("llama", ranks), options_for(512));
    std::vector<std::string> found{answer(*engine, greedy("a prompt", 20))->text};
    engine->load_lora({.name = "more", .path = (data("lora") / "llama_all").string(), .scale = 1});
    TextRequest request = greedy("a prompt", 20);
    request.lora.push_back({"more", {}});
    found.push_back(answer(*engine, std::move(request))->text);
    EXPECT_NE(found[0], found[1]);
    if (ranks == 1) wanted = found;
    EXPECT_EQ(found, wanted);
  }
}

class LostRank : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(LostRank, FailsAllRequestsAndLeavesNoProcess) {
  const auto [number, rank, busy] = GetParam();
  const auto engine = make_llm_engine(grouped_model("smollm", 3), options_for(512));
  const std::vector<pid_t> ranks = ranks_of_this_process();
  ASSERT_EQ(ranks.size(), 2);
  const auto holder = busy ? hold(*engine, greedy("hold", 50)) : nullptr;
  const auto waiting = busy ? submit(*engine, greedy("another", 50), "another") : nullptr;
  kill(ranks[static_cast<size_t>(rank - 1)], number);
  if (busy) {
    holder->let_go();
    for (Recorder* sink : {&holder->events, waiting.get()}) {
      sink->wait();
      ASSERT_TRUE(sink->failed.has_value());
      EXPECT_EQ(sink->failed->code, Code::device);
      EXPECT_THAT(sink->failed->message, HasSubstr("is lost"));
    }
  }
  for (int i = 0; i < 6000 && engine->stats().healthy; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(engine->stats().healthy);
  EXPECT_THROW(submit(*engine, greedy("more", 1), "more"), Error);
}

INSTANTIATE_TEST_SUITE_P(Group, LostRank,
                         ::testing::Combine(::testing::Values(SIGKILL, SIGSTOP),
                                            ::testing::Values(1, 2), ::testing::Bool()));

TEST(GroupEngine, AnotherModelsFilesAreRefused) {
  TextModelOptions options{.device = &cpu(), .context = kContext};
  EXPECT_THROW(workers::start_group(
                   {.place = {.tensor_parallel_size = 2}}, data("no such model"), kTerms,
                   [](const std::string&) {}, options),
               Error);
  expect_no_ranks();
}

// Calls on one machine, each with two ranks: the second one's devices come after the first one's.
TEST(RankDevices, CallsOfOneMachineTakeDevicesOneAfterAnother) {
  BackendInfo gpus{};
  gpus.kind = DeviceKind::cuda;
  gpus.device_count = [] { return 4; };
  const auto of = [&](const std::string& text, int before) {
    std::string out;
    for (const DeviceId& id : workers::rank_devices({&gpus, 1}, text, 2, before)) {
      out += cat(id, " ");
    }
    return out;
  };
  for (const char* text : {"auto", "cuda:0"}) {
    EXPECT_EQ(of(text, 0), "cuda:0 cuda:1 ");
    EXPECT_EQ(of(text, 2), "cuda:2 cuda:3 ");
  }
  EXPECT_EQ(of("cuda:1", 1), "cuda:2 cuda:3 ");
  EXPECT_EQ(of("cuda:1,cuda:0", 2), "cuda:1 cuda:0 ") << "a list is this call's";
  EXPECT_EQ(of("cpu", 2), "cpu:0 cpu:0 ");
  try {
    of("auto", 3);
    FAIL() << "there is no cuda:4";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cuda:4 is not there, only cuda:0 to 3"));
  }
}

TEST(RankDevices, AutoPassesExperimentalDevicesOver) {
  BackendInfo untried{}, few{};
  untried.kind = DeviceKind::metal;
  untried.device_count = [] { return 4; };
  few.kind = DeviceKind::rocm;
  few.device_count = [] { return 2; };
  const BackendInfo both[] = {untried, few};
  using workers::rank_devices;
  EXPECT_EQ(cat(rank_devices({&untried, 1}, "auto", 2, 0).front()), "cpu:0");
  EXPECT_EQ(cat(rank_devices(both, "auto", 2, 0).front()), "rocm:0");
  EXPECT_EQ(cat(rank_devices(both, "metal:0", 2, 0).back()), "metal:1") << "it was asked for";
}

// What a rank is when this program starts itself.
int be_rank() {
  return workers::run_rank({}, kTerms, {.device = &cpu(), .context = kContext}, DType::f32);
}

}  // namespace
}  // namespace rbee::engine

int main(int argc, char** argv) {
  if (std::getenv(rbee::group::kLinkVariable) != nullptr) return rbee::engine::be_rank();
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
