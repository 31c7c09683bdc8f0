#include "rbee/core/error.h"

#include <gtest/gtest.h>

#include <set>

namespace rbee {
namespace {

TEST(Error, CheckThrowsTheJoinedMessage) {
  EXPECT_NO_THROW(check(true, "op", "not seen"));
  try {
    check(1 > 2, "matmul", "a has ", 3, ", b has ", 4);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.op(), "matmul");
    EXPECT_STREQ(error.what(), "matmul: a has 3, b has 4");
  }
}

TEST(Error, FailCarriesItsCode) {
  try {
    fail(Code::not_found, "load", "no ", "file");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "load: no file");
    EXPECT_EQ(dynamic_cast<const Error&>(error).code(), Code::not_found);
  }
}

TEST(Error, ANulEndsNoMessage) {
  using namespace std::string_view_literals;
  try {
    fail(Code::not_found, "a\0b"sv, "there is no \"a\0\0b\"; the others stay"sv);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), R"(a\x00b: there is no "a\x00\x00b"; the others stay)");
    EXPECT_EQ(error.op(), "a\0b"sv);
  }
}

TEST(Error, CodesHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Code::internal); ++i) {
    names.insert(name(static_cast<Code>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::internal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(name(Code::out_of_memory), "out_of_memory");
}

TEST(Error, AssertionsAreInternalErrors) {
  try {
    assertion_failed("x > 0", "file.cc", 12);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::internal);
    EXPECT_STREQ(error.what(), "assertion: x > 0 at file.cc:12");
  }
#ifdef NDEBUG
  EXPECT_NO_THROW(RB_ASSERT(false));
#else
  EXPECT_THROW(RB_ASSERT(1 > 2), Error);
#endif
}

}  // namespace
}  // namespace rbee
