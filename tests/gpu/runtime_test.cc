// The GPU runtime over the fake drivers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "backends/gpu/backend.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/launch.h"
#include "backends/shared/elementwise_params.h"
#include "rbee/core/error.h"
#include "rbee/tensor/device_mark.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using gpu::GpuDevice;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A driver call, by both vendors' names.
struct Names {
  const char* cuda;
  const char* rocm;
};

INSTANTIATE_TEST_SUITE_P(Vendors, RuntimeTest, each_vendor(), name_of_vendor);

TEST_P(RuntimeTest, DescribesTheDevice) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  EXPECT_EQ(driver->device_count(), 1);
  EXPECT_EQ(driver->kind(), cuda() ? DeviceKind::cuda : DeviceKind::rocm);
  EXPECT_EQ(driver->version(), cuda() ? "CUDA driver 13.0" : "HIP runtime 6.4");
  const gpu::Properties properties = driver->properties(0);
  EXPECT_EQ(properties.architecture, cuda() ? "sm_90" : "gfx942");
  EXPECT_EQ(properties.lane_count, cuda() ? 32 : 64);
  EXPECT_EQ(properties.multiprocessors, 2);
  EXPECT_EQ(properties.total_memory, 1024 * kMiB);
  EXPECT_EQ(properties.matrix, cuda() ? gpu::MatrixUnit::wgmma : gpu::MatrixUnit::mfma);
}

TEST_P(RuntimeTest, MissingLibraryIsAReason) {
  const auto [code, message] = error_of([] { open_driver(GetParam(), "/nowhere/lib.so"); });
  EXPECT_EQ(code, Code::device);
  EXPECT_THAT(message, HasSubstr("is not installed (/nowhere/lib.so"));
}

TEST_P(RuntimeTest, MachineWithoutDeviceIsAReason) {
  for (const bool oldest : {false, true}) {
    const FakeLibrary library(GetParam(), {.devices = 0, .oldest = oldest});
    const auto [code, message] = error_of([&] { library.open(); });
    EXPECT_EQ(code, Code::device);
    EXPECT_THAT(message, HasSubstr("finds no GPU")) << "oldest: " << oldest;
  }
}

// If the variable is empty or names no device, the message gives it as the reason.
TEST_P(RuntimeTest, VariablesThatHideDevicesAreNamed) {
  const char* name = cuda() ? "CUDA_VISIBLE_DEVICES" : "ROCR_VISIBLE_DEVICES";
  const FakeLibrary library(GetParam(), {.devices = 0});
  for (const char* value : {"", "nonsense"}) {
    setenv(name, value, 1);
    const std::string message = error_of([&] { library.open(); }).second;
    unsetenv(name);
    EXPECT_THAT(message, HasSubstr(cat(" (", name, "=\"", value, "\" may hide it")));
  }
}

TEST_P(RuntimeTest, AFailureAtTheStartNamesTheCall) {
  const FakeLibrary library(GetParam());
  for (const Names call : {Names{"cuInit", "hipInit"}, {"cuDeviceGetCount", "hipGetDeviceCount"}}) {
    library.fail(call.cuda, call.rocm, 1, fake::kLaunchFailed);
    const auto [code, message] = error_of([&] { library.open(); });
    EXPECT_EQ(code, Code::device);
    EXPECT_THAT(message, StartsWith(cat(cuda() ? call.cuda : call.rocm, ": ")));
  }
}

TEST_P(RuntimeTest, LibraryWithoutTheCallsIsTooOld) {
  const auto [code, message] = error_of([] { open_driver(GetParam(), "libm.so.6"); });
  EXPECT_EQ(code, Code::device);
  EXPECT_THAT(message, HasSubstr("is too old"));
  EXPECT_THAT(message, HasSubstr(cuda() ? "it lacks cuInit, " : "it lacks hipInit, "));
}

