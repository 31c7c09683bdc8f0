#pragma once
// How a target lets a refusal go by.

#include <stdexcept>

#include "rbee/core/error.h"

namespace rbee::fuzz {

// Bad input is refused by an error that says why; one that says nothing is a finding.
inline void expect_reason(const Error& error) {
  if (*error.what() == '\0') throw std::logic_error("an error without a text");
}

}  // namespace rbee::fuzz
