#include "tests/checkpoints/image_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/half.h"
#include "rbee/io/safetensors_writer.h"
#include "tests/support/data_folder.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// splitmix64 (Steele et al. 2014)
uint64_t mixed(uint64_t state) {
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// FNV-1a
uint64_t hash(const std::string& text) {
  uint64_t state = 0xCBF29CE484222325u;
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return state;
}

// The part of a dotted name before its last.
std::string module_of(const std::string& name) {
  const size_t end = name.rfind('.');
  if (end == std::string::npos) return {};
  const size_t start = name.rfind('.', end - 1);
  return start == std::string::npos ? name.substr(0, end) : name.substr(start + 1, end - start - 1);
}

Shape shape_of(const json& sizes) {
  return Shape(std::span<const int64_t>(sizes.get<std::vector<int64_t>>()));
}

void write_weights(const fs::path& part) {
  const json files = json::parse(read_file(part / "tensors.json"));
  for (const auto& [file, shapes] : files.items()) {
    std::vector<MadeTensor> tensors;
    for (const auto& [name, sizes] : shapes.items()) {
      tensors.push_back({name, shape_of(sizes), made_weights(name, shape_of(sizes))});
    }
    write_safetensors(part / file, tensors);
  }
}

}  // namespace

std::vector<float> made_weights(const std::string& name, const Shape& shape) {
  float factor = 0.25f, offset = 0;
  const int64_t count = numel(shape);
  if (shape.rank() == 1) {
    offset = name.ends_with("weight") ? 1.0f : 0.0f;
  } else if (module_of(name).find("embedding") != std::string::npos ||
             name.ends_with("pos_embed.pos_embed")) {
    factor = 0.5f;
  } else {
    factor = static_cast<float>(std::sqrt(3.0 / static_cast<double>(count / shape[0])));
  }
  std::vector<float> values;
  uint64_t state = hash(name);
  for (int64_t i = 0; i < count; ++i) {
    state += 0x9E3779B97F4A7C15u;
    const float uniform = static_cast<float>(mixed(state) >> 40) * 0x1p-23f - 1.0f;
    values.push_back(to_float(to_f16(uniform * factor + offset)));
  }
  return values;
}

std::vector<MadeTensor> made_part(const fs::path& part) {
  std::vector<MadeTensor> tensors;
  for (const json& shapes : json::parse(read_file(part / "tensors.json"))) {
    for (const auto& [name, sizes] : shapes.items()) {
      tensors.push_back({name, shape_of(sizes), made_weights(name, shape_of(sizes))});
    }
  }
  return tensors;
}

void write_safetensors(const fs::path& file, const std::vector<MadeTensor>& tensors, DType dtype,
                       const std::map<std::string, std::string>& metadata) {
  io::SafetensorsWriter writer;
  for (const auto& [key, text] : metadata) writer.set_metadata(key, text);
  for (const MadeTensor& tensor : tensors) writer.add_tensor(tensor.name, dtype, tensor.shape);
  writer.begin(file);
  for (const MadeTensor& tensor : tensors) {
    if (dtype == DType::f32) {
      writer.write(std::as_bytes(std::span(tensor.values)));
      continue;
    }
    std::vector<uint16_t> halves;
    for (const float value : tensor.values) {
      halves.push_back(dtype == DType::bf16 ? to_bf16(value).bits : to_f16(value).bits);
    }
    writer.write(std::as_bytes(std::span(halves)));
  }
  writer.finish();
}

fs::path image_data(const std::string& name) {
  return fs::path(test::data_folder()) / "models/image/data" / name;
}

ImageFolder::ImageFolder(const std::string& case_name) {
  std::string pattern = (fs::temp_directory_path() / "rbee-image-XXXXXX").string();
  root_ = mkdtemp(pattern.data());
  path_ = root_ / case_name;
  fs::copy(image_data(case_name) / "model", path_, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (entry.path().filename() == "tensors.json") write_weights(entry.path().parent_path());
  }
}

ImageFolder::~ImageFolder() {
  std::error_code error;
  fs::remove_all(root_, error);
}

void ImageFolder::edit(const std::string& file, const std::string& from,
                       const std::string& to) const {
  std::string text = read_file(path_ / file);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << file << " has no " << from;
  text.replace(at, from.size(), to);
  std::ofstream(path_ / file, std::ios::binary) << text;
}

}  // namespace rbee::test
