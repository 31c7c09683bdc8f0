#include "rbee/engine/text/model_memory.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/models/config_reader.h"
#include "rbee/models/tensor_roles.h"
#include "rbee/tensor/weight_stream.h"

namespace rbee::engine {
namespace {

// Kernels, their workspace, a step's activations and logits.
constexpr int64_t kRoom = int64_t{512} << 20;
constexpr int64_t kCacheBytes = 2;  // of a key's or value's number
constexpr int64_t kUsualContext = 4096;
constexpr int64_t kUsualRunning = 32;  // sequences for which a layer keeps states

constexpr models::Limits kFromZero{0, int64_t{1} << 24};

int64_t read(const models::ConfigReader& reader, models::Field field, int64_t fallback) {
  return reader.integer(field, fallback, kFromZero);
}

int64_t layers_of(const models::ConfigReader& reader) {
  const int64_t all = read(reader, {"block_count", "num_hidden_layers|n_layer"}, 0);
  // GGUF counts those that predict further tokens, which are not loaded.
  return std::max<int64_t>(all - read(reader, {"nextn_predict_layers", ""}, 0), 0);
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

// Bytes of one layer's states, see nn::StateShape.
int64_t state_bytes(const models::ConfigReader& reader) {
  const int64_t taps = read(reader, {"ssm.conv_kernel", "linear_conv_kernel_dim"}, 1) - 1;
  const int64_t key_dim = read(reader, {"ssm.state_size", "linear_key_head_dim"}, 0);
  const int64_t keys = read(reader, {"ssm.group_count", "linear_num_key_heads"}, 0);
  const int64_t values = read(reader, {"ssm.inner_size", ""},
                              read(reader, {"ssm.time_step_rank", "linear_num_value_heads"}, 0) *
                                  read(reader, {"", "linear_value_head_dim"}, 0));
  const int64_t numbers = taps * (2 * keys * key_dim + values) + values * key_dim;
  return kUsualRunning * numbers * static_cast<int64_t>(sizeof(float));
}

// Bytes that each layer keeps of sequences: its keys and values, or its states.
std::vector<int64_t> kept_by_layers(const io::Checkpoint& checkpoint,
                                    const models::ConfigReader& reader,
                                    const TextModelOptions& options) {
  std::vector<int64_t> bytes(static_cast<size_t>(layers_of(reader)), cache_bytes(reader, options));
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    const std::optional<int64_t> layer = models::layer_of(entry.name);
    if (!layer || *layer >= std::ssize(bytes) || !models::is_of_state(entry.name)) continue;
    bytes[static_cast<size_t>(*layer)] = state_bytes(reader);
  }
  return bytes;
}

// Bytes of a model's parts.
struct Parts {
  struct Layer {
    int64_t experts = 0;
    int64_t rest = 0;     // with its keys and values, or its states
    int64_t largest = 0;  // of the rest's matrices
  };
  std::vector<Layer> layers;
  int64_t table = 0, output = 0;
  int64_t others = kRoom;
  bool visits = false;  // the host's weights come to the device for large steps

