// `rbee imagine`, drawing with the model of this repository.

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/commands.h"
#include "rbee/core/cat.h"
#include "rbee/io/image/encode.h"
#include "rbee/io/image/png.h"
#include "tests/checkpoints/made_upscaler.h"
#include "tests/support/data_folder.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int32_t kSide = 64;

struct Ran {
  int status;
  std::string out, errors;
};

class Imagine : public testing::Test {
 protected:
  Imagine() {
    std::string pattern = (fs::temp_directory_path() / "rbee-imagine-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Imagine() override { fs::remove_all(folder_); }

  static Ran run(const std::vector<std::string>& options) {
    std::vector<std::string> words{"rbee", "imagine"};
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> argv;
    argv.reserve(words.size());
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = tools::run_command_line(static_cast<int>(argv.size()), argv.data());
    std::string out = testing::internal::GetCapturedStdout();
    return {status, std::move(out), testing::internal::GetCapturedStderr()};
  }
  static std::string model() { return test::data_folder() + "/../models/tiny-emoji"; }
  Ran draw(const std::string& out, std::vector<std::string> options) const {
    options.insert(options.end(), {"a dog face", "-m", model(), "--width", "64", "--height", "64",
                                   "--steps", "2", "--seed", "1", "-o", path(out)});
    return run(options);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string bytes(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  io::Pixels pixels(const std::string& name) const { return io::decode_png(bytes(name), name); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  // One colour, or white on its left half.
  void write_picture(const std::string& name, uint8_t left, uint8_t right) const {
    io::Pixels out{.width = kSide, .height = kSide, .channels = 3, .values = {}};
    for (int32_t i = 0; i < kSide * kSide; ++i) {
      out.values.insert(out.values.end(), 3, i % kSide < kSide / 2 ? left : right);
    }
    std::ofstream(folder_ / name, std::ios::binary) << io::encode_png(out);
  }

 private:
  fs::path folder_;
};

TEST_F(Imagine, EnlargesByANetwork) {
  test::write_safetensors(
      path("made x2.safetensors"),
      test::made_upscaler({.blocks = 1, .width = 8, .growth = 4, .doublings = 1}));
  const Ran ran = draw("a.png", {"--upscale-model", path("made x2.safetensors")});
  EXPECT_EQ(ran.status, 0) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("128 x 128"));
  EXPECT_EQ(pixels("a.png").width, 2 * kSide);
  EXPECT_THAT(bytes("a.png"), HasSubstr("Postprocess upscaler: made x2"));

  // Only as the start of a second pass.
  const Ran passes = draw("b.png", {"--upscale-model", path("made x2.safetensors"), "--hires",
                                    "1.5", "--hires-upscaler", "made x2"});
  EXPECT_EQ(passes.status, 0) << passes.errors;
  EXPECT_EQ(pixels("b.png").width, 3 * kSide / 2);

  std::ofstream(path("x4.pth")) << "PK";
  const Ran pickled = draw("c.png", {"--upscale-model", path("x4.pth")});
  EXPECT_NE(pickled.status, 0);
  EXPECT_THAT(pickled.errors, HasSubstr(".safetensors"));
}

// The model does not exist and need not: the check comes first.
TEST_F(Imagine, PlacesThatCannotBeWrittenAreRefusedBeforeTheModelIsRead) {
  const auto refused = [&](const std::string& out) {
    return run({"a dog", "-m", path("no-model"), "-o", out});
  };
  const Ran missing = refused(path("no-folder/a.png"));
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.errors, HasSubstr("no-folder/a.png: cannot be written: No such file"));
  const Ran folder = refused(path(""));
  EXPECT_EQ(folder.status, 1);
  EXPECT_THAT(folder.errors, HasSubstr("is a folder"));
  const Ran counted = run({"a", "-m", path("no-model"), "--count", "2", "-o", path("none/a.png")});
  EXPECT_THAT(counted.errors, HasSubstr("none/a-0.png: cannot be written"));
  const Ran counted_folder = run({"a", "-m", path("no-model"), "--count", "2", "-o", path("")});
  EXPECT_THAT(counted_folder.errors, HasSubstr("is a folder"));
  // If the path is writable, the check leaves no file.
  EXPECT_THAT(refused(path("a.png")).errors, HasSubstr("no-model"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(Imagine, FoldersWithoutPermissionAreRefusedToo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::create_directory(path("locked"));
  fs::permissions(path("locked"), fs::perms::owner_read | fs::perms::owner_exec);
  const Ran ran = run({"a dog", "-m", path("no-model"), "-o", path("locked/a.png")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.errors, HasSubstr("locked/a.png: cannot be written: Permission denied"));
}

TEST_F(Imagine, RepaintsTheMaskOrTheRest) {
  write_picture("init.png", 60, 60);
  write_picture("mask.png", 255, 0);
  const std::vector<std::string> repaint{"--init",         path("init.png"), "--mask",
                                         path("mask.png"), "--mask-fill",    "noise"};
  std::vector<std::string> inverted = repaint;
  inverted.emplace_back("--mask-invert");
  ASSERT_EQ(draw("left.png", repaint).status, 0);
  ASSERT_EQ(draw("right.png", inverted).status, 0);
  const auto change = [&](const std::string& name, int32_t from, int32_t to) {
    const io::Pixels picture = pixels(name);
    int largest = 0;
    for (int32_t i = 0; i < kSide * kSide; ++i) {
      if (i % kSide < from || i % kSide >= to) continue;
      const int value = picture.values[3 * static_cast<size_t>(i)];
      largest = std::max(largest, std::abs(value - 60));
    }
    return largest;
  };
  EXPECT_GT(change("left.png", 0, kSide / 2), 40);
  EXPECT_EQ(change("left.png", kSide / 2, kSide), 0);
  EXPECT_EQ(change("right.png", 0, kSide / 2), 0);
  EXPECT_GT(change("right.png", kSide / 2, kSide), 40);
  EXPECT_THAT(io::image_parameters(bytes("left.png")).value_or(""),
              HasSubstr("Masked content: latent noise"));
  ASSERT_EQ(draw("again.png", {"--from", path("left.png"), "--init", path("init.png"), "--mask",
                               path("mask.png"), "--mask-fill", "nothing"})
                .status,
            0);
  EXPECT_THAT(io::image_parameters(bytes("again.png")).value_or(""),
              HasSubstr("Masked content: latent nothing"));
}

TEST_F(Imagine, EtaIsTheSamplersAndTheFiles) {
  const std::vector<std::string> ddim{"--sampler", "DDIM"};
  std::vector<std::string> some = ddim;
  some.insert(some.end(), {"--eta", "0.5"});
  ASSERT_EQ(draw("none.png", ddim).status, 0);
  ASSERT_EQ(draw("some.png", some).status, 0);
  ASSERT_EQ(draw("again.png", {"--from", path("some.png")}).status, 0);
  EXPECT_NE(pixels("some.png").values, pixels("none.png").values);
  EXPECT_EQ(pixels("again.png").values, pixels("some.png").values);
  EXPECT_THAT(io::image_parameters(bytes("none.png")).value_or(""), Not(HasSubstr("Eta")));
  EXPECT_EQ(draw("far.png", {"--eta", "1.5"}).status, 1);
}

TEST_F(Imagine, SeedsAreThoseOfTheApi) {
  const auto text_of = [&](const std::vector<std::string>& seeds) {
    std::vector<std::string> options{"a dog", "--steps", "1", "--width", "64", "--height", "64"};
    options.insert(options.end(), {"-m", model(), "-o", path("a.png")});
    options.insert(options.end(), seeds.begin(), seeds.end());
    const Ran ran = run(options);
    return ran.status == 0 ? io::image_parameters(bytes("a.png")).value_or("") : ran.errors;
  };
  constexpr const char* kLargest = "18446744073709551615";
  EXPECT_THAT(text_of({"--seed", kLargest}), HasSubstr(cat(", Seed: ", kLargest, ",")));
  EXPECT_THAT(text_of({"--variation", "0.5", "--variation-seed", kLargest}),
              HasSubstr(cat("Variation seed: ", kLargest, ",")));
  for (const char* fresh : {"-1", "-18446744073709551615"}) {
    const std::string text = text_of({"--seed", fresh, "--variation=1", "--variation-seed", fresh});
    EXPECT_THAT(text, HasSubstr(", Seed: "));
    EXPECT_THAT(text, Not(HasSubstr(kLargest)));
    EXPECT_THAT(text, Not(HasSubstr("seed: 1,")));
  }
  for (const char* none : {"18446744073709551616", "1e3", "", "7 ", "-"}) {
    EXPECT_THAT(text_of({"--seed", none}), HasSubstr("--seed")) << none;
  }
}

TEST_F(Imagine, WrongValuesAreNotPassedOver) {
  EXPECT_THAT(draw("a.png", {"--guidance", "-3"}).errors, HasSubstr("0 to 30"));
  std::ofstream(path("empty.png")).flush();
  write_picture("init.png", 60, 60);
  EXPECT_THAT(draw("a.png", {"--init", path("empty.png")}).errors, HasSubstr("empty.png"));
  const Ran mask = draw("a.png", {"--init", path("init.png"), "--mask", path("empty.png")});
  EXPECT_THAT(mask.errors, HasSubstr("empty.png"));
  EXPECT_FALSE(fs::exists(path("a.png")));
}

TEST_F(Imagine, WhatTheDenoiserPredictsCanBeSaid) {
  ASSERT_EQ(draw("own.png", {}).status, 0);
  ASSERT_EQ(draw("noise.png", {"--prediction", "epsilon"}).status, 0);
  ASSERT_EQ(draw("velocity.png", {"--prediction", "v_prediction"}).status, 0);
  EXPECT_EQ(pixels("noise.png").values, pixels("own.png").values);
  EXPECT_NE(pixels("velocity.png").values, pixels("own.png").values);
  EXPECT_THAT(draw("a.png", {"--prediction", "flow"}).errors, HasSubstr("v_prediction"));
}

TEST_F(Imagine, PicturesOfOneBatchShareTheirSteps) {
  const Ran alone = draw("a.png", {"--count", "2"});
  const Ran together = draw("b.png", {"--count", "2", "--batch", "2"});
  EXPECT_THAT(alone.errors, HasSubstr(", 4 steps"));
  EXPECT_THAT(together.errors, HasSubstr(", 2 steps"));
  EXPECT_EQ(together.out, path("b-0.png") + "\n" + path("b-1.png") + "\n");
  EXPECT_EQ(draw("c.png", {"--batch", "17"}).status, 1);
}

}  // namespace
}  // namespace rbee::test
