// Sums and exchanges of 2 to 5 ranks, against sums in f64.

#include "rbee/ops/collective.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "rbee/ops/elementwise.h"
#include "tests/support/expect_error.h"
#include "tests/support/rank_threads.h"

namespace rbee {
namespace {

using harness::RankThreads;

Device& device() {
  static Device& cpu = cpu::cpu_backend().device(0);
  return cpu;
}

// Rank `rank`'s element `i`, exact in every type that is tested.
double value_of(int rank, int64_t i) {
  return static_cast<double>((i * 7 + rank * 13) % 61 - 30) / 4;
}

Tensor values_of(int rank, int64_t count, DType dtype) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double value = value_of(rank, i);
    values[static_cast<size_t>(i)] = static_cast<float>(is_integer(dtype) ? 4 * value : value);
  }
  return cast(from_host<float>(values, {count}, device()), dtype);
}

std::vector<std::byte> bytes_of(const Tensor& x) {
  const auto* data = static_cast<const std::byte*>(x.view().data);
  return {data, data + x.bytes()};
}

// Also what does not divide areas, or fills several.
constexpr int64_t kCounts[] = {0, 1, 15, 16, 1024, 4096, (1 << 18) + 2};
constexpr DType kSummed[] = {DType::f32, DType::f16, DType::bf16, DType::i32};

class CollectiveTest : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
  // What every rank's `body` gives.
  template <typename Body>
  std::vector<Tensor> on_all(const Body& body) const {
    std::vector<Tensor> out(static_cast<size_t>(ranks()));
    group_.run([&](int rank) { out[static_cast<size_t>(rank)] = body(rank, group_.view(rank)); });
    return out;
  }
  void expect_sum(const Tensor& sum, DType dtype) const {
    const std::vector<float> got = cast(sum, DType::f32).to_host<float>();
    for (int64_t i = 0; i < std::ssize(got); ++i) {
      double wanted = 0;
      for (int rank = 0; rank < ranks(); ++rank) wanted += value_of(rank, i);
      if (is_integer(dtype)) wanted *= 4;
      const double allowed = dtype == DType::bf16 ? std::fabs(wanted) / 256 : 0;
      ASSERT_NEAR(got[static_cast<size_t>(i)], wanted, allowed) << i;
    }
  }

  RankThreads group_{GetParam()};
};

TEST_P(CollectiveTest, SumsOfEveryTypeAndSize) {
  for (const DType dtype : kSummed) {
    for (const int64_t count : kCounts) {
      SCOPED_TRACE(cat(dtype, " ", count));
      const std::vector<Tensor> sums = on_all([&](int rank, const GroupView& view) {
        return all_reduce(values_of(rank, count, dtype), view);
      });
      expect_sum(sums.front(), dtype);
      for (const Tensor& sum : sums) EXPECT_EQ(bytes_of(sum), bytes_of(sums.front()));
    }
  }
}

// Sums in another order, or rounded in between, would be other numbers.
TEST_P(CollectiveTest, SumsAreInTheOrderOfRanksAndRoundedOnce) {
  constexpr float kValues[] = {1, 0x1p-24f, 0x1p-24f, -1, 0x1p-25f};
  float wanted = 0;
  for (int rank = 0; rank < ranks(); ++rank) wanted += kValues[rank];
  const std::vector<Tensor> sums = on_all([&](int rank, const GroupView& view) {
    return all_reduce(from_host<float>({&kValues[rank], 1}, {1}, device()), view);
  });
  for (const Tensor& sum : sums) EXPECT_EQ(sum.to_host<float>()[0], wanted);
  // bf16 has 8 bits: 256 + 1 + ... rounds to 256 at each step, if it is rounded in between.
  const std::vector<Tensor> small = on_all([&](int rank, const GroupView& view) {
    const float value = rank == 0 ? 256 : 1;
    return all_reduce(cast(from_host<float>({&value, 1}, {1}, device()), DType::bf16), view);
  });
  const float exact = 255 + static_cast<float>(ranks());
  const float rounded = 2 * std::nearbyint(exact / 2);  // ties to even
  for (const Tensor& sum : small) {
    EXPECT_EQ(cast(sum, DType::f32).to_host<float>()[0], rounded);
  }
}

TEST_P(CollectiveTest, IntegersWrap) {
  const std::vector<Tensor> sums = on_all([&](int, const GroupView& view) {
    const int32_t most = INT32_MAX;
    return all_reduce(from_host<int32_t>({&most, 1}, {1}, device()), view);
  });
  const auto wanted = static_cast<int32_t>(static_cast<uint32_t>(ranks()) * uint32_t{INT32_MAX});
  for (const Tensor& sum : sums) EXPECT_EQ(sum.to_host<int32_t>()[0], wanted);
}

TEST_P(CollectiveTest, SumAndNorm) {
  constexpr int64_t kRows = 3, kDim = 40;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<Tensor> norms(static_cast<size_t>(ranks()));
    const auto rows = [&](int rank) { return values_of(rank, kRows * kDim, dtype); };
    const Tensor weight = values_of(7, kDim, dtype);
    const std::vector<Tensor> sums = on_all([&](int rank, const GroupView& view) {
      const SumAndNorm both = reduce_norm(rows(rank).reshape({kRows, kDim}),
                                          rows(9).reshape({kRows, kDim}), weight, 1e-5f, view);
      norms[static_cast<size_t>(rank)] = both.norm;
      return both.sum;
    });
    Tensor wanted = rows(9);
    Tensor added = rows(0);
    for (int rank = 1; rank < ranks(); ++rank) added = added + rows(rank);
    wanted = (wanted + added).reshape({kRows, kDim});
    for (size_t rank = 0; rank < sums.size(); ++rank) {
      EXPECT_EQ(bytes_of(sums[rank]), bytes_of(wanted));
      EXPECT_EQ(bytes_of(norms[rank]), bytes_of(rms_norm(wanted, weight, 1e-5f)));
    }
  }
}

