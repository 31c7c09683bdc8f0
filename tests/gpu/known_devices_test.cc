// The table of AMD's architectures.
#include "backends/rocm/known_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace rbee::rocm {
namespace {

using ::testing::HasSubstr;

struct Card {
  const char* name;
  const char* architecture;
  int reported;  // multiprocessors in HIP: pairs of units from gfx10 on; not read from a card
  int units;     // compute units in AMD's table "GPU hardware specifications"
};

constexpr Card kCards[] = {
    {"Instinct MI100", "gfx908", 120, 120},
    {"Instinct MI210", "gfx90a", 104, 104},
    {"Instinct MI250X, a half", "gfx90a", 110, 110},
    {"Instinct MI300A", "gfx942", 228, 228},
    {"Instinct MI300X", "gfx942", 304, 304},
    {"Instinct MI355X", "gfx950", 256, 256},
    {"Radeon RX 6900 XT", "gfx1030", 40, 80},
    {"Radeon RX 6700 XT", "gfx1031", 20, 40},
    {"Radeon RX 6600 XT", "gfx1032", 16, 32},
    {"Radeon RX 7900 XTX", "gfx1100", 48, 96},
    {"Radeon RX 7900 XT", "gfx1100", 42, 84},
    {"Radeon RX 7800 XT", "gfx1101", 30, 60},
    {"Radeon RX 7600", "gfx1102", 16, 32},
    {"Radeon 780M", "gfx1103", 6, 12},
    {"Radeon 890M", "gfx1150", 8, 16},
    {"Radeon 8060S", "gfx1151", 20, 40},
    {"Radeon RX 9060 XT", "gfx1200", 16, 32},
    {"Radeon RX 9070 XT", "gfx1201", 32, 64},
};

TEST(KnownDevicesTest, ComputeUnitsAreThoseThatArePublished) {
  for (const Card& card : kCards) {
    EXPECT_EQ(compute_units(card.architecture, card.reported), card.units) << card.name;
  }
  setenv("GPU_ENABLE_WGP_MODE", "0", 1);  // the runtime then counts compute units
  EXPECT_EQ(compute_units("gfx1100", 96), 96);
  unsetenv("GPU_ENABLE_WGP_MODE");
}

TEST(KnownDevicesTest, MatrixInstructionsAreThoseOfKnownNames) {
  using enum gpu::MatrixUnit;
  std::istringstream targets(RBEE_AMD_TARGETS);
  for (std::string name; targets >> name;) {
    const auto expected = name.starts_with("gfx9")     ? mfma
                          : name.starts_with("gfx103") ? none
                                                       : wmma_w32;
    EXPECT_EQ(matrix_unit(name), expected) << name;
  }
  // gfx1250 shares none with gfx1200.
  for (const char* name :
       {"gfx1250", "gfx1251", "gfx1170", "gfx1300", "gfx906", "gfx1010", "gfx11"}) {
    EXPECT_EQ(matrix_unit(name), none) << name;
  }
}

TEST(KnownDevicesTest, HipsVersionsAreComparedWithTheirLastPart) {
  EXPECT_LT(hip_version(5, 2, 21151), kOldestRuntime);  // ROCm 5.2.0
  EXPECT_EQ(hip_version(5, 2, 21153), kOldestRuntime);
  EXPECT_LT(kOldestRuntime, hip_version(5, 3));
}

struct Replays {
  const char* architecture;
  int version;
  const char* issue;  // null: no fault is known
};

// hip_version() has no part in these numbers, which the releases print.
constexpr Replays kReplays[] = {
    {"gfx942", 70'125'424, nullptr},
    {"gfx942", 70'199'999, nullptr},
    {"gfx942", 70'200'000, "ROCm/clr issue 279"},
    {"gfx942", 70'226'015, "ROCm/clr issue 279"},  // 7.2.0
    {"gfx942", 70'253'211, "ROCm/clr issue 279"},  // 7.2.1 to 7.2.4
    {"gfx942", 70'299'999, "ROCm/clr issue 279"},
    {"gfx942", 70'300'000, nullptr},
    {"gfx950", 70'199'999, nullptr},
    {"gfx950", 70'200'000, "ROCm/hip issue 3902"},
    {"gfx950", 70'253'211, "ROCm/hip issue 3902"},
    {"gfx950", 70'300'000, nullptr},
    {"gfx1201", kOldestRuntime, "ROCm/hip issue 3887"},
    {"gfx1201", 60'443'483, "ROCm/hip issue 3887"},
    {"gfx1201", 70'253'211, "ROCm/hip issue 3887"},
    {"gfx1201", 90'000'000, "ROCm/hip issue 3887"},
    {"gfx1200", 70'253'211, nullptr},
    {"gfx1100", 70'253'211, nullptr},
    {"gfx90a", 70'253'211, nullptr},
    {"gfx9", 70'253'211, nullptr},
};

TEST(KnownDevicesTest, FaultsOfReplaysAreKnownByVersionAndArchitecture) {
  for (const Replays& row : kReplays) {
    const std::string found(known_capture_fault(row.version, row.architecture));
    EXPECT_EQ(found.empty(), row.issue == nullptr) << row.architecture << ' ' << row.version;
    if (row.issue == nullptr) continue;
    EXPECT_THAT(found, HasSubstr(row.issue)) << row.version;
    EXPECT_THAT(found, HasSubstr(row.architecture)) << row.version;
  }
}

TEST(KnownDevices, WhichAreInsideProcessors) {
  for (const char* architecture : {"gfx1036", "gfx1103", "gfx1151"}) {
    EXPECT_TRUE(is_integrated(architecture)) << architecture;
  }
  for (const char* architecture :
       {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx9999"}) {
    EXPECT_FALSE(is_integrated(architecture)) << architecture;
  }
}

}  // namespace
}  // namespace rbee::rocm
