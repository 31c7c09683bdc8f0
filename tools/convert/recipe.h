#pragma once
// The named mixtures of weight types: which tensors of a model get more bits than the rest. They
// carry the names, and choose the types, of llama.cpp's llama-quantize
// (tests/units/quantize/data/mixtures.json holds what it prints).

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rbee/core/dtype.h"

namespace rbee::tools {

// What a matrix does, by its GGUF name.
enum class Role : uint8_t {
  other,
  attn_q,
  attn_k,
  attn_v,  // also where it lies in one tensor with q and k
  attn_output,
  ffn_gate,
  ffn_up,
  ffn_down,
};

// Where a matrix stands.
struct TensorPlace {
  Role role = Role::other;
  int64_t layer = 0;   // from 0
  int64_t layers = 1;  // of the model
  int64_t gqa = 1;     // heads that share a head of keys and values
  int64_t experts = 1;
  bool weighted = false;  // there is an importance matrix
};

// In which layers a rule holds.
enum class Where : uint8_t {
  all,
  shared_kv,             // where at least four heads share one of keys and values: little to store
  shared_kv_or_experts,  // also where there are at least four experts
  eight_experts,         // of Mixtral's shape, in which other matrices are few
  unless_eight_experts,
  deep_shared_kv,         // 80 layers and shared heads, the shape of Llama 2 70B
  deep_widely_shared_kv,  // both
  more_bits,              // the first and last eighth, and every third layer between
  more_bits_of_eight_experts,
  first_eighth,
  first_eighth_weighted,    // with an importance matrix
  first_eighth_unweighted,  // without one
  unweighted,               // all, without one
  middle,                   // all but the first and the last eighth
  first_sixteenth,
  first_two,
  first_four,
};

struct TensorRule {
  Role role;
  Where where;
  DType type;
};

struct Recipe {
  std::string_view name;              // lower case, e.g. "q4_k_m"
  DType base;                         // of every matrix that no rule names
  std::optional<uint32_t> file_type;  // general.file_type; nothing when there is no number
  std::span<const TensorRule> rules;  // the first that fits
  DType output = DType::q6_k;         // at least, of the output matrix
  std::optional<DType> table = {};    // of a token table of its own; nothing: the base type
  // llama.cpp refuses the type without an importance matrix, because it is poor then.
  bool wants_importance = false;

  DType type_of(const TensorPlace& place) const;
};

std::span<const Recipe> recipes();

// By its name in either case; "q3_k", "q4_k" and "q5_k" are their _m mixtures. Throws
// invalid_argument, listing the names.
const Recipe& find_recipe(std::string_view name);

}  // namespace rbee::tools