TEST_P(CollectiveTest, GathersOfEverySize) {
  for (const DType dtype : {DType::u8, DType::i64, DType::f32, DType::bf16}) {
    for (const int64_t count : kCounts) {
      SCOPED_TRACE(cat(dtype, " ", count));
      const std::vector<Tensor> all = on_all([&](int rank, const GroupView& view) {
        return all_gather(values_of(rank, count, dtype), view);
      });
      for (const Tensor& gathered : all) {
        ASSERT_EQ(gathered.shape(), (Shape{ranks(), count}));
        for (int rank = 0; rank < ranks(); ++rank) {
          EXPECT_EQ(bytes_of(gathered.slice(Axis{0}, rank, 1)),
                    bytes_of(values_of(rank, count, dtype)));
        }
      }
    }
  }
}

TEST_P(CollectiveTest, OneRanksRowsReplaceTheOthers) {
  for (const int64_t count : kCounts) {
    for (int root = 0; root < ranks(); ++root) {
      const std::vector<Tensor> all = on_all([&](int rank, const GroupView& view) {
        Tensor x = values_of(rank, count, DType::f16);
        broadcast_(x, root, view);
        return x;
      });
      for (const Tensor& x : all)
        EXPECT_EQ(bytes_of(x), bytes_of(values_of(root, count, DType::f16)));
    }
  }
}

TEST_P(CollectiveTest, ManyInARow) {
  // More ranks than processors take turns on them.
  const int times = ranks() == 2 ? 10'000 : 1000;
  const std::vector<Tensor> last = on_all([&](int rank, const GroupView& view) {
    Tensor x = from_host<float>(std::vector<float>{static_cast<float>(rank)}, {1}, device());
    for (int i = 0; i < times; ++i) {
      const Tensor sum = all_reduce(x, view);
      x = affine(sum, 1.0 / ranks(), rank - 0.5 * (ranks() - 1));
    }
    return all_reduce(x, view);
  });
  // The mean of the ranks' numbers stays what it was.
  const float wanted = static_cast<float>(ranks() * (ranks() - 1)) / 2;
  for (const Tensor& x : last) EXPECT_NEAR(x.to_host<float>()[0], wanted, 1e-2);
}

TEST_P(CollectiveTest, DifferentOperationsEndTheGroup) {
  std::string reason;
  try {
    group_.run([&](int rank) {
      const GroupView view = group_.view(rank);
      if (rank == 0) {
        all_gather(values_of(rank, 8, DType::f32), view);
      } else {
        all_reduce(values_of(rank, 8, DType::f32), view);
      }
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::device);
    reason = error.what();
  }
  EXPECT_NE(reason.find("operation"), std::string::npos) << reason;
}

TEST_P(CollectiveTest, OperandsAreChecked) {
  const GroupView view = group_.view(0);
  harness::expect_error("all_reduce", "x is", "undefined", [&] { all_reduce({}, view); });
  const Tensor wide = values_of(0, 8, DType::f32).reshape({4, 2}).transpose(Axis{0}, Axis{1});
  harness::expect_error("all_gather", "x is", "gaps", [&] { all_gather(wide, view); });
  harness::expect_error("broadcast", "root is", "wanted 0 to",
                        [&] { broadcast_(values_of(0, 1, DType::f32), ranks(), view); });
  const Tensor rows = values_of(0, 8, DType::f32).reshape({2, 4});
  harness::expect_error("reduce_norm", "weight is", "wanted (4)",
                        [&] { reduce_norm(rows, rows, values_of(0, 2, DType::f32), 0, view); });
  EXPECT_THROW(all_reduce(values_of(0, 4, DType::i64), view), Error);
}

// Processes, as in use: each child adds, compares with its own sum and says so by its status.
TEST_P(CollectiveTest, Processes) {
  const int fd = cpu::GroupMemory::create(ranks());
  const auto child = [&](int rank) {
    const auto memory = cpu::GroupMemory::attach(fd, rank);
    memory->set_time_limit(std::chrono::seconds(60));
    constexpr int64_t kCount = 5000;
    std::vector<float> x(kCount), wanted(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      x[static_cast<size_t>(i)] = static_cast<float>(value_of(rank, i));
      for (int r = 0; r < ranks(); ++r) {
        wanted[static_cast<size_t>(i)] += static_cast<float>(value_of(r, i));
      }
    }
    for (int time = 0; time < 100; ++time) {
      // Without the pool, whose threads a fork does not copy.
      std::memcpy(memory->area(), x.data(), kCount * sizeof(float));
      memory->meet({.kind = 1, .bytes = kCount * sizeof(float)});
      std::vector<float> sum(kCount);
      for (int r = 0; r < ranks(); ++r) {
        const auto* part = reinterpret_cast<const float*>(memory->area_of(r));
        for (size_t i = 0; i < kCount; ++i) sum[i] += part[i];
      }
      if (sum != wanted) return 1;
    }
    return 0;
  };
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks(); ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      int status = 2;
      try {
        status = child(rank);
      } catch (...) {
        status = 3;
      }
      _exit(status);
    }
    children.push_back(pid);
  }
  close(fd);
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectiveTest, testing::Values(2, 3, 4, 5));

TEST(OneRank, NeedsNoMemory) {
  const Tensor x = values_of(0, 8, DType::f32);
  EXPECT_EQ(all_reduce(x, {}).view().data, x.view().data);
  EXPECT_EQ(all_gather(x, {}).shape(), (Shape{1, 8}));
  broadcast_(x, 0, {});
}

}  // namespace
}  // namespace rbee
