// Reads written files back; an unfinished file leaves nothing.

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/io/output_file.h"
#include "rbee/io/safetensors_reader.h"
#include "rbee/io/safetensors_writer.h"
#include "tests/support/data_folder.h"
#include "tests/units/io/scratch_folder.h"

namespace rbee::io::test {
namespace {

class WriterTest : public ScratchFolder {};

std::vector<std::byte> ramp(size_t count, int first) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return out;
}

bool same(std::span<const std::byte> a, const std::vector<std::byte>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), b.size()) == 0;
}

// The rename at the end would take the place of /dev/null.
TEST_F(WriterTest, TakesNoPlaceOfWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  expect_error(Code::io, {"fifo: a FIFO, not a file"}, [&] { OutputFile out(path("fifo")); });
  expect_error(Code::io, {"/dev/null: a device, not a file"}, [] { OutputFile out("/dev/null"); });
  expect_error(Code::io, {"a folder, not a file"}, [&] { OutputFile out(folder()); });
}

TEST_F(WriterTest, GgufRoundTrip) {
  const std::vector<std::string> words = {"one", "", "three"};
  const float floats[] = {0.5f, -1};
  const int32_t ints[] = {7, -8, 9};
  GgufWriter writer;
  writer.set_u32("u32", 1);
  writer.set_u64("u64", uint64_t{1} << 40);
  writer.set_i32("i32", -2);
  writer.set_f32("f32", 0.25f);
  writer.set_bool("bool", true);
  writer.set_string("string", "text");
  writer.set_strings("strings", words);
  writer.set_floats("floats", floats);
  writer.set_ints("ints", ints);
  writer.set_bools("bools", {true, false, true});
  writer.add_tensor("blocks", DType::q4_0, Shape{3, 64});
  writer.add_tensor("none", DType::f32, Shape{0});
  writer.add_tensor("plain", DType::f32, Shape{1, 2, 3, 1});
  writer.begin(path("m.gguf"));
  const auto blocks = ramp(108, 0), plain = ramp(24, 100);
  writer.write(std::span(blocks).first(50));
  writer.write(std::span(blocks).subspan(50));
  writer.write(plain);
  writer.finish();

  const Checkpoint read = Checkpoint::open(path("m.gguf"));
  const Metadata& m = read.metadata();
  EXPECT_EQ(m.find("u32")->type, MetaType::u32);
  EXPECT_EQ(m.require_u64("u32"), 1u);
  EXPECT_EQ(m.require_u64("u64"), uint64_t{1} << 40);
  EXPECT_EQ(m.require_i64("i32"), -2);
  EXPECT_EQ(m.require_f64("f32"), 0.25);
  EXPECT_TRUE(m.require_bool("bool"));
  EXPECT_EQ(m.require_string("string"), "text");
  EXPECT_THAT(m.require_strings("strings"), testing::ElementsAre("one", "", "three"));
  EXPECT_THAT(m.require_floats("floats"), testing::ElementsAre(0.5f, -1));
  EXPECT_THAT(*m.get_bools("bools"), testing::ElementsAre(true, false, true));
  EXPECT_THAT(m.require_ints("ints"), testing::ElementsAre(7, -8, 9));
  EXPECT_TRUE(same(read.require("blocks").data, blocks));
  EXPECT_EQ(read.require("blocks").shape, (Shape{3, 64}));
  EXPECT_EQ(read.require("none").shape, Shape{0});
  EXPECT_TRUE(same(read.require("plain").data, plain));
  EXPECT_EQ(read.require("plain").shape, (Shape{1, 2, 3, 1}));
  EXPECT_EQ(files(), std::vector<std::string>{"m.gguf"});
}

TEST_F(WriterTest, GgufCopiesEveryPair) {
  const std::filesystem::path original = std::filesystem::path(rbee::test::data_folder()) /
                                         "models/language/data" / "gemma2" / "model.gguf";
  const Checkpoint from = Checkpoint::open(original);
  GgufWriter writer(64);
  for (const MetaEntry& entry : from.metadata().entries()) writer.copy(entry);
  for (const TensorEntry& tensor : from.tensors()) {
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape);
  }
  writer.begin(path("copy.gguf"));
  for (const TensorEntry& tensor : from.tensors()) writer.write(tensor.data);
  writer.finish();
  const Checkpoint to = Checkpoint::open(path("copy.gguf"));
  EXPECT_EQ(to.metadata().require_u64("general.alignment"), 64u);
  for (const MetaEntry& entry : from.metadata().entries()) {
    const MetaEntry* copy = to.metadata().find(entry.key);
    ASSERT_NE(copy, nullptr) << entry.key;
    EXPECT_EQ(copy->type, entry.type);
    EXPECT_TRUE(std::ranges::equal(copy->value, entry.value)) << entry.key;
  }
  ASSERT_EQ(to.tensors().size(), from.tensors().size());
  for (size_t i = 0; i < to.tensors().size(); ++i) {
    EXPECT_EQ(to.tensors()[i].name, from.tensors()[i].name);
    EXPECT_TRUE(std::ranges::equal(to.tensors()[i].data, from.tensors()[i].data));
  }
}

