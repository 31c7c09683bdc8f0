#include "rbee/io/safetensors_writer.h"

#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/io/safetensors_format.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {
namespace {

constexpr const char* kOp = "safetensors writer";
constexpr size_t kHeaderAlignment = 8;

}  // namespace

void SafetensorsWriter::set_metadata(std::string key, std::string value) {
  RB_ASSERT(!file_);
  metadata_[std::move(key)] = std::move(value);
}

void SafetensorsWriter::add_tensor(std::string name, DType dtype, const Shape& shape) {
  RB_ASSERT(!file_);
  const std::string what = cat(kOp, ": tensor ", name);
  if (!safetensors_type_of(dtype)) {
    fail(Code::unsupported, what, "safetensors files have no type for ", dtype);
  }
  const auto bytes = static_cast<uint64_t>(tensor_bytes(dtype, shape, what));
  check(name != kSafetensorsMetadata && names_.insert(name).second, what, "the name is taken");
  check(!__builtin_add_overflow(total_, bytes, &total_), what, "the file's size overflows 64 bits");
  tensors_.push_back({std::move(name), dtype, shape, bytes});
}

std::string SafetensorsWriter::encode_header() const {
  using nlohmann::ordered_json;
  ordered_json header = ordered_json::object();
  if (!metadata_.empty()) header[std::string(kSafetensorsMetadata)] = metadata_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    header.push_back({tensor.name,
                      {{"dtype", *safetensors_type_of(tensor.dtype)},
                       {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                       {"data_offsets", {offset, offset + tensor.bytes}}}});
    offset += tensor.bytes;
  }
  try {
    std::string text = header.dump();
    // Spaces at the end are part of the format.
    text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
    return text;
  } catch (const nlohmann::json::exception& error) {
    fail(Code::invalid_argument, kOp, "a name or the metadata is no UTF-8: ", error.what());
  }
}

void SafetensorsWriter::begin(const std::filesystem::path& path) {
  RB_ASSERT(!file_);
  const std::string header = encode_header();
  check(header.size() <= kSafetensorsMaxHeader, kOp, "the header has ", header.size(),
        " bytes, wanted at most ", kSafetensorsMaxHeader);
  file_.emplace(path);
  const auto length = static_cast<uint64_t>(header.size());
  file_->write(std::as_bytes(std::span(&length, 1)));
  file_->write(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  RB_ASSERT(file_);
  check(bytes.size() <= total_ - written_, kOp, "the tensors have ", total_, " bytes, and ",
        written_ + bytes.size(), " are written");
  file_->write(bytes);
  written_ += bytes.size();
}

void SafetensorsWriter::finish() {
  RB_ASSERT(file_);
  check(written_ == total_, kOp, "the tensors have ", total_, " bytes, and ", written_,
        " are written");
  file_->finish();
  file_.reset();
}

}  // namespace rbee::io
