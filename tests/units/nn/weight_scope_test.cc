#include "rbee/nn/weight_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "rbee/core/half.h"
#include "rbee/core/log.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/weight_stash.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/image.h"
#include "rbee/ops/linear.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/units/engine/far_device.h"

namespace rbee::test {
namespace {

using nn::WeightScope;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr nn::TensorName kNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    {"rope_freqs", ""},
};

nn::WeightOptions with_names(bool pack = true) {
  return {.device = &cpu_device(), .names = kNames, .pack = pack};
}

bool lies_in(const Tensor& x, const io::TensorEntry& entry) {
  const std::byte* at = x.buffer()->data();
  return at >= entry.data.data() && at < entry.data.data() + entry.data.size();
}

StoredTensor stored(const std::string& name, const Shape& shape, DType dtype = DType::f32) {
  return {name, shape, random_values(static_cast<size_t>(numel(shape)), 7), dtype};
}

class WeightScopeTest : public CheckpointFiles {};

TEST_F(WeightScopeTest, GgufNamesAreTheModelsOwn) {
  const StoredTensor tensors[] = {stored("token_embd.weight", {4, 8}),
                                  stored("blk.12.attn_q.weight", {8, 8}),
                                  stored("rope_freqs.weight", {4})};
  const io::Checkpoint checkpoint = gguf(tensors);
  const WeightScope root(checkpoint, with_names());
  EXPECT_TRUE(root.is_gguf());
  EXPECT_EQ((root / "token_embd").name("weight"), "token_embd.weight");
  EXPECT_EQ((root.layer(12) / "attn_q").name("weight"), "blk.12.attn_q.weight");
  EXPECT_TRUE((root.layer(12) / "attn_q").has("weight"));
  EXPECT_FALSE((root.layer(12) / "attn_q").has("bias"));
  EXPECT_FALSE((root.layer(1) / "attn_q").has("weight"));
  EXPECT_TRUE((root / "rope_freqs").has("weight"));
}

TEST_F(WeightScopeTest, HuggingFaceNamesComeFromTheTable) {
  const StoredTensor tensors[] = {stored("model.embed_tokens.weight", {4, 8}),
                                  stored("model.layers.12.self_attn.q_proj.weight", {8, 8})};
  const io::Checkpoint checkpoint = safetensors(tensors);
  const WeightScope root(checkpoint, with_names());
  EXPECT_FALSE(root.is_gguf());
  EXPECT_EQ((root / "token_embd").name("weight"), "model.embed_tokens.weight");
  EXPECT_EQ((root.layer(12) / "attn_q").name("bias"), "model.layers.12.self_attn.q_proj.bias");
  EXPECT_TRUE((root.layer(12) / "attn_q").has("weight"));
  EXPECT_FALSE((root.layer(11) / "attn_q").has("weight"));
  // Names that the format or the family does not have.
  EXPECT_FALSE((root / "rope_freqs").has("weight"));
  EXPECT_FALSE((root.layer(0) / "attn_k").has("weight"));
}

TEST_F(WeightScopeTest, LanguageModelsInsideMultimodalCheckpoints) {
  const StoredTensor outer = stored("language_model.model.embed_tokens.weight", {4, 8});
  const io::Checkpoint old_layout = safetensors({&outer, 1});
  EXPECT_EQ((WeightScope(old_layout, with_names()).layer(3) / "attn_q").name("weight"),
            "language_model.model.layers.3.self_attn.q_proj.weight");
  const StoredTensor inner = stored("model.language_model.embed_tokens.weight", {4, 8});
  const io::Checkpoint new_layout = safetensors({&inner, 1});
  EXPECT_EQ((WeightScope(new_layout, with_names()).layer(3) / "attn_q").name("weight"),
            "model.language_model.layers.3.self_attn.q_proj.weight");
  const StoredTensor bare = stored("embed_tokens.weight", {4, 8});  // embedding decoders' names
  const io::Checkpoint alone = safetensors({&bare, 1});
  EXPECT_EQ((WeightScope(alone, with_names()).layer(3) / "attn_q").name("weight"),
            "layers.3.self_attn.q_proj.weight");
}

TEST_F(WeightScopeTest, EncodersBelowAHead) {
  constexpr nn::TensorName kEncoder[] = {{"token_embd", "embeddings.word_embeddings"}};
  for (const char* name : {"bert.embeddings.word_embeddings", "roberta.embeddings.word_embeddings",
                           "embeddings.word_embeddings"}) {
    const StoredTensor tensor = stored(cat(name, ".weight"), {4, 8});
    const io::Checkpoint checkpoint = safetensors({&tensor, 1});
    const WeightScope root(checkpoint, {.device = &cpu_device(), .names = kEncoder});
    EXPECT_EQ((root / "token_embd").name("weight"), cat(name, ".weight"));
  }
}

TEST_F(WeightScopeTest, StacksOfHeadsAreOneTensorOrOneForEach) {
  constexpr nn::TensorName kHeads[] = {{"blk.*.norm", "layers.*.norms.#"}};
  const nn::WeightOptions options{.device = &cpu_device(), .names = kHeads};
  const StoredTensor first = stored("layers.2.norms.0.weight", {4});
  const StoredTensor second{"layers.2.norms.1.weight", {4}, random_values(4, 8), DType::f16};
  const StoredTensor tensors[] = {second, first};
  const io::Checkpoint folder = safetensors(tensors);
  std::vector<float> wanted = stored_values(first);
  for (const float value : stored_values(second)) wanted.push_back(value);
  const Tensor apart = (WeightScope(folder, options).layer(2) / "norm").stack("weight", {2, 4});
  EXPECT_EQ(apart.to_host<float>(), wanted);
  const StoredTensor whole = stored("blk.2.norm.weight", {2, 4});
  const io::Checkpoint file = gguf({&whole, 1});
  const Tensor joined = (WeightScope(file, options).layer(2) / "norm").stack("weight", {2, 4});
  EXPECT_EQ(joined.to_host<float>(), stored_values(whole));
  expect_error(Code::not_found, {"layers.2.norms.2.weight", "(4)"},
               [&] { (WeightScope(folder, options).layer(2) / "norm").stack("weight", {3, 4}); });
}

TEST_F(WeightScopeTest, ErrorsNameTensorAndShapes) {
  const StoredTensor tensors[] = {stored("token_embd.weight", {4, 8}),
                                  stored("ids.weight", {4, 8}, DType::i32)};
  const io::Checkpoint checkpoint = gguf(tensors);
  const WeightScope root(checkpoint, with_names());
  const WeightScope q = root.layer(2) / "attn_q";
  expect_error(Code::not_found, {"blk.2.attn_q.weight", "(8, 16)", "missing"},
               [&] { q.matrix("weight", {.count = 8, .total = 8}, 16); });
  expect_error(Code::not_found, {"blk.2.attn_q.bias", "(8)"}, [&] { q.vector("bias", 8); });
  expect_error(Code::invalid_argument, {"token_embd.weight", "(4, 8)", "(5, 8)"},
               [&] { (root / "token_embd").table("weight", {5, 8}); });
  expect_error(Code::invalid_argument, {"token_embd.weight", "(4, 8)", "(8, 8)"},
               [&] { (root / "token_embd").matrix("weight", {.count = 4, .total = 8}, 8); });
  expect_error(Code::invalid_argument, {"token_embd.weight", "(4, 8)", "(32)"},
               [&] { (root / "token_embd").vector("weight", 32); });
  expect_error(Code::unsupported, {"ids.weight", "i32", "bf16"},
               [&] { (root / "ids").table("weight", {4, 8}); });
  EXPECT_THROW(WeightScope(checkpoint, {}), Error);
}

TEST_F(WeightScopeTest, VectorsAreCopiedAsFloatsWithTheOffset) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const StoredTensor tensor = stored("output_norm.weight", {8}, dtype);
    const io::Checkpoint checkpoint = gguf({&tensor, 1});
    const WeightScope norm = WeightScope(checkpoint, with_names()) / "output_norm";
    std::vector<float> wanted = stored_values(tensor);
    const Tensor x = norm.vector("weight", 8);
    EXPECT_EQ(x.to_host<float>(), wanted);
    EXPECT_FALSE(lies_in(x, checkpoint.tensors().front()));
    for (float& value : wanted) value += 1;
    EXPECT_EQ(norm.vector("weight", 8, 1).to_host<float>(), wanted);
  }
}

