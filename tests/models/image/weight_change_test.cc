// Weight changes against the lycoris package's for the same tensors
// (tools/goldens/make_lycoris_goldens.py), and rotations against their papers' formulas
// (make_rotation_goldens.py).

#include "rbee/models/image/weight_change.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "rbee/io/checkpoint.h"
#include "rbee/io/json_parse.h"
#include "rbee/models/image/lora.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"

namespace rbee::test {
namespace {

using models::RowShare;
using nlohmann::json;

json cases() {
  json out = json::array();
  for (const char* name : {"lycoris.json", "rotations.json"}) {
    std::ifstream file(image_data(name));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (json& each : io::parse_json(text, name)) out.push_back(std::move(each));
  }
  return out;
}

Shape shape_of(const json& tensor) {
  const auto sizes = tensor["shape"].get<std::vector<int64_t>>();
  return sizes.empty() ? Shape{1} : Shape(std::span<const int64_t>(sizes));
}

std::vector<float> values_of(const json& tensor) {
  return tensor["values"].get<std::vector<float>>();
}

// A key's role in the words of weight_change.h.
std::string role_of(const std::string& key) {
  if (key == "weight") return "scale";
  for (const char* name : {"up", "down", "mid"}) {
    if (key == cat("lora_", name, ".weight")) return name;
  }
  return key;
}

// The tensors of a case in a file.
class LycorisLayer {
 public:
  explicit LycorisLayer(const json& wanted) {
    std::vector<MadeTensor> made;
    for (const auto& [key, tensor] : wanted["tensors"].items()) {
      made.push_back({key, shape_of(tensor), values_of(tensor)});
    }
    const std::filesystem::path path =
        cat(testing::TempDir(), "lycoris-", getpid(), ".safetensors");
    write_safetensors(path, made, DType::f32);
    file_ = io::Checkpoint::open(path);
    std::filesystem::remove(path);  // the mapping stays
    for (const io::TensorEntry& entry : file_->tensors()) {
      if (entry.name == "alpha") {
        layer.alpha = values_of(wanted["tensors"]["alpha"]).front();
      } else {
        layer.tensors[role_of(entry.name)] = &entry;
      }
    }
  }

  models::AdapterLayer layer;

 private:
  std::optional<io::Checkpoint> file_;
};

// Names a case by its index in the file, which keeps failures short.
class LycorisGolden : public testing::TestWithParam<size_t> {
 protected:
  json wanted = cases().at(GetParam());
};

TEST_P(LycorisGolden, ChangesAWeightAsThePackageDoes) {
  const LycorisLayer made(wanted);
  const auto change = models::read_change("file", made.layer);
  ASSERT_NE(change, nullptr);
  const Shape shape = shape_of(wanted["weight"]);
  change->check_fit("a weight", shape, {});
  const auto got = change->values(values_of(wanted["weight"]), shape, {}, cpu_device());
  const auto expected = wanted["change"].get<std::vector<float>>();
  ASSERT_EQ(got.size(), expected.size());
  float worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] * change->scale() - expected[i]));
  }
  EXPECT_LT(worst, 2e-5f);
}

// A weight that is part of a fused layer in the file gets its rows.
TEST_P(LycorisGolden, GivesAPartItsRows) {
  const LycorisLayer made(wanted);
  const auto change = models::read_change("file", made.layer);
  const auto weight = values_of(wanted["weight"]);
  Shape shape = shape_of(wanted["weight"]);
  const RowShare last{.first = 3, .count = 1, .shares = 4};
  const auto all = change->values(weight, shape, {}, cpu_device());
  shape[0] /= 4;
  const std::string name = wanted["name"];
  if (name.starts_with("ia3") || name.starts_with("boft") || name.ends_with("columns")) {
    expect_error(Code::invalid_argument, {"file", "a weight", "another model"},
                 [&] { change->check_fit("a weight", shape, last); });
    return;
  }
  change->check_fit("a weight", shape, last);
  const auto own = std::span(weight).last(weight.size() / 4);
  const auto part = change->values(own, shape, last, cpu_device());
  ASSERT_EQ(part.size(), all.size() / 4);
  for (size_t i = 0; i < part.size(); ++i) {
    EXPECT_NEAR(part[i], all[all.size() / 4 * 3 + i], 1e-5f) << i;
  }
}

