// GGUF files with wrong sizes and types, built by hand: each is refused, naming the field.

#include <bit>
#include <cstdint>

#include "rbee/io/checkpoint.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

std::string text(std::string_view value) {
  return raw(uint64_t{value.size()}, value);
}

std::string header(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
  return raw("GGUF", version, tensors, pairs);
}

// A tensor's entry; `sizes` innermost first, as in the file.
std::string tensor(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type,
                   uint64_t offset) {
  std::string out = text(name) + raw(static_cast<uint32_t>(sizes.size()));
  for (const uint64_t size : sizes) out += raw(size);
  return out + raw(type, offset);
}

// A file of these parts with `data` bytes after the alignment.
std::string file(std::string bytes, size_t data, size_t alignment = 32) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
  return bytes + std::string(data, '\1');
}

constexpr uint32_t kF32 = 0, kQ4_0 = 2;
constexpr uint32_t kString = 8, kArray = 9, kU32 = 4;
constexpr uint64_t kHuge = ~uint64_t{0};

class GgufHostileTest : public ScratchFolder {
 protected:
  void expect_refused(Code code, std::vector<std::string> parts, const std::string& bytes) {
    parts.emplace_back("bad.gguf");
    const auto path = write("bad.gguf", bytes);
    expect_error(code, parts, [&] { Checkpoint::open(path); });
  }
  void expect_invalid(const std::vector<std::string>& parts, const std::string& bytes) {
    expect_refused(Code::invalid_argument, parts, bytes);
  }
};

TEST_F(GgufHostileTest, Start) {
  expect_invalid({"magic", "needs 4 bytes", "0 left"}, "");
  expect_invalid({"magic", "3 left"}, "GGU");
  expect_invalid({"no GGUF file"}, raw("GGML", uint32_t{3}, uint64_t{0}, uint64_t{0}));
  expect_refused(Code::unsupported, {"version 1"}, header(0, 0, 1));
  expect_refused(Code::unsupported, {"version 4"}, header(0, 0, 4));
  expect_refused(Code::unsupported, {"version 0"}, header(0, 0, 0));
  expect_refused(Code::unsupported, {"big-endian"}, header(0, 0, 0x03000000));
  expect_invalid({"tensor count"}, raw("GGUF", uint32_t{3}));
  expect_invalid({"metadata count"}, raw("GGUF", uint32_t{3}, uint64_t{0}));
}

TEST_F(GgufHostileTest, Counts) {
  expect_invalid({"tensor count is 18446744073709551615", "0 bytes left"}, header(kHuge, 0));
  expect_invalid({"metadata count is 18446744073709551615"}, header(0, kHuge));
  expect_invalid({"metadata count is 2"}, header(0, 2) + text("a") + raw(kU32, uint32_t{1}));
  expect_invalid({"tensor count is 2"}, header(2, 0) + tensor("a", {1}, kF32, 0));
}

TEST_F(GgufHostileTest, Keys) {
  expect_invalid({"a metadata key", "needs 9223372036854775808 bytes"},
                 header(0, 1) + raw(uint64_t{1} << 63, kU32, uint64_t{0}));
  expect_invalid({"a metadata key has 0 bytes"}, header(0, 1) + text("") + raw(kU32, uint64_t{0}));
  expect_invalid({"a metadata key has 65536 bytes"},
                 header(0, 1) + text(std::string(65536, 'k')) + raw(kU32, uint32_t{0}));
  const std::string pair = text("key") + raw(kU32, uint32_t{1});
  expect_invalid({"key comes twice"}, header(0, 2) + pair + pair);
}

TEST_F(GgufHostileTest, Values) {
  expect_invalid({"key has the unknown type 13"},
                 header(0, 1) + text("key") + raw(uint32_t{13}, 0));
  expect_invalid({"key has 1 u64 values", "4 bytes left"},
                 header(0, 1) + text("key") + raw(uint32_t{10}, uint32_t{0}));
  expect_invalid({"a string", "needs 18446744073709551615 bytes"},
                 header(0, 1) + text("key") + raw(kString, kHuge));
}

TEST_F(GgufHostileTest, Arrays) {
  const std::string key = header(0, 1) + text("key") + raw(kArray);
  expect_invalid({"key has 4611686018427387904 u32 values"}, key + raw(kU32, uint64_t{1} << 62));
  expect_invalid({"key has 2305843009213693952 string values"},
                 key + raw(kString, uint64_t{1} << 61));
  expect_invalid({"key has 2 string values, more than fit in the 9"},
                 key + raw(kString, uint64_t{2}) + text("a"));
  expect_invalid({"a string", "needs 5 bytes", "1 left"},
                 key + raw(kString, uint64_t{1}, uint64_t{5}, "a"));
  expect_invalid({"key has the unknown type 99"}, key + raw(uint32_t{99}, uint64_t{0}));
  std::string deep = key;
  for (int i = 0; i < 1000; ++i) deep += raw(kArray, uint64_t{1});
  expect_invalid({"key nests arrays deeper than 4"}, deep + raw(kU32, uint64_t{0}));
}

