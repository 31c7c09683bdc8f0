#include "backends/gpu/capture_trust.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/elementwise.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::gpu {
namespace {

constexpr uint32_t kRow = 64;    // words of each kernel's copy
constexpr uint32_t kRows = 128;  // kernels that copy uploads; as many copy their results
constexpr uint32_t kWords = kRow * kRows;
constexpr size_t kBytes = kWords * sizeof(uint32_t);
constexpr uint32_t kReplays = 100;
constexpr uint32_t kStep = 37;  // odd: multiples of it reach all rows, in another order

// A different value for each turn and word (Knuth, "The Art of Computer Programming" 2, 3.3.4).
uint32_t word_of(uint32_t turn, uint32_t index) {
  return (turn * kWords + index) * 2654435769U;
}

// Page-locked.
class HostWords {
 public:
  explicit HostWords(GpuDevice& device)
      : device_(device), data_(static_cast<uint32_t*>(device.allocate_host(kBytes))) {}
  ~HostWords() { device_.free_host(data_, kBytes); }
  HostWords(const HostWords&) = delete;
  HostWords& operator=(const HostWords&) = delete;
  uint32_t* data() const { return data_; }

 private:
  GpuDevice& device_;
  uint32_t* data_;
};

View row_of(const Scratch& words, uint32_t row) {
  View out;
  out.data = words.as<uint32_t>() + size_t{row} * kRow;
  out.dtype = DType::u32;
  out.rank = 1;
  out.sizes[0] = kRow;
  out.strides[0] = 1;
  return out;
}

class SelfTest {
 public:
  explicit SelfTest(GpuDevice& device) : device_(device) {}

  // Whether the copies are right without capture.
  bool right_at_once() {
    upload(0);
    copy_rows();
    return right(0);
  }

  std::string replays() {
    const Captured captured(device_, [this] { copy_rows(); });
    for (uint32_t turn = 1; turn <= kReplays; ++turn) {
      upload(turn);
      device_.launch_capture(captured.handle, stream_);
      if (!right(turn)) return cat("replay ", turn, " of the self-test gave wrong bytes");
    }
    return "";
  }

 private:
  struct Captured {
    template <typename Work>
    Captured(GpuDevice& on, const Work& work) : device(on) {
      device.begin_capture(device.default_stream());
      try {
        work();
      } catch (...) {
        end();
        throw;
      }
      handle = device.end_capture(device.default_stream());
    }
    ~Captured() { device.destroy_capture(handle); }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;

    void end() {
      try {
        device.destroy_capture(device.end_capture(device.default_stream()));
      } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
        // The first error reports what broke the capture.
      }
    }

    GpuDevice& device;
    void* handle = nullptr;
  };

  void upload(uint32_t turn) {
    for (uint32_t i = 0; i < kWords; ++i) host_.data()[i] = word_of(turn, i);
    device_.copy(uploaded_.as<void>(), host_.data(), kBytes, CopyKind::host_to_device, stream_);
  }

  void copy_rows() {
    for (uint32_t row = 0; row < kRows; ++row) {
      copy.run({.x = row_of(uploaded_, row * kStep % kRows), .y = row_of(between_, row)}, stream_);
    }
    for (uint32_t row = 0; row < kRows; ++row) {
      copy.run({.x = row_of(between_, row), .y = row_of(results_, row)}, stream_);
    }
  }

  bool right(uint32_t turn) {
    device_.copy(host_.data(), results_.as<void>(), kBytes, CopyKind::device_to_host, stream_);
    device_.synchronize(stream_);
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t from = i / kRow * kStep % kRows * kRow + i % kRow;
      if (host_.data()[i] != word_of(turn, from)) return false;
    }
    return true;
  }

  GpuDevice& device_;
  Stream& stream_ = device_.default_stream();
  HostWords host_{device_};
  Scratch uploaded_{stream_, kBytes}, between_{stream_, kBytes}, results_{stream_, kBytes};
};

}  // namespace

std::string self_test_capture(GpuDevice& device) {
  SelfTest test(device);
  const auto right_at_once = [&] {
    if (test.right_at_once()) return;
    fail(Code::device, "self_test", device.id(), " copies words wrongly, captured or not");
  };
  right_at_once();
  try {
    return test.replays();
  } catch (const Error& error) {
    if (error.code() == Code::out_of_memory) throw;
    right_at_once();  // throws the error of a lost device
    return cat("they failed in the self-test: ", error.what());
  }
}

std::string CaptureTrust::refusal() {
  const char* text = std::getenv("RBEE_GRAPHS");  // NOLINT(concurrency-mt-unsafe): never written
  const std::string_view wanted = text != nullptr ? text : "";
  if (wanted == "0") {
    log(LogLevel::info, "steps are not captured: RBEE_GRAPHS is 0",
        {{"device", cat(device_.id())}});
    return "RBEE_GRAPHS is 0";
  }
  if (wanted == "1") return "";
  if (!wanted.empty()) {
    log(LogLevel::warn, "RBEE_GRAPHS is neither 0 nor 1; ignored", {{"value", std::string(text)}});
  }
  std::string fault = device_.properties().capture_fault;
  if (fault.empty()) fault = self_test_capture(device_);
  if (fault.empty()) return "";
  log(LogLevel::warn, "steps are not captured, which is slower; RBEE_GRAPHS=1 captures them",
      {{"device", cat(device_.id())}, {"fault", fault}});
  return fault;
}

const std::string& CaptureTrust::why_not() {
  std::call_once(decided_, [this] { refusal_ = refusal(); });
  return refusal_;
}

}  // namespace rbee::gpu
