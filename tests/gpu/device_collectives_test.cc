// Collective operations on real GPUs, a process for each rank: this program is the ranks too.
// Skipped with fewer than two GPUs. RBEE_TEST_LATENCY=1 also prints a table of times.
// RBEE_TEST_RANKS: how many ranks, by default as many as there are GPUs, at most 8.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "backends/api/kernel_table.h"
#include "backends/linked/linked_backends.h"
#include "rbee/ops/collective.h"
#include "rbee/ops/elementwise.h"
#include "rbee/tensor/graph_capture.h"

namespace rbee {
namespace {

constexpr const char* kRank = "RBEE_TEST_RANK_OF_GROUP";  // "RANK RANKS KIND FILE"
constexpr int kMostRanks = 8;

// ---- a rank ----

double value_of(int rank, int64_t i) {
  return static_cast<double>((i * 7 + rank * 13) % 61 - 30) / 4;
}

class Rank {
 public:
  Rank(Device& device, GroupView view) : device_(device), view_(view) {}

  Tensor values(int rank, int64_t count, DType dtype) const {
    std::vector<float> out(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const double value = value_of(rank, i);
      out[static_cast<size_t>(i)] = static_cast<float>(is_integer(dtype) ? 4 * value : value);
    }
    return cast(from_host<float>(out, {count}, device_), dtype);
  }

  // All ranks' bits are this rank's.
  void expect_same_bits(const Tensor& x) const {
    const Tensor all = all_gather(x, view_);
    const std::vector<float> own = cast(x, DType::f32).to_host<float>();
    const std::vector<float> got = cast(all, DType::f32).to_host<float>();
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], own[i % own.size()]) << "element " << i;
    }
  }
  void expect_sums(const Tensor& sum) const {
    const DType dtype = sum.dtype();
    const std::vector<float> got = cast(sum, DType::f32).to_host<float>();
    // Each step of a ring may round to 16 bits.
    const double step = dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0;
    for (int64_t i = 0; i < std::ssize(got); ++i) {
      double wanted = 0, size = 0;
      for (int rank = 0; rank < view_.ranks; ++rank) {
        wanted += value_of(rank, i) * (is_integer(dtype) ? 4 : 1);
        size += std::fabs(value_of(rank, i));
      }
      ASSERT_NEAR(got[static_cast<size_t>(i)], wanted, size * step * view_.ranks)
          << cat(dtype) << " element " << i << " of " << got.size();
    }
  }
  void sums() const {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
      for (const int64_t count : {1, 15, 16, 1024, 4096, (1 << 18) + 2, 1 << 22}) {
        const Tensor sum = all_reduce(values(view_.rank, count, dtype), view_);
        expect_sums(sum);
        expect_same_bits(sum);
      }
    }
  }
  void gathers_and_broadcasts() const {
    for (const int64_t count : {1, 15, 4096, (1 << 18) + 2}) {
      const std::vector<float> got =
          all_gather(values(view_.rank, count, DType::f32), view_).to_host<float>();
      for (int64_t at = 0; at < std::ssize(got); ++at) {
        const auto rank = static_cast<int>(at / count);
        ASSERT_EQ(got[static_cast<size_t>(at)], static_cast<float>(value_of(rank, at % count)));
      }
      for (int root = 0; root < view_.ranks; ++root) {
        const Tensor x = values(view_.rank, count, DType::f32);
        broadcast_(x, root, view_);
        ASSERT_EQ(x.to_host<float>(), values(root, count, DType::f32).to_host<float>());
      }
    }
  }
  void norms() const {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor x = values(view_.rank, 3 * 4096, dtype).reshape({3, 4096});
      const Tensor residual = values(9, 3 * 4096, dtype).reshape({3, 4096});
      const Tensor weight = values(7, 4096, dtype);
      const SumAndNorm both = reduce_norm(x, residual, weight, 1e-5f, view_);
      const SumAndNorm wanted = add_rms_norm(all_reduce(x, view_), residual, weight, 1e-5f);
      const auto floats = [](const Tensor& y) { return cast(y, DType::f32).to_host<float>(); };
      EXPECT_EQ(floats(both.sum), floats(wanted.sum));
      EXPECT_EQ(floats(both.norm), floats(wanted.norm));
      expect_same_bits(both.norm);
    }
  }
  // The numbers change between replays; an eager operation runs between them.
  void captures() const {
    constexpr int64_t kCount = 8192;
    Tensor x = values(view_.rank, kCount, DType::f32);
    all_reduce(x, view_);  // what the library sets up at its first operation
    Tensor sum, all;
    {
      const GraphCapture capture(device_, [&] {
        sum = all_reduce(x, view_);
        for (int i = 0; i < 20; ++i) sum = all_reduce(affine(sum, 1.0 / view_.ranks, 0), view_);
        all = all_gather(sum, view_);
      });
      for (int turn = 0; turn < 50; ++turn) {
        copy_(x, affine(values(view_.rank, kCount, DType::f32), 1, turn));
        capture.replay();
        const std::vector<float> got = sum.to_host<float>();
        for (int64_t i = 0; i < kCount; ++i) {
          double wanted = 0;
          for (int rank = 0; rank < view_.ranks; ++rank) wanted += value_of(rank, i) + turn;
          ASSERT_NEAR(got[static_cast<size_t>(i)], wanted, 1e-3 * (std::fabs(wanted) + 1))
              << "turn " << turn;
        }
        ASSERT_EQ(all.to_host<float>().size(), got.size() * static_cast<size_t>(view_.ranks));
        expect_sums(all_reduce(values(view_.rank, 16, DType::f32), view_));
      }
    }
  }
  void latencies() const {
    if (view_.rank == 0) std::printf("bytes,way,p50_us,p99_us\n");
    for (int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4) {
      const Tensor x = values(view_.rank, bytes / 2, DType::bf16);
      const Tensor y = empty_like(x);
      constexpr int kEach = 20;
      const auto work = [&] {
        const AllReduceArgs args{x.view(), y.view(), view_};
        for (int i = 0; i < kEach; ++i) device_.kernels().all_reduce.front().run(args, x.stream());
      };
      tell(bytes, "eager", kEach, work);
      const GraphCapture capture(device_, work);
      tell(bytes, "captured", kEach, [&] { capture.replay(); });
    }
  }

 private:
  void tell(int64_t bytes, const char* way, int each, const std::function<void()>& work) const {
    using Clock = std::chrono::steady_clock;
    const int times = bytes > (4 << 20) ? 100 : 1000;
    std::vector<double> us;
    for (int i = -10; i < times; ++i) {
      const Clock::time_point begin = Clock::now();
      work();
      device_.synchronize(device_.default_stream());
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      if (i >= 0) us.push_back(took.count() / each);
    }
    std::ranges::sort(us);
    if (view_.rank != 0) return;
    std::printf("%lld,%s,%.1f,%.1f\n", static_cast<long long>(bytes), way, us[us.size() / 2],
                us[us.size() * 99 / 100]);
    std::fflush(stdout);
  }

  Device& device_;
  GroupView view_;
};

