// The Metal driver and the GPU runtime over it, on a fake Metal that runs kernels.
#include "backends/metal/metal_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <string_view>
#include <thread>

#include "backends/gpu/slot.h"
#include "tests/gpu/metal_fixture.h"

// GNU's Objective-C runtime keeps the selectors that it was asked for.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libobjc";
}

namespace rbee::harness {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMiB = int64_t{1} << 20;

std::vector<uint32_t> words_back(const MetalDevice& device, const void* data, size_t count) {
  std::vector<uint32_t> out(count);
  device->copy(out.data(), data, count * 4, CopyKind::device_to_host, device.stream());
  device->synchronize(device.stream());
  return out;
}

TEST(MetalDriverTest, DescribesTheDevice) {
  const FakeMetal fake;
  const MetalDevice device;
  EXPECT_EQ(device.driver().version(), "Metal 3, macOS Version 13.0 (Build 22A380)");
  EXPECT_EQ(cat(device->id()), "metal:0");
  const gpu::Properties& known = device->properties();
  EXPECT_EQ(device->description(),
            "Fake Apple GPU with 10 cores, apple8, 1024 MiB, experimental: made and tested without "
            "an Apple machine");
  EXPECT_EQ(known.multiprocessors, 10);
  EXPECT_EQ(known.architecture, "apple8");
  EXPECT_EQ(known.lane_count, 32);
  EXPECT_EQ(known.shared_per_block, 32768);
  EXPECT_EQ(known.total_memory, 1024 * kMiB);
  EXPECT_TRUE(known.integrated);
  EXPECT_FALSE(known.device_fences);
}

TEST(MetalDriverTest, WhereTheRegistryDoesNotCountTheCoresAUsualNumberIsTaken) {
  const FakeMetal fake;
  for (const char* call : {"IOServiceGetMatchingService", "IORegistryEntryCreateCFProperty"}) {
    fake.fail(call, 1, fake::kNotFound);
    const MetalDevice device;
    EXPECT_EQ(device->properties().multiprocessors, 8) << call;
    EXPECT_THAT(device->description(), StartsWith("Fake Apple GPU, apple8, ")) << call;
  }
}

TEST(MetalDriverTest, WhatIsMissingIsOneLine) {
  setenv("RBEE_METAL_LIBRARY", "/nowhere/Metal", 1);
  const auto open = [] { metal::MetalDriver(); };
  EXPECT_THAT(error_in(open).second,
              StartsWith("metal: Apple's Metal is not installed (/nowhere/Metal"));
  setenv("RBEE_METAL_LIBRARY", "libm.so.6", 1);
  EXPECT_THAT(error_in(open).second, HasSubstr("(it lacks objc_msgSend, objc_getClass, "));
  {
    const FakeMetal none(0);
    EXPECT_THAT(error_in(open).second, HasSubstr("M1 or later (it finds none at all)"));
  }
  {
    const FakeMetal intel(2, "intel");
    const auto [code, message] = error_in(open);
    EXPECT_EQ(code, Code::device);
    EXPECT_EQ(message,
              "metal: Metal finds no GPU of Apple's, M1 or later (Fake Intel GPU, Fake Intel GPU)");
  }
  const FakeMetal old(1, "old");
  EXPECT_THAT(error_in(open).second, StartsWith("metal: macOS 13 is needed; this is Metal 3, "));
}

TEST(MetalDriverTest, CopiesAndFillsOfAnyPlace) {
  const FakeMetal fake;
  const MetalDevice device;
  Stream& stream = device.stream();
  auto* pinned = static_cast<uint8_t*>(device->allocate_host(256));
  auto* first = static_cast<uint8_t*>(device->allocate(256, stream));
  auto* second = static_cast<uint8_t*>(device->allocate(256, stream));
  std::vector<uint8_t> bytes(256), back(256);
  for (const size_t at : {0, 1}) {  // whole words are the device's work, others the host's
    for (uint8_t* from : {bytes.data(), pinned}) {
      std::iota(from, from + 256, static_cast<uint8_t>(at + (from == pinned ? 7 : 0)));
      device->copy(first, from, 256, CopyKind::host_to_device, stream);
      device->copy(second + at, first + at, 256 - at, CopyKind::device_to_device, stream);
      device->fill_bytes(second + at, 0x41, 8, stream);
      uint8_t* to = from == pinned ? pinned : back.data();
      device->copy(to + at, second + at, 256 - at, CopyKind::device_to_host, stream);
      device->synchronize(stream);
      EXPECT_EQ(to[at + 7], 0x41);
      EXPECT_EQ(to[at + 8], static_cast<uint8_t>(at + 8 + at + (from == pinned ? 7 : 0)));
      EXPECT_EQ(to[255], static_cast<uint8_t>(at + 255 + (from == pinned ? 7 : 0)));
    }
  }
  device->free_host(pinned, 256);
  device->free(first, 256, stream);
  device->free(second, 256, stream);
}

TEST(MetalDriverTest, KernelsComputeInAnyOrderOfLanes) {
  for (const char* seed : {"0", "1", "2"}) {
    setenv("RBEE_FAKE_METAL_SEED", seed, 1);
    const FakeMetal fake;
    const MetalDevice device;
    const gpu::Scratch x(device.stream(), 4096), y(device.stream(), 4096);
    std::vector<uint32_t> values(1024), wanted(1024);
    for (uint32_t i = 0; i < 1024; ++i) values[i] = i * 2654435769U;
    for (uint32_t i = 0; i < 1024; ++i) {
      wanted[i] = values[i / 256 * 256 + 255 - i % 256] + values[i ^ 1];
    }
    device->copy(x.as<void>(), values.data(), 4096, CopyKind::host_to_device, device.stream());
    device.launch("mirror", {.x = x.as<void>(), .y = y.as<void>()}, 256, 4);
    EXPECT_EQ(words_back(device, y.as<void>(), 1024), wanted) << "seed " << seed;
    device.launch("dynamic", {.y = y.as<void>()}, 64, 1, 256);
    EXPECT_EQ(words_back(device, y.as<void>(), 64)[3], 60U);
  }
  unsetenv("RBEE_FAKE_METAL_SEED");
}

TEST(MetalDriverTest, AThousandLaunchesLeaveNothingBehind) {
  const FakeMetal fake;
  {
    const MetalDevice device;
    const gpu::Scratch y(device.stream(), 4);
    device->fill_bytes(y.as<void>(), 0, 4, device.stream());
    for (int i = 0; i < 1000; ++i) device.launch("increment", {.y = y.as<void>()});
    EXPECT_EQ(words_back(device, y.as<void>(), 1), std::vector<uint32_t>{64000});
    EXPECT_EQ(fake.launches(), 1000);
    EXPECT_LE(fake.calls("commit"), 1000 / 64 + 4) << "launches share command buffers";
    EXPECT_EQ(fake.calls("newLibraryWithSource:options:error:"), 1) << "kept from its first use";
    EXPECT_EQ(fake.live_objects(),
              "2 FakeBuffer, 1 FakeDevice, 1 FakeLibrary, 1 FakePipeline, 1 FakeQueue");
  }
}

TEST(MetalDriverTest, OutOfMemoryNamesTheNumbersAndTheDeviceGoesOn) {
  const FakeMetal fake(1, "apple", 100 * kMiB);
  const MetalDevice device;
  Stream& stream = device.stream();
  void* held = device->allocate(60 * kMiB, stream);
  const auto [code, message] = error_in([&] { device->allocate(50 * kMiB, stream); });
  EXPECT_EQ(code, Code::out_of_memory);
  EXPECT_THAT(message, HasSubstr("50 MiB (52428800 bytes) on metal:0: 39 MiB of 100 MiB are free"));
  EXPECT_EQ(error_in([&] { device->allocate(80 * kMiB, stream); }).first, Code::out_of_memory)
      << "above what one buffer may have";
  for (const int nth : {1, 2}) {
    fake.fail("newBufferWithLength:options:", 1, 1, fake::Then::again);
    EXPECT_EQ(
        error_in([&] { device->allocate(static_cast<size_t>(nth) * 2 * kMiB, stream); }).first,
        Code::out_of_memory);
    fake.fail("newBufferWithLength:options:", 1, 0);
    EXPECT_EQ(error_in([&] { device->free(device->allocate(kMiB, stream), kMiB, stream); }).second,
              "none");
  }
  device->free(held, 60 * kMiB, stream);
}

TEST(MetalDriverTest, AFailingCommandBufferNamesOpAndDevice) {
  const FakeMetal fake;
  const MetalDevice device;
  const gpu::Scratch y(device.stream(), 256);
  device.launch("increment", {.y = y.as<void>()});
  fake.fail("commit", 1, 4);
  const auto [code, message] = error_in([&] { device->synchronize(device.stream()); });
  EXPECT_EQ(code, Code::device);
  EXPECT_EQ(message,
            "synchronize: on metal:0, after test: command buffer: the device was reset (4)");
  EXPECT_EQ(error_in([&] { device->synchronize(device.stream()); }).second, "none");
  device->fill_bytes(y.as<void>(), 0, 256, device.stream());
  device.launch("increment", {.y = y.as<void>()});
  EXPECT_EQ(words_back(device, y.as<void>(), 1), std::vector<uint32_t>{64});
}

TEST(MetalDriverTest, ALostDeviceIsToldByEveryCallAndGivesBackWhatItCan) {
  const FakeMetal fake;
  {
    const MetalDevice device;
    const gpu::Scratch y(device.stream(), 256);
    void* event = device->create_event();
    fake.fail("commit", 1, 11, fake::Then::lost);
    device.launch("increment", {.y = y.as<void>()});
    EXPECT_EQ(error_in([&] { device->synchronize(device.stream()); }).first, Code::device);
    EXPECT_THAT(error_in([&] { device.launch("increment", {.y = y.as<void>()}); }).second,
                StartsWith("test: increment on metal:0: commandBuffer: "));
    EXPECT_EQ(error_in([&] { device->record_event(event, device.stream()); }).first, Code::device);
    EXPECT_EQ(error_in([&] { device->create_stream(); }).first, Code::device);
    EXPECT_EQ(error_in([&] { device->allocate(64 * kMiB, device.stream()); }).first,
              Code::out_of_memory);
    device->destroy_event(event);
  }
}

TEST(MetalDriverTest, ARefusalNamesTheKernel) {
  const FakeMetal fake;
  const MetalDevice device;
  const auto refused = [&](const char* kernel, uint32_t threads, uint32_t shared) {
    const auto [code, message] =
        error_in([&] { device.launch(kernel, {.y = nullptr}, threads, 1, shared); });
    EXPECT_EQ(code, Code::unsupported) << message;
    return message;
  };
  EXPECT_THAT(refused("increment", 128, 0),
              AllOf(HasSubstr("increment on metal:0: "),
                    HasSubstr("128 threads in a threadgroup, and the pipeline takes 64")));
  EXPECT_THAT(refused("large", 32, 16),
              HasSubstr("32768 + 16 bytes of threadgroup memory, and there are 32768"));
  EXPECT_THAT(refused("wrong", 32, 0),
              AllOf(HasSubstr("newLibraryWithSource:options:error:: wrong: "),
                    HasSubstr("no_such_function")));
  EXPECT_EQ(error_in([&] { device.launch("none", {}); }).first, Code::internal);
  const std::string library = "MTLB....";
  const auto bytes = std::as_bytes(std::span<const char>(library.data(), library.size()));
  EXPECT_THAT(error_in([&] { device.driver().load_module(bytes); }).second, HasSubstr("(MTLB)"));
}

TEST(MetalDriverTest, CompiledKernelsAreKeptInFiles) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "rbee-metal-XXXXXX").string();
  const fs::path root = mkdtemp(pattern.data()), folder = root / "cache";
  setenv("RBEE_METAL_CACHE", folder.c_str(), 1);
  constexpr const char* kCompiles = "addComputePipelineFunctionsWithDescriptor:error:";
  const auto files = [&] {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
    return out;
  };
  // A run that counts to 64; gives how often it compiled.
  const auto run = [&](const std::function<void(const FakeMetal&)>& before = {}) {
    const FakeMetal fake;
    if (before) before(fake);
    const MetalDevice device;
    auto* sum = static_cast<uint32_t*>(device->allocate(4, device.stream()));
    device->fill_bytes(sum, 0, 4, device.stream());
    device.launch("increment", {.y = sum});
    EXPECT_EQ(words_back(device, sum, 1)[0], 64);
    device->free(sum, 4, device.stream());
    return fake.calls(kCompiles);
  };
  EXPECT_EQ(run(), 1);
  ASSERT_EQ(files().size(), 1U);
  EXPECT_THAT(files()[0].filename(), EndsWith("-increment.metalarchive"));
  EXPECT_EQ(run(), 0) << "from the file";

  std::ofstream(files()[0]) << "something else";
  EXPECT_EQ(run(), 1) << "a damaged file is made anew";
  EXPECT_EQ(run(), 0);
  // What an archive does not take, or cannot be written, is compiled all the same.
  fs::remove_all(folder);
  EXPECT_EQ(run([&](const FakeMetal& fake) { fake.fail(kCompiles, 1, fake::kNotFound); }), 1);
  run([](const FakeMetal& fake) { fake.fail("serializeToURL:error:", 1, fake::kNotFound); });
  EXPECT_THAT(files(), ::testing::IsEmpty()) << "and no half of a file stays";
  fs::remove_all(folder);
  std::ofstream(folder) << "in the folder's place";
  EXPECT_EQ(run(), 1);
  setenv("RBEE_METAL_CACHE", "", 1);
  EXPECT_EQ(run(), 0) << "none are kept";
  fs::remove_all(root);
}