  int64_t experts_of_first(int64_t count) const {
    int64_t bytes = 0;
    for (const Layer& layer : first(count)) bytes += layer.experts;
    return bytes;
  }
  // What a WeightStream takes for the experts of the first layers, and for all weights of whole
  // layers: room for three, which of experts are a layer's.
  int64_t visitors(int64_t cpu_moe, bool whole_layers) const {
    int64_t bytes = 0;
    for (const Layer& layer : first(cpu_moe)) bytes = std::max(bytes, layer.experts);
    for (const Layer& layer : layers) {
      if (!whole_layers) continue;
      bytes = std::max({bytes, layer.experts, int64_t{WeightStream::kSlots} * layer.largest});
    }
    return visits ? bytes : 0;
  }
  std::span<const Layer> first(int64_t count) const {
    return std::span(layers).first(
        static_cast<size_t>(std::clamp<int64_t>(count, 0, std::ssize(layers))));
  }
};

// Of layers behind the last such tensors predict further tokens.
bool is_of_text(std::string_view name) {
  return name.starts_with("blk.") || name.starts_with("model.layers.");
}

Parts parts_of(const std::filesystem::path& path, const TextModelOptions& options) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const models::ConfigReader reader(checkpoint, "text_config");
  Parts out;
  for (const int64_t kept : kept_by_layers(checkpoint, reader, options)) {
    out.layers.push_back({.rest = kept});
  }
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    const auto size = static_cast<int64_t>(entry.data.size());
    const std::optional<int64_t> index = models::layer_of(entry.name);
    if (index && *index < std::ssize(out.layers)) {
      Parts::Layer& layer = out.layers[static_cast<size_t>(*index)];
      const bool expert = models::is_expert(entry.name);
      (expert ? layer.experts : layer.rest) += size;
      if (!expert) layer.largest = std::max(layer.largest, size);
    } else if (!index || !is_of_text(entry.name)) {
      (models::is_token_table(entry.name)     ? out.table
       : models::is_output_matrix(entry.name) ? out.output
                                              : out.others) += size;
    }
  }
  out.visits = options.op_offload_min_batch > 0;
  if (!options.mmproj.empty()) out.others += io::Checkpoint::open(options.mmproj).file_bytes();
  return out;
}

// Layers from the last one on that fit into `left` bytes.
int64_t fitting_layers(const Parts& parts, int64_t& left, int64_t cpu_moe) {
  int64_t count = 0;
  for (const auto layers = std::ssize(parts.layers); count < layers; ++count) {
    const int64_t index = layers - 1 - count;
    const Parts::Layer& layer = parts.layers[static_cast<size_t>(index)];
    const int64_t bytes = layer.rest + (index < cpu_moe ? 0 : layer.experts);
    if (left < bytes) break;
    left -= bytes;
  }
  return count;
}

// Layers and output matrix that fit, with the experts of the first `cpu_moe` layers on the host.
int64_t fitting(const Parts& parts, int64_t free, int64_t cpu_moe) {
  const auto layers = static_cast<int64_t>(parts.layers.size());
  // A model without an output matrix multiplies by the token table.
  free -= parts.others + (parts.output > 0 ? parts.output : parts.table);
  int64_t left = free - parts.visitors(cpu_moe, false);
  if (left < 0) return 0;
  // With all layers the token table is there too.
  if (fitting_layers(parts, left, cpu_moe) == layers &&
      (parts.output == 0 || left >= parts.table)) {
    return layers + 1;
  }
  left = free - parts.visitors(cpu_moe, true);
  if (left < 0) return 0;
  return std::min(fitting_layers(parts, left, cpu_moe) + 1, layers);
}

}  // namespace

int64_t text_model_memory(const std::filesystem::path& path, const TextModelOptions& options) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const models::ConfigReader reader(checkpoint, "text_config");
  int64_t bytes = checkpoint.file_bytes();
  for (const int64_t kept : kept_by_layers(checkpoint, reader, options)) bytes += kept;
  if (!options.mmproj.empty()) bytes += io::Checkpoint::open(options.mmproj).file_bytes();
  if (options.cpu_moe_layers > 0) {
    const Parts parts = parts_of(path, options);
    bytes -= parts.experts_of_first(options.cpu_moe_layers);
    bytes += parts.visitors(options.cpu_moe_layers, false);
  }
  return bytes + kRoom;
}

FittingLayers fitting_gpu_layers(const std::filesystem::path& path, const TextModelOptions& options,
                                 int64_t free, CpuMoe experts) {
  const Parts parts = parts_of(path, options);
  const auto layers = static_cast<int64_t>(parts.layers.size());
  FittingLayers out{.all = layers + 1, .cpu_moe_layers = options.cpu_moe_layers};
  out.count = fitting(parts, free, out.cpu_moe_layers);
  if (experts == CpuMoe::as_given || parts.experts_of_first(layers) == 0) return out;
  for (out.cpu_moe_layers = 0; out.cpu_moe_layers < layers; ++out.cpu_moe_layers) {
    out.count = fitting(parts, free, out.cpu_moe_layers);
    if (out.count == out.all) return out;
  }
  out.count = fitting(parts, free, layers);
  return out;
}

}  // namespace rbee::engine
