#pragma once
// What is compared for both libraries; define RB_LT_THEIRS(name) as the vendor's function.

#include <cstddef>
#include <cstdint>

#include "backends/gpu/lt_numbers.h"
#include "tests/gpu/signatures/same_kind.h"

namespace rbee::gpu {

#define RB_DECLARE(name, parameters) using name = int(*) parameters;
namespace lt_types {
RB_LT_FUNCTIONS(RB_DECLARE)
}
#undef RB_DECLARE
#define RB_COMPARE(name, parameters) RB_SAME_SIGNATURE(lt_types::name, RB_LT_THEIRS(name));
RB_LT_FUNCTIONS(RB_COMPARE)
#undef RB_COMPARE

// The members of a heuristic's result, which is read as bytes.
template <typename Result, typename Algorithm>
consteval bool same_result(size_t algorithm_bytes) {
  return sizeof(Algorithm) == algorithm_bytes && offsetof(Result, algo) == 0 &&
         offsetof(Result, workspaceSize) == algorithm_bytes + offsetof(LtResultTail, workspace) &&
         offsetof(Result, state) == algorithm_bytes + offsetof(LtResultTail, status) &&
         sizeof(Result) == algorithm_bytes + sizeof(LtResultTail) &&
         signatures::same_kind<decltype(LtResultTail::workspace),
                               decltype(Result::workspaceSize)>() &&
         signatures::same_kind<decltype(LtResultTail::status), decltype(Result::state)>();
}

}  // namespace rbee::gpu
