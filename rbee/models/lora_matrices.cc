#include "rbee/models/lora_matrices.h"

#include <algorithm>
#include <array>
#include <set>

#include "rbee/models/registry.h"
#include "rbee/models/tensor_roles.h"
#include "rbee/nn/weight_names.h"

namespace rbee::models {
namespace {

using Table = std::span<const nn::TensorName>;

constexpr std::string_view kOutput = "output";
// What nn::Attention, nn::Mlp and a mixture's shared experts take.
constexpr std::array<std::string_view, 11> kRoles{
    "blk.*.attn_q",         "blk.*.attn_k",       "blk.*.attn_v",        "blk.*.attn_qkv",
    "blk.*.attn_output",    "blk.*.ffn_gate",     "blk.*.ffn_up",        "blk.*.ffn_down",
    "blk.*.ffn_gate_shexp", "blk.*.ffn_up_shexp", "blk.*.ffn_down_shexp"};

bool has_role(Table table, std::string_view role) {
  return std::ranges::find(table, role, &nn::TensorName::gguf) != table.end();
}

// The layers of nn::LatentAttention and nn::GatedDeltaNet take no adapters, also where they have
// the names of others.
bool may_change(Table table, std::string_view role) {
  const bool latent = has_role(table, "blk.*.attn_kv_a_mqa");
  const bool delta_net = has_role(table, "blk.*.ssm_out");
  return std::ranges::find(kRoles, role) != kRoles.end() &&
         !(latent && role.starts_with("blk.*.attn_")) && !(delta_net && role == "blk.*.attn_qkv");
}

// Tied to the token table.
const io::TensorEntry* output_matrix(const io::Checkpoint& model, const nn::WeightNames& names) {
  const auto find = [&](std::string_view role) {
    return model.find(cat(names.in_checkpoint(role, 0), ".weight"));
  };
  const io::TensorEntry* own = find(kOutput);
  return own != nullptr ? own : find("token_embd");
}

}  // namespace

std::map<std::string, Shape> lora_matrices(const io::Checkpoint& model, bool gguf) {
  const Table table = find_family(model.architecture()).tensor_names();
  const nn::WeightNames names(model, table, false);
  std::set<int64_t> layers;
  for (const io::TensorEntry& tensor : model.tensors()) {
    if (const std::optional<int64_t> layer = layer_of(tensor.name)) layers.insert(*layer);
  }
  for (const io::TensorEntry& tensor : model.tensors()) {
    if (is_of_prediction(tensor.name)) layers.erase(layer_of(tensor.name).value_or(-1));
  }
  std::map<std::string, Shape> out;
  const auto add = [&](std::string_view role, int64_t layer, const io::TensorEntry* matrix) {
    const std::string name = gguf ? nn::numbered(role, layer) : names.in_hf(role, layer);
    if (matrix != nullptr && !name.empty()) out.emplace(name, matrix->shape);
  };
  for (const nn::TensorName& name : table) {
    if (!may_change(table, name.gguf)) continue;
    for (const int64_t layer : layers) {
      add(name.gguf, layer, model.find(cat(names.in_checkpoint(name.gguf, layer), ".weight")));
    }
  }
  add(kOutput, 0, output_matrix(model, names));
  return out;
}

}  // namespace rbee::models
