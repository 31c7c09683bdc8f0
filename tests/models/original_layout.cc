#include "tests/models/original_layout.h"

#include <cstring>

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
    blocks.push_back({cat("down_blocks.", i, ".resnets"), down + ".block"});
    blocks.push_back({cat("down_blocks.", i, ".downsamplers.0"), down + ".downsample"});
    blocks.push_back({cat("up_blocks.", i, ".resnets"), up + ".block"});
    blocks.push_back({cat("up_blocks.", i, ".upsamplers.0"), up + ".upsample"});
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

}  // namespace rbee::test
