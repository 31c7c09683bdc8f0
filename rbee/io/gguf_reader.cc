#include "rbee/io/gguf_reader.h"

#include "rbee/core/error.h"
#include "rbee/io/byte_reader.h"
#include "rbee/io/gguf_format.h"

namespace rbee::io {
namespace {

// Arrays of arrays deeper than anything in use.
constexpr int kMaxArrayDepth = 4;
constexpr size_t kMaxKeyBytes = 65535;  // of the specification
constexpr size_t kMaxTensorNameBytes = 1024;

// Least bytes of an entry, by which counts are checked before anything is allocated for them.
constexpr uint64_t kLeastPair = 8 + 4 + 1;        // key length, type, value
constexpr uint64_t kLeastTensor = 8 + 4 + 4 + 8;  // name length, dimension count, type, offset
constexpr uint64_t kArrayHeader = 4 + 8;          // item type, count
constexpr uint64_t kStringHeader = 8;             // length

struct Header {
  uint64_t tensors;
  uint64_t pairs;
};

Header read_header(ByteReader& reader) {
  check(reader.value<uint32_t>("the magic") == kGgufMagic, reader.source(),
        "it does not start with \"GGUF\", so it is no GGUF file");
  const auto version = reader.value<uint32_t>("the version");
  if (version != 0 && (version & 0xffff) == 0) {
    fail(Code::unsupported, reader.source(), "big-endian GGUF files are not read; convert it with ",
         "gguf-py's gguf-convert-endian");
  }
  if (version == 1) {
    fail(Code::unsupported, reader.source(), "GGUF version 1 is not read, only 2 and 3; ",
         "convert the model again from its original");
  }
  if (version != 2 && version != 3) {
    fail(Code::unsupported, reader.source(), "GGUF version ", version,
         " is not read, only 2 and 3");
  }
  Header header{};
  header.tensors = reader.value<uint64_t>("the tensor count");
  header.pairs = reader.value<uint64_t>("the metadata count");
  check(header.pairs <= reader.remaining() / kLeastPair, reader.source(), "the metadata count is ",
        header.pairs, ", more than fit in the ", reader.remaining(), " bytes left");
  check(header.tensors <= reader.remaining() / kLeastTensor, reader.source(),
        "the tensor count is ", header.tensors, ", more than fit in the ", reader.remaining(),
        " bytes left");
  return header;
}

MetaType read_type(ByteReader& reader, std::string_view key) {
  const auto type = reader.value<uint32_t>("a value's type");
  check(type < kMetaTypeCount, reader.source(), "the key ", key, " has the unknown type ", type);
  return static_cast<MetaType>(type);
}

void skip_array(ByteReader& reader, std::string_view key, int depth);

// Passes over `count` values of one type, checking each size.
void skip_values(ByteReader& reader, std::string_view key, MetaType type, uint64_t count,
                 int depth) {
  uint64_t least = size_of(type);
  if (type == MetaType::string) least = kStringHeader;
  if (type == MetaType::array) least = kArrayHeader;
  check(count <= reader.remaining() / least, reader.source(), "the key ", key, " has ", count, " ",
        name(type), " values, more than fit in the ", reader.remaining(), " bytes left");
  if (type == MetaType::string) {
    for (uint64_t i = 0; i < count; ++i) reader.string("a string");
  } else if (type == MetaType::array) {
    for (uint64_t i = 0; i < count; ++i) skip_array(reader, key, depth + 1);
  } else {
    reader.take(count * least, key);
  }
}

void skip_array(ByteReader& reader, std::string_view key, int depth) {
  check(depth <= kMaxArrayDepth, reader.source(), "the key ", key, " nests arrays deeper than ",
        kMaxArrayDepth);
  const MetaType element = read_type(reader, key);
  skip_values(reader, key, element, reader.value<uint64_t>("an array's count"), depth);
}

MetaEntry read_pair(ByteReader& reader) {
  MetaEntry entry;
  entry.key = reader.string("a metadata key");
  check(!entry.key.empty() && entry.key.size() <= kMaxKeyBytes, reader.source(),
        "a metadata key has ", entry.key.size(), " bytes, wanted 1 to ", kMaxKeyBytes);
  entry.type = read_type(reader, entry.key);
  const size_t start = reader.offset();
  if (entry.type == MetaType::array) {
    entry.element = read_type(reader, entry.key);
    entry.count = reader.value<uint64_t>("an array's count");
    skip_values(reader, entry.key, entry.element, entry.count, 1);
  } else {
    skip_values(reader, entry.key, entry.type, 1, 0);
  }
  entry.value = reader.since(start);
  return entry;
}

Metadata read_metadata(ByteReader& reader, uint64_t count, std::shared_ptr<const MappedFile> file) {
  std::vector<MetaEntry> entries;
  for (uint64_t i = 0; i < count; ++i) entries.push_back(read_pair(reader));
  return {reader.source(), std::move(file), std::move(entries)};
}

// GGUF lists sizes innermost first.
Shape read_shape(ByteReader& reader, const std::string& what) {
  const auto rank = reader.value<uint32_t>("a tensor's dimension count");
  check(rank <= kGgufMaxDims, what, "it has ", rank, " dimensions, wanted at most ", kGgufMaxDims);
  Shape shape;
  uint64_t sizes[kGgufMaxDims];
  for (uint32_t i = 0; i < rank; ++i) sizes[i] = reader.value<uint64_t>("a tensor's dimension");
  for (uint32_t i = rank; i-- > 0;) {
    check(sizes[i] <= static_cast<uint64_t>(INT64_MAX), what, "its dimension ", i, " is ", sizes[i],
          ", wanted below 2^63");
    shape.push_back(static_cast<int64_t>(sizes[i]));
  }
  return shape;
}

DType read_dtype(ByteReader& reader, const std::string& what) {
  const auto type = reader.value<uint32_t>("a tensor's type");
  const auto dtype = dtype_of_ggml(type);
  if (dtype) return *dtype;
  std::string known;
  for (const DType each : kAllDTypes) {
    const auto number = ggml_type_of(each);
    if (number) known += cat(known.empty() ? "" : ", ", ggml_type_name(*number));
  }
  fail(Code::unsupported, what, "its type ", ggml_type_name(type), " (", type,
       ") is not implemented; quantise the original again with `rbee quantize`, or pick a file in ",
       "one of ", known);
}

struct TensorInfo {
  TensorEntry entry;
  uint64_t offset = 0;  // from the start of the data section
};

TensorInfo read_tensor_info(ByteReader& reader) {
  TensorInfo tensor;
  const std::string_view name = reader.string("a tensor's name");
  check(!name.empty() && name.size() <= kMaxTensorNameBytes, reader.source(),
        "a tensor's name has ", name.size(), " bytes, wanted 1 to ", kMaxTensorNameBytes);
  tensor.entry.name = name;
  const std::string what = cat(reader.source(), ": tensor ", name);
  tensor.entry.shape = read_shape(reader, what);
  tensor.entry.dtype = read_dtype(reader, what);
  tensor.offset = reader.value<uint64_t>("a tensor's offset");
  return tensor;
}

uint64_t read_alignment(const Metadata& metadata, const std::string& source) {
  const uint64_t alignment = metadata.get_u64("general.alignment").value_or(kGgufAlignment);
  check(is_gguf_alignment(alignment), source, "general.alignment is ", alignment,
        ", wanted a power of two from 8 to ", kGgufMaxAlignment);
  return alignment;
}

// Gives the tensor its bytes. `data`: the file from the data section on.
void place(TensorInfo& tensor, std::span<const std::byte> data, uint64_t alignment,
           const std::string& source) {
  const std::string what = cat(source, ": tensor ", tensor.entry.name);
  const auto bytes =
      static_cast<uint64_t>(tensor_bytes(tensor.entry.dtype, tensor.entry.shape, what));
  check(tensor.offset % alignment == 0, what, "its offset ", tensor.offset,
        " is not a multiple of the alignment ", alignment);
  check(tensor.offset <= data.size() && bytes <= data.size() - tensor.offset, what, "its ", bytes,
        " bytes at offset ", tensor.offset, " end after the file's ", data.size(),
        " bytes of data; the file is cut off or damaged");
  tensor.entry.data = data.subspan(tensor.offset, bytes);
}

}  // namespace

GgufContents read_gguf(const std::shared_ptr<const MappedFile>& file) {
  ByteReader reader(file->bytes(), file->path().string());
  const Header header = read_header(reader);
  GgufContents contents;
  contents.metadata = read_metadata(reader, header.pairs, file);
  std::vector<TensorInfo> infos;  // grows with the infos read, not by the header's count
  for (uint64_t i = 0; i < header.tensors; ++i) infos.push_back(read_tensor_info(reader));
  const uint64_t alignment = read_alignment(contents.metadata, reader.source());
  const uint64_t start = align_up(reader.offset(), alignment);
  const auto data =
      start < file->bytes().size() ? file->bytes().subspan(start) : std::span<const std::byte>{};
  contents.tensors.reserve(infos.size());
  for (TensorInfo& tensor : infos) {
    place(tensor, data, alignment, reader.source());
    tensor.entry.file = file;
    contents.tensors.push_back(std::move(tensor.entry));
  }
  check_no_overlap(contents.tensors, reader.source());
  return contents;
}

}  // namespace rbee::io