TEST_F(WeightScopeTest, TablesStayInTheFile) {
  const StoredTensor tensor = stored("model.embed_tokens.weight", {4, 8}, DType::f16);
  const io::Checkpoint checkpoint = safetensors({&tensor, 1});
  const WeightScope root(checkpoint, with_names());
  const Tensor table = (root / "token_embd").table("weight", {4, 8});
  EXPECT_EQ(table.dtype(), DType::f16);
  EXPECT_EQ(table.buffer()->data(), checkpoint.tensors().front().data.data());
  EXPECT_EQ(root.figures().resident_bytes, 64);
}

// safetensors files may place data at any byte; kernels cannot read it there.
TEST_F(WeightScopeTest, UnalignedDataIsCopied) {
  const StoredTensor tensor = stored("model.embed_tokens.weight", {4, 8});
  const io::Checkpoint checkpoint = safetensors({&tensor, 1}, 3);
  const WeightScope root(checkpoint, with_names(false));
  const WeightScope embedding = root / "token_embd";
  const Tensor table = embedding.table("weight", {4, 8});
  EXPECT_FALSE(lies_in(table, checkpoint.tensors().front()));
  EXPECT_EQ(table.to_host<float>(), tensor.values);
  const Tensor matrix = embedding.matrix("weight", {.count = 4, .total = 4}, 8);
  EXPECT_FALSE(lies_in(matrix, checkpoint.tensors().front()));
  EXPECT_EQ(matrix.to_host<float>(), tensor.values);
}

