// The device that --device auto chooses, from backends that these tests make up.
#include "rbee/engine/common/device_choice.h"

#include <gmock/gmock.h>

#include <vector>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGB = 1'000'000'000;

std::vector<DeviceOffer>& gpus() {
  static std::vector<DeviceOffer> list;
  return list;
}
// A GPU of this name cannot be used.
constexpr const char* kBroken = "Broken";

Device& no_device(int) {
  fail(Code::internal, "test", "a choice opens no device");
}
std::string no_text() {
  return {};
}
DeviceOffer gpu_offer(int ordinal) {
  const DeviceOffer& gpu = gpus().at(static_cast<size_t>(ordinal));
  if (gpu.name == kBroken) fail(Code::unsupported, "device", "rocm:", ordinal, ": no kernels");
  return gpu;
}

const BackendInfo kCpu{.kind = DeviceKind::cpu,
                       .device_count = [] { return 1; },
                       .offer = [](int) { return DeviceOffer{.memory = {.free = 16 * kGB}}; },
                       .device = no_device,
                       .unavailable_reason = no_text,
                       .driver_version = no_text};
const BackendInfo kNone{.kind = DeviceKind::cuda,
                        .device_count = [] { return 0; },
                        .offer = gpu_offer,
                        .device = no_device,
                        .unavailable_reason = [] { return std::string("cuda: no driver"); },
                        .driver_version = no_text};
const BackendInfo kGpus{.kind = DeviceKind::rocm,
                        .device_count = [] { return static_cast<int>(gpus().size()); },
                        .offer = gpu_offer,
                        .device = no_device,
                        .unavailable_reason = no_text,
                        .driver_version = no_text};

DeviceOffer gpu(const char* name, int64_t free, bool integrated = false) {
  return {.name = name, .memory = {.total = 2 * free, .free = free}, .integrated = integrated};
}

DeviceChoice choose(std::vector<DeviceOffer> there, int64_t needed) {
  gpus() = std::move(there);
  const BackendInfo all[] = {kCpu, kNone, kGpus};
  return choose_device(all, [needed] { return needed; });
}

TEST(DeviceChoice, TheGpuWithTheMostFreeMemory) {
  const DeviceChoice chosen =
      choose({gpu("A", 8 * kGB), gpu("B", 24 * kGB), gpu("C", 24 * kGB)}, 49 * kGB / 10);
  EXPECT_EQ(cat(chosen.id), "rocm:1");
  EXPECT_EQ(chosen.free, 24 * kGB);
  EXPECT_EQ(chosen.needed, 49 * kGB / 10);
  EXPECT_EQ(chosen.reason,
            "the model runs on rocm:1 (B): 24.0 GB are free, about 4.90 GB are needed");
}

TEST(DeviceChoice, OneWithMemoryOfItsOwnBeforeOneInsideAProcessor) {
  EXPECT_EQ(cat(choose({gpu("inside", 48 * kGB, true), gpu("card", 16 * kGB)}, kGB).id), "rocm:1");
  EXPECT_EQ(cat(choose({gpu("card", 16 * kGB), gpu("inside", 48 * kGB, true)}, kGB).id), "rocm:0");
  EXPECT_EQ(cat(choose({gpu("inside", 48 * kGB, true), gpu("card", 16 * kGB)}, 20 * kGB).id),
            "rocm:0")
      << "the model fits nowhere else";
}

TEST(DeviceChoice, TheCpuWhereNoGpuHasTheMemory) {
  const DeviceChoice chosen = choose({gpu("A", 8 * kGB), gpu("B", 10 * kGB)}, 10 * kGB + 1);
  EXPECT_EQ(cat(chosen.id), "cpu:0");
  EXPECT_EQ(chosen.free, 16 * kGB);
  EXPECT_EQ(chosen.reason,
            "about 10.0 GB are needed, free are rocm:0 8.00 GB, rocm:1 10.0 GB: the model runs on "
            "cpu:0");
  EXPECT_EQ(cat(choose({gpu("A", 8 * kGB)}, 8 * kGB).id), "rocm:0") << "exactly enough";
}

TEST(DeviceChoice, AGpuThatCannotBeUsedIsLeftOut) {
  EXPECT_EQ(cat(choose({gpu(kBroken, 90 * kGB), gpu("B", 10 * kGB)}, kGB).id), "rocm:1");
  const DeviceChoice chosen = choose({gpu(kBroken, 90 * kGB)}, kGB);
  EXPECT_EQ(cat(chosen.id), "cpu:0");
  EXPECT_EQ(chosen.reason, "no GPU can be used: the model runs on cpu:0 (rbee doctor says why)");
  EXPECT_EQ(chosen.faults, "cuda: no driver; rocm:0: no kernels");
}

TEST(DeviceChoice, AnExperimentalGpuIsPassedOverAndHowToTakeItIsTold) {
  gpus() = {gpu("A", 90 * kGB)};
  BackendInfo untried = kGpus;
  untried.kind = DeviceKind::metal;
  const BackendInfo mac[] = {kCpu, untried};
  const auto needed = [] { return kGB; };
  const DeviceChoice chosen = choose_device(mac, needed);
  EXPECT_EQ(cat(chosen.id), "cpu:0");
  EXPECT_EQ(chosen.reason,
            "the model runs on cpu:0; metal:0 is passed over (experimental: made and tested "
            "without an Apple machine), --device metal:0 takes it");
  const BackendInfo both[] = {kCpu, untried, kGpus};
  EXPECT_EQ(cat(choose_device(both, needed).id), "rocm:0");
}

TEST(DeviceChoice, WithoutAGpuTheModelsFilesAreNotRead) {
  gpus() = {};
  const BackendInfo two[] = {kCpu, kNone};
  const auto never = []() -> int64_t { fail(Code::internal, "test", "the need was asked for"); };
  const DeviceChoice chosen = choose_device(two, never);
  EXPECT_EQ(cat(chosen.id), "cpu:0");
  EXPECT_THAT(chosen.reason, HasSubstr("no GPU can be used"));
  EXPECT_THAT(chosen.faults, HasSubstr("no driver"));
  const DeviceChoice alone = choose_device({&kCpu, 1}, never);
  EXPECT_EQ(cat(alone.id), "cpu:0");
  EXPECT_EQ(alone.reason, "") << "there was nothing to choose";
}

}  // namespace
}  // namespace rbee::engine
