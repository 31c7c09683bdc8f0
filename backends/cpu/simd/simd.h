#pragma once
// The fast implementations for x86-64 and arm64, by operation.

#include "backends/api/args_attention.h"
#include "backends/api/args_conv.h"
#include "backends/api/args_elementwise.h"
#include "backends/api/args_image.h"
#include "backends/api/args_matmul.h"
#include "backends/api/args_norm.h"
#include "backends/api/args_recurrent.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<Conv1dArgs> avx2_conv1d, avx512_conv1d, neon_conv1d;
extern const Impl<Conv2dArgs> avx2_conv2d, avx512_conv2d, neon_conv2d;
extern const Impl<MatmulArgs> avx2_matmul, avx512_matmul, neon_matmul;
extern const Impl<RmsNormArgs> avx2_rms_norm, avx512_rms_norm, neon_rms_norm;
extern const Impl<AddRmsNormArgs> avx2_add_rms_norm, avx512_add_rms_norm, neon_add_rms_norm;
extern const Impl<ImageGroupNormArgs> avx2_image_group_norm, avx512_image_group_norm,
    neon_image_group_norm;
extern const Impl<LayerNormArgs> avx2_layer_norm, avx512_layer_norm, neon_layer_norm;
extern const Impl<UnaryArgs> avx2_unary, avx512_unary, neon_unary;
extern const Impl<BinaryArgs> avx2_binary, avx512_binary, neon_binary;
extern const Impl<CastArgs> avx2_cast, avx512_cast, neon_cast;
extern const Impl<AttentionArgs> avx2_attention, avx512_attention, avx512bf16_attention,
    amx_attention, neon_attention;
extern const Impl<GatedArgs> avx2_gated, avx512_gated, neon_gated;
extern const Impl<RopeArgs> avx2_rope, avx512_rope, neon_rope;
extern const Impl<KvAppendArgs> avx2_kv_append, avx512_kv_append, neon_kv_append;
extern const Impl<PagedAttentionArgs> avx2_paged_attention, avx512_paged_attention,
    neon_paged_attention;
extern const Impl<CausalConvArgs> avx2_causal_conv, avx512_causal_conv, neon_causal_conv;
extern const Impl<DeltaRuleArgs> avx2_delta_rule, avx512_delta_rule, neon_delta_rule;

}  // namespace rbee::cpu
