#include "tests/models/image/original_layout.h"

#include <cstring>
#include <fstream>

#include "rbee/core/cat.h"
#include "rbee/core/half.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/quant/quant.h"

namespace rbee::test {

namespace fs = std::filesystem;

std::string replaced(std::string name, const Replacements& list) {
  for (const auto& [from, to] : list) {
    const size_t at = name.find(from);
    if (at != std::string::npos) return name.replace(at, from.size(), to);
  }
  return name;
}

std::string original_vae(const std::string& name, int64_t levels) {
  Replacements blocks = {{"mid_block.resnets.0", "mid.block_1"},
                         {"mid_block.resnets.1", "mid.block_2"},
                         {"mid_block.attentions.0.group_norm", "mid.attn_1.norm"},
                         {"mid_block.attentions.0.to_q", "mid.attn_1.q"},
                         {"mid_block.attentions.0.to_k", "mid.attn_1.k"},
                         {"mid_block.attentions.0.to_v", "mid.attn_1.v"},
                         {"mid_block.attentions.0.to_out.0", "mid.attn_1.proj_out"},
                         {"conv_norm_out", "norm_out"}};
  for (int64_t i = 0; i < levels; ++i) {
    const std::string down = cat("down.", i), up = cat("up.", levels - 1 - i);
    blocks.emplace_back(cat("down_blocks.", i, ".resnets"), down + ".block");
    blocks.emplace_back(cat("down_blocks.", i, ".downsamplers.0"), down + ".downsample");
    blocks.emplace_back(cat("up_blocks.", i, ".resnets"), up + ".block");
    blocks.emplace_back(cat("up_blocks.", i, ".upsamplers.0"), up + ".upsample");
  }
  return replaced(replaced(name, blocks), {{"conv_shortcut", "nin_shortcut"}});
}

void write_gguf(const fs::path& file, const std::vector<MadeTensor>& tensors,
                const std::vector<std::string>& tokens) {
  constexpr int64_t kBlock = 32;
  io::GgufWriter writer;
  if (!tokens.empty()) writer.set_strings("tokenizer.ggml.tokens", tokens);
  std::vector<std::vector<std::byte>> data;
  for (const MadeTensor& tensor : tensors) {
    const int64_t columns = tensor.shape[tensor.shape.rank() - 1];
    const bool blocks = tensor.shape.rank() == 2 && columns % kBlock == 0;
    const DType type = blocks ? DType::q8_0 : DType::f16;
    writer.add_tensor(tensor.name, type, tensor.shape);
    const auto elements = static_cast<int64_t>(tensor.values.size());
    std::vector<std::byte>& bytes =
        data.emplace_back(static_cast<size_t>(elements / columns * row_bytes(type, columns)));
    if (blocks) {
      quant::quantize_row(type, tensor.values.data(), bytes.data(), elements);
      continue;
    }
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      const f16 half = to_f16(tensor.values[i]);
      std::memcpy(&bytes[2 * i], &half, 2);
    }
  }
  writer.begin(file);
  for (const auto& bytes : data) writer.write(bytes);
  writer.finish();
}

void write_comfy_gguf(const fs::path& file, const std::vector<MadeTensor>& tensors,
                      std::string_view architecture) {
  constexpr int64_t kLeast = 512, kRow = 256;
  io::GgufWriter writer;
  writer.set_string("general.architecture", architecture);
  std::vector<std::vector<std::byte>> data;
  for (const MadeTensor& tensor : tensors) {
    const auto elements = static_cast<int64_t>(tensor.values.size());
    const bool blocks = tensor.shape.rank() > 1 && elements >= kLeast && elements % kRow == 0;
    const bool cut = blocks && tensor.shape[tensor.shape.rank() - 1] % kRow != 0;
    const DType type = blocks ? DType::q8_0 : DType::f32;
    writer.add_tensor(tensor.name, type, cut ? Shape{elements / kRow, kRow} : tensor.shape);
    if (cut) {
      const std::vector<int32_t> sizes(tensor.shape.begin(), tensor.shape.end());
      writer.set_ints(cat("comfy.gguf.orig_shape.", tensor.name), sizes);
    }
    std::vector<std::byte>& bytes =
        data.emplace_back(static_cast<size_t>(blocks ? row_bytes(type, elements) : 4 * elements));
    if (blocks) {
      quant::quantize_row(type, tensor.values.data(), bytes.data(), elements);
    } else {
      std::memcpy(bytes.data(), tensor.values.data(), bytes.size());
    }
  }
  writer.begin(file);
  for (const auto& bytes : data) writer.write(bytes);
  writer.finish();
}