// Plain or packed, rows of a fused tensor must multiply as separate rows do.
TEST_F(WeightScopeTest, MatricesAreRowsOfFusedTensors) {
  constexpr int64_t kTotal = 24, kIn = 256;
  const std::vector<float> input = random_values(2 * kIn, 3);
  for (const DType dtype : {DType::f32, DType::f16, DType::q8_0, DType::q4_k}) {
    const StoredTensor tensor = stored("blk.0.attn_q.weight", {kTotal, kIn}, dtype);
    const io::Checkpoint checkpoint = gguf({&tensor, 1});
    const std::vector<float> values = stored_values(tensor);
    for (const bool pack : {false, true}) {
      SCOPED_TRACE(cat(name(dtype), pack ? ", packed" : ", plain"));
      const WeightScope root(checkpoint, with_names(pack));
      for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 24}, {0, 8}, {8, 16}}) {
        const Tensor weight =
            (root.layer(0) / "attn_q").matrix("weight", {first, count, kTotal}, kIn);
        if (!pack) {
          const auto offset = static_cast<size_t>(first * row_bytes(dtype, kIn));
          EXPECT_EQ(weight.buffer()->data(), checkpoint.tensors().front().data.data() + offset);
          EXPECT_EQ(weight.packing(), 0);
        }
        std::vector<float> wanted;
        for (int64_t row = 0; row < 2; ++row) {
          for (int64_t out = first; out < first + count; ++out) {
            double sum = 0;
            for (int64_t i = 0; i < kIn; ++i) {
              sum += double{input[static_cast<size_t>(row * kIn + i)]} *
                     values[static_cast<size_t>(out * kIn + i)];
            }
            wanted.push_back(static_cast<float>(sum));
          }
        }
        // Sums of 256 products below one; block types round the input to eight bits.
        const float bound = is_quantized(dtype) ? 0.2f : 1e-4f;
        EXPECT_THAT(linear(device_tensor(input, {2, kIn}), weight).to_host<float>(),
                    Pointwise(FloatNear(bound), wanted));
      }
    }
  }
}

