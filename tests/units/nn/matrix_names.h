#pragma once

#include "rbee/nn/weight_scope.h"

namespace rbee::test {

// Names of a table, a matrix and a stack of experts, for tests of how weights are loaded.
inline constexpr nn::TensorName kMatrixNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"blk.*.attn_q", "model.layers.*.q_proj"},
    {"blk.*.ffn_up_exps", "model.layers.*.experts.#.up_proj"}};

}  // namespace rbee::test