TEST_F(GgufHostileTest, TensorNames) {
  expect_invalid({"a tensor's name has 0 bytes"}, header(1, 0) + tensor("", {1}, kF32, 0));
  expect_invalid({"a tensor's name has 1025 bytes"},
                 header(1, 0) + tensor(std::string(1025, 't'), {1}, kF32, 0));
  const std::string two = tensor("same", {1}, kF32, 0) + tensor("same", {1}, kF32, 32);
  expect_invalid({"tensor same comes twice"}, file(header(2, 0) + two, 64));
}

TEST_F(GgufHostileTest, TensorShapes) {
  expect_invalid({"tensor t", "5 dimensions"},
                 file(header(1, 0) + tensor("t", {1, 1, 1, 1, 1}, kF32, 0), 32));
  expect_invalid({"tensor t", "dimension 1 is 9223372036854775808"},
                 file(header(1, 0) + tensor("t", {1, uint64_t{1} << 63}, kF32, 0), 32));
  expect_invalid({"tensor t", "no 64-bit size"},
                 file(header(1, 0) + tensor("t", {1u << 31, 1u << 31, 4}, kF32, 0), 32));
  expect_invalid({"tensor t", "no 64-bit size in bytes"},
                 file(header(1, 0) + tensor("t", {uint64_t{1} << 61, 2}, kF32, 0), 32));
  expect_invalid({"tensor t", "33 elements", "q4_0's block of 32"},
                 file(header(1, 0) + tensor("t", {33}, kQ4_0, 0), 64));
}

TEST_F(GgufHostileTest, TensorTypes) {
  expect_refused(Code::unsupported,
                 {"tensor t", "Q8_1 (9)", "rbee quantize", "Q4_K", "IQ2_XXS", "NVFP4"},
                 file(header(1, 0) + tensor("t", {256}, 9, 0), 288));
  expect_refused(Code::unsupported, {"tensor t", "unknown (4711)"},
                 file(header(1, 0) + tensor("t", {256}, 4711, 0), 256));
}

TEST_F(GgufHostileTest, TensorPlaces) {
  expect_invalid({"tensor t", "offset 4 is not a multiple of the alignment 32"},
                 file(header(1, 0) + tensor("t", {1}, kF32, 4), 64));
  expect_invalid({"tensor t", "36 bytes at offset 0", "32 bytes of data"},
                 file(header(1, 0) + tensor("t", {9}, kF32, 0), 32));
  expect_invalid({"tensor t", "offset 18446744073709551584"},
                 file(header(1, 0) + tensor("t", {16}, kF32, kHuge - 31), 64));
  expect_invalid({"tensor t", "0 bytes of data"}, header(1, 0) + tensor("t", {1}, kF32, 0));
  const std::string two = tensor("a", {9}, kF32, 0) + tensor("b", {8}, kF32, 32);
  expect_invalid({"a and b overlap by 4 bytes"}, file(header(2, 0) + two, 64));
}

TEST_F(GgufHostileTest, Alignment) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 1u << 21, 0xffffffffu}) {
    const std::string key = text("general.alignment") + raw(kU32, alignment);
    expect_invalid({"general.alignment is " + std::to_string(alignment)},
                   file(header(1, 1) + key + tensor("t", {1}, kF32, 0), 32));
  }
  const std::string key = text("general.alignment") + raw(kString) + text("32");
  expect_invalid({"general.alignment is string, wanted an integer"}, header(0, 1) + key);
}

// Every truncated file is refused, unless only bytes after the last tensor's data are cut.
TEST_F(GgufHostileTest, CutAnywhere) {
  const std::string pairs = text("general.architecture") + raw(kString) + text("llama") +
                            text("list") + raw(kArray, kString, uint64_t{2}) + text("a") +
                            text("b");
  const std::string whole = file(header(1, 2) + pairs + tensor("t", {8}, kF32, 0), 32);
  EXPECT_NO_THROW(Checkpoint::open(write("whole.gguf", whole)));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto path = write("cut.gguf", whole.substr(0, size));
    EXPECT_THROW(Checkpoint::open(path), Error) << size << " bytes";
  }
}

}  // namespace
}  // namespace rbee::io::test
