#include "tests/checkpoints/checkpoint_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/core/half.h"
#include "rbee/quant/quant.h"
#include "tests/checkpoints/random_blocks.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;

template <typename T>
std::vector<std::byte> encode_as(const std::vector<float>& values, T (*convert)(float)) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

std::vector<std::byte> encode(const StoredTensor& tensor) {
  const std::vector<float>& values = tensor.values;
  if (tensor.dtype == DType::f32) return encode_as<float>(values, [](float x) { return x; });
  if (tensor.dtype == DType::f16) return encode_as<f16>(values, to_f16);
  if (tensor.dtype == DType::bf16) return encode_as<bf16>(values, to_bf16);
  if (tensor.dtype == DType::i32) {
    return encode_as<int32_t>(values, [](float x) { return static_cast<int32_t>(x); });
  }
  if (has_few_bits(tensor.dtype)) return random_blocks(tensor.dtype, values);
  const auto count = static_cast<int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<size_t>(row_bytes(tensor.dtype, count)));
  quant::quantize_row(tensor.dtype, values.data(), bytes.data(), count);
  return bytes;
}

std::string upper_name(DType dtype) {
  std::string text = name(dtype);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void write_gguf(const fs::path& path, std::span<const StoredTensor> tensors,
                const Settings& settings) {
  io::GgufWriter writer;
  if (settings) settings(writer);
  for (const StoredTensor& tensor : tensors) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape);
  }
  writer.begin(path);
  for (const StoredTensor& tensor : tensors) writer.write(encode(tensor));
  writer.finish();
}

std::string part_name(size_t number, size_t count) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "model-%05zu-of-%05zu.gguf", number, count);
  return text.data();
}

}  // namespace

Device& cpu_device() {
  static const bool registered = [] {
    register_backend(cpu::cpu_backend());
    return true;
  }();
  (void)registered;
  return get_device({DeviceKind::cpu, 0});
}

Tensor device_tensor(const std::vector<float>& values, const Shape& shape) {
  return from_host<float>(values, shape, cpu_device());
}

Tensor device_tensor(const std::vector<int32_t>& values, const Shape& shape) {
  return from_host<int32_t>(values, shape, cpu_device());
}

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  uint32_t state = seed * 2654435769u + 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
  }
  return values;
}

std::vector<float> stored_values(const StoredTensor& tensor) {
  std::vector<float> values = tensor.values;
  if (tensor.dtype == DType::f16) {
    for (float& value : values) value = to_float(to_f16(value));
  } else if (tensor.dtype == DType::bf16) {
    for (float& value : values) value = to_float(to_bf16(value));
  } else if (is_quantized(tensor.dtype)) {
    const std::vector<std::byte> blocks = encode(tensor);
    const auto count = static_cast<int64_t>(values.size());
    quant::dequantize_row(tensor.dtype, blocks.data(), values.data(), count);
  }
  return values;
}

void CheckpointFiles::SetUp() {
  std::string pattern = (fs::temp_directory_path() / "rbee-checkpoints-XXXXXX").string();
  root_ = mkdtemp(pattern.data());
}

void CheckpointFiles::TearDown() {
  fs::remove_all(root_);
}

fs::path CheckpointFiles::new_folder() {
  const fs::path folder = root_ / cat(folders_++);
  fs::create_directory(folder);
  return folder;
}

io::Checkpoint CheckpointFiles::gguf(std::span<const StoredTensor> tensors,
                                     const Settings& settings) {
  const fs::path path = new_folder() / "model.gguf";
  write_gguf(path, tensors, settings);
  return io::Checkpoint::open(path);
}

io::Checkpoint CheckpointFiles::split_gguf(std::span<const StoredTensor> tensors,
                                           size_t tensors_each, const Settings& settings) {
  const fs::path folder = new_folder();
  const size_t count = (tensors.size() + tensors_each - 1) / tensors_each;
  for (size_t part = 0; part < count; ++part) {
    const size_t first = part * tensors_each;
    const size_t here = std::min(tensors_each, tensors.size() - first);
    write_gguf(folder / part_name(part + 1, count), tensors.subspan(first, here),
               [&](io::GgufWriter& writer) {
                 if (part == 0 && settings) settings(writer);
                 writer.set_u32("split.no", static_cast<uint32_t>(part));
                 writer.set_u32("split.count", static_cast<uint32_t>(count));
                 writer.set_i32("split.tensors.count", static_cast<int32_t>(tensors.size()));
               });
  }
  return io::Checkpoint::open(folder / part_name(1, count));
}

io::Checkpoint CheckpointFiles::safetensors(std::span<const StoredTensor> tensors,
                                            size_t header_padding) {
  std::string header;
  std::vector<std::byte> data;
  for (const StoredTensor& tensor : tensors) {
    const std::vector<std::byte> bytes = encode(tensor);
    std::string shape;
    for (const int64_t size : tensor.shape) shape += cat(shape.empty() ? "" : ",", size);
    header += cat(header.empty() ? "{" : ",", "\"", tensor.name, "\":{\"dtype\":\"",
                  upper_name(tensor.dtype), "\",\"shape\":[", shape, "],\"data_offsets\":[",
                  data.size(), ",", data.size() + bytes.size(), "]}");
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  header += "}";
  while ((header.size() + sizeof(uint64_t)) % 8 != 0) header += ' ';
  header += std::string(header_padding, ' ');
  const auto size = static_cast<uint64_t>(header.size());
  const fs::path folder = new_folder();
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << header;
  file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  file.close();
  std::ofstream(folder / "config.json") << R"({"model_type": "test"})";
  return io::Checkpoint::open(folder);
}

void expect_error(Code code, const std::vector<std::string>& parts,
                  const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error; wanted one with " << testing::PrintToString(parts);
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

}  // namespace rbee::test