TEST_F(WriterTest, GgufRefuses) {
  expect_error(Code::invalid_argument, {"alignment of 24"}, [] { GgufWriter writer(24); });
  GgufWriter writer;
  writer.set_u32("key", 1);
  expect_error(Code::invalid_argument, {"key is set twice"}, [&] { writer.set_bool("key", true); });
  expect_error(Code::invalid_argument, {"empty"}, [&] { writer.set_bool("", true); });
  expect_error(Code::invalid_argument, {"tensor t", "33"},
               [&] { writer.add_tensor("t", DType::q8_0, Shape{33}); });
  expect_error(Code::invalid_argument, {"tensor t", "more axes than 4"},
               [&] { writer.add_tensor("t", DType::f32, Shape{1, 1, 1, 1, 1}); });
  expect_error(Code::unsupported, {"tensor t", "f8e4m3"},
               [&] { writer.add_tensor("t", DType::f8e4m3, Shape{1}); });
  writer.add_tensor("t", DType::f32, Shape{1});
  expect_error(Code::invalid_argument, {"tensor t", "twice"},
               [&] { writer.add_tensor("t", DType::f32, Shape{1}); });
  writer.begin(path("m.gguf"));
  expect_error(Code::invalid_argument, {"1 tensors is missing"}, [&] { writer.finish(); });
  expect_error(Code::invalid_argument, {"t has 4 bytes, and 5"}, [&] { writer.write(ramp(5, 0)); });
  writer.write(ramp(4, 0));
  expect_error(Code::invalid_argument, {"after the last"}, [&] { writer.write(ramp(1, 0)); });
}

TEST_F(WriterTest, SafetensorsRoundTrip) {
  SafetensorsWriter writer;
  writer.set_metadata("format", "pt");
  writer.add_tensor("m\xc3\xbc\"x", DType::f32, Shape{2, 1});
  writer.add_tensor("none", DType::bf16, Shape{3, 0});
  writer.add_tensor("b", DType::f8e4m3, Shape{3});
  writer.begin(path("m.safetensors"));
  writer.write(ramp(8, 0));
  writer.write(ramp(3, 50));
  writer.finish();
  const Checkpoint read = Checkpoint::open(path("m.safetensors"));
  EXPECT_TRUE(same(read.require("m\xc3\xbc\"x").data, ramp(8, 0)));
  EXPECT_EQ(read.require("none").shape, (Shape{3, 0}));
  EXPECT_TRUE(same(read.require("b").data, ramp(3, 50)));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read.tensors().front().data.data()) % 8, 0u);
  const auto file = MappedFile::open(path("m.safetensors"));
  EXPECT_EQ(read_safetensors_metadata(*file, "format"), "pt");
  EXPECT_EQ(read_safetensors_metadata(*file, "dtype"), std::nullopt);
}

TEST_F(WriterTest, SafetensorsRefuses) {
  SafetensorsWriter writer;
  expect_error(Code::unsupported, {"tensor t", "q4_0"},
               [&] { writer.add_tensor("t", DType::q4_0, Shape{32}); });
  writer.add_tensor("t", DType::u8, Shape{2});
  for (const char* name : {"t", "__metadata__"}) {
    expect_error(Code::invalid_argument, {name, "taken"},
                 [&] { writer.add_tensor(name, DType::u8, Shape{1}); });
  }
  writer.begin(path("m.safetensors"));
  expect_error(Code::invalid_argument, {"2 bytes, and 3"}, [&] { writer.write(ramp(3, 0)); });
  expect_error(Code::invalid_argument, {"2 bytes, and 0"}, [&] { writer.finish(); });
  SafetensorsWriter broken;
  broken.add_tensor("\xff", DType::u8, Shape{0});
  expect_error(Code::invalid_argument, {"UTF-8"}, [&] { broken.begin(path("b.safetensors")); });
}

TEST_F(WriterTest, UnfinishedFilesLeaveNothing) {
  write("m.gguf", "the one before");
  {
    GgufWriter writer;
    writer.add_tensor("t", DType::f32, Shape{1});
    writer.begin(path("m.gguf"));
    EXPECT_EQ(files().size(), 2u);
  }
  EXPECT_EQ(files(), std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(read(path("m.gguf")), "the one before");
}

TEST_F(WriterTest, FoldersThatCannotBeWrittenTo) {
  GgufWriter writer;
  expect_error(Code::io, {"cannot be written"}, [&] { writer.begin(path("none") / "m.gguf"); });
}

}  // namespace
}  // namespace rbee::io::test
