#pragma once
// Mixtures of experts: see backends/api/args_experts.h.

#include "backends/shared/matvec_params.h"

namespace rbee {
namespace shared {

enum { kMostExperts = 1024, kGroupThreads = 1024, kExpertSumThreads = 256 };

// A wave for each token.
struct RouteExpertsParams {
  const float* logits;  // (tokens, experts)
  const float* bias;    // (experts); null: none
  i32* ids;             // (tokens, chosen)
  float* weights;       // (tokens, chosen)
  i32 experts, chosen, groups, kept_groups;
  i32 sigmoid, two_best, normalise;  // 0 or 1
  float scale;
};

// Mat-vecs of the chosen experts: block_y is the choice. The pointers in `one` are for the first
// row of x, the first expert and the first choice.
template <class One>
struct ExpertMatvecParams {
  One one;                         // MatvecParams or MatvecQuantParams, of one row
  const i32* ids;                  // (tokens, chosen)
  i32 each;                        // choices of a row of x
  i32 x_bytes;                     // of an element of x, bias and y
  i64 expert_bytes[kMatvecParts];  // of an expert's weight
};

// The choices in the order of their experts, for products by tiles of kExpertRows rows.
enum { kExpertRows = 64 };
struct ExpertGroupsParams {
  const i32* ids;  // (choices)
  i32* order;      // (choices)
  i32* starts;     // (experts + 1), in `order`
  i32* tiles;      // (experts + 1): tiles of the experts before
  i32 choices, experts;
};

struct ExpertTilesParams {
  const void* x;
  const void* weight;
  const void* bias;  // null: none
  void* y;
  const i32* order;
  const i32* starts;
  const i32* tiles;
  i64 outs, depth;
  i64 expert_bytes;
  i32 experts;
  i32 each;  // choices of a row of x
};

// The same on matrix units, for the experts [first, first + count). Their weight is (count, outs,
// depth), in the same type as x; rows of both begin on multiples of 16 bytes. bias and y have
// y_type.
struct ExpertGemmParams {
  const void* x;
  const void* weight;
  const void* bias;  // of all experts; null: none
  void* y;           // (choices, outs)
  const i32* order;
  const i32* starts;
  const i32* tiles;
  i32 choices, outs, depth;
  i32 first, count;
  i32 each;    // choices of a row of x
  i32 y_type;  // 0: f32, 1: f16, 2: bf16
};

struct ExpertSumParams {
  const void* x;         // (tokens * chosen, dim)
  const float* weights;  // (tokens, chosen)
  void* y;               // (tokens, dim)
  i64 tokens, dim;
  i32 chosen;
};

}  // namespace shared
}  // namespace rbee