// A file of so many bytes that was used so long ago; it takes no room on the disk.
void make_file(const std::filesystem::path& path, int64_t bytes, std::chrono::hours ago) {
  std::ofstream(path).close();
  std::filesystem::resize_file(path, static_cast<uintmax_t>(bytes));
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - ago);
}

TEST(MetalDriverTest, KeptKernelsThatNobodyUsesGoWhereTheyWouldTakeTooMuch) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "rbee-metal-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  constexpr std::chrono::hours kHour{1};
  const auto there = [&] {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder)) {
      out.insert(entry.path().filename().string());
    }
    return out;
  };
  const std::string old = "0123456789abcdef-old.metalarchive",
                    used = "0123456789abcdef-used.metalarchive",
                    young = "fedcba9876543210-young.metalarchive";
  make_file(folder / old, 100, 3 * kHour);
  make_file(folder / used, 100, 2 * kHour);
  make_file(folder / young, 100, kHour);
  make_file(folder / (old + ".71"), 100, 2 * kHour);  // a process ended while it wrote
  make_file(folder / (young + ".72"), 100, 0 * kHour);
  const std::set<std::string> others = {"notes.metalarchive", "0123456789abcdef-x.metalarchive.old",
                                        "0123456789abcdeg-x.metalarchive"};
  for (const std::string& other : others) make_file(folder / other, 1000, 9 * kHour);
  fs::create_directory(folder / "0123456789abcdef-folder.metalarchive");

  metal::sweep_archives(folder, 200);
  std::set<std::string> wanted = others;
  wanted.insert({used, young, young + ".72", "0123456789abcdef-folder.metalarchive"});
  EXPECT_EQ(there(), wanted);
  metal::sweep_archives(folder, 200);
  EXPECT_EQ(there(), wanted);
  metal::sweep_archives(folder / "none", 0);

  // The driver does so when it writes one, and what it reads counts as used.
  setenv("RBEE_METAL_CACHE", folder.c_str(), 1);
  const auto run = [&](const char* kernel) {
    const FakeMetal fake;
    const MetalDevice device;
    const gpu::Scratch words(device.stream(), 1024);
    device.launch(kernel, {.y = words.as<void>()}, 64, 1, 256);
    device->synchronize(device.stream());
  };
  run("increment");
  EXPECT_EQ(there().size(), wanted.size() + 1);
  const auto made = [&](std::string_view kernel) {
    for (const std::string& name : there()) {
      if (name.find(cat("-", kernel, ".")) != name.npos) return name;
    }
    return std::string();
  };
  const std::string increment = made("increment");
  make_file(folder / used, metal::kMostArchiveBytes, 2 * kHour);
  fs::last_write_time(folder / increment, fs::file_time_type::clock::now() - 9 * kHour);
  run("increment");
  EXPECT_TRUE(there().contains(used)) << "nothing was written";
  run("dynamic");
  EXPECT_FALSE(there().contains(used));
  EXPECT_EQ(made("increment"), increment);
  EXPECT_NE(made("dynamic"), "");
  setenv("RBEE_METAL_CACHE", "", 1);
  fs::remove_all(folder);
}

