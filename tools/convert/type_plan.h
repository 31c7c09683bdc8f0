#pragma once
// Which type each tensor of the new file gets, and why.

#include <span>
#include <string>
#include <vector>

#include "tools/convert/recipe.h"
#include "tools/convert/source_tensor.h"

namespace rbee::tools {

struct TensorPlan {
  const SourceTensor* tensor = nullptr;
  DType to = DType::f32;
  std::string why;  // empty: the recipe's base type
};

struct PlanOptions {
  const Recipe& recipe;
  bool pure = false;  // the base type for every matrix
  bool gguf = true;   // the new file is one
  int64_t gqa = 1;    // heads that share a head of keys and values
  int64_t experts = 1;
  bool weighted = false;  // there is an importance matrix
};

// The rules, first match wins:
//  1. integers stay as they are;
//  2. in GGUF files vectors, norms, the routers of mixtures of experts and of encoders the tables
//     of places and segments and the head that ranks become f32: small, and sensitive;
//  3. unless `pure`, the output matrix, or the token table where that is the output matrix too,
//     becomes q6_k at least, in files of the smallest types q5_k (q8_0 where rows do not divide
//     into the base type's block): its errors meet every logit directly. Stored in a block type
//     below that, it stays as stored;
//  4. everything else gets the recipe's type for its place, or where its rows do not divide into
//     that type's block the next one whose block fits: q2_k, q3_k, tq1_0, tq2_0 -> q4_0; iq1 to
//     iq4_xs, nvfp4 -> iq4_nl; q4_k -> q5_0; q5_k -> q5_1; q6_k, q8_k -> q8_0; and f16 where not
//     even 32 fits.
std::vector<TensorPlan> plan_types(std::span<const SourceTensor> tensors,
                                   const PlanOptions& options);

}  // namespace rbee::tools
