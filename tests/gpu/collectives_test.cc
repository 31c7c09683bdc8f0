// Collective operations of two to four GPUs over the fake drivers and the fakes of NCCL and RCCL;
// ranks are threads here. With NCCL installed, also what it does without a GPU.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "backends/gpu/ccl_group.h"
#include "rbee/core/half.h"
#include "rbee/ops/collective.h"
#include "rbee/tensor/graph_capture.h"
#include "tests/gpu/fake/fake_ccl.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kCount = 70'000;  // does not divide the fake's pieces, and fills several

// `action` must throw an error of this code whose message has all the texts.
template <typename Action>
void expect_fault(Code code, const std::vector<std::string>& texts, const Action& action) {
  const auto [got, message] = error_of(action);
  EXPECT_EQ(got, code) << message;
  for (const std::string& text : texts) EXPECT_THAT(message, HasSubstr(text));
}

class CollectivesTest : public RuntimeTest {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    const gpu::CclVendor& vendor = ccl_vendor_of(GetParam());
    setenv(vendor.override_variable, fake_ccl_of(GetParam()), 1);
    fake_ = dlopen(fake_ccl_of(GetParam()), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(fake_, nullptr) << dlerror();
    find<void()>("rbee_fake_ccl_reset")();
    library_.emplace(GetParam(), FakeOptions{.devices = kRanks});
    driver_ = library_->open();
    collectives_ = std::make_unique<gpu::CclLibrary>(vendor);
    for (int rank = 0; rank < kRanks; ++rank) {
      devices_.push_back(std::make_unique<gpu::GpuDevice>(this->vendor(*driver_), rank));
    }
  }
  void TearDown() override {
    comms_.clear();
    EXPECT_EQ(find<int()>("rbee_fake_ccl_live")(), 0);
    EXPECT_EQ(mistake(), wanted_mistake_);
    devices_.clear();
    driver_.reset();
    library_.reset();
    dlclose(fake_);
  }

  template <typename Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(fake_, name));
  }
  std::string mistake() const { return find<const char*()>("rbee_fake_ccl_mistake")(); }
  void fail_call(const char* call, int nth, int status) const {
    find<void(const char*, int, int)>("rbee_fake_ccl_fail")(call, nth, status);
  }
  Device& device(int rank) const { return *devices_[static_cast<size_t>(rank)]; }
  GroupView view(int rank) const { return comms_[static_cast<size_t>(rank)]->view(); }

  // Runs body(rank) on a thread for each.
  static void on_all(const std::function<void(int rank)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  }
  void join() {
    comms_.clear();
    comms_.resize(kRanks);
    const std::string id = gpu::make_group_id(*collectives_);
    on_all([&](int rank) {
      comms_[static_cast<size_t>(rank)] =
          std::make_unique<gpu::CclGroup>(*collectives_, *devices_[static_cast<size_t>(rank)],
                                          GroupEntry{.rank = rank, .ranks = kRanks, .id = id});
    });
  }
  // Rank `rank`'s number `i`, exact in every type.
  static float value_of(int rank, int64_t i) {
    return static_cast<float>((i * 7 + rank * 13) % 61 - 30);
  }
  template <typename T>
  static T number(float value) {
    if constexpr (std::is_same_v<T, f16>) return to_f16(value);
    if constexpr (std::is_same_v<T, bf16>) return to_bf16(value);
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
  }
  template <typename T>
  static float as_float(T value) {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<float>(value);
    if constexpr (!std::is_arithmetic_v<T>) return to_float(value);
  }
  template <typename T>
  Tensor numbers(int rank, int64_t count) const {
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(number<T>(value_of(rank, i)));
    return from_host<T>(std::span<const T>(values), {count}, device(rank));
  }
  Tensor bytes_of(int rank) const {
    return from_host<uint8_t>(std::vector<uint8_t>(5000, static_cast<uint8_t>(rank + 3)), {5000},
                              device(rank));
  }
  static float sum_of(int64_t i) {
    float sum = 0;
    for (int rank = 0; rank < kRanks; ++rank) sum += value_of(rank, i);
    return sum;
  }
  template <typename T>
  void expect_sums(DType dtype) {
    SCOPED_TRACE(cat(dtype));
    on_all([&](int rank) {
      const Tensor sum = all_reduce(numbers<T>(rank, kCount), view(rank));
      const std::vector<T> got = sum.to_host<T>();
      for (int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(as_float(got[static_cast<size_t>(i)]), sum_of(i)) << rank << ' ' << i;
      }
    });
  }

  std::optional<FakeLibrary> library_;
  std::unique_ptr<gpu::Driver> driver_;
  std::unique_ptr<gpu::CclLibrary> collectives_;
  std::vector<std::unique_ptr<gpu::GpuDevice>> devices_;
  std::vector<std::unique_ptr<gpu::CclGroup>> comms_;
  std::string wanted_mistake_;
  void* fake_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Vendors, CollectivesTest, each_vendor(), name_of_vendor);

