#include "rbee/core/percent_encoded.h"

#include <gtest/gtest.h>

namespace rbee {
namespace {

TEST(PercentEncoded, KeepsWhatAddressesMayHave) {
  EXPECT_EQ(percent_encoded("a/b c?#.gguf", true), "a/b%20c%3F%23.gguf");
  EXPECT_EQ(percent_encoded("refs/pr/1", false), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encoded("aZ0-._~\xC3\xA9", false), "aZ0-._~%C3%A9");
}

}  // namespace
}  // namespace rbee
