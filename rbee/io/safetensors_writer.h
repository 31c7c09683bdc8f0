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
// finish(). Data starts at a multiple of 8 bytes; tensors follow each other without gaps, as the
// format wants, so add those of wider types first where alignment matters.
//
// Calls throw invalid_argument on a name that comes twice, on text that is no UTF-8 and on data of
// the wrong length; unsupported on block types, which the format does not have; io when the disk
// refuses.
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
