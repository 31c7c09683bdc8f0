// Bodies of multipart/form-data, valid and invalid.

#include "server/http/multipart.h"

#include <gmock/gmock.h>

#include "rbee/core/error.h"

namespace rbee::server {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kType = "multipart/form-data; boundary=b";

std::string problem(std::string_view body, std::string_view type = kType) {
  try {
    parse_form(type, body);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(ParseForm, FieldsAndFilesKeepTheirBytes) {
  const std::string data("a\r\n--bx\0\r\n", 10);
  const std::vector<FormPart> parts =
      parse_form("Multipart/Form-Data; charset=utf-8; BOUNDARY=\"b\"",
                 "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat\r\n"
                 "--b\r\ncontent-type: image/png\r\ncontent-disposition: form-data; filename=\"a "
                 "\\\"b\\\".png\""
                 "; name=image\r\n\r\n" +
                     data + "\r\n--b--\r\nwhat follows is of no interest");
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].name, "prompt");
  EXPECT_EQ(parts[0].filename, "");
  EXPECT_EQ(parts[0].data, "a cat");
  EXPECT_EQ(parts[1].name, "image");
  EXPECT_EQ(parts[1].filename, "a \"b\".png");
  EXPECT_EQ(parts[1].data, data);
}

TEST(ParseForm, EmptyFormAndEmptyField) {
  EXPECT_THAT(parse_form(kType, "--b--"), SizeIs(0));
  const auto parts =
      parse_form(kType, "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--b--");
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].data, "");
}

TEST(ParseForm, WhatStandsBeforeTheFirstBoundaryIsOfNoInterest) {
  for (const char* before : {"\r\n", "a preamble\r\n", "x--b\r\n\r\n"}) {
    const auto parts =
        parse_form(kType, std::string(before) +
                              "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--");
    ASSERT_THAT(parts, SizeIs(1)) << before;
    EXPECT_EQ(parts[0].data, "1");
  }
}

TEST(ParseForm, WhatIsWrongIsSaid) {
  EXPECT_THAT(problem("--b--", "multipart/form-data"), HasSubstr("no boundary"));
  EXPECT_THAT(problem("--b--", "multipart/form-data; boundary="), HasSubstr("no boundary"));
  EXPECT_THAT(problem("--b--", "multipart/form-data; boundary=" + std::string(71, 'b')),
              HasSubstr("no boundary"));
  for (const char* none : {"", "\r\n", "x--b--", "\n--b--", "\r\n--bx\r\n"}) {
    EXPECT_THAT(problem(none), HasSubstr("no line of the body begins with its boundary")) << none;
  }
  EXPECT_THAT(problem("--b"), HasSubstr("line end"));
  EXPECT_THAT(problem("--b\r\n"), HasSubstr("cut off"));
  EXPECT_THAT(problem("--b\r\nX: y\r\n--b--"), HasSubstr("headers do not end"));
  EXPECT_THAT(problem("--b\r\nX\r\n\r\n\r\n--b--"), HasSubstr("no colon"));
  EXPECT_THAT(problem("--b\r\nX: y\r\n\r\n\r\n--b--"), HasSubstr("no Content-Disposition"));
  EXPECT_THAT(problem("--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--"),
              HasSubstr("no name"));
  std::string many;
  for (int i = 0; i < 65; ++i) {
    many += "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n";
  }
  EXPECT_THAT(problem(many + "--b--"), HasSubstr("more than 64"));
}

TEST(IsFormType, LooksAtTheTypeAlone) {
  EXPECT_TRUE(is_form_type("multipart/form-data; boundary=x"));
  EXPECT_TRUE(is_form_type("MULTIPART/FORM-DATA"));
  EXPECT_FALSE(is_form_type("multipart/mixed; boundary=x"));
  EXPECT_FALSE(is_form_type(""));
}

}  // namespace
}  // namespace rbee::server