TEST_P(RuntimeTest, OldVersionsAreNamedAndTheOldestWorks) {
  const FakeLibrary library(GetParam(), {.oldest = true});
  setenv("RBEE_FAKE_VERSION", cuda() ? "11080" : "50221152", 1);
  const auto [code, message] = error_of([&] { library.open(); });
  setenv("RBEE_FAKE_VERSION", cuda() ? "12000" : "50221153", 1);
  const auto driver = library.open();
  unsetenv("RBEE_FAKE_VERSION");
  EXPECT_EQ(code, Code::device);
  EXPECT_THAT(
      message,
      ::testing::EndsWith(
          cuda() ? ", CUDA 11.8) is too old: CUDA 12.0 is needed; update the driver"
                 : ", version 5.2.21152) is too old: 5.2.21153 (ROCm 5.2.3) is needed; update "
                   "ROCm"));
  EXPECT_EQ(driver->properties(0).architecture, cuda() ? "sm_90" : "gfx942");
}

// HIP 5 lacks the call by which later versions describe a device.
TEST(BackendTest, Hip5DescribesItsDevicesAndRunsKernels) {
  if (!is_built(Vendor::rocm) ||
      gpu::find_image(images_of(Vendor::rocm), "move", "gfx90a") == nullptr) {
    GTEST_SKIP() << "gfx90a is not among this build's architectures";
  }
  const FakeLibrary library(Vendor::rocm, {.architecture = "gfx90a", .oldest = true});
  const auto driver = library.open();
  EXPECT_EQ(driver->version(), "HIP runtime 5.2");
  GpuDevice device(with_driver(Vendor::rocm, *driver), 0);
  EXPECT_EQ(device.properties().architecture, "gfx90a");
  EXPECT_EQ(library.calls("", "hipGetDeviceProperties"), 1);
  const Tensor x = zeros({4}, DType::f32, device);
  device.kernels().copy.back().run({x.view(), x.view()}, device.default_stream());
  EXPECT_EQ(library.launches(), 1);
}

TEST_P(RuntimeTest, CopiesThereAndBack) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream& stream = device.default_stream();
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  void* first = device.allocate(256, stream);
  void* second = device.allocate(256, stream);
  device.copy(first, bytes.data(), 256, CopyKind::host_to_device, stream);
  device.copy(second, first, 256, CopyKind::device_to_device, stream);
  std::vector<uint8_t> back(256);
  device.copy(back.data(), second, 256, CopyKind::device_to_host, stream);
  device.synchronize(stream);
  EXPECT_EQ(back, bytes);
  device.fill_bytes(second, 0x41, 100, stream);
  device.copy(back.data(), second, 256, CopyKind::device_to_host, stream);
  EXPECT_EQ(back[99], 0x41);
  EXPECT_EQ(back[100], bytes[100]);
  device.free(first, 256, stream);
  device.free(second, 256, stream);
}

TEST_P(RuntimeTest, FreedMemoryServesTheSameStreamAgain) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream& stream = device.default_stream();
  Stream other = device.create_stream();
  void* first = device.allocate(1000, stream);
  device.free(first, 1000, stream);
  void* elsewhere = device.allocate(1000, other);
  EXPECT_NE(elsewhere, first) << "another stream may run before the first has done its work";
  EXPECT_EQ(device.allocate(1001, stream), first) << "of the same size class";
  const gpu::AllocatorStats stats = device.allocator_stats();
  EXPECT_EQ(stats.requests, 3u);
  EXPECT_EQ(stats.driver_calls, 2u);
  EXPECT_EQ(stats.in_use, 2048);
  device.free(elsewhere, 1000, other);
  device.free(first, 1000, stream);
  EXPECT_EQ(device.allocator_stats().in_use, 0);
  EXPECT_EQ(device.allocator_stats().cached, 2048);
  EXPECT_EQ(device.allocator_stats().peak_in_use, 2048);
  device.reset_allocator_peak();
  device.free(device.allocate(1000, stream), 1000, stream);
  EXPECT_EQ(device.allocator_stats().peak_in_use, 1024) << "the most since the reset";
  device.destroy_stream(other);
}

