// The chat engine over several ranks, each a process with a device of the fake drivers, which meet
// by the fakes of NCCL and RCCL: those find it if ranks do different operations, or capture only
// some. This program is also the other ranks: see main().
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/linked/linked_backends.h"
#include "tests/gpu/fake_library.h"
#include "tests/units/engine/tiny_engine.h"
#include "workers/llm/group.h"
#include "workers/llm/rank_devices.h"

namespace rbee::engine {
namespace {

using namespace std::chrono_literals;
using harness::Vendor;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int64_t kContext = 64;
constexpr const char* kKind = "RBEE_TEST_KIND";  // of the ranks' devices
const workers::GroupTerms kTerms{.program = "gpu_group_engine_test", .flags = "f32"};

std::filesystem::path model_path() {
  return std::filesystem::path(test::data_folder()) / "models/language/data/smollm/model.gguf";
}

DeviceKind kind_of(Vendor vendor) {
  return vendor == Vendor::cuda ? DeviceKind::cuda : DeviceKind::rocm;
}

TextModelOptions options_of_rank(int rank, int ranks) {
  register_linked_backends();
  const auto devices = workers::rank_devices(backends(), cat(std::getenv(kKind), ":0"), ranks);
  TextModelOptions out{.device = &get_device(devices[static_cast<size_t>(rank)]),
                       .context = kContext};
  out.activations = DType::f16;
  return out;
}

TextModel grouped_model(int ranks) {
  TextModelOptions options = options_of_rank(0, ranks);
  workers::start_group(
      {.place = {.tensor_parallel_size = ranks}}, model_path(), kTerms, [](const std::string&) {},
      options);
  TextModel out;
  out.device = options.device;
  out.group = options.group;
  out.model = models::load_language_model(io::Checkpoint::open(model_path()),
                                          {.device = out.device,
                                           .context = kContext,
                                           .group = options.membership,
                                           .activations = *options.activations});
  out.group->wait_until_loaded();
  out.tokenizer = tiny_tokenizer();
  out.info.id = "tiny";
  out.info.vocab_size = test::kTinyVocab;
  out.info.context_length = static_cast<int32_t>(kContext);
  out.info.ranks = ranks;
  return out;
}

class GpuGroup : public ::testing::TestWithParam<Vendor> {
 protected:
  // Fresh memory is zeros, so the logits of kernels that do nothing give text. The backend opens
  // the fake once, so what it reads of the environment stays.
  void SetUp() override {
    mistakes_ = cat(testing::TempDir(), "/group_mistakes_", getpid());
    harness::open_fake_group(GetParam(), 3);
    setenv(kKind, std::string(name(kind_of(GetParam()))).c_str(), 1);
    setenv("RBEE_FAKE_FILL", "0", 1);
    setenv("RBEE_FAKE_MISTAKES", mistakes_.c_str(), 1);
  }
  void TearDown() override {
    std::ifstream told(mistakes_);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(told), {}), "");
    unsetenv("RBEE_FAKE_CCL_FAIL");
    errno = 0;
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a rank is left";
  }

  std::string mistakes_;
};

INSTANTIATE_TEST_SUITE_P(Vendors, GpuGroup, ::testing::ValuesIn(harness::built_vendors()),
                         [](const auto& p) { return p.param == Vendor::cuda ? "cuda" : "rocm"; });

std::unique_ptr<TextEngine> engine_of(int ranks) {
  return make_llm_engine(grouped_model(ranks), {.max_running = 8, .block_size = 4});
}

// Greedy and drawn tokens, and whole rows of logits.
std::vector<TextRequest> requests() {
  std::vector<TextRequest> out;
  const auto add = [&](auto change) {
    TextRequest request = greedy(cat("some words, number ", out.size()), 12);
    change(request.sampling);
    out.push_back(std::move(request));
  };
  add([](SamplingParams&) {});
  const auto warm = [](SamplingParams& sampling) {
    sampling.temperature = 0.8f;
    sampling.seed = 7;
  };
  add(warm);
  add([&](SamplingParams& sampling) {
    warm(sampling);
    sampling.top_k = 3;
  });
  add([&](SamplingParams& sampling) {
    warm(sampling);
    sampling.typical_p = 0.6f;
  });
  add([&](SamplingParams& sampling) {
    warm(sampling);
    sampling.top_p = 0.3f;
  });
  return out;
}

// The kernels compute nothing, so a token may be any number, also none of the vocabulary.
void expect_ended(const Recorder& sink) {
  EXPECT_TRUE(sink.finished.has_value() || sink.failed.has_value());
  if (!sink.failed) return;
  EXPECT_THAT(sink.failed->message, HasSubstr("is outside of the"));
}

