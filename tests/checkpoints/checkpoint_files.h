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
#include "rbee/io/gguf_writer.h"
#include "rbee/tensor/tensor.h"

namespace rbee::test {

// Registers the CPU at the first call.
Device& cpu_device();

Tensor device_tensor(const std::vector<float>& values, const Shape& shape);
Tensor device_tensor(const std::vector<int32_t>& values, const Shape& shape);

// `count` values in [-1, 1), the same on every machine.
std::vector<float> random_values(size_t count, uint32_t seed);

struct StoredTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
  // f32, f16, bf16, i32 or a block type. Values are rounded to it; a type of few bits gets
  // random blocks instead (random_blocks.h).
  DType dtype = DType::f32;
};

// The values that a reader gets back from the file.
std::vector<float> stored_values(const StoredTensor& tensor);

// Sets the keys of a GGUF file.
using Settings = std::function<void(io::GgufWriter&)>;

// A fixture that writes each checkpoint into its own folder and removes them all at the end.
class CheckpointFiles : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  io::Checkpoint gguf(std::span<const StoredTensor> tensors, const Settings& settings = {});
  // Writes several files, each with at most `tensors_each` tensors.
  io::Checkpoint split_gguf(std::span<const StoredTensor> tensors, size_t tensors_each,
                            const Settings& settings = {});
  // `header_padding`: spaces added to the header, which move the data that follows it.
  io::Checkpoint safetensors(std::span<const StoredTensor> tensors, size_t header_padding = 0);

 private:
  std::filesystem::path new_folder();

  std::filesystem::path root_;
  int folders_ = 0;
};

// Runs `action`; it must throw an Error of this code whose text has all of `parts`.
void expect_error(Code code, const std::vector<std::string>& parts,
                  const std::function<void()>& action);

}  // namespace rbee::test
