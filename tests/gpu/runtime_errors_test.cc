// Errors of the GPU runtime name the operation, the device, the driver's call and its status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using gpu::GpuDevice;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RuntimeErrorsTest : public RuntimeTest {};

INSTANTIATE_TEST_SUITE_P(Vendors, RuntimeErrorsTest, each_vendor(), name_of_vendor);

TEST_P(RuntimeErrorsTest, FailedCallNamesItself) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream& stream = device.default_stream();
  library.fail("cuStreamSynchronize", "hipStreamSynchronize", 1, fake::kLaunchFailed,
               fake::Then::lost);
  const auto [code, message] = error_of([&] { device.synchronize(stream); });
  EXPECT_EQ(code, Code::device);
  EXPECT_THAT(message, StartsWith("synchronize: on " + kind() + ":0: " +
                                  (cuda() ? "cuStreamSynchronize: " : "hipStreamSynchronize: ")));
  // A lost device stays lost.
  EXPECT_EQ(error_of([&] { device.synchronize(stream); }).first, Code::device);
  library.fail("", "", 1, 0);
}

// A kernel's fault is reported by a later call.
TEST_P(RuntimeErrorsTest, FailedCallNamesTheDeviceAndTheOpBeforeIt) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 1);
  Stream& stream = device.default_stream();
  char host[64] = {};
  void* data = device.allocate(64, stream);
  void* event = device.create_event();
  device.begin_capture(stream);
  void* graph = device.end_capture(stream);
  std::string after;
  const auto expect = [&](const char* op, const char* cuda_call, const char* rocm_call,
                          const std::function<void()>& action) {
    library.fail(cuda_call, rocm_call, 1, fake::kLaunchFailed);
    const auto [code, message] = error_of(action);
    EXPECT_EQ(code, Code::device) << op;
    EXPECT_THAT(message, StartsWith(cat(op, ": on ", kind(), ":1", after, ": ")));
    EXPECT_THAT(message, HasSubstr(cuda() ? ": cu" : ": hip"));
    EXPECT_THAT(message, HasSubstr(" (719, unknown error)"));
  };
  const auto expect_all = [&] {
    expect("copy", "cuMemcpyHtoDAsync_v2", "hipMemcpyAsync",
           [&] { device.copy(data, host, 64, CopyKind::host_to_device, stream); });
    expect("fill", "cuMemsetD8Async", "hipMemsetAsync",
           [&] { device.fill_bytes(data, 0, 64, stream); });
    expect("synchronize", "cuStreamSynchronize", "hipStreamSynchronize",
           [&] { device.synchronize(stream); });
    expect("record_event", "cuEventRecord", "hipEventRecord",
           [&] { device.record_event(event, stream); });
    expect("wait_event", "cuStreamWaitEvent", "hipStreamWaitEvent",
           [&] { device.wait_event(event, stream); });
    expect("begin_capture", "cuStreamBeginCapture_v2", "hipStreamBeginCapture",
           [&] { device.begin_capture(stream); });
    expect("launch_capture", "cuGraphLaunch", "hipGraphLaunch",
           [&] { device.launch_capture(graph, stream); });
  };
  expect_all();
  const View view{
      .data = data, .dtype = DType::f32, .rank = 2, .sizes = {1, 16}, .strides = {16, 1}};
  device.kernels().copy.back().run({view, view}, stream);
  after = ", after copy";
  expect_all();
  device.launch_capture(graph, stream);
  after = ", after launch_capture";
  expect_all();
  device.destroy_capture(graph);
  device.destroy_event(event);
  device.free(data, 64, stream);
}

TEST_P(RuntimeErrorsTest, FailedCallWithoutAStreamNamesTheDevice) {
  const FakeLibrary library(GetParam(), {.devices = 2});
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 1);
  const auto expect = [&](const std::string& begin, const char* cuda_call, const char* rocm_call,
                          const std::function<void()>& action) {
    library.fail(cuda_call, rocm_call, 1, fake::kLaunchFailed);
    const auto [code, message] = error_of(action);
    EXPECT_EQ(code, Code::device);
    EXPECT_THAT(message, StartsWith(cat(begin, kind(), ":1: ")));
    EXPECT_THAT(message, HasSubstr(" (719, unknown error)"));
  };
  expect("create_event: on ", "cuEventCreate", "hipEventCreateWithFlags",
         [&] { device.create_event(); });
  expect("create_stream: on ", "cuStreamCreate", "hipStreamCreateWithFlags",
         [&] { device.create_stream(); });
  expect("allocate_host: 64 bytes on ", "cuMemHostAlloc", "hipHostMalloc",
         [&] { device.allocate_host(64); });
  expect("allocate: 512 bytes on ", "cuMemAlloc_v2", "hipMalloc",
         [&] { device.allocate(512, device.default_stream()); });
}

TEST_P(RuntimeErrorsTest, StreamsOfALostDeviceCanBeDestroyed) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream stream = device.create_stream();
  library.fail("cuCtxSetCurrent", "hipSetDevice", 1, fake::kLaunchFailed, fake::Then::lost);
  std::thread([&] { device.destroy_stream(stream); }).join();  // where no device is current yet
  EXPECT_EQ(stream.handle, nullptr);
}

TEST_P(RuntimeErrorsTest, FailedLaunchNamesOpKernelAndDevice) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  Stream& stream = device.default_stream();
  void* x = device.allocate(64, stream);
  const View view{.data = x, .dtype = DType::f32, .rank = 2, .sizes = {1, 16}, .strides = {16, 1}};
  const View weight{.data = x, .dtype = DType::f32, .rank = 1, .sizes = {16}, .strides = {1}};
  library.fail("cuLaunchKernelEx", "hipModuleLaunchKernel", 1, fake::kLaunchFailed);
  const RmsNormArgs args{view, weight, view, 1e-5f};
  const auto [code, message] =
      error_of([&] { device.kernels().rms_norm.front().run(args, stream); });
  EXPECT_EQ(code, Code::device);
  EXPECT_THAT(message, HasSubstr(cat("rms_norm: rms_norm_f32_packed1_w", cuda() ? 32 : 64, " on ",
                                     kind(), ":0: ")));
  device.kernels().rms_norm.front().run(args, stream);
  EXPECT_EQ(library.launches(), 1);
  device.free(x, 64, stream);
}

TEST_P(RuntimeErrorsTest, ModuleThatDoesNotLoadIsAnErrorOfTheOp) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  gpu::KernelCache cache(*driver, kind() + ":0", driver->properties(0).architecture,
                         vendor(*driver).images);
  const std::string kernel = cat("rms_norm_f32_packed1_w", cuda() ? 32 : 64);
  for (const auto& [status, expected] : {std::pair{fake::kInvalidImage, Code::unsupported},
                                         std::pair{fake::kOutOfMemory, Code::out_of_memory},
                                         std::pair{fake::kLaunchFailed, Code::device}}) {
    library.fail("cuModuleLoadData", "hipModuleLoadData", 1, status);
    const auto [code, message] = error_of([&] { cache.find("rms_norm", kernel, 0); });
    EXPECT_EQ(code, expected);
    EXPECT_THAT(message, HasSubstr(cat("rms_norm: the kernels cannot be loaded on ", kind(), ":0 (",
                                       cuda() ? "sm_90" : "gfx942", "): ")));
    EXPECT_THAT(message, HasSubstr(cat(" (", int{status}, ", ")));
  }
  EXPECT_NE(cache.find("rms_norm", kernel, 0).handle, nullptr) << "it is asked for again";
}

}  // namespace
}  // namespace rbee::harness
