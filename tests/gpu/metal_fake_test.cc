// The fake Metal finds the mistakes that Apple's would leave to luck, and its methods have the
// types that the driver sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/metal_fixture.h"

namespace rbee::harness {
namespace {

using metal::AutoreleasePool;
using metal::Id;
using metal::MetalMessage;
using metal::MTLSize;
using metal::NSRange;
using metal::ObjC;
using metal::Retained;
using ::testing::HasSubstr;

template <typename T>
const char* code_of();
template <>
const char* code_of<void>() {
  return "v";
}
template <>
const char* code_of<bool>() {
  return "B";
}
template <>
const char* code_of<Id>() {
  return "@";
}
template <>
const char* code_of<Id*>() {
  return "^@";
}
template <>
const char* code_of<const Id*>() {
  return "r^@";
}
template <>
const char* code_of<uint64_t>() {
  return "Q";
}
template <>
const char* code_of<int64_t>() {
  return "q";
}
template <>
const char* code_of<uint8_t>() {
  return "C";
}
template <>
const char* code_of<double>() {
  return "d";
}
template <>
const char* code_of<const char*>() {
  return "r*";
}
template <>
const char* code_of<void*>() {
  return "^v";
}
template <>
const char* code_of<const void*>() {
  return "r^v";
}
template <>
const char* code_of<metal::MTLSize>() {
  return "{MTLSize=QQQ}";
}
template <>
const char* code_of<metal::NSRange>() {
  return "{NSRange=QQ}";
}

template <typename Result, typename... Parameters>
std::string types_of(Result (*)(Parameters...)) {
  return cat(code_of<Result>(), "@:", code_of<Parameters>()...);
}

TEST(FakeMetalTest, MethodsHaveTheTypesThatTheDriverSends) {
  const FakeMetal fake;
#define RB_COMPARE(name, receiver, selector, result, parameters)                                 \
  {                                                                                              \
    using Function = result(*) parameters;                                                       \
    EXPECT_EQ(fake.types(selector), types_of(Function{nullptr})) << receiver << ' ' << selector; \
  }
  RB_METAL_MESSAGES(RB_COMPARE)
#undef RB_COMPARE
}

// Objects as the driver makes them, by messages.
class MistakesTest : public ::testing::Test {
 protected:
  MistakesTest()
      : devices_(Retained::owned(objc_, objc_.copy_devices())),
        device_(objc_.send<MetalMessage::array_at>(devices_.get(), 0)),
        queue_(Retained::owned(objc_, objc_.send<MetalMessage::new_queue>(device_))) {}

  Id commands() const { return objc_.send<MetalMessage::command_buffer>(queue_.get()); }
  void finish(Id commands) const {
    objc_.send<MetalMessage::commit>(commands);
    objc_.send<MetalMessage::wait_until_completed>(commands);
  }

