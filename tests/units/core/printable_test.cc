#include "rbee/core/printable.h"

#include <gtest/gtest.h>

namespace rbee {
namespace {

using namespace std::string_view_literals;

TEST(Printable, WhatSteersATerminalIsEscaped) {
  EXPECT_EQ(printable_line("\x1b[31mred\a\x7f"), R"(\x1b[31mred\x07\x7f)");
  EXPECT_EQ(printable_line("a\0b"sv), R"(a\x00b)");
  // C1: as UTF-8, and as a lone byte, which some terminals read as CSI.
  EXPECT_EQ(printable_line("\u009b31m\x9b"), R"(\x9b31m\x9b)");
  // "Trojan Source": overrides, embeddings and isolates; and line separators.
  EXPECT_EQ(printable_line("a\u202eb\u2066c\u2069\u2028"), R"(a\u202eb\u2066c\u2069\u2028)");
}

TEST(Printable, OtherTextStays) {
  const std::string_view text = "plain \\x1b gr\u00fcn \u05d0\u200f \u4e2d \U0001f600 \u00a0";
  EXPECT_EQ(printable_line(text), text);
  EXPECT_EQ(printable_text(text), text);
}

TEST(Printable, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(printable_line("\xff\xc3"), R"(\xff\xc3)");
  EXPECT_EQ(printable_line("\xc0\x9b"), R"(\xc0\x9b)");          // a longer form of ESC's kin
  EXPECT_EQ(printable_line("\xed\xa0\x80"), R"(\xed\xa0\x80)");  // a surrogate
  EXPECT_EQ(printable_line("\xf4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");  // above U+10FFFF
  EXPECT_EQ(printable_line("\xe2\x80"), R"(\xe2\x80)");
}

TEST(Printable, LinesEndInTextsAlone) {
  EXPECT_EQ(printable_line("a\nb\tc\r"), R"(a\x0ab\x09c\x0d)");
  EXPECT_EQ(printable_text("a\nb\tc\r"), "a\nb\tc\\x0d");
}

}  // namespace
}  // namespace rbee