TEST_P(LycorisGolden, NamesWeightsThatItDoesNotFit) {
  const LycorisLayer made(wanted);
  const auto change = models::read_change("the file", made.layer);
  const std::string name = wanted["name"];
  const bool of_rows = name == "ia3" || name.find("oft") != std::string::npos;
  for (const int axis : {0, 1}) {
    const bool reads = axis == 0 ? name != "ia3_input" : !of_rows;
    Shape other = shape_of(wanted["weight"]);
    other[axis] += 1;
    if (!reads) continue;
    expect_error(Code::invalid_argument, {"the file", "some.weight", "another model"},
                 [&] { change->check_fit("some.weight", other, {}); });
  }
}

TEST_P(LycorisGolden, NeedsAllOfItsTensors) {
  for (const auto& [key, tensor] : wanted["tensors"].items()) {
    const std::string role = role_of(key);
    const bool needed = role != "alpha" && role != "mid" && role != "dora_scale" &&
                        role != "rescale" && role.find("_t") == std::string::npos;
    if (!needed) continue;
    LycorisLayer made(wanted);
    made.layer.tensors.erase(role);
    EXPECT_EQ(models::read_change("file", made.layer), nullptr) << role;
  }
}

std::string name_of(const testing::TestParamInfo<size_t>& info) {
  return cases().at(info.param)["name"].get<std::string>();
}

INSTANTIATE_TEST_SUITE_P(Layers, LycorisGolden, testing::Range<size_t>(0, cases().size()), name_of);

json tensor(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  return {{"shape", shape}, {"values", values}};
}

// W a1 a2 + b1 b2 by hand, and W a2 a1 + b2 b1 as in older files.
TEST(LycorisLayerTest, GloraChangesTheWeightThroughItself) {
  const Shape shape{2, 3};
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6}, wanted = {-1, -3, -5, 0, -2, -4};
  const json across = tensor({1, 3}, {1, 2, 3}), down = tensor({3, 1}, {1, 0, -1});
  const json left = tensor({2, 1}, {1, 2}), right = tensor({1, 3}, {1, 1, 1});
  for (const json& tensors : {json{{"a1", down}, {"a2", across}, {"b1", left}, {"b2", right}},
                              json{{"a1", across}, {"a2", down}, {"b1", right}, {"b2", left}}}) {
    const LycorisLayer made(json{{"tensors", tensors}});
    const auto change = models::read_change("file", made.layer);
    ASSERT_NE(change, nullptr);
    change->check_fit("a weight", shape, {});
    EXPECT_EQ(change->values(weight, shape, {}, cpu_device()), wanted);
    const RowShare last{.first = 1, .count = 1, .shares = 2};
    change->check_fit("a weight", {1, 3}, last);
    EXPECT_EQ(change->values(std::span(weight).last(3), {1, 3}, last, cpu_device()),
              (std::vector<float>{0, -2, -4}));
    for (const Shape& other : {Shape{3, 3}, Shape{2, 4}, Shape{6}}) {
      expect_error(Code::invalid_argument, {"file", "a weight", "another model"},
                   [&] { change->check_fit("a weight", other, {}); });
    }
    json some = tensors;
    some.erase("b1");
    const LycorisLayer part(json{{"tensors", some}});
    EXPECT_EQ(models::read_change("file", part.layer), nullptr);
  }
  const LycorisLayer conv(json{{"tensors",
                                {{"alpha", tensor({}, {2})},
                                 {"a1", tensor({2, 1}, {1, 1})},
                                 {"a2", tensor({1, 2}, {1, -1})},
                                 {"b1", tensor({1, 1}, {2})},
                                 {"b2", tensor({1, 2, 1, 2}, {1, 0, 0, 1})}}}});
  const auto change = models::read_change("file", conv.layer);
  const Shape kernel{1, 2, 1, 2};
  change->check_fit("a weight", kernel, {});
  EXPECT_EQ(change->values(std::vector<float>{1, 2, 3, 4}, kernel, {}, cpu_device()),
            (std::vector<float>{6, 6, -4, -4}));
  EXPECT_EQ(change->scale(), 2);
}

