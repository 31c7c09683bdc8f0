#pragma once
// Checks the errors that operations throw.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/core/error.h"

namespace rbee::harness {

// The message of the invalid_argument error that `body` throws.
template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "nothing was thrown";
}

// `body` must throw invalid_argument naming `op`; its message must have both texts.
template <typename Body>
void expect_error(const char* op, const char* first, const char* second, Body&& body) {
  using ::testing::HasSubstr;
  EXPECT_THAT(message_of(body), ::testing::AllOf(::testing::StartsWith(cat(op, ": ")),
                                                 HasSubstr(first), HasSubstr(second)));
}

}  // namespace rbee::harness
