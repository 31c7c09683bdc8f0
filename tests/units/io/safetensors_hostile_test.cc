// Safetensors files with wrong headers: each is refused, naming the tensor and field.

#include <cstdint>

#include "rbee/io/checkpoint.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

class SafetensorsHostileTest : public ScratchFolder {
 protected:
  void expect_refused(Code code, std::vector<std::string> parts, const std::string& header,
                      size_t data) {
    parts.emplace_back("bad.safetensors");
    SCOPED_TRACE(header.substr(0, 200));
    const auto path =
        write("bad.safetensors", raw(uint64_t{header.size()}) + header + std::string(data, '\1'));
    expect_error(code, parts, [&] { Checkpoint::open(path); });
  }
  void expect_invalid(const std::vector<std::string>& parts, const std::string& header,
                      size_t data = 0) {
    expect_refused(Code::invalid_argument, parts, header, data);
  }
};

// An entry of the header.
std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return cat("{\"dtype\":\"", dtype, "\",\"shape\":[", shape, "],\"data_offsets\":[", offsets,
             "]}");
}

TEST_F(SafetensorsHostileTest, Length) {
  const auto open = [&](const std::string& bytes) {
    return [&, bytes] { Checkpoint::open(write("bad.safetensors", bytes)); };
  };
  expect_error(Code::invalid_argument, {"header's length", "needs 8 bytes"}, open(""));
  expect_error(Code::invalid_argument, {"header's length", "7 left"}, open("1234567"));
  expect_error(Code::invalid_argument, {"length is 18446744073709551615", "100000000"},
               open(raw(~uint64_t{0}) + "{}"));
  expect_error(Code::invalid_argument, {"the header needs 3 bytes", "2 left"},
               open(raw(uint64_t{3}) + "{}"));
}

TEST_F(SafetensorsHostileTest, HeaderIsNoJson) {
  expect_invalid({"does not start with '{'"}, "");
  expect_invalid({"does not start with '{'"}, "[]");
  expect_invalid({"no JSON: line 1, column 2: expected a name"}, "{");
  expect_invalid({"no JSON: line 1, column 6: expected a value"}, "{\"a\":");
  expect_invalid({"no JSON: line 1, column 3: expected the end"}, "{}{}");
  expect_invalid({"no JSON: line 1, column 4: the byte 0xff"}, "{\"a\xff\":{}}");
}

TEST_F(SafetensorsHostileTest, HeaderOfAnotherForm) {
  expect_invalid({"a number", "entry a"}, "{\"a\":1}");
  expect_invalid({"null", "entry a"}, "{\"a\":null}");
  expect_invalid({"a string", "entry a"}, "{\"a\":\"b\"}");
  expect_invalid({"an array", "entry a"}, "{\"a\":[]}");
  expect_invalid({"a boolean"}, "{\"a\":{\"shape\":[true]}}");
  expect_invalid({"an object"}, "{\"a\":{\"shape\":{}}}");
  expect_invalid({"an array"}, "{\"a\":{\"shape\":[[1]]}}");
  expect_invalid({"an array"}, "{\"a\":{\"dtype\":[1]}}");
  expect_invalid({"a string"}, "{\"a\":{\"shape\":\"1\"}}");
  expect_invalid({"a string"}, "{\"a\":{\"shape\":[\"1\"]}}");
  expect_invalid({"a number"}, "{\"a\":{\"dtype\":7}}");
  expect_invalid({"unknown field size"}, "{\"a\":{\"size\":1}}");
  expect_invalid({"a number"}, "{\"__metadata__\":{\"a\":1}}");
  expect_invalid({"an object"}, "{\"__metadata__\":{\"a\":{}}}");
  std::string deep = "{\"a\":{\"shape\":";
  expect_invalid({"an array"}, deep + std::string(100000, '['));
}

TEST_F(SafetensorsHostileTest, Names) {
  const std::string one = entry("F32", "1", "0,4"), two = entry("F32", "1", "4,8");
  expect_invalid({"names a twice"}, cat("{\"a\":", one, ",\"a\":", two, "}"), 8);
  expect_invalid({"names __metadata__ twice"}, "{\"__metadata__\":{},\"__metadata__\":{}}");
  expect_invalid({"1025 bytes"}, cat("{\"", std::string(1025, 'n'), "\":", one, "}"), 4);
  // The same name in two spellings.
  expect_invalid({"names a twice"}, cat("{\"a\":", one, ",\"\\u0061\":", two, "}"), 8);
}