TEST(LycorisLayerTest, SaysWhatIsNoMatrix) {
  const auto refused = [](const json& tensors, const std::vector<std::string>& said) {
    const LycorisLayer made(json{{"tensors", tensors}});
    expect_error(Code::invalid_argument, said,
                 [&] { static_cast<void>(models::read_change("file", made.layer)); });
  };
  const json number = {{"shape", {1}}, {"values", {1}}};
  const json matrix = {{"shape", {1, 1}}, {"values", {1}}};
  refused({{"lora_up.weight", number}, {"lora_down.weight", matrix}}, {"file", "lora_up.weight"});
  refused({{"hada_w1_a", matrix}, {"hada_w1_b", number}}, {"file", "hada_w1_b"});
  refused({{"lokr_w1", number}, {"lokr_w2", matrix}}, {"file", "lokr_w1"});
  const json two = {{"shape", {2}}, {"values", {1, 1}}};
  refused({{"weight", two}, {"on_input", two}}, {"file", "on_input", "one number"});
}

TEST(LycorisLayerTest, SaysWhatIsNoRotation) {
  const auto refused = [](Code code, const json& tensors, const std::vector<std::string>& said) {
    const LycorisLayer made(json{{"tensors", tensors}});
    expect_error(code, said, [&] { static_cast<void>(models::read_change("file", made.layer)); });
  };
  const json flat = tensor({2, 2}, {1, 2, 3, 4}), oblong = tensor({1, 2, 1}, {1, 2});
  refused(Code::invalid_argument, {{"oft_blocks", flat}}, {"file", "oft_blocks is (2, 2)"});
  refused(Code::invalid_argument, {{"oft_blocks", oblong}}, {"file", "no square blocks"});
  refused(Code::unsupported, {{"oft_blocks", tensor({1, 1, 1}, {0})}, {"diff", flat}},
          {"file", "oft_blocks and diff change one layer"});
  // A butterfly larger than the number of rows, and one over odd blocks.
  const Shape shape{4, 1};
  for (const auto& [sizes, count] : {std::pair{std::vector<int64_t>{3, 2, 2, 2}, 24},
                                     std::pair{std::vector<int64_t>{1, 4, 1, 1}, 4}}) {
    const json blocks = tensor(sizes, std::vector<float>(static_cast<size_t>(count)));
    const LycorisLayer made(json{{"tensors", {{"oft_blocks", blocks}}}});
    const auto change = models::read_change("file", made.layer);
    expect_error(Code::invalid_argument, {"oft_blocks", "a weight", "another model"},
                 [&] { change->check_fit("a weight", shape, {}); });
  }
}

TEST(LycorisLayerTest, NamesLengthsThatDoNotFit) {
  for (json wanted : cases()) {
    if (!wanted["tensors"].contains("dora_scale")) continue;
    json& lengths = wanted["tensors"]["dora_scale"];
    lengths = {{"shape", {3, 1}}, {"values", {1, 1, 1}}};
    const LycorisLayer made(wanted);
    const auto change = models::read_change("file", made.layer);
    expect_error(Code::invalid_argument, {"file", "dora_scale", "3, 1", "some.weight"},
                 [&] { change->check_fit("some.weight", shape_of(wanted["weight"]), {}); });
  }
}