namespace {

// A file's header and data while they are built.
struct RawFile {
  std::string header, data;

  void add(const std::string& name, const char* type, const Shape& shape, const void* bytes,
           size_t size) {
    std::string sizes;
    for (const int64_t n : shape) sizes += cat(sizes.empty() ? "" : ",", n);
    header += cat(header.empty() ? "{\"" : ",\"", name, "\":{\"dtype\":\"", type, "\",\"shape\":[",
                  sizes, "],\"data_offsets\":[", data.size(), ",", data.size() + size, "]}");
    data.append(static_cast<const char*>(bytes), size);
  }
  void write(const std::filesystem::path& path) {
    header += '}';
    const uint64_t length = header.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length) << header << data;
  }
};

// The upper half of an f16, rounded to nearest even.
uint8_t to_e5m2(float value) {
  const uint32_t bits = to_f16(value).bits;
  return static_cast<uint8_t>((bits + 0x7fu + ((bits >> 8) & 1u)) >> 8);
}

float from_e5m2(uint8_t byte) {
  return to_float(f16{static_cast<uint16_t>(byte << 8)});
}

}  // namespace

void round_vectors(std::vector<MadeTensor>& tensors) {
  for (MadeTensor& tensor : tensors) {
    if (tensor.shape.rank() > 1) continue;
    for (float& value : tensor.values) value = to_float(to_bf16(value));
  }
}

void write_fp8(const std::filesystem::path& file, std::vector<MadeTensor>& tensors, Fp8 kind) {
  RawFile out;
  for (MadeTensor& tensor : tensors) {
    if (tensor.shape.rank() < 2 && kind != Fp8::whole) {
      std::vector<f16> halves;
      halves.reserve(tensor.values.size());
      for (const float value : tensor.values) halves.push_back(to_f16(value));
      out.add(tensor.name, "F16", tensor.shape, halves.data(), 2 * halves.size());
      continue;
    }
    constexpr float kScale = 1.0f / 256;
    const bool weight = tensor.name.ends_with(".weight");
    const bool described = kind == Fp8::described && weight;
    const bool scaled = kind == Fp8::scaled && weight;
    const float scale = scaled || described ? kScale : 1;
    std::vector<uint8_t> bytes;
    for (float& value : tensor.values) {
      const bool e5m2 = kind == Fp8::e5m2;
      bytes.push_back(e5m2 ? to_e5m2(value) : to_f8e4m3(value / scale).bits);
      value = e5m2 ? from_e5m2(bytes.back()) : scale * to_float(f8e4m3{bytes.back()});
    }
    const char* type = kind == Fp8::e5m2 ? "F8_E5M2" : described ? "U8" : "F8_E4M3";
    out.add(tensor.name, type, tensor.shape, bytes.data(), bytes.size());
    const std::string layer = tensor.name.substr(0, tensor.name.rfind('.'));
    if (described) {
      constexpr std::string_view kWords =
          R"({"format": "float8_e4m3fn", "full_precision_matrix_mult": true})";
      out.add(layer + ".weight_scale", "F32", Shape{}, &scale, sizeof scale);
      out.add(layer + ".input_scale", "F32", Shape{}, &scale, sizeof scale);
      out.add(layer + ".comfy_quant", "U8", Shape{static_cast<int64_t>(kWords.size())},
              kWords.data(), kWords.size());
    }
    if (!scaled) continue;
    out.add(layer + ".scale_weight", "F32", Shape{}, &scale, sizeof scale);
    out.add(layer + ".scale_input", "F32", Shape{1}, &scale, sizeof scale);
  }
  if (kind == Fp8::scaled) out.add("scaled_fp8", "F8_E4M3", Shape{0}, "", 0);
  out.write(file);
}

}  // namespace rbee::test
