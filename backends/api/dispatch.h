#pragma once
// dispatch<float, f16>("op", dtype, [&]<typename T>() { ... }): turns a run-time dtype into a type.
// The list of types documents what is supported; other types throw unsupported.

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
