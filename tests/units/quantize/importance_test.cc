// Importance matrices: what is collected, both forms of files, and what quantising does with them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/engine/text/text_model.h"
#include "rbee/io/importance_matrix.h"
#include "tests/checkpoints/model_folder.h"
#include "tests/support/data_folder.h"
#include "tests/units/quantize/scratch.h"
#include "tools/convert/importance.h"
#include "tools/convert/metadata.h"
#include "tools/convert/tensor_rows.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using io::ImportanceFormat;
using io::ImportanceMatrix;
using testing::ElementsAre;
using testing::HasSubstr;

// The numbers and texts one after another, little-endian.
template <typename... Parts>
std::string raw(const Parts&... parts) {
  std::string out;
  const auto add = [&](const auto& part) {
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>) {
      out += part;
    } else {
      out.append(reinterpret_cast<const char*>(&part), sizeof part);
    }
  };
  (add(parts), ...);
  return out;
}

class ImportanceTest : public Scratch {
 protected:
  fs::path write(const char* name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  void expect_refused(const std::string& bytes, const char* part) const {
    try {
      io::read_importance(write("bad", bytes));
      ADD_FAILURE() << "nothing was thrown, wanted " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  // Standard output and error of `rbee ...`, and its status on a line of its own.
  std::string rbee(const std::string& arguments) const {
    const std::string line = cat(RBEE_PROGRAM, " ", arguments, " 2>&1; echo status $?");
    std::string out;
    FILE* const pipe = popen(line.c_str(), "r");
    char buffer[512];
    while (const size_t count = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, count);
    pclose(pipe);
    return out;
  }
};

ImportanceMatrix small_matrix() {
  ImportanceMatrix matrix;
  matrix.entries["blk.0.a.weight"] = {.sums = {8, 16, 24}, .counts = {8}};
  matrix.entries["blk.0.b_exps.weight"] = {.sums = {2, 4, 0, 0}, .counts = {4, 0}};
  matrix.datasets = {"text"};
  matrix.chunks = 2;
  matrix.chunk_size = 4;
  return matrix;
}

// llama-imatrix's older form: means times the number of chunks, rounded up, and ones for an expert
// that saw nothing.
TEST_F(ImportanceTest, TheOlderFormIsLlamaCpps) {
  const int32_t two = 2, three = 3, four = 4, one = 1;
  const std::string wanted =
      raw(two, int32_t{14}, "blk.0.a.weight", two, three, 2.0f, 4.0f, 6.0f, int32_t{19},
          "blk.0.b_exps.weight", one, four, 0.5f, 1.0f, 1.0f, 1.0f, two, four, "text");
  io::write_importance(small_matrix(), path("m.dat"), ImportanceFormat::dat);
  EXPECT_EQ(read_file(path("m.dat")), wanted);
  const ImportanceMatrix read = io::read_importance(path("m.dat"));
  EXPECT_EQ(read.chunk_size, 0);
  EXPECT_EQ(read.chunks, 2);
  EXPECT_THAT(read.datasets, ElementsAre("text"));
  EXPECT_THAT(read.importance("blk.0.a.weight", 1, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(read.importance("blk.0.b_exps.weight", 2, 2), ElementsAre(0.5f, 1, 1, 1));
  // Without what files of the first years lack.
  EXPECT_EQ(io::read_importance(write("old", wanted.substr(0, wanted.size() - 12))).chunks, 0);
}

TEST_F(ImportanceTest, GgufHasSumsAndCounts) {
  io::write_importance(small_matrix(), path("m.gguf"), ImportanceFormat::gguf);
  const io::Checkpoint file = io::Checkpoint::open(path("m.gguf"));
  EXPECT_EQ(file.metadata().require_string("general.type"), "imatrix");
  EXPECT_EQ(file.metadata().require_u64("imatrix.chunk_count"), 2u);
  EXPECT_EQ(file.metadata().require_u64("imatrix.chunk_size"), 4u);
  EXPECT_THAT(file.metadata().require_strings("imatrix.datasets"), ElementsAre("text"));
  EXPECT_EQ(file.require("blk.0.b_exps.weight.in_sum2").shape, Shape({2, 2}));
  EXPECT_EQ(file.require("blk.0.b_exps.weight.counts").shape, Shape({2, 1}));
  const ImportanceMatrix read = io::read_importance(path("m.gguf"));
  EXPECT_THAT(read.entries.at("blk.0.a.weight").sums, ElementsAre(8, 16, 24));
  EXPECT_THAT(read.importance("blk.0.b_exps.weight", 2, 2), ElementsAre(0.5f, 1, 1, 1));
  EXPECT_TRUE(read.importance("blk.1.a.weight", 1, 3).empty());
  EXPECT_THROW(read.importance("blk.0.a.weight", 1, 4), Error);
}

TEST_F(ImportanceTest, BothFormsAddUp) {
  io::write_importance(small_matrix(), path("m.gguf"), ImportanceFormat::gguf);
  io::write_importance(small_matrix(), path("m.dat"), ImportanceFormat::dat);
  const std::string said =
      rbee(cat("imatrix -c 4 -o ", path("sum").string(), " --in-file ", path("m.gguf").string(),
               " --in-file ", path("m.dat").string()));
  EXPECT_THAT(said, HasSubstr("status 0"));
  const ImportanceMatrix sum = io::read_importance(path("sum"));
  EXPECT_EQ(sum.chunks, 4);
  EXPECT_THAT(sum.entries.at("blk.0.a.weight").sums, ElementsAre(16, 32, 48));
  EXPECT_THAT(sum.entries.at("blk.0.a.weight").counts, ElementsAre(16));
}

TEST_F(ImportanceTest, BrokenFilesAreRefused) {
  const int32_t one = 1;
  expect_refused("", "takes 4 bytes");
  expect_refused(raw(int32_t{0}), "the number of entries is 0");
  expect_refused(raw(one, int32_t{-1}), "name is -1");
  expect_refused(raw(one, int32_t{1 << 30}, "a"), "takes 1073741824 bytes, and 1 are left");
  expect_refused(raw(one, one, "a", one, int32_t{1 << 30}, 1.0f), "values are 1073741824");
  expect_refused(raw(one, one, "a", int32_t{0}, one, 1.0f), "calls is 0");
  expect_refused(raw(one, one, "a", one, one, -1.0f), "entry a has the sum -1");
  expect_refused(raw(one, one, "a", one, one, std::nanf("")), "entry a has the sum nan");
  expect_refused(raw(int32_t{2}, one, "a", one, one, 1.0f, one, "a", one, one, 1.0f),
                 "entry a occurs twice");
  io::GgufWriter writer;
  writer.set_u32("imatrix.chunk_size", 4);
  writer.add_tensor("a.in_sum2", DType::f32, {1, 2});
  writer.begin(path("half.gguf"));
  const float values[] = {1, 2};
  writer.write(std::as_bytes(std::span(values)));
  writer.finish();
  expect_refused(read_file(path("half.gguf")), "entry a has 2 sums and 0 counts");
}

// The inputs of the first layer's attention are the embeddings' RMS norms.
std::vector<double> first_squares(const io::Checkpoint& model, std::span<const int32_t> tokens) {
  const io::TensorEntry& table = model.require("model.embed_tokens.weight");
  const int64_t dim = table.shape[1];
  const auto row_of = [&](const io::TensorEntry& from, int64_t row) {
    std::vector<float> out(static_cast<size_t>(dim));
    const int64_t bytes = row_bytes(from.dtype, dim);
    row_to_float(from.dtype, from.data.data() + row * bytes, out.data(), dim);
    return out;
  };
  const auto norm = row_of(model.require("model.layers.0.input_layernorm.weight"), 0);
  std::vector<double> squares(norm.size());
  for (const int32_t token : tokens) {
    const std::vector<float> x = row_of(table, token);
    const double mean =
        std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / static_cast<double>(dim);
    for (size_t i = 0; i < x.size(); ++i) {
      squares[i] += std::pow(x[i] * norm[i], 2) / (mean + 1e-5);
    }
  }
  return squares;
}

constexpr const char* kText =
    "Why is the sky blue? The sky is blue for the air scatters the light.";

TEST_F(ImportanceTest, CollectsTheInputsOfEachMatrix) {
  const test::ModelFolder model(test::data_folder());
  write("text", kText);
  const std::string said =
      rbee(cat("imatrix -m ", model.path().string(), " -f ", path("text").string(), " -c 8 -o ",
               path("m.gguf").string(), " --chunks 3 --output-frequency 1"));
  EXPECT_THAT(said, HasSubstr("chunk 3 of 3"));
  EXPECT_THAT(said, HasSubstr("status 0"));
  const ImportanceMatrix made = io::read_importance(path("m.gguf"));
  EXPECT_EQ(made.entries.size(), 14u);
  EXPECT_EQ(made.chunks, 3);
  EXPECT_EQ(made.chunk_size, 8);
  for (const auto& [name, entry] : made.entries) EXPECT_THAT(entry.counts, ElementsAre(24)) << name;
  const io::Checkpoint checkpoint = io::Checkpoint::open(model.path());
  const auto tokenizer = engine::load_tokenizer(checkpoint);
  std::vector<int32_t> tokens = tokenizer->encode(kText);
  tokens.resize(24);
  // Each chunk of 8 begins as the text does.
  ASSERT_EQ(tokens.front(), tokenizer->bos());
  tokens[8] = tokens[16] = tokens.front();
  const std::vector<double> wanted = first_squares(checkpoint, tokens);
  const auto& sums = made.entries.at("blk.0.attn_v.weight").sums;
  ASSERT_EQ(sums.size(), wanted.size());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], wanted[i], 1e-3 * wanted[i]) << i;
  EXPECT_EQ(made.entries.at("blk.0.attn_q.weight").sums, sums);
  EXPECT_EQ(made.entries.at("blk.1.ffn_down.weight").sums.size(), 96u);
}

TEST_F(ImportanceTest, CollectsForEachExpert) {
  const test::ModelFolder model(test::data_folder(), "mixtral");
  write("text", kText);
  const std::string said = rbee(cat("imatrix -m ", model.path().string(), " -f ",
                                    path("text").string(), " -c 16 --chunks 1 --output-format dat",
                                    " --process-output -o ", path("m.dat").string()));
  EXPECT_THAT(said, HasSubstr("status 0"));
  const ImportanceMatrix made = io::read_importance(path("m.dat"));
  EXPECT_EQ(made.entries.at("blk.1.ffn_down_exps.weight").sums.size(), 5u * 32);
  EXPECT_EQ(made.entries.at("blk.1.ffn_up_exps.weight").sums.size(), 5u * 64);
  EXPECT_EQ(made.entries.at("output.weight").sums.size(), 64u);
  EXPECT_TRUE(made.entries.contains("blk.0.ffn_gate_inp.weight"));
}

constexpr const char* kUp = "blk.0.ffn_up_exps.weight";

// Quantises with importance 1, and `more` for the even columns of expert 3 of kUp.
class WeighedTest : public ImportanceTest {
 protected:
  io::Checkpoint quantize(const char* name, float more) const {
    ImportanceMatrix matrix;
    matrix.chunk_size = 1;
    auto& entry = matrix.entries[kUp];
    entry.counts.assign(5, 1);
    for (int i = 0; i < 5 * 64; ++i) entry.sums.push_back(i / 64 == 3 && i % 2 == 0 ? more : 1.0f);
    const fs::path file = path(cat(name, ".imatrix"));
    io::write_importance(matrix, file, ImportanceFormat::gguf);
    const std::string said = rbee(cat("quantize ", model_.path().string(), " ", path(name).string(),
                                      " q4_1 --imatrix ", file.string()));
    EXPECT_THAT(said, HasSubstr("status 0"));
    EXPECT_THAT(said, HasSubstr("nothing for 13 matrices, e.g. blk.0.attn_q.weight"));
    return io::Checkpoint::open(path(name));
  }
  static std::span<const std::byte> expert(const io::Checkpoint& file, size_t index) {
    const auto all = file.require(kUp).data;
    return all.subspan(index * all.size() / 5, all.size() / 5);
  }
  // Of the even columns of expert 3.
  double error(const io::Checkpoint& file) const {
    const io::Checkpoint exact = io::Checkpoint::open(model_.path());
    const auto& stored = exact.require("model.layers.0.block_sparse_moe.experts.3.w3.weight");
    std::vector<float> wanted(32 * 64), got(32 * 64);
    row_to_float(stored.dtype, stored.data.data(), wanted.data(), 32 * 64);
    row_to_float(DType::q4_1, expert(file, 3).data(), got.data(), 32 * 64);
    double total = 0;
    for (size_t i = 0; i < got.size(); i += 2) total += std::pow(got[i] - wanted[i], 2);
    return total;
  }

  test::ModelFolder model_{test::data_folder(), "mixtral"};
};

TEST_F(WeighedTest, ImportantColumnsOfAnExpertAreCloser) {
  const io::Checkpoint equal = quantize("equal.gguf", 1), weighed = quantize("weighed.gguf", 100);
  EXPECT_LT(error(weighed), 0.8 * error(equal));
  EXPECT_TRUE(std::ranges::equal(expert(weighed, 2), expert(equal, 2)));
  EXPECT_EQ(weighed.metadata().require_u64("quantize.imatrix.entries_count"), 1u);
  EXPECT_THAT(std::string(weighed.metadata().require_string("quantize.imatrix.file")),
              HasSubstr("weighed.gguf.imatrix"));
}

TEST_F(WeighedTest, EntriesAreChosenByName) {
  quantize("m.gguf", 1);
  const std::string common = cat("quantize ", model_.path().string(), " ", path("n.gguf").string(),
                                 " q4_1 --imatrix ", path("m.gguf.imatrix").string());
  EXPECT_THAT(rbee(common + " --exclude-weights ffn_up"), HasSubstr("no entry"));
  EXPECT_THAT(rbee(common + " --include-weights ffn_down"), HasSubstr("no entry"));
  EXPECT_THAT(rbee(common + " --include-weights ffn_up"), HasSubstr("status 0"));
}

}  // namespace
}  // namespace rbee::tools
