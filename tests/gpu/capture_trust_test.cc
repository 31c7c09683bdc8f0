// Captured work is trusted only where the driver's replays are right.
#include <gmock/gmock.h>

#include <cstdlib>

#include "rbee/core/log.h"
#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using gpu::GpuDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Sets an environment variable during its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class CaptureTrustTest : public RuntimeTest {
 protected:
  CaptureTrustTest() {
    set_log_sink(
        [this](LogLevel, std::string_view message, std::span<const LogField> fields) {
          warnings_.emplace_back(message);
          for (const LogField& field : fields)
            warnings_.back() += cat(" ", field.key, "=", field.value);
        },
        LogLevel::warn);
  }
  ~CaptureTrustTest() override { set_log_sink(nullptr, LogLevel::error); }

  std::vector<std::string> warnings_;
};

INSTANTIATE_TEST_SUITE_P(Vendors, CaptureTrustTest, each_vendor(), name_of_vendor);

TEST_P(CaptureTrustTest, RightReplaysAreTrusted) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  EXPECT_TRUE(device.supports_capture());
  EXPECT_EQ(device.capture_refusal(), "");
  EXPECT_THAT(warnings_, IsEmpty());
  const int64_t launches = library.launches();
  EXPECT_GT(launches, 20000) << "a hundred replays of more than 200 kernels";
  EXPECT_TRUE(device.supports_capture());
  EXPECT_EQ(library.launches(), launches) << "decided once";
  EXPECT_EQ(device.allocator_stats().in_use, 0);
}

TEST_P(CaptureTrustTest, WrongReplaysTurnCapturesOffWithOneWarning) {
  for (const char* fault : {"last_arguments", "stale_uploads"}) {
    const Variable faulty("RBEE_FAKE_GRAPHS", fault);
    const FakeLibrary library(GetParam());
    const auto driver = library.open();
    GpuDevice device(vendor(*driver), 0);
    EXPECT_FALSE(device.supports_capture()) << fault;
    EXPECT_THAT(device.capture_refusal(), HasSubstr("of the self-test gave wrong bytes"));
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("of the self-test gave wrong bytes"))) << fault;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("device=" + kind() + ":0")));
    warnings_.clear();
  }
}

TEST_P(CaptureTrustTest, TheEnvironmentDecidesBeforeTheTest) {
  const Variable faulty("RBEE_FAKE_GRAPHS", "last_arguments");
  for (const bool wanted : {false, true}) {
    const Variable graphs("RBEE_GRAPHS", wanted ? "1" : "0");
    const FakeLibrary library(GetParam());
    const auto driver = library.open();
    GpuDevice device(vendor(*driver), 0);
    EXPECT_EQ(device.supports_capture(), wanted);
    EXPECT_EQ(device.capture_refusal(), wanted ? "" : "RBEE_GRAPHS is 0");
    EXPECT_EQ(library.launches(), 0);
    EXPECT_THAT(warnings_, IsEmpty());
  }
  const Variable graphs("RBEE_GRAPHS", "off");
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  EXPECT_FALSE(device.supports_capture());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("RBEE_GRAPHS is neither 0 nor 1; ignored value=off"),
                                     HasSubstr("gave wrong bytes")));
}

TEST_P(CaptureTrustTest, ADriverThatDoesNotCaptureIsUsedWithoutCaptures) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  library.fail("cuStreamEndCapture", "hipStreamEndCapture", 1, fake::kInvalidValue);
  EXPECT_FALSE(device.supports_capture());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("they failed in the self-test: end_capture")));
}

TEST_P(CaptureTrustTest, ALackOfMemoryAndALostDeviceDecideNothing) {
  const FakeLibrary library(GetParam());
  const auto driver = library.open();
  GpuDevice device(vendor(*driver), 0);
  library.fail("cuMemHostAlloc", "hipHostMalloc", 1, fake::kOutOfMemory);
  EXPECT_EQ(error_of([&] { device.supports_capture(); }).first, Code::out_of_memory);
  EXPECT_TRUE(device.supports_capture());

  GpuDevice lost(vendor(*driver), 0);
  library.fail("cuGraphLaunch", "hipGraphLaunch", 7, fake::kLaunchFailed, fake::Then::lost);
  EXPECT_EQ(error_of([&] { lost.supports_capture(); }).first, Code::device);
  EXPECT_THAT(warnings_, IsEmpty());
}

struct Known {
  const char* version;
  const char* issue;  // null: nothing is known
};

// known_devices_test.cc has the table's other rows: a build has kernels of gfx942 wherever this
// runs, of others perhaps.
TEST(KnownCaptureFaults, TurnCapturesOffWithoutATest) {
  if (!is_built(Vendor::rocm)) GTEST_SKIP() << "no ROCm in this build";
  std::string warning;
  set_log_sink([&](LogLevel, std::string_view,
                   std::span<const LogField> fields) { warning = fields.back().value; },
               LogLevel::warn);
  for (const auto& [version, issue] :
       {Known{"70226015", "ROCm/clr issue 279"}, Known{"70253211", "ROCm/clr issue 279"},
        Known{"70125424", nullptr}, Known{"71300000", nullptr}}) {
    SCOPED_TRACE(version);
    const Variable told("RBEE_FAKE_VERSION", version);
    const FakeLibrary library(Vendor::rocm, {.architecture = "gfx942"});
    const auto driver = library.open();
    GpuDevice device(with_driver(Vendor::rocm, *driver), 0);
    warning.clear();
    EXPECT_EQ(device.supports_capture(), issue == nullptr);
    EXPECT_THAT(warning, HasSubstr(issue != nullptr ? issue : ""));
    EXPECT_EQ(device.capture_refusal(), warning);
    EXPECT_EQ(library.launches() == 0, issue != nullptr);
    const Variable wanted("RBEE_GRAPHS", "1");
    GpuDevice all_the_same(with_driver(Vendor::rocm, *driver), 0);
    EXPECT_TRUE(all_the_same.supports_capture());
  }
  set_log_sink(nullptr, LogLevel::error);
}

}  // namespace
}  // namespace rbee::harness
