#pragma once
// Folders of matrices of packed integers (AWQ, GPTQ, compressed-tensors), written bit by bit.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/dtype.h"
#include "rbee/core/shape.h"

namespace rbee::test {

enum class IntegerForm : uint8_t { awq, gptq, gptq_v2, compressed };

// A matrix of (rows, in): value = scale * (code - zero).
struct PlainIntegers {
  int64_t rows = 0, in = 0;
  int64_t group = 32;  // inputs that share a scale
  int bits = 4;
  bool symmetric = false;  // zeros are the middle, and compressed-tensors stores none
  bool order = false;      // inputs take the groups in turn (act order)
  DType scale_type = DType::f16;
  float scale_unit = 0x1p-9f;  // scales are multiples of it

  int64_t groups() const { return (in + group - 1) / group; }
  int group_of(int64_t input) const;
  int code(int64_t row, int64_t input) const;
  int zero(int64_t row, int64_t at) const;
  float scale(int64_t row, int64_t at) const;
  float value(int64_t row, int64_t input) const;
};

struct RawTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<uint8_t> bytes;
};

// The tensors of layer `name`, e.g. "model.layers.0.q_proj"; with an order, also each input's
// group.
std::vector<RawTensor> integer_tensors(IntegerForm form, const PlainIntegers& matrix,
                                       std::string_view name);

// The object "quantization_config" in config.json for such matrices.
std::string integer_config(IntegerForm form, const PlainIntegers& matrix);

// Writes config.json and model.safetensors.
void write_raw_folder(const std::filesystem::path& folder, std::string_view quantization,
                      const std::vector<RawTensor>& tensors);

}  // namespace rbee::test