// Image models use the checkpoint's own names.
TEST_F(WeightScopeTest, OwnNamesNeedNoTable) {
  const StoredTensor tensors[] = {stored("mid_block.resnets.0.conv1.weight", {4, 2, 3, 3}),
                                  stored("mid_block.proj.weight", {4, 2, 1, 1}),
                                  stored("mid_block.scale", {2, 3})};
  const io::Checkpoint checkpoint = safetensors(tensors);
  const WeightScope root(checkpoint, {.device = &cpu_device(), .own_names = true});
  const WeightScope mid = root / "mid_block";
  EXPECT_EQ((mid / "resnets" / "0" / "conv1").name("weight"), "mid_block.resnets.0.conv1.weight");
  EXPECT_TRUE((mid / "proj").has("weight"));
  EXPECT_FALSE((mid / "proj").has("bias"));
  EXPECT_EQ(mid.array("scale", {2, 3}).to_host<float>(), tensors[2].values);
  // A one-pixel convolution is a matrix, and the reverse.
  const Tensor matrix = (mid / "proj").matrix("weight", {.count = 4, .total = 4}, 2);
  EXPECT_EQ(matrix.shape(), (Shape{4, 2}));
  const Tensor conv = (mid / "resnets" / "0" / "conv1").conv("weight", {4, 2, 3, 3});
  EXPECT_EQ(conv.shape(), (Shape{4, 3, 3, 2}));
  expect_error(Code::invalid_argument, {"mid_block.proj.weight", "4, 2, 1, 1", "2, 4"},
               [&] { (mid / "proj").matrix("weight", {.count = 2, .total = 2}, 4); });
}

// If rows are whole blocks, the tensor may be quantised; the file has floats.
TEST_F(WeightScopeTest, FloatsBecomeBytesWhereTheyMay) {
  const StoredTensor tensors[] = {stored("a.weight", {6, 64}),
                                  stored("half.weight", {6, 64}, DType::f16),
                                  stored("narrow.weight", {6, 48}),
                                  stored("kept.weight", {6, 64}),
                                  stored("blocks.weight", {6, 64}, DType::q4_0),
                                  stored("conv.weight", {6, 32, 3, 3})};
  const io::Checkpoint checkpoint = gguf(tensors);
  const WeightScope root(checkpoint, {.device = &cpu_device(),
                                      .own_names = true,
                                      .pack = false,
                                      .may_quantize = [](std::string_view name) {
                                        return !name.starts_with("kept");
                                      }});
  const auto matrix = [&](const char* name, int64_t in) {
    return (root / name).matrix("weight", {.first = 2, .count = 3, .total = 6}, in);
  };
  EXPECT_EQ(matrix("narrow", 48).dtype(), DType::f32);
  EXPECT_EQ(matrix("kept", 64).dtype(), DType::f32);
  EXPECT_EQ(matrix("blocks", 64).dtype(), DType::q4_0);
  for (const auto& [at, name] : {std::pair{0, "a"}, {1, "half"}}) {
    const Tensor blocks = matrix(name, 64);
    ASSERT_EQ(blocks.dtype(), DType::q8_0);
    EXPECT_EQ(blocks.shape(), (Shape{3, 64}));
    const std::vector<float> values = stored_values(tensors[at]);
    EXPECT_THAT(cast(blocks, DType::f32).to_host<float>(),
                Pointwise(FloatNear(5e-3f), std::span(values).subspan(2 * 64, 3 * 64)));
  }
  const Tensor conv = (root / "conv").conv("weight", {6, 32, 3, 3});
  EXPECT_EQ(conv.dtype(), DType::q8_0);
  EXPECT_EQ(conv.shape(), (Shape{6, 3, 3, 32}));
}

