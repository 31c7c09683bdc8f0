#pragma once
// Writes a GGUF file, version 3, tensor by tensor.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "rbee/core/dtype.h"
#include "rbee/core/shape.h"
#include "rbee/io/metadata.h"
#include "rbee/io/output_file.h"

namespace rbee::io {

// Order of use: key/values and tensors in any order, begin(), the data of each tensor in the order
// they were added, finish(). Memory holds the header only. The file appears at finish(); without
// finish() nothing is left.
//
// Calls throw invalid_argument for a name or key that occurs twice, for shapes that GGUF cannot
// hold (above 4 axes, partial blocks), and for data of the wrong length; unsupported for types that
// GGUF does not have; io if a write fails.
class GgufWriter {
 public:
  // `alignment` in bytes, of each tensor: a power of two from 8 to 2^20.
  explicit GgufWriter(uint32_t alignment = 32);

  void set_u32(std::string_view key, uint32_t value);
  void set_u64(std::string_view key, uint64_t value);
  void set_i32(std::string_view key, int32_t value);
  void set_f32(std::string_view key, float value);
  void set_bool(std::string_view key, bool value);
  void set_string(std::string_view key, std::string_view value);
  void set_strings(std::string_view key, std::span<const std::string> values);
  void set_floats(std::string_view key, std::span<const float> values);
  void set_ints(std::string_view key, std::span<const int32_t> values);
  void set_bytes(std::string_view key, std::string_view values);  // an array of u8
  void set_bools(std::string_view key, const std::vector<bool>& values);
  // Copies a pair of another file. An alignment is not copied: the writer has its own.
  void copy(const MetaEntry& entry);

  // `shape`: outermost first.
  void add_tensor(std::string name, DType dtype, const Shape& shape);
  // Opens the file and writes everything up to the data.
  void begin(const std::filesystem::path& path);
  // The next bytes of tensor data. A tensor may come in pieces; no piece spans two tensors.
  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  struct Pair {
    std::string key;
    MetaType type;
    std::string value;  // encoded
  };
  struct Tensor {
    std::string name;
    DType dtype;
    Shape shape;
    uint64_t bytes;
  };
  void add_pair(std::string_view key, MetaType type, std::string value);
  std::string encode_header() const;

  uint32_t alignment_;
  std::vector<Pair> pairs_;
  std::vector<Tensor> tensors_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> names_;
  std::optional<OutputFile> file_;
  size_t current_ = 0;    // tensor that write() continues
  uint64_t written_ = 0;  // bytes of it
};

}  // namespace rbee::io
