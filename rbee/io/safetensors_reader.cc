#include "rbee/io/safetensors_reader.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "rbee/core/error.h"
#include "rbee/core/json_fault.h"
#include "rbee/io/byte_reader.h"
#include "rbee/io/safetensors_format.h"

namespace rbee::io {
namespace {

// One tensor of the header as written.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;  // first and end, from the end of the header
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
};

struct Header {
  std::vector<RawTensor> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

// Takes the header apart while it is parsed. The format allows three levels only, so depth and
// memory are bounded by construction; a DOM would also hide names that come twice.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderHandler(std::string source) : source_(std::move(source)) {}

  Header take() { return {std::move(tensors_), std::move(metadata_)}; }

  bool key(std::string& text) override {
    if (level_ == Level::top) {
      check(text.size() <= kSafetensorsMaxName, source_, "a name in the header has ", text.size(),
            " bytes, wanted at most ", kSafetensorsMaxName);
      check(names_.insert(text).second, source_, "the header names ", text, " twice");
      name_ = text;
      in_metadata_ = text == kSafetensorsMetadata;
      if (!in_metadata_) tensors_.push_back({.name = text});
      return true;
    }
    field_ = text;
    if (!in_metadata_) enter_field();
    return true;
  }

  bool start_object(size_t) override {
    if (level_ == Level::outside) {
      level_ = Level::top;
    } else if (level_ == Level::top && !name_.empty()) {
      level_ = Level::entry;
    } else {
      fail_here("an object where none belongs");
    }
    return true;
  }

  bool end_object() override {
    if (level_ == Level::entry && !in_metadata_) check_complete();
    level_ = level_ == Level::entry ? Level::top : Level::outside;
    return true;
  }

  bool start_array(size_t) override {
    const bool wanted = level_ == Level::entry && !in_metadata_ && list_of(field_) != nullptr;
    if (!wanted) fail_here("an array where none belongs");
    level_ = Level::list;
    return true;
  }

  bool end_array() override {
    level_ = Level::entry;
    return true;
  }

  bool string(std::string& text) override {
    if (level_ != Level::entry) fail_here("a string where none belongs");
    if (in_metadata_) {
      metadata_[field_] = text;
      return true;
    }
    if (field_ != "dtype") fail_here("a string where an array belongs");
    tensors_.back().dtype = text;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (level_ != Level::list) fail_here("a number where none belongs");
    std::vector<uint64_t>& list = *list_of(field_);
    constexpr size_t kLongest = 16;
    if (list.size() >= kLongest) fail_here(cat("more than ", kLongest, " values"));
    list.push_back(value);
    return true;
  }