// The default stream may reuse its memory only after the other stream has finished.
TEST_P(RuntimeTest, ATensorOfAnotherStreamGoesBackToIt) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  for (const int64_t elements : {1000, 5 << 20}) {
    Stream other = device.create_stream();
    const auto write = [&] {
      const Tensor x = zeros({elements}, DType::f32, device);  // writing it is its last use
      return x.view().data;
    };
    Tensor kept;
    {
      const StreamScope scope(other);
      kept = zeros({elements}, DType::f32, device);
    }
    const void* data = kept.view().data;
    kept = {};
    EXPECT_NE(write(), data);
    {
      const StreamScope scope(other);
      EXPECT_EQ(write(), data) << "its own work is in order";
    }
    EXPECT_EQ(library.violation(), "");
    const Tensor first = zeros({elements}, DType::f32, device);
    device.destroy_stream(other);
    EXPECT_EQ(write(), data);
  }
}

TEST_P(RuntimeTest, TenThousandAllocationsLeakNothing) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream& stream = device.default_stream();
  for (int i = 0; i < 10000; ++i) {
    const size_t bytes = 40000 + static_cast<size_t>(i % 7) * 100;
    device.free(device.allocate(bytes, stream), bytes, stream);
  }
  EXPECT_LT(library.live_bytes(), kMiB);
}

TEST_P(RuntimeTest, OutOfMemoryGivesTheNumbersAndTheCacheFirst) {
  // Besides the counters of the default stream.
  constexpr int64_t kCounters = gpu::kArrivalCounters * int64_t{sizeof(uint32_t)};
  const FakeLibrary library(GetParam(), {.memory = 100 * kMiB + kCounters});
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream& stream = device.default_stream();
  void* held = device.allocate(20 * kMiB, stream);
  void* cached = device.allocate(60 * kMiB, stream);
  device.free(cached, 60 * kMiB, stream);
  void* large = device.allocate(70 * kMiB, stream);
  EXPECT_EQ(device.allocator_stats().times_trimmed, 1u);
  const auto [code, message] = error_of([&] { device.allocate(50 * kMiB, stream); });
  EXPECT_EQ(code, Code::out_of_memory);
  EXPECT_THAT(message, HasSubstr("50 MiB (52428800 bytes) on " + kind() + ":0"));
  EXPECT_THAT(message, HasSubstr("10 MiB of 100 MiB are free, 90 MiB are in use"));
  // The device still works.
  void* small = device.allocate(kMiB, stream);
  device.free(small, kMiB, stream);
  device.free(held, 20 * kMiB, stream);
  device.free(large, 70 * kMiB, stream);
}

TEST_P(RuntimeTest, CapturedWorkHasMemoryOfItsOwn) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream& stream = device.default_stream();
  void* before = device.allocate(4096, stream);
  device.free(before, 4096, stream);
  device.begin_capture(stream);
  void* inside = device.allocate(4096, stream);
  EXPECT_EQ(inside, before) << "what is kept for the stream serves the capture";
  device.free(inside, 4096, stream);
  EXPECT_EQ(device.allocate(4096, stream), inside) << "reused within the capture";
  device.free(inside, 4096, stream);
  void* graph = device.end_capture(stream);
  void* outside = device.allocate(4096, stream);
  EXPECT_NE(outside, inside) << "a replay may write to the capture's memory at any time";
  device.launch_capture(graph, stream);
  const int64_t with_graph = library.live_bytes();
  device.destroy_capture(graph);
  EXPECT_EQ(library.live_bytes(), with_graph);
  void* after = device.allocate(4096, stream);
  EXPECT_EQ(after, inside) << "kept for the stream again";
  device.free(after, 4096, stream);
  device.free(outside, 4096, stream);
}