// With bf16 activations, options can turn float matrices into bf16; blocks stay.
TEST_F(WeightScopeTest, MatricesAreAsNarrowAsActivations) {
  const StoredTensor tensors[] = {stored("a.weight", {6, 64}),
                                  stored("half.weight", {6, 64}, DType::f16),
                                  stored("blocks.weight", {6, 64}, DType::q4_0)};
  const io::Checkpoint checkpoint = gguf(tensors);
  const auto matrix = [&](const char* name, DType activations, bool narrow) {
    const WeightScope root(checkpoint, {.device = &cpu_device(),
                                        .own_names = true,
                                        .pack = false,
                                        .narrow_matrices = narrow,
                                        .activations = activations});
    return (root / name).matrix("weight", {.first = 2, .count = 3, .total = 6}, 64);
  };
  EXPECT_EQ(matrix("blocks", DType::bf16, true).dtype(), DType::q4_0);
  for (const auto& [at, name] : {std::pair{0, "a"}, {1, "half"}}) {
    EXPECT_EQ(matrix(name, DType::bf16, false).dtype(), tensors[at].dtype);
    EXPECT_EQ(matrix(name, DType::f32, true).dtype(), tensors[at].dtype);
    const Tensor narrow = matrix(name, DType::bf16, true);
    ASSERT_EQ(narrow.dtype(), DType::bf16);
    std::vector<float> values = stored_values(tensors[at]);
    for (float& value : values) value = to_float(to_bf16(value));
    EXPECT_EQ(cast(narrow, DType::f32).to_host<float>(),
              std::vector<float>(values.begin() + 2 * 64, values.begin() + 5 * 64));
  }
}

// ComfyUI-GGUF's files: blocks that cross row ends become 16 bits.
TEST_F(WeightScopeTest, BlocksOverTheEndsOfRowsBecomeSixteenBits) {
  const StoredTensor tensors[] = {stored("conv.weight", {72, 32}, DType::q5_0),
                                  stored("matrix.weight", {9, 32}, DType::q8_0)};
  const io::Checkpoint flat = gguf(tensors);
  std::vector<io::TensorEntry> entries = flat.tensors();
  entries[0].shape = {8, 32, 3, 3};
  entries[1].shape = {6, 48};
  const io::Checkpoint checkpoint = io::Checkpoint::of(entries, "file");
  const auto half_of = [](const StoredTensor& tensor) {
    std::vector<float> values = stored_values(tensor);
    for (float& value : values) value = to_float(to_f16(value));
    return values;
  };
  for (const DType activations : {DType::f32, DType::f16, DType::bf16}) {
    const WeightScope root(
        checkpoint,
        {.device = &cpu_device(), .own_names = true, .pack = false, .activations = activations});
    const DType wanted = activations == DType::bf16 ? DType::bf16 : DType::f16;
    const Tensor conv = (root / "conv").conv("weight", {8, 32, 3, 3});
    EXPECT_EQ(conv.dtype(), wanted);
    EXPECT_EQ(conv.shape(), (Shape{8, 3, 3, 32}));
    const Tensor rows =
        (root / "matrix").matrix("weight", {.first = 2, .count = 3, .total = 6}, 48);
    EXPECT_EQ(rows.dtype(), wanted);
    const Tensor plain = device_tensor(stored_values(tensors[0]), {8, 32, 3, 3});
    const Tensor reference = pack_conv_weight(cast(plain, wanted));
    ASSERT_EQ(conv.bytes(), reference.bytes());
    EXPECT_EQ(
        std::memcmp(conv.view().data, reference.view().data, static_cast<size_t>(conv.bytes())), 0);
    if (wanted == DType::bf16) continue;
    const std::vector<float> matrix = half_of(tensors[1]);
    EXPECT_EQ(cast(rows, DType::f32).to_host<float>(),
              std::vector<float>(matrix.begin() + 2 * 48, matrix.begin() + 5 * 48));
  }
  const WeightScope bytes(checkpoint, {.device = &cpu_device(),
                                       .own_names = true,
                                       .pack = false,
                                       .may_quantize = [](std::string_view) { return true; }});
  EXPECT_EQ((bytes / "conv").conv("weight", {8, 32, 3, 3}).dtype(), DType::q8_0);
}

class AddOne final : public nn::WeightPatch {
 public:
  bool touches(std::string_view name) const override { return name == "a.weight"; }
  void apply(std::string_view, const Shape& shape, std::span<float> values) const override {
    EXPECT_EQ(shape, (Shape{4, 2}));
    for (float& value : values) value += 1;
  }
};