TEST_P(CollectivesTest, SumsOfEveryType) {
  join();
  expect_sums<float>(DType::f32);
  expect_sums<f16>(DType::f16);
  expect_sums<bf16>(DType::bf16);
  expect_sums<int32_t>(DType::i32);
  const Tensor wide = numbers<double>(0, 4);
  expect_fault(Code::unsupported, {"only f32, f16, bf16 and i32 are added"},
               [&] { all_reduce(wide, view(0)); });
  expect_fault(Code::unsupported, {"the ranks have no communicator"}, [&] {
    all_reduce(numbers<float>(0, 4), {.rank = 0, .ranks = 2, .link = GroupLink::shared_memory});
  });
}

TEST_P(CollectivesTest, GathersAndBroadcastsOfAnyType) {
  join();
  on_all([&](int rank) {
    const Tensor all = all_gather(numbers<int64_t>(rank, kCount), view(rank));
    ASSERT_EQ(all.shape(), (Shape{kRanks, kCount}));
    const std::vector<int64_t> got = all.to_host<int64_t>();
    for (int64_t at = 0; at < kRanks * kCount; ++at) {
      const auto wanted = value_of(static_cast<int>(at / kCount), at % kCount);
      ASSERT_EQ(got[static_cast<size_t>(at)], static_cast<int64_t>(wanted));
    }
    for (int root = 0; root < kRanks; ++root) {
      const Tensor x = bytes_of(rank);
      broadcast_(x, root, view(rank));
      EXPECT_EQ(x.to_host<uint8_t>(), bytes_of(root).to_host<uint8_t>());
    }
  });
}

// The norm's kernel computes nothing here: what it is given.
TEST_P(CollectivesTest, SumAndNormAreTwoLaunches) {
  join();
  const int64_t before = library_->launches();
  on_all([&](int rank) {
    const Tensor x = numbers<float>(rank, 4096).reshape({2, 2048});
    const Tensor weight = numbers<float>(rank, 2048);
    reduce_norm(x, x, weight, 1e-5f, view(rank));
    device(rank).synchronize(device(rank).default_stream());
  });
  EXPECT_EQ(library_->launches() - before, kRanks);
  EXPECT_EQ(find<int64_t(const char*)>("rbee_fake_ccl_calls")("ncclAllReduce"), kRanks);
}

TEST_P(CollectivesTest, RecordingsAreReplayedWithNewNumbers) {
  join();
  on_all([&](int rank) {
    const Tensor x = numbers<float>(rank, kCount);
    Tensor sum;
    const GraphCapture capture(device(rank), [&] { sum = all_reduce(x, view(rank)); });
    for (int turn = 0; turn < 3; ++turn) {
      const std::vector<float> given(static_cast<size_t>(kCount),
                                     static_cast<float>(rank + 10 * turn));
      device(rank).copy(x.view().data, given.data(), given.size() * sizeof(float),
                        CopyKind::host_to_device, device(rank).default_stream());
      capture.replay();
      EXPECT_EQ(sum.to_host<float>().back(), static_cast<float>(3 + 30 * turn));
    }
    sum = {};
  });
}

TEST_P(CollectivesTest, DifferentOperationsAndRecordingsAreFound) {
  join();
  on_all([&](int rank) {
    const Tensor x = numbers<float>(rank, 16);
    Tensor y;
    if (rank > 0) {
      y = all_reduce(x, view(rank));
    } else {
      const GraphCapture capture(device(rank), [&] { y = all_reduce(x, view(rank)); });
      capture.replay();
      device(rank).synchronize(device(rank).default_stream());
    }
    (void)y.to_host<float>();
    y = {};
  });
  EXPECT_THAT(mistake(), HasSubstr("captured"));
  wanted_mistake_ = mistake();
}