TEST_P(RuntimeTest, StreamsHaveArrivalCountersOfTheirOwn) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  const int64_t before = library.live_bytes();
  Stream other = device.create_stream();
  uint32_t* counters = device.streams().of(other.handle).arrivals;
  EXPECT_NE(counters, device.streams().of(device.default_stream().handle).arrivals);
  std::vector<uint32_t> values(gpu::kArrivalCounters, 7);
  device.copy(values.data(), counters, values.size() * sizeof(uint32_t), CopyKind::device_to_host,
              other);
  device.synchronize(other);
  EXPECT_THAT(values, ::testing::Each(0u));
  void* handle = other.handle;
  device.destroy_stream(other);
  EXPECT_EQ(library.live_bytes(), before);
  EXPECT_EQ(error_of([&] { device.streams().of(handle); }).first, Code::internal);
}

// Code for earlier cards has no instruction to wait with, on any card.
TEST(LaunchTest, KernelsOverlapThatWaitThemselves) {
  if (!is_built(Vendor::cuda)) GTEST_SKIP() << "no CUDA in this build";
  for (const int ptx : {80, 89, 90, 120}) {
    const FakeLibrary library(Vendor::cuda, {.architecture = "sm_120", .lanes = 32});
    library.tell_ptx(ptx);
    const auto driver = library.open();
    GpuDevice device(with_driver(Vendor::cuda, *driver), 0);
    for (int i = 0; i < 2; ++i) {
      gpu::launch(device.default_stream(),
                  {.op = "test",
                   .family = "cast",
                   .kernel = gpu::KernelName("cast_f32_f16"),
                   .grid = {},
                   .reads_ahead = gpu::ReadsAhead::nothing},
                  shared::CopyParams{});
    }
    EXPECT_EQ(library.calls("launch that overlaps", ""), ptx >= 90 ? 2 : 0) << ptx;
    EXPECT_EQ(library.violation(), "");
  }
}

// Only NVIDIA's kernels overlap, from compute capability 9 on.
TEST(LaunchTest, ConstantsAreReadAheadWhenNothingMayBeWritingThem) {
  if (!is_built(Vendor::cuda)) GTEST_SKIP() << "no CUDA in this build";
  const FakeLibrary library(Vendor::cuda);
  const auto driver = library.open();
  GpuDevice device(with_driver(Vendor::cuda, *driver), 0);
  Stream other = device.create_stream();
  const auto overlaps = [&](Stream& stream, gpu::ReadsAhead reads, gpu::Writes writes) {
    const int64_t before = library.calls("launch that overlaps", "");
    gpu::launch(stream,
                {.op = "test",
                 .family = "cast",
                 .kernel = gpu::KernelName("cast_f32_f16"),
                 .grid = {},
                 .reads_ahead = reads,
                 .writes = writes},
                shared::CopyParams{});
    return library.calls("launch that overlaps", "") > before;
  };
  using enum gpu::ReadsAhead;
  constexpr auto kResults = gpu::Writes::results, kFloats = gpu::Writes::floats,
                 kAnything = gpu::Writes::anything, kPacked = gpu::Writes::packed_weights;
  Stream& stream = device.default_stream();
  EXPECT_TRUE(overlaps(stream, constants, kResults)) << "nothing was queued";
  EXPECT_TRUE(overlaps(stream, nothing, kAnything));
  EXPECT_TRUE(overlaps(stream, nothing, kResults)) << "it waits itself";
  EXPECT_TRUE(overlaps(stream, packed_weights, kResults)) << "these are not under way";
  EXPECT_TRUE(overlaps(other, constants, kResults)) << "another stream's";
  EXPECT_FALSE(overlaps(stream, constants, kResults))
      << "the kernel before the last may write constants";
  EXPECT_TRUE(overlaps(stream, constants, kAnything));
  EXPECT_FALSE(overlaps(stream, tables, kResults)) << "the last may write tables";
  EXPECT_TRUE(overlaps(stream, nothing, kFloats));
  EXPECT_TRUE(overlaps(stream, tables, kResults)) << "tables are integers";
  EXPECT_FALSE(overlaps(stream, constants, kResults)) << "the last but one may write weights";
  EXPECT_TRUE(overlaps(stream, nothing, kPacked));
  EXPECT_TRUE(overlaps(stream, tables, kResults));
  EXPECT_FALSE(overlaps(stream, packed_weights, kResults));
  EXPECT_TRUE(overlaps(stream, packed_weights, kPacked));
  EXPECT_FALSE(overlaps(stream, constants, kResults)) << "packed weights are constants";
  EXPECT_FALSE(overlaps(stream, anything, kResults));
  device.destroy_stream(other);
}

