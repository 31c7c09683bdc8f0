#include "rbee/engine/text/model_memory.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/models/config_reader.h"

namespace rbee::engine {
namespace {

// Kernels, their workspace, a step's activations and logits.
constexpr int64_t kRoom = int64_t{512} << 20;
constexpr int64_t kCacheBytes = 2;  // of a key's or value's number
constexpr int64_t kUsualContext = 4096;

constexpr models::Limits kFromZero{0, int64_t{1} << 24};

int64_t read(const models::ConfigReader& reader, models::Field field, int64_t fallback) {
  return reader.integer(field, fallback, kFromZero);
}

int64_t layers_of(const models::ConfigReader& reader) {
  return read(reader, {"block_count", "num_hidden_layers|n_layer"}, 0);
}

// Numbers that a token's keys and values have in one layer. Settings that a family leaves out
// count as 0: the estimate has no family's defaults.
int64_t numbers_of_token(const models::ConfigReader& reader) {
  const int64_t latent = read(reader, {"attention.kv_lora_rank", "kv_lora_rank"}, 0);
  if (latent > 0) return latent + read(reader, {"rope.dimension_count", "qk_rope_head_dim"}, 0);
  const int64_t width = read(reader, {"embedding_length", "hidden_size|n_embd"}, 0);
  const int64_t heads = read(reader, {"attention.head_count", "num_attention_heads|n_head"}, 0);
  const int64_t kv_heads = read(reader, {"attention.head_count_kv", "num_key_value_heads"}, heads);
  const int64_t head_dim =
      read(reader, {"attention.key_length", "head_dim"}, width / std::max<int64_t>(heads, 1));
  return 2 * kv_heads * head_dim;
}

// Bytes of one layer's keys and values of a context.
int64_t cache_bytes(const models::ConfigReader& reader, const TextModelOptions& options) {
  const int64_t trained =
      reader.integer({"context_length", "max_position_embeddings|n_positions"}, kUsualContext);
  const int64_t context = options.context > 0 ? options.context : std::min(trained, kUsualContext);
  return context * numbers_of_token(reader) * kCacheBytes;
}

// The layer that a tensor belongs to: "blk.3.attn_q.weight", "model.layers.3.mlp.up_proj.weight".
std::optional<int64_t> layer_of(std::string_view name) {
  for (const std::string_view mark : {"blk.", "layers."}) {
    const size_t at = name.find(mark);
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) continue;
    const char* const end = name.data() + name.size();
    int64_t layer = 0;
    const auto [rest, error] = std::from_chars(name.data() + at + mark.size(), end, layer);
    if (error == std::errc{} && rest != end && *rest == '.') return layer;
  }
  return std::nullopt;
}

bool is_token_table(std::string_view name) {
  return name.starts_with("token_embd.") || name.find("embed_tokens.") != std::string_view::npos;
}

bool is_output(std::string_view name) {
  return name.starts_with("output.") || name.find("lm_head.") != std::string_view::npos;
}

}  // namespace

int64_t text_model_memory(const std::filesystem::path& path, const TextModelOptions& options) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const models::ConfigReader reader(checkpoint, "text_config");
  int64_t bytes = checkpoint.file_bytes() + layers_of(reader) * cache_bytes(reader, options);
  if (!options.mmproj.empty()) bytes += io::Checkpoint::open(options.mmproj).file_bytes();
  return bytes + kRoom;
}

FittingLayers fitting_gpu_layers(const std::filesystem::path& path, const TextModelOptions& options,
                                 int64_t free) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const models::ConfigReader reader(checkpoint, "text_config");
  const int64_t layers = layers_of(reader);
  FittingLayers out{.all = layers + 1};
  std::vector<int64_t> bytes(static_cast<size_t>(layers), cache_bytes(reader, options));
  int64_t table = 0, output = 0, others = kRoom;
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    const auto size = static_cast<int64_t>(entry.data.size());
    const std::optional<int64_t> layer = layer_of(entry.name);
    if (layer && *layer < layers) {
      bytes[static_cast<size_t>(*layer)] += size;
    } else {
      (is_token_table(entry.name) ? table : is_output(entry.name) ? output : others) += size;
    }
  }
  if (!options.mmproj.empty()) others += io::Checkpoint::open(options.mmproj).file_bytes();
  // A model without an output matrix multiplies by the token table.
  int64_t left = free - others - (output > 0 ? output : table);
  if (left < 0) return out;
  for (auto layer = bytes.rbegin(); layer != bytes.rend() && left >= *layer; ++layer) {
    left -= *layer;
    ++out.count;
  }
  // With all layers the token table is there too.
  const bool all = out.count == layers && (output == 0 || left >= table);
  out.count = all ? out.all : std::min(out.count + 1, layers);
  return out;
}

}  // namespace rbee::engine
