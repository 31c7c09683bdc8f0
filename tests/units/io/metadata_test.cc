// The typed getters on every type of value.

#include <cstdint>
#include <limits>
#include <memory>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

std::string text(std::string_view value) {
  return raw(uint64_t{value.size()}, value);
}

std::string pair(std::string_view key, MetaType type, const std::string& value) {
  return text(key) + raw(static_cast<uint32_t>(type)) + value;
}

class MetadataTest : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    std::string bytes = raw("GGUF", uint32_t{3}, uint64_t{0}, uint64_t{16});
    bytes +=
        pair("u8", MetaType::u8, raw(uint8_t{200})) + pair("i8", MetaType::i8, raw(int8_t{-3})) +
        pair("u16", MetaType::u16, raw(uint16_t{60000})) +
        pair("i16", MetaType::i16, raw(int16_t{-30000})) +
        pair("u32", MetaType::u32, raw(uint32_t{4000000000})) +
        pair("i32", MetaType::i32, raw(int32_t{-7})) +
        pair("u64", MetaType::u64, raw(~uint64_t{0})) +
        pair("i64", MetaType::i64, raw(std::numeric_limits<int64_t>::min())) +
        pair("f32", MetaType::f32, raw(1.5f)) + pair("f64", MetaType::f64, raw(2.25)) +
        pair("true", MetaType::boolean, raw(uint8_t{1})) +
        pair("false", MetaType::boolean, raw(uint8_t{0})) +
        pair("string", MetaType::string, text("words")) +
        pair("strings", MetaType::array,
             raw(uint32_t{8}, uint64_t{3}) + text("a") + text("") +
                 text(std::string_view("b\0c", 3))) +
        pair("shorts", MetaType::array, raw(uint32_t{3}, uint64_t{2}, int16_t{-1}, int16_t{300})) +
        pair("floats", MetaType::array, raw(uint32_t{6}, uint64_t{2}, 0.5f, -2.0f));
    checkpoint_ = std::make_unique<Checkpoint>(Checkpoint::open(write("m.gguf", bytes)));
  }

  const Metadata& metadata() const { return checkpoint_->metadata(); }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(MetadataTest, Integers) {
  EXPECT_EQ(metadata().get_i64("u8"), 200);
  EXPECT_EQ(metadata().get_i64("i8"), -3);
  EXPECT_EQ(metadata().get_i64("u16"), 60000);
  EXPECT_EQ(metadata().get_i64("i16"), -30000);
  EXPECT_EQ(metadata().get_i64("u32"), 4000000000);
  EXPECT_EQ(metadata().get_i64("i32"), -7);
  EXPECT_EQ(metadata().get_i64("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(metadata().get_u64("u64"), ~uint64_t{0});
  EXPECT_EQ(metadata().get_u64("u8"), 200u);
}

TEST_F(MetadataTest, IntegersThatDoNotFit) {
  expect_error(Code::invalid_argument, {"m.gguf", "u64 is u64", "below 2^63"},
               [&] { metadata().get_i64("u64"); });
  expect_error(Code::invalid_argument, {"i8 is i8", "at least 0"},
               [&] { metadata().get_u64("i8"); });
  expect_error(Code::invalid_argument, {"f32 is f32", "an integer"},
               [&] { metadata().get_i64("f32"); });
  expect_error(Code::invalid_argument, {"true is bool"}, [&] { metadata().get_u64("true"); });
}

TEST_F(MetadataTest, Numbers) {
  EXPECT_EQ(metadata().get_f64("f32"), 1.5);
  EXPECT_EQ(metadata().get_f64("f64"), 2.25);
  EXPECT_EQ(metadata().get_f64("i16"), -30000);
  expect_error(Code::invalid_argument, {"string is string, wanted a number"},
               [&] { metadata().get_f64("string"); });
  expect_error(Code::invalid_argument, {"floats is an array of 2 f32, wanted a number"},
               [&] { metadata().get_f64("floats"); });
}

TEST_F(MetadataTest, BoolsAndStrings) {
  EXPECT_EQ(metadata().get_bool("true"), true);
  EXPECT_EQ(metadata().get_bool("false"), false);
  EXPECT_EQ(metadata().get_string("string"), "words");
  expect_error(Code::invalid_argument, {"u8 is u8, wanted bool"},
               [&] { metadata().get_bool("u8"); });
  expect_error(Code::invalid_argument, {"u8 is u8, wanted string"},
               [&] { metadata().get_string("u8"); });
}

TEST_F(MetadataTest, Arrays) {
  using testing::ElementsAre;
  EXPECT_THAT(metadata().require_strings("strings"),
              ElementsAre("a", "", std::string_view("b\0c", 3)));
  EXPECT_THAT(metadata().require_ints("shorts"), ElementsAre(-1, 300));
  EXPECT_THAT(metadata().require_floats("floats"), ElementsAre(0.5f, -2.0f));
  EXPECT_THAT(metadata().require_floats("shorts"), ElementsAre(-1.0f, 300.0f));
  expect_error(Code::invalid_argument, {"floats is an array of 2 f32", "integers"},
               [&] { metadata().get_ints("floats"); });
  expect_error(Code::invalid_argument, {"shorts is an array of 2 i16", "array of string"},
               [&] { metadata().get_strings("shorts"); });
  expect_error(Code::invalid_argument, {"strings is an array of 3 string", "numbers"},
               [&] { metadata().get_floats("strings"); });
  expect_error(Code::invalid_argument, {"string is string", "array"},
               [&] { metadata().get_strings("string"); });
}

TEST_F(MetadataTest, MissingKeys) {
  EXPECT_FALSE(metadata().contains("none"));
  EXPECT_EQ(metadata().get_u64("none"), std::nullopt);
  EXPECT_EQ(metadata().get_i64("none"), std::nullopt);
  EXPECT_EQ(metadata().get_f64("none"), std::nullopt);
  EXPECT_EQ(metadata().get_bool("none"), std::nullopt);
  EXPECT_EQ(metadata().get_string("none"), std::nullopt);
  EXPECT_EQ(metadata().get_strings("none"), std::nullopt);
  EXPECT_EQ(metadata().get_floats("none"), std::nullopt);
  EXPECT_EQ(metadata().get_ints("none"), std::nullopt);
  const std::vector<std::string> parts = {"m.gguf", "the key none is missing"};
  expect_error(Code::not_found, parts, [&] { metadata().require_u64("none"); });
  expect_error(Code::not_found, parts, [&] { metadata().require_i64("none"); });
  expect_error(Code::not_found, parts, [&] { metadata().require_f64("none"); });
  expect_error(Code::not_found, parts, [&] { metadata().require_bool("none"); });
  expect_error(Code::not_found, parts, [&] { metadata().require_string("none"); });
  expect_error(Code::not_found, parts, [&] { metadata().require_strings("none"); });
  expect_error(Code::not_found, parts, [&] { metadata().require_floats("none"); });
  expect_error(Code::not_found, parts, [&] { metadata().require_ints("none"); });
}

TEST_F(MetadataTest, EntriesKeepTheirOrder) {
  ASSERT_EQ(metadata().entries().size(), 16u);
  EXPECT_EQ(metadata().entries().front().key, "u8");
  EXPECT_EQ(metadata().entries().back().key, "floats");
  EXPECT_EQ(metadata().find("string")->describe_type(), "string");
}

}  // namespace
}  // namespace rbee::io::test
