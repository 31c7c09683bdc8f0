#include "cli/token_work.h"

#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "rbee/io/checkpoint.h"
#include "rbee/models/config_reader.h"
#include "rbee/models/tensor_roles.h"

namespace rbee::tools {
namespace {

constexpr models::Limits kFromZero{0, int64_t{1} << 24};

// A matrix's bytes as kernels read them: packed integers and FP8 codes become blocks with scales.
double bytes_in_memory(const io::TensorEntry& tensor) {
  const int64_t in = tensor.shape.rank() > 0 ? tensor.shape[tensor.shape.rank() - 1] : 1;
  const bool groups = tensor.scales.values != nullptr && in % info(DType::f8_g128).block_size == 0;
  if (tensor.integers == nullptr && !groups) return static_cast<double>(tensor.data.size());
  const int64_t row = row_bytes(groups ? DType::f8_g128 : tensor.dtype, in);
  return static_cast<double>(numel(tensor.shape) / in * row);
}

double share_of_experts(const io::Checkpoint& checkpoint) {
  const models::ConfigReader reader(checkpoint, "text_config");
  const int64_t all = reader.integer(
      {"expert_count", "num_local_experts|num_experts|n_routed_experts|moe_num_experts"}, 0,
      kFromZero);
  const int64_t chosen =
      reader.integer({"expert_used_count", "num_experts_per_tok|moe_topk|moe_k"}, all, kFromZero);
  return all > 0 ? static_cast<double>(chosen) / static_cast<double>(all) : 1;
}

std::set<int64_t> layers_with_experts(const io::Checkpoint& checkpoint) {
  std::set<int64_t> out;
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    const std::optional<int64_t> layer = models::layer_of(tensor.name);
    if (layer && models::is_expert(tensor.name)) out.insert(*layer);
  }
  return out;
}

}  // namespace

TokenWork::TokenWork(const std::string& path, const models::LanguageModel& model) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  share_ = share_of_experts(checkpoint);
  const models::ModelConfig& config = model.config();
  const int64_t host_layers = model.host_layers().count;
  std::set<int64_t> cpu_moe = layers_with_experts(checkpoint);  // layers, the first ones
  std::erase_if(cpu_moe, [&](int64_t layer) { return layer < host_layers; });
  while (std::ssize(cpu_moe) > model.cpu_moe_layers()) cpu_moe.erase(std::prev(cpu_moe.end()));
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    const bool expert = models::is_expert(tensor.name);
    const std::optional<int64_t> layer = models::layer_of(tensor.name);
    if (layer && *layer >= config.layers) continue;  // predicts further tokens: not loaded
    const bool on_host = layer && (*layer < host_layers || (expert && cpu_moe.contains(*layer)));
    const auto add = [&](Load& load, double value) {
      Parts& parts = expert ? load.experts : load.all_take;
      (on_host ? parts.host : parts.device) += value;
    };
    const bool table = tensor.shape == Shape{config.vocab_size, config.dim};
    const bool looked_up = table && models::is_token_table(tensor.name);
    if (!looked_up || config.tied_embeddings) add(bytes_, bytes_in_memory(tensor));
    if (!table) add(operations_, 2 * static_cast<double>(numel(tensor.shape)));
  }
}

TokenWork::Parts TokenWork::with_experts(const Load& load, double share) {
  return {.device = load.all_take.device + share * load.experts.device,
          .host = load.all_take.host + share * load.experts.host};
}

TokenWork::Parts TokenWork::bytes(int sequences) const {
  return with_experts(bytes_, 1 - std::pow(1 - share_, sequences));
}

TokenWork::Parts TokenWork::operations() const {
  return with_experts(operations_, share_);
}

}  // namespace rbee::tools