  bool number_integer(int64_t value) override { fail_here(cat("the number ", value)); }
  bool number_float(double value, const std::string&) override {
    fail_here(cat("the number ", value));
  }
  bool null() override { fail_here("null"); }
  bool boolean(bool) override { fail_here("a boolean"); }
  bool binary(nlohmann::json::binary_t&) override { fail_here("binary data"); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  enum class Level : uint8_t { outside, top, entry, list };

  [[noreturn]] void fail_here(std::string_view found) const {
    fail(Code::invalid_argument, source_, "the header has ", found,
         name_.empty() ? "" : cat(" in the entry ", name_),
         field_.empty() ? "" : cat(", ", field_));
  }

  std::vector<uint64_t>* list_of(std::string_view field) {
    if (field == "shape") return &tensors_.back().shape;
    if (field == "data_offsets") return &tensors_.back().offsets;
    return nullptr;
  }

  void enter_field() {
    RawTensor& tensor = tensors_.back();
    bool* seen = nullptr;
    if (field_ == "dtype") seen = &tensor.has_dtype;
    if (field_ == "shape") seen = &tensor.has_shape;
    if (field_ == "data_offsets") seen = &tensor.has_offsets;
    check(seen != nullptr, source_, "the tensor ", name_, " has the unknown field ", field_);
    check(!*seen, source_, "the tensor ", name_, " has ", field_, " twice");
    *seen = true;
  }

  void check_complete() {
    const RawTensor& tensor = tensors_.back();
    check(tensor.has_dtype && tensor.has_shape && tensor.has_offsets, source_, "the tensor ", name_,
          " lacks one of dtype, shape and data_offsets");
    check(tensor.offsets.size() == 2, source_, "the tensor ", name_, " has ", tensor.offsets.size(),
          " data_offsets, wanted 2");
    field_.clear();
  }

  std::string source_;
  std::vector<RawTensor> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
  std::unordered_set<std::string> names_;
  std::string name_;
  std::string field_;
  Level level_ = Level::outside;
  bool in_metadata_ = false;
};

Header parse_header(std::string_view text, const std::string& source) {
  HeaderHandler handler(source);
  check(text.starts_with('{'), source, "its header does not start with '{'");
  if (!nlohmann::json::sax_parse(text, &handler)) {
    fail(Code::invalid_argument, source, "the header is no JSON: ", json_fault(text));
  }
  return handler.take();
}

Shape shape_of(const RawTensor& tensor, const std::string& what) {
  check(tensor.shape.size() <= kMaxRank, what, "it has ", tensor.shape.size(),
        " dimensions, wanted at most ", kMaxRank);
  Shape shape;
  for (const uint64_t size : tensor.shape) {
    check(size <= static_cast<uint64_t>(INT64_MAX), what, "its dimension ", size,
          " is above 2^63 - 1");
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

// The tensor's own bytes of the file's.
std::span<const std::byte> data_of(const RawTensor& tensor, std::span<const std::byte> data,
                                   DType stored, const Shape& shape, const std::string& what) {
  const uint64_t first = tensor.offsets[0], end = tensor.offsets[1];
  check(first <= end && end <= data.size(), what, "its data_offsets are ", first, " and ", end,
        ", the file has ", data.size(), " bytes of data");
  const int64_t wanted = tensor_bytes(stored, shape, what);
  check(end - first == static_cast<uint64_t>(wanted), what, "its data_offsets span ", end - first,
        " bytes, (", shape, ") ", tensor.dtype, " needs ", wanted);
  return data.subspan(first, end - first);
}

// The bytes as stored: widen() follows when all of the header is known to be right.
TensorEntry make_entry(const RawTensor& tensor, std::span<const std::byte> data,
                       const std::shared_ptr<const MappedFile>& file) {
  const std::string what = cat(file->path().string(), ": tensor ", tensor.name);
  TensorEntry entry;
  entry.name = tensor.name;
  const WidenedType* wider = widened_type(tensor.dtype);
  const auto dtype = wider != nullptr ? wider->dtype : dtype_of_safetensors(tensor.dtype);
  if (!dtype) {
    fail(Code::unsupported, what, "its type ", tensor.dtype, " is not implemented; known are ",
         safetensors_type_names());
  }
  entry.dtype = *dtype;
  entry.is_e5m2 = tensor.dtype == kSafetensorsE5m2;
  entry.shape = shape_of(tensor, what);
  entry.data = data_of(tensor, data, wider ? wider->stored : entry.dtype, entry.shape, what);
  entry.file = file;
  return entry;
}

// Tensors of types that have no DType, whose bytes the header gives to no other tensor too.
class Widening {
 public:
  explicit Widening(const std::string& source) : source_(source) {}

  void widen(TensorEntry& entry, const WidenedType& type) {
    const int64_t count = numel(entry.shape);
    if (count > kMostWidened || count > kMostWidenedTogether - elements_) {
      fail(Code::unsupported, cat(source_, ": tensor ", entry.name), "it has ", count,
           " elements of type ", type.name, ", wanted at most ", kMostWidened, ", and ",
           kMostWidenedTogether, " of all such tensors: weights in this type are not implemented");
    }
    elements_ += count;
    const auto widened = type.widen(entry.data);
    entry.data = *widened;
    entry.owner = widened;
    entry.file = nullptr;
  }

 private:
  const std::string& source_;
  int64_t elements_ = 0;
};

// The format wants the data without holes, up to the file's end.
void check_no_holes(std::vector<RawTensor>& tensors, uint64_t size, const std::string& source) {
  std::ranges::sort(tensors, {}, [](const RawTensor& tensor) {
    return std::pair(tensor.offsets[0], tensor.offsets[1]);
  });
  uint64_t end = 0;
  for (const RawTensor& tensor : tensors) {
    check(tensor.offsets[0] == end, source, "the tensor ", tensor.name, " starts at offset ",
          tensor.offsets[0], ", wanted ", end, ", where the one before it ends");
    end = tensor.offsets[1];
  }
  check(end == size, source, "the tensors end at offset ", end, ", the file's data at ", size);
}

// Leaves the reader at the data.
Header read_header(ByteReader& reader) {
  const auto length = reader.value<uint64_t>("the header's length");
  check(length <= kSafetensorsMaxHeader, reader.source(), "its header's length is ", length,
        ", wanted at most ", kSafetensorsMaxHeader);
  const auto header = reader.take(length, "the header");
  return parse_header({reinterpret_cast<const char*>(header.data()), header.size()},
                      reader.source());
}

}  // namespace

std::vector<TensorEntry> read_safetensors(const std::shared_ptr<const MappedFile>& file) {
  ByteReader reader(file->bytes(), file->path().string());
  std::vector<RawTensor> raw = read_header(reader).tensors;
  const auto data = file->bytes().subspan(reader.offset());
  std::vector<TensorEntry> tensors;
  tensors.reserve(raw.size());
  std::vector<const WidenedType*> wider;
  for (const RawTensor& tensor : raw) {
    tensors.push_back(make_entry(tensor, data, file));
    wider.push_back(widened_type(tensor.dtype));
  }
  check_no_holes(raw, data.size(), reader.source());
  const std::string source = file->path().string();
  Widening widening(source);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (wider[i] != nullptr) widening.widen(tensors[i], *wider[i]);
  }
  return tensors;
}

std::optional<std::string> read_safetensors_metadata(const MappedFile& file, std::string_view key) {
  ByteReader reader(file.bytes(), file.path().string());
  Header header = read_header(reader);
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end()) return std::nullopt;
  return std::move(found->second);
}

}  // namespace rbee::io
