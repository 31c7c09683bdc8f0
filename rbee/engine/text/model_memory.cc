#include "rbee/engine/text/model_memory.h"

#include <algorithm>

#include "rbee/io/checkpoint.h"
#include "rbee/models/config_reader.h"

namespace rbee::engine {
namespace {

// Kernels, their workspace, a step's activations and logits.
constexpr int64_t kRoom = int64_t{512} << 20;
constexpr int64_t kCacheBytes = 2;  // of a key's or value's number
constexpr int64_t kUsualContext = 4096;

// Numbers that a token's keys and values have in all layers. Settings that a family leaves out
// count as 0: the estimate has no family's defaults.
int64_t numbers_of_token(const models::ConfigReader& reader) {
  constexpr models::Limits kFromZero{0, int64_t{1} << 24};
  const auto read = [&](models::Field field, int64_t fallback) {
    return reader.integer(field, fallback, kFromZero);
  };
  const int64_t layers = read({"block_count", "num_hidden_layers|n_layer"}, 0);
  const int64_t latent = read({"attention.kv_lora_rank", "kv_lora_rank"}, 0);
  if (latent > 0) return layers * (latent + read({"rope.dimension_count", "qk_rope_head_dim"}, 0));
  const int64_t width = read({"embedding_length", "hidden_size|n_embd"}, 0);
  const int64_t heads = read({"attention.head_count", "num_attention_heads|n_head"}, 0);
  const int64_t kv_heads = read({"attention.head_count_kv", "num_key_value_heads"}, heads);
  const int64_t head_dim =
      read({"attention.key_length", "head_dim"}, width / std::max<int64_t>(heads, 1));
  return 2 * layers * kv_heads * head_dim;
}

}  // namespace

int64_t text_model_memory(const std::filesystem::path& path, const TextModelOptions& options) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const models::ConfigReader reader(checkpoint, "text_config");
  const int64_t trained =
      reader.integer({"context_length", "max_position_embeddings|n_positions"}, kUsualContext);
  const int64_t context = options.context > 0 ? options.context : std::min(trained, kUsualContext);
  int64_t bytes = checkpoint.file_bytes() + context * numbers_of_token(reader) * kCacheBytes;
  if (!options.mmproj.empty()) bytes += io::Checkpoint::open(options.mmproj).file_bytes();
  return bytes + kRoom;
}

}  // namespace rbee::engine
