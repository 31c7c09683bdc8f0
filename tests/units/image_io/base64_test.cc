#include "rbee/io/image/base64.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace rbee::io {
namespace {

// RFC 4648, section 10.
TEST(Base64, GivesTheVectorsOfItsStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : vectors) {
    EXPECT_EQ(encode_base64(plain), coded);
    EXPECT_EQ(decode_base64(coded, "image"), plain);
  }
}

TEST(Base64, KeepsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(decode_base64(encode_base64(bytes), "image"), bytes);
}

TEST(Base64, IsReadAsPeopleSendIt) {
  EXPECT_EQ(decode_base64("data:image/png;base64,Zm9v", "image"), "foo");
  EXPECT_EQ(decode_base64("DATA:image/PNG;x=1;Base64,Zm9v", "image"), "foo");
  EXPECT_EQ(decode_base64("Zm9v\r\nYmFy\n", "image"), "foobar");
  EXPECT_EQ(decode_base64("Zm8", "image"), "fo");
  EXPECT_EQ(decode_base64("_-8=", "image"), "\xff\xef");
}

TEST(Base64, IsRefusedWhenBroken) {
  const auto expect = [](const char* text, const char* what) {
    harness::expect_error("init_image", what, "",
                          [&] { static_cast<void>(decode_base64(text, "init_image")); });
  };
  expect("Zm9*", "character 3");
  expect("Zg==Zg", "character 4");
  expect("Zm9vZ", "within a byte");
  expect("data:image/png,abc", "not in base64");
  expect("data:text/plain;x=,;base64,Zm9v", "not in base64");
}

}  // namespace
}  // namespace rbee::io
