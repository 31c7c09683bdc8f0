#include "rbee/tensor/weight_stream.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "tests/units/engine/far_device.h"

namespace rbee {
namespace {

// `body` must throw this; the message must have the text.
template <typename Body>
void expect_error(Code code, const char* text, Body&& body) {
  try {
    body();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

class WeightStreamTest : public testing::Test {
 protected:
  // Weight i has the numbers i, i + 1, ..., in parts of two rows and the rest.
  Shape shape(int64_t i) const { return {3 + i % 4, 5, 64 * 1024}; }

  std::vector<float> values_of(int64_t i) const {
    const Shape whole = shape(i);
    std::vector<float> values(static_cast<size_t>(whole[0] * whole[1] * whole[2]));
    std::iota(values.begin(), values.end(), static_cast<float>(i));
    return values;
  }

  void add(WeightStream& stream, int64_t i) {
    const Shape whole = shape(i);
    const std::vector<float> values = values_of(i);
    const auto row = values.size() / static_cast<size_t>(whole[0]);
    const auto part = [&](size_t first, size_t rows) {
      return from_host<float>(std::span(values).subspan(first * row, rows * row),
                              {static_cast<int64_t>(rows), whole[1], whole[2]}, host_);
    };
    const auto rows = static_cast<size_t>(whole[0]);
    EXPECT_EQ(stream.add({part(0, 2), part(2, rows - 2)}, whole, DType::f32),
              static_cast<size_t>(i));
  }

  void expect_weight(const Tensor& weight, int64_t i) {
    ASSERT_EQ(weight.shape(), shape(i));
    ASSERT_EQ(&weight.device(), &device_);
    EXPECT_TRUE(weight.to_host<float>() == values_of(i)) << i;
  }

  cpu::CpuDevice host_;
  engine::FarDevice device_;
};

TEST_F(WeightStreamTest, GivesEachWeightInAnyOrder) {
  const size_t before = device_.in_use();
  {
    WeightStream stream(device_);
    int64_t bytes = 0;
    for (int64_t i = 0; i < 9; ++i) {
      add(stream, i);
      bytes += (3 + i % 4) * 5 * 64 * 1024 * 4;
    }
    EXPECT_EQ(stream.bytes(), bytes);
    EXPECT_EQ(stream.device_bytes(), 3 * 6 * 5 * 64 * 1024 * 4);
    EXPECT_FALSE(stream.started());
    stream.start();
    EXPECT_TRUE(stream.started());
    EXPECT_GE(static_cast<int64_t>(device_.in_use() - before), stream.device_bytes());
    for (int round = 0; round < 2; ++round) {  // in order, three at a time
      for (size_t i = 0; i < 9; i += 3) {
        WeightStream::Turn turn(stream);
        const Tensor first = turn.take(i), second = turn.take(i + 1);
        expect_weight(first, static_cast<int64_t>(i));
        expect_weight(second, static_cast<int64_t>(i) + 1);
        turn.give_back();
        expect_weight(turn.take(i + 2), static_cast<int64_t>(i) + 2);
      }
    }
    for (const size_t i : {8, 3, 3, 4, 0, 8, 1}) {
      WeightStream::Turn turn(stream);
      expect_weight(turn.take(i), static_cast<int64_t>(i));
    }
  }  // it ends while the next ones are on their way
  EXPECT_EQ(device_.in_use(), before);
}

TEST_F(WeightStreamTest, ThreadsWaitForEachOther) {
  WeightStream stream(device_);
  for (int64_t i = 0; i < 4; ++i) add(stream, i);
  stream.start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < 4; ++i) {
        WeightStream::Turn turn(stream);
        const Tensor one = turn.take(i), other = turn.take((i + 2) % 4);
        expect_weight(one, static_cast<int64_t>(i));
        expect_weight(other, static_cast<int64_t>((i + 2) % 4));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(WeightStreamTest, TellsWhatGoesWrong) {
  WeightStream none(device_);
  none.start();
  EXPECT_FALSE(none.started());

  WeightStream stream(device_);
  const Tensor part = zeros({2, 8}, DType::f32, host_);
  expect_error(Code::invalid_argument, "64 bytes, wanted 96",
               [&] { stream.add({part}, {3, 8}, DType::f32); });
  for (int64_t i = 0; i < 3; ++i) add(stream, i);
  const size_t before = device_.in_use();
  for (const int nth : {1, 2, 3}) {
    device_.fail_allocation(nth);
    expect_error(Code::out_of_memory, "bytes", [&] { stream.start(); });
    EXPECT_FALSE(stream.started());
    EXPECT_EQ(device_.in_use(), before);
  }
  device_.fail_host_allocation();
  expect_error(Code::out_of_memory, "bytes", [&] { stream.start(); });
  EXPECT_EQ(device_.in_use(), before);
  stream.start();
  {
    WeightStream::Turn turn(stream);
    expect_weight(turn.take(0), 0);
  }
  device_.lose();
  WeightStream::Turn turn(stream);
  expect_error(Code::device, "lost", [&] { turn.take(2); });
}

}  // namespace
}  // namespace rbee
