#include "rbee/models/gpt_oss/config.h"

#include <cmath>

namespace rbee::models {
namespace {

constexpr const char* kOp = "model config";

float read_limit(const ConfigReader& reader) {
  constexpr Field kAlpha{"", "swiglu_alpha"};
  constexpr double kOwnAlpha = 1.702;
  const double alpha = reader.number(kAlpha, kOwnAlpha, {});
  if (std::fabs(alpha - kOwnAlpha) > 1e-6) {
    fail(Code::unsupported, kOp, reader.describe(kAlpha), " is ", alpha, "; only ", kOwnAlpha,
         " is implemented");
  }
  constexpr Field kLimit{"", "swiglu_limit"};
  return static_cast<float>(reader.number(kLimit, 7, io::kAboveZero));
}

}  // namespace

GptOssConfig read_gpt_oss_config(const ConfigReader& reader) {
  GptOssConfig config{read_common(reader, {.kv_heads = 8,
                                           .head_dim = 64,
                                           .context_length = 131072,
                                           .norm_eps = 1e-5,
                                           .experts = true,
                                           .mxfp4 = true})};
  config.rope = read_rope(reader, config, 150000);
  if (reader.is_gguf()) config.rope.truncate = false;  // which these files do not say
  config.windows = layer_windows(reader, config, read_window(reader, 128),
                                 [](int64_t layer) { return layer % 2 == 0; });
  config.experts = read_experts(reader);
  config.expert_ffn_dim = reader.integer({"expert_feed_forward_length", ""}, config.ffn_dim);
  config.swiglu_limit = read_limit(reader);
  return config;
}

}  // namespace rbee::models
