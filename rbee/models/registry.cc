#include "rbee/models/registry.h"

#include <algorithm>

#include "rbee/models/deepseek/model.h"
#include "rbee/models/embedding_model.h"
#include "rbee/models/gemma/model.h"
#include "rbee/models/gemma2/model.h"
#include "rbee/models/gemma3/model.h"
#include "rbee/models/glm4/model.h"
#include "rbee/models/gpt_oss/model.h"
#include "rbee/models/llama/model.h"
#include "rbee/models/llama_moe/model.h"
#include "rbee/models/mixtral/model.h"
#include "rbee/models/olmo2/model.h"
#include "rbee/models/phi3/model.h"
#include "rbee/models/qwen2/model.h"
#include "rbee/models/qwen3/model.h"
#include "rbee/models/qwen3_next/model.h"
#include "rbee/models/qwen_moe/model.h"
#include "rbee/models/stablelm/model.h"

namespace rbee::models {
namespace {

constexpr Family kFamilies[] = {
    {"llama", load_llama, llama_tensor_names},
    {"mistral", load_llama, llama_tensor_names},
    {"mistral3", load_llama, llama_tensor_names},
    {"ministral3", load_llama, llama_tensor_names},
    {"granite", load_llama, llama_tensor_names},
    {"smollm3", load_llama, llama_tensor_names},
    {"seed_oss", load_llama, seed_oss_tensor_names},
    {"ernie4_5", load_llama, llama_tensor_names},
    {"hunyuan-dense", load_llama, hunyuan_tensor_names},
    {"hunyuan_v1_dense", load_llama, hunyuan_tensor_names},
    {"olmo2", load_olmo2, olmo2_tensor_names},
    {"olmo3", load_olmo2, olmo2_tensor_names},
    {"exaone4", load_olmo2, olmo2_tensor_names},
    {"glm4", load_glm4, glm4_tensor_names},
    {"cohere2", load_stablelm, stablelm_tensor_names},
    {"stablelm", load_stablelm, stablelm_tensor_names},
    {"qwen2", load_qwen2, qwen2_tensor_names},
    {"qwen3", load_qwen3, qwen3_tensor_names},
    {"gemma2", load_gemma2, gemma2_tensor_names},
    {"gemma3", load_gemma3, gemma3_tensor_names},
    {"gemma", load_gemma, gemma_tensor_names},
    {"phi3", load_phi3, phi3_tensor_names},
    {"gemma3_text", load_gemma3, gemma3_tensor_names},
    {"gemma-embedding", load_gemma3, gemma3_tensor_names},
    {"deepseek2", load_deepseek, deepseek_tensor_names},
    {"deepseek_v2", load_deepseek, deepseek_tensor_names},
    {"deepseek_v3", load_deepseek, deepseek_tensor_names},
    {"kimi_k2", load_deepseek, deepseek_tensor_names},
    {"glm4_moe_lite", load_deepseek, deepseek_tensor_names},
    {"gpt-oss", load_gpt_oss, gpt_oss_tensor_names},
    {"gpt_oss", load_gpt_oss, gpt_oss_tensor_names},
    {"mixtral", load_mixtral, mixtral_tensor_names},
    {"qwen2moe", load_qwen2_moe, qwen_moe_tensor_names},
    {"qwen2_moe", load_qwen2_moe, qwen_moe_tensor_names},
    {"qwen3moe", load_qwen3_moe, qwen_moe_tensor_names},
    {"qwen3_moe", load_qwen3_moe, qwen_moe_tensor_names},
    {"glm4moe", load_llama_moe, glm4_moe_tensor_names},
    {"glm4_moe", load_llama_moe, glm4_moe_tensor_names},
    {"minimax-m2", load_llama_moe, minimax_m2_tensor_names},
    {"minimax_m2", load_llama_moe, minimax_m2_tensor_names},
    {"ernie4_5-moe", load_llama_moe, ernie4_5_moe_tensor_names},
    {"ernie4_5_moe", load_llama_moe, ernie4_5_moe_tensor_names},
    {"hunyuan-moe", load_llama_moe, hunyuan_moe_tensor_names},
    {"hunyuan_v1_moe", load_llama_moe, hunyuan_moe_tensor_names},
    {"qwen3next", load_qwen3_next, qwen3_next_tensor_names},
    {"qwen3_next", load_qwen3_next, qwen3_next_tensor_names},
    {"qwen35", load_qwen3_next, qwen3_next_tensor_names},
    {"qwen35moe", load_qwen3_next, qwen3_next_tensor_names},
    {"qwen3_5", load_qwen3_next, qwen3_next_tensor_names},
    {"qwen3_5_text", load_qwen3_next, qwen3_next_tensor_names},
    {"qwen3_5_moe", load_qwen3_next, qwen3_next_tensor_names},
    {"qwen3_5_moe_text", load_qwen3_next, qwen3_next_tensor_names},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family& find_family(std::string_view architecture) {
  if (is_encoder(architecture)) {
    fail(Code::unsupported, "model", "architecture \"", architecture,
         "\" makes embeddings, not text");
  }
  const auto family = std::ranges::find(kFamilies, architecture, &Family::architecture);
  if (family != std::end(kFamilies)) return *family;
  std::string known;
  for (const Family& each : kFamilies) known += cat(known.empty() ? "" : ", ", each.architecture);
  fail(Code::unsupported, "model", "architecture \"", architecture,
       "\" is not implemented; known are ", known);
}

std::unique_ptr<LanguageModel> load_language_model(const io::Checkpoint& checkpoint,
                                                   const LoadOptions& options) {
  check(options.device != nullptr, "load_language_model", "no device is given");
  auto model = find_family(checkpoint.architecture()).load(checkpoint, options);
  if (options.pictures != nullptr && model->pictures() == nullptr) {
    fail(Code::unsupported, "mmproj", "models of architecture \"", checkpoint.architecture(),
         "\" take no pictures here; gemma3's do");
  }
  return model;
}

}  // namespace rbee::models
