#pragma once
// Finds which of several JSON schemas certainly have no value in common. Internal to the folder.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "rbee/grammar/schema_merge.h"

namespace rbee::grammar {

// For each schema, the others that may share a value with it. Schemas must have no $ref, allOf,
// oneOf, if or dependent...; an absent one has no values. Consts, and objects that a required
// property of const or enum tells apart, are not compared pair by pair. Calls `spend` with the
// work.
std::vector<std::set<size_t>> overlaps(const std::vector<std::optional<Schema>>& schemas,
                                       const std::function<void(int64_t)>& spend);

}  // namespace rbee::grammar