const BackendInfo* backend_of(DeviceKind kind) {
  for (const BackendInfo& backend : backends()) {
    if (backend.kind == kind) return &backend;
  }
  return nullptr;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In a process of its own; started by the test below.
TEST(RankOfDevices, DoesWhatAllDo) {
  const char* const told = std::getenv(kRank);
  if (told == nullptr) GTEST_SKIP() << "skipped: no rank of a group";
  std::istringstream text(told);
  int rank = 0, ranks = 0, kind = 0;
  std::string file;
  text >> rank >> ranks >> kind >> file;
  const BackendInfo& backend = *backend_of(static_cast<DeviceKind>(kind));
  Device& device = backend.device(rank);
  const auto comm = backend.join_group(device, {.rank = rank, .ranks = ranks, .id = content(file)});
  const Rank own(device, comm->view());
  own.sums();
  own.gathers_and_broadcasts();
  own.norms();
  if (device.supports_capture()) own.captures();
  if (std::getenv("RBEE_TEST_LATENCY") != nullptr) own.latencies();
  EXPECT_EQ(comm->fault(), "");
}

// ---- the test ----

// The kind with most GPUs.
const BackendInfo* most_gpus() {
  const BackendInfo* most = nullptr;
  for (const BackendInfo& backend : backends()) {
    if (backend.kind == DeviceKind::cpu) continue;
    if (most == nullptr || backend.device_count() > most->device_count()) most = &backend;
  }
  return most;
}

pid_t start_rank(int rank, int ranks, DeviceKind kind, const std::string& file) {
  const std::string told = cat(rank, ' ', ranks, ' ', static_cast<int>(kind), ' ', file);
  const pid_t child = fork();
  if (child != 0) return child;
  setenv(kRank, told.c_str(), 1);
  execl("/proc/self/exe", "device_collectives_test", "--gtest_filter=RankOfDevices.*", nullptr);
  _exit(127);
}

TEST(DeviceCollectives, RanksOnDevicesAgree) {
  const BackendInfo* const backend = most_gpus();
  const int count = backend != nullptr ? backend->device_count() : 0;
  if (count < 2) GTEST_SKIP() << "skipped: no two GPUs of one vendor";
  if (backend->group_library().empty()) {
    GTEST_SKIP() << "skipped: no library of collective operations";
  }
  std::printf("%s\n", backend->group_library().c_str());
  const char* const wanted = std::getenv("RBEE_TEST_RANKS");
  const int ranks = wanted != nullptr ? std::atoi(wanted) : std::min(count, kMostRanks);
  ASSERT_GE(ranks, 2);
  ASSERT_LE(ranks, count);
  const std::string file = cat(testing::TempDir(), "/group_id_", getpid());
  std::ofstream(file, std::ios::binary) << backend->make_group_id();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(start_rank(rank, ranks, backend->kind, file));
  }
  // The others would wait for one that has failed.
  bool failed = false;
  for (int i = 0; i < ranks; ++i) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    const auto rank = std::ranges::find(children, ended) - children.begin();
    if (!failed) ADD_FAILURE() << "rank " << rank << " ended with status " << status;
    failed = true;
    for (const pid_t child : children) kill(child, SIGKILL);
  }
  unlink(file.c_str());
}

}  // namespace
}  // namespace rbee

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  rbee::register_linked_backends();
  return RUN_ALL_TESTS();
}
