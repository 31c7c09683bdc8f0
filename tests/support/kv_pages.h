#pragma once
// q8_0 caches for cases, in the layout of backends/shared/kv_page.h.

#include <cstddef>
#include <span>

#include "backends/api/view.h"
#include "rbee/core/shape.h"

namespace rbee::harness {

// Turns rows of q8_0 blocks into the pages of such a cache; numbers reach about 1.6.
void to_pages(std::span<std::byte> bytes, const Shape& cache);

// Element i of a paged cache, in the order of its logical shape.
double page_element(const std::byte* pages, const View& cache, int64_t i);

}  // namespace rbee::harness