// An operation whose implementations are kernels of the family "test".
struct TwoWays {
  uint32_t* sum = nullptr;
  bool second_refuses = false;
};
template <uint32_t kThreads, bool kAfterAnother>
void count_up(const TwoWays& args, Stream& stream) {
  const auto launch = [&](uint32_t threads) {
    gpu::launch(stream,
                {.op = "test",
                 .family = "test",
                 .kernel = gpu::KernelName("increment"),
                 .threads = threads},
                TestParams{.y = args.sum});
  };
  if (kAfterAnother) launch(64);
  launch(kThreads);
}
void ask_for_refused_text(const TwoWays& args, Stream& stream) {
  gpu::launch(stream,
              {.op = "test", .family = "test", .kernel = gpu::KernelName("wrong"), .threads = 32},
              TestParams{.y = args.sum});
}
const char* refuse_second(const TwoWays& args) {
  return args.second_refuses ? "told to" : nullptr;
}
// The kernel's pipeline takes 64 threads.
const Impl<TwoWays> kWide{"wide", never_refuse, count_up<128, false>};
const Impl<TwoWays> kHalfDone{"half done", never_refuse, count_up<128, true>};
const Impl<TwoWays> kRefusedText{"refused text", never_refuse, ask_for_refused_text};
const Impl<TwoWays> kNarrow{"narrow", refuse_second, count_up<32, false>};