TEST_P(RuntimeTest, EventsOrderStreams) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream first = device.create_stream();
  Stream second = device.create_stream();
  uint32_t value = 7;
  void* data = device.allocate(4, first);
  device.copy(data, &value, 4, CopyKind::host_to_device, first);
  void* event = device.create_event();
  device.record_event(event, first);
  device.wait_event(event, second);
  uint32_t back = 0;
  device.copy(&back, data, 4, CopyKind::device_to_host, second);
  EXPECT_EQ(back, 7u);
  EXPECT_EQ(library.violation(), "");
  device.destroy_event(event);
  device.free(data, 4, first);
  device.destroy_stream(first);
  device.destroy_stream(second);
}

// After waiting for a mark, the host may read what kernels before the mark have written, while
// later work is still queued.
TEST_P(RuntimeTest, MarksAreWaitedForAlone) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  const auto waits = [&] { return library.calls("cuStreamWaitEvent", "hipStreamWaitEvent"); };
  DeviceMark mark(device);
  const Tensor x = empty({4}, DType::f32, device);
  device.fill_bytes(x.view().data, 1, 16, device.default_stream());
  mark.set();
  device.fill_bytes(x.view().data, 2, 16, device.default_stream());
  EXPECT_EQ(waits(), 0);
  mark.wait();
  EXPECT_EQ(waits(), 1);
  mark.set();
  mark.wait();
  EXPECT_EQ(waits(), 2);
  EXPECT_EQ(library.violation(), "");
}

TEST_P(RuntimeTest, SeveralDevicesFromSeveralThreads) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  const auto driver = library.open();
  GpuDevice zero(vendor(*driver), 0);
  GpuDevice one(vendor(*driver), 1);
  EXPECT_EQ(cat(one.id()), kind() + ":1");
  std::vector<std::thread> threads;
  for (GpuDevice* device : {&zero, &one}) {
    threads.emplace_back([device] {
      for (int i = 0; i < 200; ++i) {
        Stream& stream = device->default_stream();
        void* data = device->allocate(1024, stream);
        device->fill_bytes(data, 1, 1024, stream);
        device->synchronize(stream);
        device->free(data, 1024, stream);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Whatever the thread did before: an engine may end in another thread than it began in.
TEST_P(RuntimeTest, AnyThreadGivesBackWhatAnotherOneMade) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  const auto driver = library.open();
  auto device = std::make_unique<GpuDevice>(vendor(*driver), 1);
  const auto elsewhere = [](const auto& action) { std::thread(action).join(); };
  Stream& stream = device->default_stream();
  void* host = device->allocate_host(64);
  void* event = device->create_event();
  Stream other = device->create_stream();
  device->begin_capture(stream);
  void* graph = device->end_capture(stream);
  void* data = device->allocate(64, stream);
  elsewhere([&] { device->destroy_capture(graph); });
  elsewhere([&] { device->destroy_event(event); });
  elsewhere([&] { device->free_host(host, 64); });
  elsewhere([&] { device->destroy_stream(other); });
  elsewhere([&] { device->free(data, 64, stream); });
  elsewhere([&] { device.reset(); });
}

TEST_P(RuntimeTest, ThreadsShareADevicesMemory) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&device, thread] {
      Stream own = device.create_stream();
      std::vector<std::pair<void*, size_t>> held;
      for (size_t i = 0; i < 400; ++i) {
        const size_t bytes = (i * 7919 + thread * 104729) % (3 * kMiB) + 1;  // of both kinds
        void* data = device.allocate(bytes, own);
        device.fill_bytes(data, static_cast<uint8_t>(thread), bytes, own);
        held.emplace_back(data, bytes);
        if (held.size() < 8) continue;
        device.free(held[i % 8].first, held[i % 8].second, own);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i % 8));
      }
      for (const auto& [data, bytes] : held) device.free(data, bytes, own);
      device.destroy_stream(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.allocator_stats().in_use, 0);
  EXPECT_EQ(device.allocator_stats().requests, 4u * 400);
}

