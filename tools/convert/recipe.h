#pragma once
// The named mixtures of weight types: which tensors of a model get more bits than the rest. They
// carry the names, and choose the types, of llama.cpp's llama-quantize without an importance matrix
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
  attn_v,  // also where it lies in one tensor with q and k
  attn_output,
  ffn_down,
};

// Where a matrix stands.
struct TensorPlace {
  Role role = Role::other;
  int64_t layer = 0;   // from 0
  int64_t layers = 1;  // of the model
  int64_t gqa = 1;     // heads that share a head of keys and values
};

// In which layers a rule holds.
enum class Where : uint8_t {
  all,
  shared_kv,              // where at least four heads share one of keys and values: little to store
  deep_shared_kv,         // 80 layers and shared heads, the shape of Llama 2 70B
  deep_widely_shared_kv,  // both
  more_bits,              // the first and last eighth, and every third layer between
  first_eighth,
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

  DType type_of(const TensorPlace& place) const;
};

std::span<const Recipe> recipes();

// By its name in either case; "q3_k", "q4_k" and "q5_k" are their _m mixtures. Throws
// invalid_argument, listing the names.
const Recipe& find_recipe(std::string_view name);

}  // namespace rbee::tools