void expect_unhealthy(const TextEngine& engine) {
  for (int i = 0; i < 6000 && engine.stats().healthy; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(engine.stats().healthy);
}

// One by one, and all at once.
TEST_P(GpuGroup, RanksDoTheSameOperationsInTheSameOrder) {
  for (const int ranks : {2, 3}) {
    const auto engine = engine_of(ranks);
    for (TextRequest& request : requests()) {
      const auto sink = answer(*engine, std::move(request));
      expect_ended(*sink);
    }
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (TextRequest& request : requests()) {
      sinks.push_back(submit(*engine, std::move(request), cat("job", sinks.size())));
    }
    for (const auto& sink : sinks) {
      sink->wait();
      expect_ended(*sink);
    }
    EXPECT_TRUE(engine->stats().healthy);
    EXPECT_GT(engine->stats().group_commands, 50U);
  }
}

TEST_P(GpuGroup, AnAdapterThatComesLaterIsOnAllRanks) {
  const auto engine = engine_of(2);
  EXPECT_TRUE(answer(*engine, greedy("a prompt", 8))->finished.has_value());
  // The model's shapes are not this adapter's: all ranks go on.
  EXPECT_THROW(engine->load_lora({.name = "other", .path = "/none", .scale = 1}), Error);
  EXPECT_TRUE(answer(*engine, greedy("a prompt", 8))->finished.has_value());
}

// While the engine warms up, or in a request. The leader's fake has read the variable if it was
// opened before; then the other rank's call fails.
TEST_P(GpuGroup, ACallThatFailsEndsTheGroup) {
  for (const char* call : {"ncclAllReduce 40 1", "ncclAllGather 5 1"}) {
    SCOPED_TRACE(call);
    setenv("RBEE_FAKE_CCL_FAIL", call, 1);
    std::string last;
    try {
      const auto engine = engine_of(2);
      for (int i = 0; i < 100 && engine->stats().healthy; ++i) {
        const auto sink = answer(*engine, greedy(cat("a prompt, ", i), 20));
        if (sink->failed) last = sink->failed->message;
      }
    } catch (const Error& error) {
      last = error.what();
    }
    EXPECT_THAT(last, HasSubstr("told by the fake"));
  }
}

TEST_P(GpuGroup, ALostRankFailsRequestsAndLeavesNoProcess) {
  for (const int number : {SIGKILL, SIGSTOP}) {
    const auto engine = engine_of(2);
    const auto holder = hold(*engine, greedy("hold", 50));
    pid_t rank = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream children(task.path() / "children");
      if (pid_t child = 0; children >> child) rank = child;
    }
    ASSERT_GT(rank, 0);
    kill(rank, number);
    holder->let_go();
    holder->events.wait();
    ASSERT_TRUE(holder->events.failed.has_value());
    EXPECT_EQ(holder->events.failed->code, Code::device);
    EXPECT_THAT(holder->events.failed->message, HasSubstr("rank 1 is lost"));
    expect_unhealthy(*engine);
  }
}

// The message of the error that `action` throws.
template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_P(GpuGroup, DevicesOfRanksAreThoseThatAreAskedFor) {
  register_linked_backends();
  const std::string kind(name(kind_of(GetParam())));
  const auto of = [&](const std::string& text, int ranks) {
    std::string out;
    for (const DeviceId& id : workers::rank_devices(backends(), text, ranks)) out += cat(id, " ");
    return out;
  };
  EXPECT_EQ(of(kind + ":1", 2), cat(kind, ":1 ", kind, ":2 "));
  EXPECT_EQ(of(kind + ":2,0", 2), cat(kind, ":2 ", kind, ":0 "));
  EXPECT_EQ(of(cat(kind, ":2,", kind, ":0"), 2), cat(kind, ":2 ", kind, ":0 "));
  EXPECT_EQ(of("cpu", 2), "cpu:0 cpu:0 ");
  EXPECT_THAT(of("auto", 3), AnyOf("cuda:0 cuda:1 cuda:2 ", "rocm:0 rocm:1 rocm:2 "));
  const auto refused = [&](const std::string& text, int ranks) {
    return message_of([&] { of(text, ranks); });
  };
  EXPECT_THAT(refused(kind + ":2", 2), HasSubstr(cat(kind, ":3 is not there, only ", kind,
                                                     ":0 to 2; --device cpu takes processors")));
  EXPECT_THAT(refused("auto", 4), HasSubstr(":3 is not there"));
  EXPECT_THAT(refused(kind + ":1,1", 2), HasSubstr(cat(kind, ":1 twice")));
  EXPECT_THAT(refused(kind + ":0,1", 3), HasSubstr("has 2 devices for 3 ranks"));
  EXPECT_THAT(refused(kind + ":0,cpu:0", 2), HasSubstr("devices of two kinds"));
  EXPECT_THAT(refused(kind + ":0,x", 2), HasSubstr("'x' is none of"));
  EXPECT_THAT(refused("0,1", 2), HasSubstr("'0' is none of"));
}

// What a rank is when this program starts itself.
int be_rank() {
  const group::RankPlace place = workers::group_place({});
  return workers::run_rank({}, kTerms, options_of_rank(place.rank, place.ranks), std::nullopt);
}

}  // namespace
}  // namespace rbee::engine

int main(int argc, char** argv) {
  if (std::getenv(rbee::group::kLinkVariable) != nullptr) return rbee::engine::be_rank();
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
