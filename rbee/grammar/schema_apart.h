#pragma once
// Which of several JSON schemas have no value in common, as far as a look at them tells. Internal
// to the folder.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "rbee/grammar/schema_merge.h"

namespace rbee::grammar {

// For each of the schemas the others that may share a value with it. They have no $ref, allOf,
// oneOf, if or dependent...; nothing: no value fits it. Consts, and objects that a required
// property of const or enum tells apart, are not held against each other one by one. spend: told
// the work.
std::vector<std::set<size_t>> overlaps(const std::vector<std::optional<Schema>>& schemas,
                                       const std::function<void(int64_t)>& spend);

}  // namespace rbee::grammar
