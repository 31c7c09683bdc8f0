#include "tools/convert/type_plan.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "rbee/core/error.h"

namespace rbee::tools {
namespace {

double bits_per_element(DType dtype) {
  return 8.0 * info(dtype).block_bytes / info(dtype).block_size;
}

bool fits(const io::TensorEntry& tensor, DType dtype) {
  const int64_t columns = tensor.shape[tensor.shape.rank() - 1];
  return columns % info(dtype).block_size == 0;
}

bool stays_f32(const io::TensorEntry& tensor) {
  if (tensor.shape.rank() < 2 || tensor.name.starts_with("cls.")) return true;
  for (const char* part :
       {"norm", "ffn_gate_inp", "mlp.gate.weight", "position_embd", "token_types"}) {
    if (tensor.name.find(part) != std::string::npos) return true;
  }
  return false;
}

Role role_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (has(".attn_v.") || has(".attn_qkv.")) return Role::attn_v;
  if (has(".attn_q.")) return Role::attn_q;
  if (has(".attn_k.")) return Role::attn_k;
  if (has(".attn_output.")) return Role::attn_output;
  if (has(".ffn_gate")) return Role::ffn_gate;
  if (has(".ffn_up")) return Role::ffn_up;
  return has(".ffn_down") ? Role::ffn_down : Role::other;
}

// N of "blk.N.attn_v.weight"; 0 for tensors of no layer.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  int64_t layer = 0;
  if (name.starts_with(kPrefix)) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  }
  return layer;
}

DType next_above(DType dtype) {
  switch (dtype) {
    case DType::q2_k:
    case DType::q3_k:
    case DType::tq1_0:
    case DType::tq2_0:
      return DType::q4_0;
    case DType::iq1_s:
    case DType::iq1_m:
    case DType::iq2_xxs:
    case DType::iq2_xs:
    case DType::iq2_s:
    case DType::iq3_xxs:
    case DType::iq3_s:
    case DType::iq4_xs:
    case DType::nvfp4:
      return DType::iq4_nl;
    case DType::q4_k:
      return DType::q5_0;
    case DType::q5_k:
      return DType::q5_1;
    case DType::q6_k:
    case DType::q8_k:
      return DType::q8_0;
    default:
      return DType::f16;
  }
}

// `wanted`, or the type that replaces it if the tensor's rows do not divide into its block.
TensorPlan fitting(const SourceTensor& tensor, DType wanted, std::string why) {
  TensorPlan plan{&tensor, wanted, std::move(why)};
  while (!fits(tensor.stored, plan.to)) plan.to = next_above(plan.to);
  if (plan.to != wanted) {
    const Shape& shape = tensor.stored.shape;
    if (!plan.why.empty()) plan.why += "; ";
    plan.why += cat("rows of ", shape[shape.rank() - 1], " do not divide into blocks of ",
                    info(wanted).block_size, " for ", wanted);
  }
  return plan;
}

class Planner {
 public:
  Planner(std::span<const SourceTensor> tensors, const PlanOptions& options) : options_(options) {
    for (const SourceTensor& each : tensors) {
      has_output_ = has_output_ || each.stored.name == "output.weight";
      layers_ = std::max(layers_, layer_of(each.stored.name) + 1);
    }
  }

  TensorPlan plan(const SourceTensor& tensor) const {
    const DType base = options_.recipe.base;
    const io::TensorEntry& stored = tensor.stored;
    if (is_integer(stored.dtype) && !stored.is_e5m2) return {&tensor, stored.dtype, "integers"};
    // Hugging Face files have vectors in the type of the rest; programs that read GGUF want f32.
    if (options_.gguf && stays_f32(stored)) {
      return {&tensor, DType::f32, base == DType::f32 ? "" : "small and sensitive"};
    }
    if (options_.pure || !is_quantized(base)) return fitting(tensor, base, "");
    if (stored.name == (has_output_ ? "output.weight" : "token_embd.weight")) {
      return plan_output(tensor);
    }
    const DType wanted = wanted_type(stored.name);
    return fitting(tensor, wanted, wanted == base ? "" : "the mixture");
  }

 private:
  DType wanted_type(const std::string& name) const {
    const Recipe& recipe = options_.recipe;
    if (name == "token_embd.weight") return recipe.table.value_or(recipe.base);
    return recipe.type_of({.role = role_of(name),
                           .layer = layer_of(name),
                           .layers = layers_,
                           .gqa = options_.gqa,
                           .experts = options_.experts,
                           .weighted = options_.weighted});
  }

  TensorPlan plan_output(const SourceTensor& tensor) const {
    const io::TensorEntry& stored = tensor.stored;
    const DType wanted = options_.recipe.output;
    const bool whole_blocks = fits(stored, options_.recipe.base) && fits(stored, wanted);
    const DType better = whole_blocks ? wanted : DType::q8_0;
    const TensorPlan asked = fitting(tensor, options_.recipe.base, "");
    if (bits_per_element(asked.to) >= bits_per_element(better)) return asked;
    constexpr const char* kWhy = "meets every logit directly";
    const bool kept = is_quantized(stored.dtype) && !tensor.edit.changes_values();
    if (kept && bits_per_element(stored.dtype) <= bits_per_element(better)) {
      return {&tensor, stored.dtype, cat(kWhy, "; kept as stored")};
    }
    return fitting(tensor, better, kWhy);
  }

  PlanOptions options_;
  bool has_output_ = false;
  int64_t layers_ = 1;
};

}  // namespace

std::vector<TensorPlan> plan_types(std::span<const SourceTensor> tensors,
                                   const PlanOptions& options) {
  const Planner planner(tensors, options);
  std::vector<TensorPlan> plans;
  plans.reserve(tensors.size());
  for (const SourceTensor& tensor : tensors) plans.push_back(planner.plan(tensor));
  return plans;
}

}  // namespace rbee::tools
