#pragma once
// Writes a safetensors file, tensor by tensor.

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "rbee/core/dtype.h"
#include "rbee/core/shape.h"
#include "rbee/io/output_file.h"

namespace rbee::io {

// Used as GgufWriter: tensors and metadata, begin(), the data in the order the tensors were added,
// finish(). Data starts at a multiple of 8 bytes; the format allows no gaps between tensors, so add
// wider types first if alignment matters.
//
// Calls throw invalid_argument for a name that occurs twice, for text that is not UTF-8 and for
// data of the wrong length; unsupported for block types, which the format does not have; io if a
// write fails.
class SafetensorsWriter {
 public:
  void set_metadata(std::string key, std::string value);
  void add_tensor(std::string name, DType dtype, const Shape& shape);
  void begin(const std::filesystem::path& path);
  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    Shape shape;
    uint64_t bytes;
  };
  std::string encode_header() const;

  std::map<std::string, std::string> metadata_;
  std::vector<Tensor> tensors_;
  std::unordered_set<std::string> names_;
  std::optional<OutputFile> file_;
  uint64_t total_ = 0;    // bytes of all tensors
  uint64_t written_ = 0;  // bytes of data so far
};

}  // namespace rbee::io