TEST_P(RuntimeTest, CopiesBetweenDevices) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  const auto driver = library.open();
  GpuDevice zero(vendor(*driver), 0);
  GpuDevice one(vendor(*driver), 1);
  std::vector<uint8_t> bytes(64);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  void* source = zero.allocate(64, zero.default_stream());
  void* target = one.allocate(64, one.default_stream());
  zero.copy(source, bytes.data(), 64, CopyKind::host_to_device, zero.default_stream());
  zero.synchronize(zero.default_stream());
  one.use();
  driver->copy_peer(target, 1, source, 0, 64, one.default_stream().handle);
  std::vector<uint8_t> back(64);
  one.copy(back.data(), target, 64, CopyKind::device_to_host, one.default_stream());
  EXPECT_EQ(back, bytes);
  one.synchronize(one.default_stream());
  zero.free(source, 64, zero.default_stream());
  one.free(target, 64, one.default_stream());
}

// Not through pageable memory; after writes already queued on the source's stream, and before later
// ones.
TEST_P(RuntimeTest, TensorsGoFromDeviceToDevice) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  const auto driver = library.open();
  GpuDevice zero(vendor(*driver), 0);
  GpuDevice one(vendor(*driver), 1);
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.5F;
  const Tensor x = from_host<float>(values, {10, 100}, zero);
  void* again = one.allocate(4000, one.default_stream());
  one.fill_bytes(again, 1, 4000, one.default_stream());
  one.free(again, 4000, one.default_stream());  // the result takes its place
  zero.copy(x.view().data, values.data(), 4000, CopyKind::host_to_device, zero.default_stream());
  const Tensor y = x.to(one);
  zero.fill_bytes(x.view().data, 0, 4000, zero.default_stream());
  EXPECT_EQ(y.to_host<float>(), values);
  EXPECT_EQ(cat(y.device().id()), kind() + ":1");
  EXPECT_EQ(y.view().data, again);
  EXPECT_EQ(library.calls("cuMemcpyPeerAsync", "hipMemcpyPeerAsync"), 1);
  EXPECT_EQ(library.violation(), "");
}

// Through host memory, after writes already queued on the source's stream.
TEST(BackendTest, TensorsGoFromVendorToVendor) {
  if (!is_built(Vendor::cuda) || !is_built(Vendor::rocm)) GTEST_SKIP() << "one of them is built";
  const FakeLibrary nvidia(Vendor::cuda), amd(Vendor::rocm);
  const auto cuda_driver = nvidia.open(), rocm_driver = amd.open();
  GpuDevice cuda(with_driver(Vendor::cuda, *cuda_driver), 0);
  GpuDevice rocm(with_driver(Vendor::rocm, *rocm_driver), 0);
  const std::vector<float> values{1, 2, 3, 4};
  const Tensor there = from_host<float>(values, {2, 2}, cuda).to(rocm);
  EXPECT_EQ(cat(there.device().id()), "rocm:0");
  EXPECT_EQ(there.to_host<float>(), values);
  EXPECT_EQ(there.to(cuda).to_host<float>(), values);
}