// Whoever waits for a rank that does not come goes on when its own rank's group ends.
TEST_P(CollectivesTest, AnEndEndsWaitsAndLaterOperations) {
  for (const bool captured : {false, true}) {
    join();
    std::vector<std::thread> threads;
    std::atomic<int> waiting = 0;
    for (int rank = 0; rank + 1 < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        const Tensor x = numbers<float>(rank, 16);
        Tensor y;
        std::optional<GraphCapture> capture;
        if (captured) {
          capture.emplace(device(rank), [&] { y = all_reduce(x, view(rank)); });
        } else {
          y = all_reduce(x, view(rank));
        }
        ++waiting;
        if (captured) capture->replay();
        (void)y.to_host<float>();
        expect_fault(Code::device, {"the group has ended: rank 2 is lost"},
                     [&] { all_reduce(x, view(rank)); });
        y = {};
      });
    }
    while (waiting < kRanks - 1) std::this_thread::yield();
    for (const auto& comm : comms_) comm->end("rank 2 is lost");
    comms_.front()->end("too late to be told");
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(CollectivesTest, EachCallMayFail) {
  const auto expect = [&](const char* call, int status, Code code, const char* text,
                          const auto& action) {
    SCOPED_TRACE(call);
    fail_call(call, 1, status);
    expect_fault(code, {call, text, "told by the fake"}, action);
  };
  const auto enter = [&] {
    gpu::CclGroup(*collectives_, *devices_[0],
                  {.rank = 0, .ranks = 2, .id = gpu::make_group_id(*collectives_)});
  };
  expect("ncclGetUniqueId", 2, Code::device, "(2, ", enter);
  expect("ncclCommInitRank", 1, Code::device, "unhandled cuda error", enter);
  join();
  const Tensor x = numbers<float>(0, 16);
  const std::string place = cat("on ", kind(), ":0");
  expect("ncclAllReduce", 1, Code::device, place.c_str(), [&] { all_reduce(x, view(0)); });
  expect("ncclAllGather", 4, Code::internal, "invalid argument", [&] { all_gather(x, view(0)); });
  expect("ncclBroadcast", 6, Code::device, "network", [&] { broadcast_(x, 1, view(0)); });
  EXPECT_EQ(comms_[0]->fault(), "");
  fail_call("ncclCommGetAsyncError", 1, 1);
  EXPECT_THAT(comms_[0]->fault(), HasSubstr("unhandled cuda error"));
  find<void(int)>("rbee_fake_ccl_fault")(6);
  EXPECT_THAT(comms_[0]->fault(), HasSubstr("remote process exited"));
}

TEST_P(CollectivesTest, WhatIsNoGroupIsRefused) {
  const std::string id = gpu::make_group_id(*collectives_);
  const auto refuses = [&](const GroupEntry& entry, const char* why) {
    expect_fault(Code::invalid_argument, {why},
                 [&] { gpu::CclGroup(*collectives_, *devices_[0], entry); });
  };
  refuses({.rank = 0, .ranks = 1, .id = id}, "ranks is 1");
  refuses({.rank = 2, .ranks = 2, .id = id}, "rank is 2");
  refuses({.rank = 0, .ranks = 2, .id = "short"}, "5 bytes, not 128");
}

TEST_P(CollectivesTest, LibrariesThatCannotBeUsedAreNamed) {
  const gpu::CclVendor& vendor = ccl_vendor_of(GetParam());
  const auto refusal = [&] { return gpu::CclLibrary(vendor).refusal(); };
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(gpu::CclLibrary(vendor).version(), cat(vendor.name, " 2.28.9"));
  setenv("RBEE_FAKE_CCL_VERSION", "21703", 1);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("2.17.3"), HasSubstr("2.18.0 is needed")));
  unsetenv("RBEE_FAKE_CCL_VERSION");
  setenv(vendor.override_variable, cat(fake_ccl_of(GetParam()), "x").c_str(), 1);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is not installed"), HasSubstr(vendor.override_variable)));
  const gpu::CclLibrary none(vendor);
  expect_fault(Code::unsupported, {"ranks on GPUs need", vendor.name}, [&] { none.unique_id(); });
#ifdef RBEE_FAKE_CUBLASLT
  setenv(vendor.override_variable, RBEE_FAKE_CUBLASLT, 1);
  EXPECT_THAT(refusal(), HasSubstr("lacks ncclGetVersion"));
#endif
}

TEST_P(CollectivesTest, NvlinksMulticastIsOffUnlessAskedFor) {
  EXPECT_STREQ(std::getenv("NCCL_NVLS_ENABLE"), "0");
  setenv("NCCL_NVLS_ENABLE", "2", 1);
  const gpu::CclLibrary library(ccl_vendor_of(GetParam()));
  EXPECT_STREQ(std::getenv("NCCL_NVLS_ENABLE"), "2");
  unsetenv("NCCL_NVLS_ENABLE");
}

// What NVIDIA's library itself does without a GPU.
TEST(RealNccl, TellsItsVersionAndMakesIds) {
  unsetenv("RBEE_NCCL_LIBRARY");
  static const gpu::CclVendor vendor{
      .name = "NCCL",
      .prefix = "nccl",
      .override_variable = "RBEE_NCCL_LIBRARY",
      .files = {"libnccl.so.2", RBEE_CUDA_LIBRARIES "/libnccl.so.2"}};
  static const gpu::CclLibrary library(vendor);  // never closed: it has threads
  if (!library.refusal().empty()) GTEST_SKIP() << "skipped: no NCCL: " << library.refusal();
  EXPECT_THAT(library.version(), HasSubstr("NCCL 2."));
  const std::string first = gpu::make_group_id(library), second = gpu::make_group_id(library);
  EXPECT_EQ(first.size(), 128);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace rbee::harness