// Through a file with kohya's names, against a model whose weights were changed by hand.
TEST(LycorisFile, ChangesTheModel) {
  const ImageFolder folder("sd1");
  const ImageGolden golden("sd1");
  const std::string module = "mid_block.attentions.0.transformer_blocks.0.attn1.to_q";
  const std::string name = "lora_unet_mid_block_attentions_0_transformer_blocks_0_attn1_to_q.";
  const std::string other = "lycoris_mid_block_attentions_0_transformer_blocks_0_attn1_to_q.";
  std::vector<MadeTensor> unet = made_part(image_data("sd1") / "model" / "unet");
  const auto at = std::ranges::find(unet, module + ".weight", &MadeTensor::name);
  ASSERT_NE(at, unet.end());
  ASSERT_EQ(at->shape, (Shape{32, 32}));
  const auto made = [&](const char* leaf, int64_t rows, int64_t columns) {
    return MadeTensor{name + leaf, Shape{rows, columns}, made_weights(leaf, Shape{rows, columns})};
  };
  const auto denoised = [&](const models::ImageLoadOptions& options) {
    const models::ImageModel model = load_on_cpu(folder.path(), options);
    const auto prompt = model.denoiser->prepare({.context = golden.tensor("text_encoder.skip0")});
    return (*model.denoiser)(golden.tensor("unet.x"), golden.tensor("unet.steps"), *prompt)
        .to_host<float>();
  };
  const auto path = folder.path() / "lokr.safetensors";
  const MadeTensor outer = made("lokr_w1", 4, 2), left = made("lokr_w2_a", 8, 3),
                   right = made("lokr_w2_b", 3, 16);
  write_safetensors(path, {outer, left, right, {name + "alpha", Shape{1}, {6}}});
  const auto plain = denoised({});
  const auto merged = denoised({.loras = {{path, 0.5f}}});
  std::vector<MadeTensor> renamed = {outer, left, right, {name + "alpha", Shape{1}, {6}}};
  for (MadeTensor& tensor : renamed) tensor.name.replace(0, name.size(), other);
  const auto own_names = folder.path() / "own_names.safetensors";
  write_safetensors(own_names, renamed);
  EXPECT_EQ(denoised({.loras = {{own_names, 0.5f}}}), merged);
  // PEFT writes no alpha into the file: its configuration has it, under a name of its own.
  std::vector<MadeTensor> of_peft = {outer, left, right};
  for (MadeTensor& tensor : of_peft) {
    tensor.name.replace(0, name.size(), "base_model.model." + module + ".");
  }
  const auto peft = folder.path() / "adapter_model.safetensors";
  write_safetensors(peft, of_peft);
  const auto unscaled = denoised({.loras = {{peft, 1}}});
  const auto config = [&](const char* text) {
    std::ofstream(folder.path() / "adapter_config.json") << text;
  };
  config(R"({"peft_type": "LOKR", "r": 3, "alpha": 6, "decompose_both": false})");
  EXPECT_EQ(denoised({.loras = {{peft, 0.5f}}}), merged);
  EXPECT_EQ(unscaled, merged);  // 1 x 1 = 0.5 x 6 / 3
  config(R"({"peft_type": "LOKR", "r": 4, "alpha": 6})");
  expect_error(Code::invalid_argument, {"adapter_config.json", "to_q is 4", "have 3"},
               [&] { denoised({.loras = {{peft, 1}}}); });
  config(R"({"peft_type": "OFT", "r": 4})");
  expect_error(Code::unsupported, {"adapter_config.json", "OFT", "LOKR"},
               [&] { denoised({.loras = {{peft, 1}}}); });
  for (size_t i = 0; i < 32; ++i) {
    for (size_t j = 0; j < 32; ++j) {
      float inner = 0;
      for (size_t r = 0; r < 3; ++r) {
        inner += left.values[i % 8 * 3 + r] * right.values[r * 16 + j % 16];
      }
      at->values[i * 32 + j] += 0.5f * 2 * outer.values[i / 8 * 2 + j / 16] * inner;
    }
  }
  write_safetensors(folder.path() / "unet/diffusion_pytorch_model.fp16.safetensors", unet,
                    DType::f32);
  const auto wanted = denoised({});
  float difference = 0, moved = 0;
  for (size_t i = 0; i < merged.size(); ++i) {
    difference = std::max(difference, std::abs(merged[i] - wanted[i]));
    moved = std::max(moved, std::abs(merged[i] - plain[i]));
  }
  EXPECT_LE(difference, 1e-3f);
  EXPECT_GE(moved, 0.02f);
}

}  // namespace
}  // namespace rbee::test
