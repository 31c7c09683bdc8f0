#include "rbee/io/gguf_writer.h"

#include <utility>

#include "rbee/core/error.h"
#include "rbee/io/gguf_format.h"
#include "rbee/io/tensor_entry.h"

namespace rbee::io {
namespace {

constexpr const char* kOp = "gguf writer";
constexpr std::string_view kAlignmentKey = "general.alignment";

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_string(std::string& out, std::string_view text) {
  put(out, static_cast<uint64_t>(text.size()));
  out.append(text);
}

template <typename T>
std::string encode(T value) {
  std::string out;
  put(out, value);
  return out;
}

std::string array_header(MetaType element, size_t count) {
  std::string out;
  put(out, static_cast<uint32_t>(element));
  put(out, static_cast<uint64_t>(count));
  return out;
}

template <typename T>
std::string encode_numbers(MetaType element, std::span<const T> values) {
  std::string out = array_header(element, values.size());
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return out;
}

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  check(is_gguf_alignment(alignment), kOp, "an alignment of ", alignment,
        ", wanted a power of two from 8 to ", kGgufMaxAlignment);
  // Without the key readers take 32.
  if (alignment != kGgufAlignment) set_u32(kAlignmentKey, alignment);
}

void GgufWriter::add_pair(std::string_view key, MetaType type, std::string value) {
  RB_ASSERT(!file_);
  check(!key.empty(), kOp, "a key is empty");
  check(keys_.emplace(key).second, kOp, "the key ", key, " is set twice");
  pairs_.push_back({std::string(key), type, std::move(value)});
}

void GgufWriter::set_u32(std::string_view key, uint32_t value) {
  add_pair(key, MetaType::u32, encode(value));
}

void GgufWriter::set_u64(std::string_view key, uint64_t value) {
  add_pair(key, MetaType::u64, encode(value));
}

void GgufWriter::set_i32(std::string_view key, int32_t value) {
  add_pair(key, MetaType::i32, encode(value));
}

void GgufWriter::set_f32(std::string_view key, float value) {
  add_pair(key, MetaType::f32, encode(value));
}

void GgufWriter::set_bool(std::string_view key, bool value) {
  add_pair(key, MetaType::boolean, encode(static_cast<uint8_t>(value)));
}

void GgufWriter::set_string(std::string_view key, std::string_view value) {
  std::string out;
  put_string(out, value);
  add_pair(key, MetaType::string, std::move(out));
}

void GgufWriter::set_strings(std::string_view key, std::span<const std::string> values) {
  std::string out = array_header(MetaType::string, values.size());
  for (const std::string& value : values) put_string(out, value);
  add_pair(key, MetaType::array, std::move(out));
}

void GgufWriter::set_floats(std::string_view key, std::span<const float> values) {
  add_pair(key, MetaType::array, encode_numbers(MetaType::f32, values));
}

void GgufWriter::set_ints(std::string_view key, std::span<const int32_t> values) {
  add_pair(key, MetaType::array, encode_numbers(MetaType::i32, values));
}

void GgufWriter::set_bytes(std::string_view key, std::string_view values) {
  add_pair(key, MetaType::array, encode_numbers<char>(MetaType::u8, values));
}

void GgufWriter::set_bools(std::string_view key, const std::vector<bool>& values) {
  const std::vector<uint8_t> bytes(values.begin(), values.end());
  add_pair(key, MetaType::array, encode_numbers<uint8_t>(MetaType::boolean, bytes));
}

void GgufWriter::copy(const MetaEntry& entry) {
  if (entry.key == kAlignmentKey) return;
  add_pair(entry.key, entry.type,
           {reinterpret_cast<const char*>(entry.value.data()), entry.value.size()});
}

void GgufWriter::add_tensor(std::string name, DType dtype, const Shape& shape) {
  RB_ASSERT(!file_);
  const std::string what = cat(kOp, ": tensor ", name);
  if (!ggml_type_of(dtype)) {
    fail(Code::unsupported, what, "GGUF files have no type for ", dtype);
  }
  check(shape.rank() <= static_cast<int>(kGgufMaxDims), what, "its shape (", shape,
        ") has more axes than ", kGgufMaxDims);
  const auto bytes = static_cast<uint64_t>(tensor_bytes(dtype, shape, what));
  check(names_.insert(name).second, what, "added twice");
  tensors_.push_back({std::move(name), dtype, shape, bytes});
}

std::string GgufWriter::encode_header() const {
  std::string out;
  put(out, kGgufMagic);
  put(out, kGgufVersion);
  put(out, static_cast<uint64_t>(tensors_.size()));
  put(out, static_cast<uint64_t>(pairs_.size()));
  for (const Pair& pair : pairs_) {
    put_string(out, pair.key);
    put(out, static_cast<uint32_t>(pair.type));
    out += pair.value;
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_string(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.shape.rank()));
    for (int axis = tensor.shape.rank(); axis-- > 0;) {
      put(out, static_cast<uint64_t>(tensor.shape[axis]));
    }
    put(out, *ggml_type_of(tensor.dtype));
    put(out, offset);
    offset += align_up(tensor.bytes, alignment_);
  }
  return out;
}

void GgufWriter::begin(const std::filesystem::path& path) {
  RB_ASSERT(!file_);
  const std::string header = encode_header();
  file_.emplace(path);
  file_->write(std::as_bytes(std::span(header)));
  file_->pad(alignment_);
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  RB_ASSERT(file_);
  while (current_ < tensors_.size() && tensors_[current_].bytes == 0) ++current_;
  if (bytes.empty()) return;
  check(current_ < tensors_.size(), kOp, bytes.size(), " bytes come after the last tensor");
  const Tensor& tensor = tensors_[current_];
  check(bytes.size() <= tensor.bytes - written_, kOp, "the tensor ", tensor.name, " has ",
        tensor.bytes, " bytes, and ", written_ + bytes.size(), " are written");
  file_->write(bytes);
  written_ += bytes.size();
  if (written_ < tensor.bytes) return;
  file_->pad(alignment_);
  ++current_;
  written_ = 0;
}

void GgufWriter::finish() {
  RB_ASSERT(file_);
  write({});
  check(current_ == tensors_.size(), kOp, "the data of ", tensors_.size() - current_,
        " tensors is missing at the end");
  file_->finish();
  file_.reset();
}

}  // namespace rbee::io