TEST_F(WeightScopeTest, PatchesChangeTheTensorsThatTheyTouch) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const StoredTensor tensors[] = {stored("a.weight", {4, 2}, dtype),
                                    stored("b.weight", {4, 2}, dtype)};
    const io::Checkpoint checkpoint = safetensors(tensors);
    const AddOne patch;
    const WeightScope root(
        checkpoint, {.device = &cpu_device(), .own_names = true, .pack = false, .patch = &patch});
    std::vector<float> wanted = stored_values(tensors[0]);
    for (float& value : wanted) value += 1;
    const auto read = [&](const char* name) {
      const Tensor rows = (root / name).matrix("weight", {.first = 2, .count = 2, .total = 4}, 2);
      EXPECT_EQ(rows.dtype(), dtype);
      return cast(rows, DType::f32).to_host<float>();
    };
    EXPECT_THAT(read("a"), Pointwise(FloatNear(1e-3f), std::span(wanted).subspan(4)));
    EXPECT_EQ(read("b").front(), stored_values(tensors[1])[4]);
    EXPECT_THAT((root / "a").array("weight", {4, 2}).to_host<float>(),
                Pointwise(FloatNear(1e-3f), wanted));
  }
}

TEST(PackWeight, InStepsToTheSameBytes) {
  constexpr int64_t kRows = 5003, kIn = 512;  // 10 MB
  const Tensor weight = device_tensor(random_values(kRows * kIn, 11), {kRows, kIn});
  const Tensor whole = pack_weight(weight);
  if (whole.packing() == 0) GTEST_SKIP() << "this device keeps the plain layout";
  std::vector<int64_t> calls;
  const Tensor stepped = pack_weight(weight, [&](int64_t rows) { calls.push_back(rows); });
  EXPECT_GT(calls.size(), 1u);
  EXPECT_TRUE(std::ranges::is_sorted(calls));
  EXPECT_EQ(calls.back(), kRows);
  EXPECT_EQ(stepped.packing(), whole.packing());
  ASSERT_EQ(stepped.buffer()->bytes(), whole.buffer()->bytes());
  EXPECT_EQ(std::memcmp(stepped.buffer()->data(), whole.buffer()->data(), whole.buffer()->bytes()),
            0);
}

TEST_F(WeightScopeTest, FiguresCountEachTensorOnce) {
  const StoredTensor tensors[] = {stored("token_embd.weight", {16, 32}, DType::q8_0),
                                  stored("output_norm.weight", {32}),
                                  stored("blk.0.attn_q.weight", {8, 32}, DType::f16)};
  const io::Checkpoint checkpoint = gguf(tensors);
  const WeightScope root(checkpoint, with_names(false));
  (root / "token_embd").table("weight", {16, 32});
  (root / "token_embd").matrix("weight", {.count = 16, .total = 16}, 32);
  (root.layer(0) / "attn_q").matrix("weight", {.count = 4, .total = 8}, 32);
  (root.layer(0) / "attn_q").matrix("weight", {.first = 4, .count = 4, .total = 8}, 32);
  (root / "output_norm").vector("weight", 32);
  const nn::WeightFigures& figures = root.figures();
  EXPECT_EQ(figures.parameters, 16 * 32 + 32 + 8 * 32);
  EXPECT_EQ(figures.bytes_by_type[static_cast<size_t>(DType::q8_0)], 16 * 34);
  EXPECT_EQ(figures.bytes_by_type[static_cast<size_t>(DType::f16)], 8 * 32 * 2);
  EXPECT_EQ(figures.bytes_by_type[static_cast<size_t>(DType::f32)], 32 * 4);
  EXPECT_EQ(figures.most_common(), DType::q8_0);
}