TEST(MetalDriverTest, AnotherImplementationRunsWhereAPipelineDoesNotTakeTheLaunch) {
  const FakeMetal fake;
  const MetalDevice device;
  Stream& stream = device.stream();
  auto* sum = static_cast<uint32_t*>(device->allocate(4, stream));
  device->fill_bytes(sum, 0, 4, stream);
  const auto run = [&](Slot<TwoWays> slot, bool second_refuses = false) {
    slot.front().run({.sum = sum, .second_refuses = second_refuses}, stream);
  };
  run(gpu::slot<kWide, kNarrow>());
  EXPECT_EQ(words_back(device, sum, 1)[0], 32) << "the second";
  run(gpu::slot<kRefusedText, kWide, kNarrow>());
  EXPECT_EQ(words_back(device, sum, 1)[0], 64) << "the third, behind a text that does not compile";
  const int64_t compiled = fake.calls("newLibraryWithSource:options:error:");
  run(gpu::slot<kRefusedText, kNarrow>());
  EXPECT_EQ(fake.calls("newLibraryWithSource:options:error:"), compiled) << "asked once";

  const auto [code, message] = error_in([&] { run(gpu::slot<kWide, kNarrow>(), true); });
  EXPECT_EQ(code, Code::unsupported);
  EXPECT_THAT(message, HasSubstr("128 threads in a threadgroup, and the pipeline takes 64"));
  EXPECT_EQ(words_back(device, sum, 1)[0], 96);
  // What has begun is not begun again by another: it may have changed what both read.
  EXPECT_EQ(error_in([&] { run(gpu::slot<kHalfDone, kNarrow>()); }).first, Code::unsupported);
  EXPECT_EQ(words_back(device, sum, 1)[0], 160);
  device->free(sum, 4, stream);
}

