#pragma once
// Which type each tensor gets when a model is quantised, and why.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/dtype.h"
#include "rbee/io/checkpoint.h"

namespace rbee::tools {

struct TensorPlan {
  const io::TensorEntry* tensor = nullptr;
  DType to = DType::f32;
  std::string why;  // empty: the type that was asked for
};

// The rules, first match wins:
//  1. integers stay as they are;
//  2. in GGUF files vectors, norms and the routers of mixtures of experts become f32: small, and
//     sensitive;
//  3. unless `pure`, the token table and the output matrix become q6_k at least (q8_0 where rows do
//     not divide into 256): their errors meet every token and every logit directly. When they are
//     stored in a block type that is smaller than that, they stay as stored;
//  4. everything else gets `wanted`, or where its rows do not divide into wanted's block the
//  nearest
//     type above it whose block fits: q2_k, q3_k, iq4_xs -> iq4_nl; q4_k -> q5_0; q5_k -> q5_1;
//     q6_k -> q8_0; and f16 where not even 32 fits.
std::vector<TensorPlan> plan_types(const io::Checkpoint& checkpoint, DType wanted, bool pure);

// What llama.cpp calls the mixture in general.file_type, by the type most tensors have.
uint32_t gguf_file_type(DType wanted);

}  // namespace rbee::tools