  FakeMetal fake_;
  ObjC objc_;
  Retained devices_;
  Id device_;
  Retained queue_;
};

TEST_F(MistakesTest, AnEncoderThatIsEndedTwice) {
  const AutoreleasePool pool(objc_);
  Id of = commands();
  Id encoder = objc_.send<MetalMessage::compute_encoder>(of);
  objc_.send<MetalMessage::end_encoding>(encoder);
  objc_.send<MetalMessage::end_encoding>(encoder);
  finish(of);
  fake_.expect("endEncoding after endEncoding");
}

TEST_F(MistakesTest, ACommitWhileAnEncoderIsOpen) {
  const AutoreleasePool pool(objc_);
  Id of = commands();
  Id encoder = objc_.send<MetalMessage::compute_encoder>(of);
  objc_.send<MetalMessage::commit>(of);
  objc_.send<MetalMessage::end_encoding>(encoder);
  finish(of);
  fake_.expect("commit while an encoder is open");
}

TEST_F(MistakesTest, AnObjectThatIsUsedAfterItsPool) {
  Id of = nullptr;
  {
    const AutoreleasePool pool(objc_);
    of = commands();
  }
  objc_.send<MetalMessage::commit>(of);
  fake_.expect("commit to an object that is gone");
}

TEST_F(MistakesTest, AnObjectThatNoPoolEnds) {
  const Retained taken = Retained::owned(objc_, commands());
  fake_.expect("something is autoreleased outside of a pool");
}

TEST_F(MistakesTest, AMessageThatAnObjectDoesNotKnow) {
  objc_.send<MetalMessage::commit>(device_);
  fake_.expect("FakeDevice has no method commit");
}

TEST_F(MistakesTest, ParametersAboveFourKiB) {
  const AutoreleasePool pool(objc_);
  Id of = commands();
  Id encoder = objc_.send<MetalMessage::compute_encoder>(of);
  const std::vector<char> bytes(4112);
  objc_.send<MetalMessage::set_bytes>(encoder, bytes.data(), bytes.size(), 0);
  objc_.send<MetalMessage::end_encoding>(encoder);
  finish(of);
  fake_.expect("setBytes:length:atIndex: of 4112 bytes");
}

TEST_F(MistakesTest, ACopyBeyondABuffer) {
  const AutoreleasePool pool(objc_);
  const Retained buffer =
      Retained::owned(objc_, objc_.send<MetalMessage::new_buffer>(device_, 64, 0));
  Id of = commands();
  Id encoder = objc_.send<MetalMessage::blit_encoder>(of);
  objc_.send<MetalMessage::copy_buffer>(encoder, buffer.get(), 0, buffer.get(), 32, 36);
  objc_.send<MetalMessage::end_encoding>(encoder);
  finish(of);
  fake_.expect("a copy or fill of 36 bytes at 32 of a buffer of 64");
}

TEST_F(MistakesTest, AWaitThatNothingEnds) {
  const AutoreleasePool pool(objc_);
  const Retained event =
      Retained::owned(objc_, objc_.send<MetalMessage::new_shared_event>(device_));
  Id of = commands();
  objc_.send<MetalMessage::encode_wait>(of, event.get(), 1);
  finish(of);
  EXPECT_EQ(objc_.error_text(objc_.send<MetalMessage::error>(of)),
            "a wait for an event that nothing signals (1)");
}

std::string told_by(const MetalDevice& device, const char* kernel, void* y) {
  device.launch(kernel, {.x = nullptr, .y = y});
  return error_in([&] { device->synchronize(device.stream()); }).second;
}

TEST(FakeKernelTest, MistakesOfKernelsAreErrorsOfTheirCommandBuffer) {
  const FakeMetal fake;
  const MetalDevice device;
  const gpu::Scratch y(device.stream(), 256);
  EXPECT_THAT(told_by(device, "half_barrier", y.as<void>()),
              HasSubstr("a barrier that some threads do not reach"));
  EXPECT_THAT(told_by(device, "half_shuffle", y.as<void>()),
              HasSubstr("a lane is read that takes no part in a shuffle"));
  EXPECT_THAT(told_by(device, "half_product", y.as<void>()),
              HasSubstr("a lane takes no part in an operation of a matrix"));
  EXPECT_THAT(told_by(device, "increment", nullptr),
              HasSubstr("thread 0 touches 0x0, which no resident buffer has"));
  EXPECT_EQ(told_by(device, "increment", y.as<void>()), "none");
}

TEST(FakeKernelTest, AFreedBufferIsNoneOfTheDevice) {
  const FakeMetal fake;
  const MetalDevice device;
  void* gone = device.driver().allocate(256);
  device.driver().free(gone);
  EXPECT_THAT(told_by(device, "increment", gone), HasSubstr("which no resident buffer has"));
}

// b, read across its rows, moves the columns of a by one: c = 0.5 + 2 a(row, column + 1).
TEST(FakeKernelTest, LanesMultiplyMatricesTogether) {
  const FakeMetal fake;
  const MetalDevice device;
  const gpu::Scratch y(device.stream(), 256);
  device.launch("product", {.y = y.as<void>()}, 32);
  std::vector<float> values(64);
  device->copy(values.data(), y.as<void>(), 256, CopyKind::device_to_host, device.stream());
  for (size_t i = 0; i < values.size(); ++i) {
    const float moved = i % 8 == 7 ? 0.0F : 2.0F * static_cast<float>(i + 1);
    EXPECT_EQ(values[i], 0.5F + moved) << i;
  }
}

TEST(FakeKernelTest, AMissingBarrierShows) {
  const FakeMetal fake;
  const MetalDevice device;
  const gpu::Scratch y(device.stream(), 256);
  device.launch("without_barrier", {.y = y.as<void>()});
  std::vector<uint32_t> words(64);
  device->copy(words.data(), y.as<void>(), 256, CopyKind::device_to_host, device.stream());
  EXPECT_EQ(words[0], 0xffffffffU) << "threadgroup memory begins as no kernel expects it";
}

}  // namespace
}  // namespace rbee::harness
