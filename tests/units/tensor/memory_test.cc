// Where tensors' elements live, for how long, and how they move between host and devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/tensor/host_buffer.h"
#include "rbee/tensor/host_trip.h"
#include "rbee/tensor/tensor.h"
#include "tests/units/tensor/fake_device.h"

namespace rbee {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Axis kFirst{0};
constexpr Axis kLast{-1};

class MemoryTest : public ::testing::Test {
 protected:
  Tensor floats(Device& device, const std::vector<float>& values, const Shape& shape) {
    return from_host<float>(values, shape, device);
  }

  template <typename Body>
  std::string message_of(Code code, Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "nothing was thrown";
  }

  test::FakeDevice cpu_{{DeviceKind::cpu, 0}, true};
  test::FakeDevice gpu_{{DeviceKind::cuda, 0}, false};
  test::FakeDevice other_gpu_{{DeviceKind::cuda, 1}, false};
};

TEST_F(MemoryTest, LivesAsLongAsItsLastView) {
  Tensor view;
  {
    const Tensor x = floats(cpu_, {1, 2, 3, 4}, {2, 2});
    view = x.slice(kFirst, 1, 1);
    EXPECT_EQ(cpu_.allocations, 1);
  }
  EXPECT_EQ(cpu_.allocations, 1);
  EXPECT_THAT(view.to_host<float>(), ElementsAre(3, 4));
  view = {};
  EXPECT_EQ(cpu_.allocations, 0);
  EXPECT_EQ(cpu_.bytes, 0u);
}

TEST_F(MemoryTest, CopiesOfATensorShareTheBuffer) {
  const Tensor x = floats(cpu_, {1, 2}, {2});
  const Tensor y = x;  // NOLINT(performance-unnecessary-copy-initialization): it is the subject
  y.data<float>()[0] = 7;
  EXPECT_THAT(x.to_host<float>(), ElementsAre(7, 2));
  EXPECT_EQ(cpu_.allocations, 1);
}

TEST_F(MemoryTest, AnEmptyTensorAllocatesNothing) {
  const Tensor x = empty({3, 0}, DType::f32, cpu_);
  EXPECT_TRUE(x.defined());
  EXPECT_EQ(cpu_.allocations, 0);
  EXPECT_TRUE(x.to_host<float>().empty());
  EXPECT_EQ(zeros({0}, DType::f32, gpu_).to(cpu_).numel(), 0);
}

TEST_F(MemoryTest, ZerosAreZero) {
  EXPECT_THAT(zeros({3}, DType::i64, gpu_).to_host<int64_t>(), ElementsAre(0, 0, 0));
  const Tensor like = empty_like(zeros({2, 3}, DType::f16, gpu_));
  EXPECT_EQ(describe(like), "f16 (2, 3) on cuda:0");
}

TEST_F(MemoryTest, FromHostChecksTheCount) {
  EXPECT_THAT(message_of(Code::invalid_argument, [&] { floats(cpu_, {1, 2, 3}, {2, 2}); }),
              HasSubstr("(2, 2) takes 4 values, 3 are given"));
  EXPECT_EQ(cpu_.allocations, 0);
}

TEST_F(MemoryTest, ImpossibleShapesAllocateNothing) {
  EXPECT_THROW(empty({-1}, DType::f32, cpu_), Error);
  EXPECT_THROW(empty({int64_t{1} << 62, 4}, DType::u8, cpu_), Error);
  EXPECT_THROW(empty({int64_t{1} << 62}, DType::f32, cpu_), Error) << "its bytes overflow";
  EXPECT_THROW(empty({2, 33}, DType::q4_0, cpu_), Error);
  EXPECT_EQ(cpu_.allocations, 0);
}

TEST_F(MemoryTest, OutOfMemoryNamesTheDevice) {
  gpu_.limit = 100;
  EXPECT_THAT(message_of(Code::out_of_memory, [&] { empty({26}, DType::f32, gpu_); }),
              HasSubstr("104 bytes on cuda:0"));
}

TEST_F(MemoryTest, TypedAccessChecksTheType) {
  const Tensor x = floats(cpu_, {1}, {1});
  EXPECT_THAT(message_of(Code::invalid_argument, [&] { x.to_host<int32_t>(); }),
              HasSubstr("f32 (1) on cpu:0 does not hold i32"));
  EXPECT_THAT(message_of(Code::invalid_argument, [&] { x.data<double>(); }),
              HasSubstr("does not hold f64"));
  EXPECT_THAT(message_of(Code::invalid_argument, [&] { Tensor{}.to_host<float>(); }),
              HasSubstr("undefined tensor"));
}

TEST_F(MemoryTest, MovesBetweenDevices) {
  const Tensor x = floats(cpu_, {1, 2, 3}, {3});
  EXPECT_EQ(x.to(cpu_).buffer(), x.buffer()) << "already there";
  cpu_.copies.clear();
  const Tensor y = x.to(gpu_);
  EXPECT_EQ(describe(y), "f32 (3) on cuda:0");
  EXPECT_THAT(gpu_.copies, ElementsAre(CopyKind::host_to_device));
  const Tensor z = y.to(other_gpu_);
  EXPECT_THAT(gpu_.copies, ElementsAre(CopyKind::host_to_device, CopyKind::device_to_host));
  EXPECT_THAT(other_gpu_.copies, ElementsAre(CopyKind::host_to_device));
  EXPECT_THAT(z.to(cpu_).to_host<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(z.to_host<float>(), ElementsAre(1, 2, 3));
}

TEST_F(MemoryTest, OnlyContiguousTensorsLeaveADevice) {
  const Tensor x = zeros({2, 3}, DType::f32, gpu_).transpose(kFirst, kLast);
  EXPECT_THAT(message_of(Code::invalid_argument, [&] { x.to(cpu_); }), HasSubstr("not contiguous"));
  EXPECT_THAT(message_of(Code::invalid_argument, [&] { x.to_host<float>(); }),
              HasSubstr("f32 (3, 2) on cuda:0 is not contiguous"));
}

TEST_F(MemoryTest, ForeignMemoryKeepsItsOwner) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const std::weak_ptr<std::vector<float>> watch = owner;
  Tensor x = from_memory(std::as_bytes(std::span(*owner)), {2, 2}, DType::f32, cpu_, owner);
  EXPECT_EQ(x.view().data, owner->data());
  owner.reset();
  EXPECT_FALSE(watch.expired());
  const Tensor row = x.slice(kFirst, 1, 1);
  x = {};
  EXPECT_THAT(row.to_host<float>(), ElementsAre(3, 4));
  EXPECT_EQ(cpu_.allocations, 0);
}

TEST_F(MemoryTest, ForeignMemoryMustSuffice) {
  const std::vector<float> values(3);
  const auto bytes = std::as_bytes(std::span(values));
  EXPECT_THAT(message_of(Code::invalid_argument,
                         [&] { from_memory(bytes, {4}, DType::f32, cpu_, nullptr); }),
              HasSubstr("takes 16 bytes, 12 are there"));
  EXPECT_THAT(message_of(Code::invalid_argument,
                         [&] { from_memory(bytes, {3}, DType::f32, gpu_, nullptr); }),
              HasSubstr("cuda:0"));
}

TEST_F(MemoryTest, StreamScopeChoosesTheStreamOfItsDevice) {
  const Tensor x = empty({1}, DType::f32, gpu_);
  const Tensor y = empty({1}, DType::f32, cpu_);
  EXPECT_EQ(&x.stream(), &gpu_.default_stream());
  Stream outer = gpu_.create_stream();
  {
    const StreamScope scope(outer);
    EXPECT_EQ(&x.stream(), &outer);
    EXPECT_EQ(&y.stream(), &cpu_.default_stream()) << "another device's";
    Stream inner = gpu_.create_stream();
    {
      const StreamScope nested(inner);
      empty({1}, DType::f32, gpu_);
    }
    EXPECT_EQ(gpu_.allocated_on.back(), &inner);
    EXPECT_EQ(&x.stream(), &outer);
  }
  EXPECT_EQ(&x.stream(), &gpu_.default_stream());
}

TEST_F(MemoryTest, HostBufferGrowsAndGoesWithItsOwner) {
  {
    HostBuffer buffer;
    buffer.reserve(gpu_, 8);
    buffer.as<int32_t>()[1] = 7;
    buffer.reserve(gpu_, 4);
    EXPECT_EQ(buffer.as<int32_t>()[1], 7) << "room enough";
    buffer.reserve(gpu_, 1000);
    EXPECT_EQ(gpu_.host_allocations, 1);
    buffer.reserve(cpu_, 10);
    EXPECT_EQ(gpu_.host_allocations, 0) << "of another device now";
    EXPECT_EQ(cpu_.host_allocations, 1);
  }
  EXPECT_EQ(cpu_.host_allocations, 0);
}

// The host computes between a device's operations: copies there in one memory, one result back.
TEST_F(MemoryTest, AHostTripComputesOnCopies) {
  HostTrip trip(gpu_, cpu_);
  const Tensor x = floats(gpu_, {1, 2, 3}, {3}), y = floats(gpu_, {4, 5}, {1, 2});
  for (int turn = 0; turn < 2; ++turn) {
    gpu_.copies.clear();
    const Tensor both[] = {x, y};
    const Tensor out = trip.run(both, [&](std::span<const Tensor> copies) {
      EXPECT_EQ(copies.size(), 2u);
      EXPECT_EQ(&copies[0].device(), &cpu_);
      EXPECT_EQ(copies[1].shape(), (Shape{1, 2}));
      EXPECT_THAT(copies[0].to_host<float>(), ElementsAre(1, 2, 3));
      // In whole cache lines, each.
      EXPECT_EQ(copies[1].data<float>() - copies[0].data<float>(), 16);
      const float sum = copies[0].data<float>()[2] + copies[1].data<float>()[1];
      return floats(cpu_, {sum, static_cast<float>(turn)}, {2});
    });
    EXPECT_EQ(&out.device(), &gpu_);
    EXPECT_THAT(out.to_host<float>(), ElementsAre(8, static_cast<float>(turn)));
    EXPECT_EQ(gpu_.host_allocations, 2);  // kept for the next call
  }
  // What the work throws reaches the caller; the next call works, with more memory too.
  EXPECT_THROW((void)trip.run({&x, 1}, [](auto) -> Tensor { throw std::bad_alloc(); }),
               std::bad_alloc);
  const Tensor large = floats(gpu_, std::vector<float>(1000, 2), {1000});
  const Tensor same =
      trip.run({&large, 1}, [&](std::span<const Tensor> copies) { return copies[0]; });
  EXPECT_EQ(same.to_host<float>(), std::vector<float>(1000, 2));
  const Tensor none = floats(gpu_, {}, {0});
  EXPECT_EQ(trip.run({&none, 1}, [](std::span<const Tensor> copies) { return copies[0]; }).numel(),
            0);
}

}  // namespace
}  // namespace rbee
