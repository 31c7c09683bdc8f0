#pragma once
// Small checkpoints in both formats, for tests that read weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/tensor/tensor.h"

namespace rbee::test {

// The CPU, registered at the first call.
Device& cpu_device();

Tensor device_tensor(const std::vector<float>& values, const Shape& shape);
Tensor device_tensor(const std::vector<int32_t>& values, const Shape& shape);

// `count` values in [-1, 1), the same on every machine.
std::vector<float> random_values(size_t count, uint32_t seed);

struct StoredTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
  DType dtype = DType::f32;  // f32, f16, bf16, i32 or a block type; values are rounded to it
};

// The values as they read back from the file.
std::vector<float> stored_values(const StoredTensor& tensor);

// A fixture with a folder of its own, removed at the end.
class CheckpointFiles : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  io::Checkpoint gguf(std::span<const StoredTensor> tensors) const;
  // `header_padding`: spaces that move the data, which starts right after the header.
  io::Checkpoint safetensors(std::span<const StoredTensor> tensors,
                             size_t header_padding = 0) const;

 private:
  std::filesystem::path folder_;
};

// Runs `action` and checks that it throws an Error of this code whose text has all of `parts`.
void expect_error(Code code, const std::vector<std::string>& parts,
                  const std::function<void()>& action);

}  // namespace rbee::test