TEST(BackendTest, SaysWhichOrdinalsThereAre) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  const FakeLibrary library(Vendor::rocm, {.devices = 2});
  const auto driver = library.open();
  const gpu::Vendor rocm = with_driver(Vendor::rocm, *driver);
  gpu::Backend backend([] { return open_driver(Vendor::rocm, std::getenv("RBEE_HIP_LIBRARY")); },
                       rocm.images, rocm.kernels);
  EXPECT_EQ(backend.device_count(), 2);
  EXPECT_EQ(backend.unavailable_reason(), "");
  EXPECT_EQ(cat(backend.device(1).id()), "rocm:1");
  library.fail("", "hipDeviceGetName", 1, fake::kLaunchFailed);
  EXPECT_THAT(error_of([&] { backend.device(0); }).second,
              StartsWith("device: rocm:0: hipDeviceGetName: "));
  const auto [code, message] = error_of([&] { backend.device(2); });
  EXPECT_EQ(code, Code::not_found);
  EXPECT_THAT(message, HasSubstr("rocm:2 is not there, only rocm:0 to rocm:1"));
  setenv("HIP_VISIBLE_DEVICES", "0,1", 1);
  const std::string hidden = error_of([&] { backend.device(2); }).second;
  unsetenv("HIP_VISIBLE_DEVICES");
  EXPECT_THAT(hidden, HasSubstr("only rocm:0 to rocm:1 (HIP_VISIBLE_DEVICES=\"0,1\" may hide it)"));
}

// Choosing a device allocates nothing on the devices that are not chosen.
TEST_P(RuntimeTest, OffersADeviceAndGivesItBack) {
  static Vendor vendor;
  vendor = GetParam();
  const FakeLibrary library(vendor, {.memory = 3 * kMiB});
  const auto driver = library.open();
  const gpu::Vendor parts = with_driver(vendor, *driver);
  gpu::Backend backend(
      [] {
        return open_driver(
            vendor, std::getenv(vendor == Vendor::cuda ? "RBEE_CUDA_LIBRARY" : "RBEE_HIP_LIBRARY"));
      },
      parts.images, parts.kernels);
  const DeviceOffer offer = backend.offer(0);
  EXPECT_EQ(offer.name, driver->properties(0).name);
  EXPECT_EQ(offer.memory.total, 3 * kMiB);
  EXPECT_EQ(offer.memory.free, 3 * kMiB);
  EXPECT_FALSE(offer.integrated);
  EXPECT_EQ(offer.architecture, driver->properties(0).architecture);
  EXPECT_EQ(backend.driver_version(), driver->version());
  EXPECT_EQ(library.live_objects(), "");
  if (cuda()) EXPECT_EQ(library.calls("cuDevicePrimaryCtxRelease_v2", ""), 1);

  library.fail("cuModuleLoadData", "hipModuleLoadData", 1, fake::kInvalidImage);
  const auto [code, message] = error_of([&] { backend.offer(0); });
  EXPECT_EQ(code, Code::unsupported);
  EXPECT_THAT(message, StartsWith("device: " + kind() + ":0: "));
  EXPECT_EQ(error_of([&] { backend.offer(1); }).first, Code::not_found);

  gpu::GpuDevice& device = backend.device(0);  // works as at its first use
  void* data = device.allocate(kMiB, device.default_stream());
  EXPECT_EQ(backend.offer(0).memory.free, device.memory().free) << "an open one is not given back";
  device.free(data, kMiB, device.default_stream());
  device.synchronize(device.default_stream());
}

TEST(BackendTest, ArchitectureWithoutCodeListsWhatIsEmbedded) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  const FakeLibrary library(Vendor::rocm, {.architecture = "gfx803", .lanes = 64});
  const auto driver = library.open();
  gpu::KernelCache cache(*driver, "rocm:0", driver->properties(0).architecture,
                         images_of(Vendor::rocm));
  EXPECT_FALSE(cache.has_family("rms_norm"));
  const auto [code, message] = error_of([&] { cache.find("rms_norm", "rms_norm_f32_w64", 0); });
  EXPECT_EQ(code, Code::unsupported);
  EXPECT_THAT(message, HasSubstr("no kernels for gfx803 (rocm:0); it has them for "));
  EXPECT_THAT(message, HasSubstr("gfx942"));
}

}  // namespace
}  // namespace rbee::harness