TEST_F(SafetensorsHostileTest, Fields) {
  expect_invalid({"tensor a lacks"}, "{\"a\":{}}");
  expect_invalid({"tensor a lacks"}, "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4);
  expect_invalid({"tensor a has dtype twice"}, "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}");
  expect_invalid({"1 data_offsets, wanted 2"}, cat("{\"a\":", entry("F32", "1", "0"), "}"), 4);
  expect_invalid({"3 data_offsets"}, cat("{\"a\":", entry("F32", "1", "0,4,4"), "}"), 4);
  expect_refused(Code::unsupported, {"tensor a", "F4", "BF16"},
                 cat("{\"a\":", entry("F4", "1", "0,4"), "}"), 4);
}

TEST_F(SafetensorsHostileTest, Shapes) {
  expect_invalid({"number -1"}, cat("{\"a\":", entry("F32", "-1", "0,4"), "}"), 4);
  expect_invalid({"number 1.5"}, cat("{\"a\":", entry("F32", "1.5", "0,4"), "}"), 4);
  expect_invalid({"no 64-bit size"},
                 cat("{\"a\":", entry("F32", "4294967296,4294967296", "0,0"), "}"));
  expect_invalid({"no 64-bit size in bytes"},
                 cat("{\"a\":", entry("F32", "4611686018427387904", "0,0"), "}"));
  expect_invalid({"above 2^63 - 1"},
                 cat("{\"a\":", entry("F32", "18446744073709551615", "0,0"), "}"));
  expect_invalid({"6 dimensions"}, cat("{\"a\":", entry("F32", "1,1,1,1,1,1", "0,4"), "}"), 4);
  expect_invalid({"more than 16 values"},
                 cat("{\"a\":", entry("F32", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "0,4"), "}"), 4);
}

TEST_F(SafetensorsHostileTest, Offsets) {
  expect_invalid({"data_offsets are 4 and 0"}, cat("{\"a\":", entry("F32", "1", "4,0"), "}"), 4);
  expect_invalid({"data_offsets are 0 and 8", "4 bytes of data"},
                 cat("{\"a\":", entry("F32", "2", "0,8"), "}"), 4);
  expect_invalid({"span 8 bytes", "(1) F32 needs 4"}, cat("{\"a\":", entry("F32", "1", "0,8"), "}"),
                 8);
  expect_invalid(
      {"data_offsets are 18446744073709551612"},
      cat("{\"a\":", entry("F32", "1", "18446744073709551612,18446744073709551615"), "}"), 4);
}

TEST_F(SafetensorsHostileTest, HolesAndOverlaps) {
  const auto two = [](std::string_view first, std::string_view second) {
    return cat("{\"a\":", entry("F32", "1", first), ",\"b\":", entry("F32", "1", second), "}");
  };
  expect_invalid({"tensor b starts at offset 2, wanted 4"}, two("0,4", "2,6"), 8);
  expect_invalid({"tensor b starts at offset 0, wanted 4"}, two("0,4", "0,4"), 4);
  expect_invalid({"tensor b starts at offset 8, wanted 4"}, two("0,4", "8,12"), 12);
  expect_invalid({"end at offset 8, the file's data at 12"}, two("0,4", "4,8"), 12);
  expect_invalid({"starts at offset 4, wanted 0"}, two("4,8", "8,12"), 12);
}

TEST_F(SafetensorsHostileTest, CutAnywhere) {
  const std::string header = cat("{\"a\":", entry("F32", "2", "0,8"), "}  ");
  const std::string whole = raw(uint64_t{header.size()}) + header + std::string(8, '\1');
  EXPECT_NO_THROW(Checkpoint::open(write("whole.safetensors", whole)));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto path = write("cut.safetensors", whole.substr(0, size));
    EXPECT_THROW(Checkpoint::open(path), Error) << size << " bytes";
  }
}

}  // namespace
}  // namespace rbee::io::test