TEST_F(WeightScopeTest, ProgressCountsBytesOfTheCheckpoint) {
  const StoredTensor tensors[] = {stored("token_embd.weight", {4, 8}),
                                  stored("output_norm.weight", {8}), stored("extra.weight", {4})};
  const io::Checkpoint checkpoint = gguf(tensors);
  std::vector<std::pair<int64_t, int64_t>> calls;
  nn::WeightOptions options = with_names();
  options.progress = [&](int64_t done, int64_t total) { calls.emplace_back(done, total); };
  const WeightScope root(checkpoint, options);
  (root / "token_embd").table("weight", {4, 8});
  (root / "token_embd").table("weight", {4, 8});
  (root / "output_norm").vector("weight", 8);
  root.finish();
  EXPECT_THAT(calls, ElementsAre(std::pair(128, 176), std::pair(160, 176), std::pair(176, 176)));
}

TEST_F(WeightScopeTest, FinishTellsWhatNobodyTook) {
  const StoredTensor tensors[] = {
      stored("output_norm.weight", {8}), stored("vision.patch.weight", {8}),
      stored("blk.0.attn_q.weight", {8, 8}), stored("blk.0.attn_z.weight", {8})};
  const io::Checkpoint checkpoint = gguf(tensors);
  constexpr std::string_view kIgnored[] = {"vision."};
  nn::WeightOptions options = with_names();
  options.ignored = kIgnored;
  const WeightScope root(checkpoint, options);
  (root / "output_norm").vector("weight", 8);
  std::string logged;
  set_log_sink(
      [&](LogLevel, std::string_view, std::span<const LogField> fields) {
        for (const LogField& field : fields) logged += cat(field.key, "=", field.value, ";");
      },
      LogLevel::warn);
  root.finish();
  EXPECT_EQ(logged, "count=2;first=blk.0.attn_q.weight, blk.0.attn_z.weight;");
  logged.clear();
  (root.layer(0) / "attn_q").matrix("weight", {.count = 8, .total = 8}, 8);
  (root.layer(0) / "attn_z").vector("weight", 8);
  root.finish();
  EXPECT_EQ(logged, "");
  set_log_sink({}, LogLevel::error);
}

TEST_F(WeightScopeTest, LayersThatAdjoinLeaveAndReturnAsOne) {
  const StoredTensor tensors[] = {
      stored("blk.0.attn_q.weight", {6, 8}), stored("blk.0.attn_q.bias", {6}),
      stored("blk.1.attn_q.weight", {4, 8}), stored("blk.1.attn_q.bias", {4})};
  const io::Checkpoint checkpoint = gguf(tensors);
  engine::FarDevice device;
  nn::WeightStash stash;
  struct Pair {
    nn::Linear first, second;
  };
  const auto make = [&] {
    nn::WeightOptions options = with_names(false);
    options.device = &device;
    options.stash = &stash;
    const WeightScope root(checkpoint, options);
    Pair out{
        .first = nn::Linear(root / "blk.0.attn_q", {.in = 8, .out = 6, .bias = nn::Bias::required}),
        .second =
            nn::Linear(root / "blk.1.attn_q", {.in = 8, .out = 4, .bias = nn::Bias::required})};
    nn::adjoin(root, {&out.first, &out.second});
    return out;
  };
  const auto values = [](const Pair& pair) {
    std::vector<float> out = pair.first.weights().weight.to_host<float>();
    for (const Tensor& x :
         {pair.second.weights().weight, pair.first.weights().bias, pair.second.weights().bias}) {
      const std::vector<float> more = x.to_host<float>();
      out.insert(out.end(), more.begin(), more.end());
    }
    return out;
  };
  const auto one = [](const Pair& pair) {
    return pair.second.weights().adjoins &&
           pair.first.weights().weight.buffer() == pair.second.weights().weight.buffer() &&
           pair.first.weights().bias.buffer() == pair.second.weights().bias.buffer();
  };
  std::vector<float> before;
  size_t in_use = 0;
  {
    const Pair pair = make();
    EXPECT_TRUE(one(pair));
    before = values(pair);
    in_use = device.in_use();
  }
  stash.fill();
  EXPECT_EQ(device.in_use(), 0u);
  const Pair again = make();
  EXPECT_TRUE(one(again));
  EXPECT_EQ(values(again), before);
  EXPECT_EQ(device.in_use(), in_use);
}

}  // namespace
}  // namespace rbee::test
