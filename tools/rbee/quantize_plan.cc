#include "tools/rbee/quantize_plan.h"

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
  if (tensor.shape.rank() < 2) return true;
  for (const char* part : {"norm", "ffn_gate_inp", "mlp.gate.weight"}) {
    if (tensor.name.find(part) != std::string::npos) return true;
  }
  return false;
}

bool is_table(std::string_view name) {
  for (const char* end :
       {"token_embd.weight", "output.weight", "embed_tokens.weight", "lm_head.weight"}) {
    // blk.N.attn_output.weight is none of them.
    if (name == end ||
        (name.ends_with(end) && name[name.size() - std::string_view(end).size() - 1] == '.')) {
      return true;
    }
  }
  return false;
}

DType next_above(DType dtype) {
  switch (dtype) {
    case DType::q2_k:
    case DType::q3_k:
    case DType::iq4_xs:
      return DType::iq4_nl;
    case DType::q4_k:
      return DType::q5_0;
    case DType::q5_k:
      return DType::q5_1;
    case DType::q6_k:
      return DType::q8_0;
    default:
      return DType::f16;
  }
}

// `wanted`, or what takes its place where the tensor's rows do not divide into its block.
TensorPlan fitting(const io::TensorEntry& tensor, DType wanted, std::string why) {
  TensorPlan plan{&tensor, wanted, std::move(why)};
  while (!fits(tensor, plan.to)) plan.to = next_above(plan.to);
  if (plan.to != wanted) {
    if (!plan.why.empty()) plan.why += "; ";
    plan.why += cat("rows of ", tensor.shape[tensor.shape.rank() - 1],
                    " do not divide into blocks of ", info(wanted).block_size, " for ", wanted);
  }
  return plan;
}

TensorPlan plan_table(const io::TensorEntry& tensor, DType wanted) {
  const DType better = fits(tensor, DType::q6_k) ? DType::q6_k : DType::q8_0;
  const TensorPlan asked = fitting(tensor, wanted, "");
  if (bits_per_element(asked.to) >= bits_per_element(better)) return asked;
  constexpr const char* kWhy = "meets every token or logit directly";
  if (is_quantized(tensor.dtype) && bits_per_element(tensor.dtype) <= bits_per_element(better)) {
    return {&tensor, tensor.dtype, cat(kWhy, "; kept as stored")};
  }
  return fitting(tensor, better, kWhy);
}

TensorPlan plan_tensor(const io::TensorEntry& tensor, DType wanted, bool pure, bool gguf) {
  if (is_integer(tensor.dtype)) return {&tensor, tensor.dtype, "integers"};
  // Hugging Face files have vectors in the type of the rest; programs that read GGUF want f32.
  if (gguf && stays_f32(tensor)) {
    return {&tensor, DType::f32, wanted == DType::f32 ? "" : "a vector, norm or router"};
  }
  if (!pure && is_quantized(wanted) && is_table(tensor.name)) return plan_table(tensor, wanted);
  return fitting(tensor, wanted, "");
}

}  // namespace

std::vector<TensorPlan> plan_types(const io::Checkpoint& checkpoint, DType wanted, bool pure) {
  const bool gguf = checkpoint.format() == io::Checkpoint::Format::gguf;
  std::vector<TensorPlan> plans;
  plans.reserve(checkpoint.tensors().size());
  for (const io::TensorEntry& tensor : checkpoint.tensors()) {
    plans.push_back(plan_tensor(tensor, wanted, pure, gguf));
  }
  return plans;
}

uint32_t gguf_file_type(DType wanted) {
  switch (wanted) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::q4_0:
      return 2;
    case DType::q4_1:
      return 3;
    case DType::q8_0:
      return 7;
    case DType::q5_0:
      return 8;
    case DType::q5_1:
      return 9;
    case DType::q2_k:
      return 10;
    case DType::q3_k:
      return 11;
    case DType::q4_k:
      return 14;
    case DType::q5_k:
      return 16;
    case DType::q6_k:
      return 18;
    case DType::iq4_nl:
      return 25;
    case DType::iq4_xs:
      return 30;
    case DType::bf16:
      return 32;
    case DType::mxfp4:
      return 38;
    default:
      fail(Code::unsupported, "quantize", "files of type ", wanted, " have no number");
  }
}

}  // namespace rbee::tools
