#pragma once
// What a fuzz target accepts as a refusal.

#include <stdexcept>

#include "rbee/core/error.h"

namespace rbee::fuzz {

// Errors for bad input must say why; an error without a reason is a finding.
inline void expect_reason(const Error& error) {
  if (*error.what() == '\0') throw std::logic_error("an error without a text");
}

}  // namespace rbee::fuzz
