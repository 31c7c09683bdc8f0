// Calls that the fakes forbid during a capture, as the vendors document it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "tests/gpu/runtime_fixture.h"

namespace rbee::harness {
namespace {

using fake::CaptureMode;
using ::testing::HasSubstr;

class FakeCapturesTest : public RuntimeTest {
 protected:
  void SetUp() override {
    library_.emplace(GetParam());
    driver_ = library_->open();
    driver_->use(0);
    stream_ = driver_->create_stream();
    data_ = driver_->allocate(64);
  }
  // Forgets the mistakes.
  void TearDown() override {
    driver_->free(data_);
    driver_->destroy_stream(stream_);
    driver_.reset();
    const FakeLibrary forget(GetParam());
  }

  // The error code of an allocation by this thread; 0: it succeeded.
  int status_of_allocation() const {
    void* more = nullptr;
    const auto [code, text] = error_of([&] { more = driver_->allocate(16); });
    driver_->free(more);
    return status_in(text);
  }
  static int status_in(const std::string& text) {
    const size_t at = text.find(" (");
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + 2));
  }
  template <typename Action>
  static int status_of(const Action& action) {
    return status_in(error_of(action).second);
  }
  int end() {
    void* graph = nullptr;
    const int status = status_of([&] { graph = driver_->end_capture(stream_); });
    driver_->destroy_graph(graph);
    return status;
  }

  std::optional<FakeLibrary> library_;
  std::unique_ptr<gpu::Driver> driver_;
  void* stream_ = nullptr;
  void* data_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Vendors, FakeCapturesTest, each_vendor(), name_of_vendor);

struct Case {
  CaptureMode mode;
  bool another_thread;
  bool forbidden;
};

TEST_P(FakeCapturesTest, ModesForbidAllocationsToThreads) {
  for (const auto& [mode, another_thread, forbidden] :
       {Case{CaptureMode::global, false, true}, Case{CaptureMode::global, true, true},
        Case{CaptureMode::thread_local_, false, true},
        Case{CaptureMode::thread_local_, true, false}, Case{CaptureMode::relaxed, false, false},
        Case{CaptureMode::relaxed, true, false}}) {
    SCOPED_TRACE(cat("mode ", static_cast<int>(mode), another_thread ? ", another thread" : ""));
    ASSERT_EQ(library_->begin_capture(stream_, mode), fake::kSuccess);
    int status = 0;
    const auto allocate = [&] {
      driver_->use(0);
      status = status_of_allocation();
    };
    if (another_thread) {
      std::thread(allocate).join();
    } else {
      allocate();
    }
    EXPECT_EQ(status, forbidden ? fake::kCaptureUnsupported : 0);
    // An invalidated capture accepts no more work and yields no graph.
    EXPECT_EQ(status_of([&] { driver_->fill(data_, 0, 64, stream_); }),
              forbidden ? fake::kCaptureInvalidated : 0);
    EXPECT_EQ(end(), forbidden ? fake::kCaptureInvalidated : 0);
    EXPECT_EQ(status_of_allocation(), 0) << "the capture has ended";
  }
  EXPECT_THAT(library_->violation(), HasSubstr("allocation while a stream is captured"));
}

TEST_P(FakeCapturesTest, NoModeAllowsToWaitForTheStream) {
  for (const CaptureMode mode :
       {CaptureMode::global, CaptureMode::thread_local_, CaptureMode::relaxed}) {
    ASSERT_EQ(library_->begin_capture(stream_, mode), fake::kSuccess);
    EXPECT_EQ(status_of([&] { driver_->synchronize(stream_); }), fake::kCaptureUnsupported);
    EXPECT_EQ(end(), fake::kCaptureInvalidated);
  }
  EXPECT_THAT(library_->violation(), HasSubstr("synchronize while"));
}

TEST_P(FakeCapturesTest, OtherThreadsEndRelaxedOnesAlone) {
  for (const CaptureMode mode :
       {CaptureMode::global, CaptureMode::thread_local_, CaptureMode::relaxed}) {
    ASSERT_EQ(library_->begin_capture(stream_, mode), fake::kSuccess);
    int status = 0;
    std::thread([&] {
      driver_->use(0);
      status = end();
    }).join();
    EXPECT_EQ(status, mode == CaptureMode::relaxed ? 0 : fake::kCaptureWrongThread);
    if (status != 0) {
      EXPECT_EQ(end(), 0);
    }
  }
}

TEST_P(FakeCapturesTest, EventsBelongToTheCaptureOrAreOutside) {
  void* inside = driver_->create_event(false);
  void* outside = driver_->create_event(false);
  driver_->record_event(outside, stream_);
  driver_->begin_capture(stream_);
  driver_->record_event(inside, stream_);
  driver_->wait_event(inside, stream_);
  EXPECT_EQ(library_->violation(), "");
  EXPECT_EQ(status_of([&] { driver_->synchronize_event(inside); }), fake::kCapturedEvent);
  EXPECT_EQ(status_of([&] { driver_->wait_event(outside, stream_); }), fake::kCaptureIsolation);
  EXPECT_EQ(end(), fake::kCaptureInvalidated);
  EXPECT_EQ(status_of([&] { driver_->wait_event(inside, stream_); }), fake::kCapturedEvent);
  driver_->destroy_event(inside);
  driver_->destroy_event(outside);
}

}  // namespace
}  // namespace rbee::harness
