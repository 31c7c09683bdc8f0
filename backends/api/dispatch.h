#pragma once
// dispatch<float, f16>("op", dtype, [&]<typename T>() { ... }): leaves run-time dtypes once. The
// type list is the documentation of what is supported; other types throw unsupported.

#include "rbee/core/dtype.h"
#include "rbee/core/error.h"

namespace rbee {

template <typename... Types, typename Body>
void dispatch(const char* op, DType dtype, Body&& body) {
  const bool found =
      ((dtype == kDTypeOf<Types> ? (body.template operator()<Types>(), true) : false) || ...);
  if (!found) fail(Code::unsupported, op, "dtype ", dtype, " has no kernel");
}

}  // namespace rbee