TEST(MetalDriverTest, EventsOrderStreamsAndMayGoBeforeTheirWork) {
  const FakeMetal fake;
  const MetalDevice device;
  Stream first = device->create_stream(), second = device->create_stream();
  void* data = device->allocate(64, first);
  auto* pinned = static_cast<uint32_t*>(device->allocate_host(64));
  pinned[0] = 7;
  device->copy(data, pinned, 64, CopyKind::host_to_device, first);
  void* start = device.driver().create_event(true);
  void* event = device->create_event();
  device->record_event(start, first);
  device->record_event(event, first);
  device->wait_event(event, second);
  device->destroy_event(event);
  device->fill_bytes(static_cast<char*>(data) + 4, 0, 4, second);
  EXPECT_EQ(error_in([&] { device->synchronize(second); }).second, "none");
  device->copy(pinned + 8, data, 32, CopyKind::device_to_host, second);
  device->synchronize(second);
  EXPECT_EQ(pinned[8], 7U);
  EXPECT_GE(device.driver().elapsed_ms(start, start), 0);
  device.driver().destroy_event(start);
  device->free(data, 64, first);
  device->free_host(pinned, 64);
  device->destroy_stream(first);
  device->destroy_stream(second);
}

TEST(MetalDriverTest, CapturesAreEncodedAgain) {
  const FakeMetal fake;
  const MetalDevice device;
  Stream& stream = device.stream();
  const gpu::Scratch x(stream, 256), y(stream, 256);
  device->fill_bytes(x.as<void>(), 0, 256, stream);
  device->begin_capture(stream);
  device.launch("increment", {.y = x.as<void>()});
  device->copy(y.as<void>(), x.as<void>(), 4, CopyKind::device_to_device, stream);
  EXPECT_EQ(error_in([&] { device->synchronize(stream); }).first, Code::device);
  uint32_t word = 0;
  EXPECT_EQ(error_in([&] {
              device->copy(&word, y.as<void>(), 4, CopyKind::device_to_host, stream);
            }).first,
            Code::device);
  void* graph = device->end_capture(stream);
  EXPECT_EQ(fake.launches(), 0);
  for (int i = 0; i < 3; ++i) device->launch_capture(graph, stream);
  EXPECT_EQ(words_back(device, y.as<void>(), 1), std::vector<uint32_t>{192});
  device->destroy_capture(graph);
  EXPECT_EQ(gpu::self_test_capture(*device), "") << "a hundred replays with changed uploads";
}

TEST(MetalDriverTest, MemoryThatAnotherThreadFreesIsKeptUntilItsWorkHasEnded) {
  const FakeMetal fake;
  const MetalDevice device;
  metal::MetalDriver& driver = device.driver();
  void* data = driver.allocate(64);
  device.launch("increment", {.y = data});
  std::thread([&] { driver.free(data); }).join();
  EXPECT_EQ(fake.launches(), 1);
  device->synchronize(device.stream());
}

}  // namespace
}  // namespace rbee::harness
