#pragma once
// slot<a, b>(): a kernel table's slot that tries a, then b.

#include <array>

#include "backends/api/impl.h"

namespace rbee::gpu {

template <typename Args>
Args args_of(const Impl<Args>&);

template <const auto& kFirst, const auto&... kRest>
auto slot() {
  using Args = decltype(args_of(kFirst));
  static const std::array list{Impl<Args>{kFirst}, Impl<Args>{kRest}...};
  return Slot<Args>(list);
}

}  // namespace rbee::gpu
