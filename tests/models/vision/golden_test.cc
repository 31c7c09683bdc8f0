// Gemma 3 with pictures against transformers; tools/goldens/make_picture_goldens.py writes goldens
// and checkpoints.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "rbee/models/gemma3/pictures.h"
#include "rbee/ops/elementwise.h"
#include "tests/models/language/model_runner.h"
#include "tests/support/data_folder.h"
#include "tests/support/npy.h"
#include "tests/units/engine/far_device.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32, kTokens = 16, kVocab = 272, kWidth = 64, kContext = 64;
constexpr int32_t kSoft = 8;

fs::path data(std::string_view name) {
  return fs::path(test::data_folder()) / "models/vision/data" / name;
}

struct Prompt {
  std::vector<int32_t> ids;
  std::vector<size_t> pictures;
};

std::vector<Prompt> read_prompts() {
  std::ifstream file(data("golden.json"));
  std::vector<Prompt> out;
  for (const auto& item : nlohmann::json::parse(file)) {
    out.push_back(
        {item["ids"].get<std::vector<int32_t>>(), item["pictures"].get<std::vector<size_t>>()});
  }
  return out;
}

// A folder made of the case's parts; the destructor removes it.
class Folder {
 public:
  Folder(const fs::path& config, const fs::path& weights) {
    std::string pattern = (fs::temp_directory_path() / "rbee-pictures-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    fs::copy(config, path_ / "config.json");
    fs::create_symlink(weights, path_ / "model.safetensors");
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const fs::path& path() const { return path_; }
  void edit(const std::string& from, const std::string& to) const {
    std::ifstream in(path_ / "config.json");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(path_ / "config.json") << text;
  }

 private:
  fs::path path_;
};

enum class Form : uint8_t { published, nested, gguf };

std::unique_ptr<models::LanguageModel> load(Form form, models::LoadOptions options = {}) {
  if (options.device == nullptr) options.device = &device_under_test();
  options.context = kContext;
  if (form == Form::gguf) {
    const io::Checkpoint tower = io::Checkpoint::open(data("mmproj.gguf"));
    options.pictures = &tower;
    return models::load_language_model(io::Checkpoint::open(data("model.gguf")), options);
  }
  const char* weights = form == Form::nested ? "hf_nested" : "hf";
  const Folder folder(data("hf") / "config.json", data(weights) / "model.safetensors");
  return models::load_language_model(io::Checkpoint::open(folder.path()), options);
}

class PictureGoldenTest : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    prompts_ = read_prompts();
    logits_ = read_npy<float>(data("logits.npy")).values;
    model_ = load(GetParam());
    ASSERT_NE(model_->pictures(), nullptr);
    const auto pixels = read_npy<float>(data("pixels.npy"));
    ASSERT_EQ(pixels.shape, (std::vector<int64_t>{3, kSide, kSide, 3}));
    pixels_ = from_host(std::span<const float>(pixels.values), Shape{3, kSide, kSide, 3},
                        device_under_test());
    for (int64_t i = 0; i < 3; ++i) rows_.push_back((*model_->pictures())(picture(i)));
  }

  Tensor picture(int64_t i) const {
    return pixels_.slice(Axis{0}, i, 1).reshape({kSide, kSide, 3});
  }

  // Tokens [first, end) of a prompt, with the pictures' rows among them.
  Piece piece(int64_t sequence, const Prompt& prompt, size_t first, size_t end) const {
    Piece out{sequence,
              {prompt.ids.begin() + static_cast<ptrdiff_t>(first),
               prompt.ids.begin() + static_cast<ptrdiff_t>(end)}};
    size_t at = 0;
    for (const size_t which : prompt.pictures) {
      while (prompt.ids[at] != kSoft) ++at;
      if (at >= first && at < end) {
        out.pictures.push_back({static_cast<int64_t>(at - first), rows_[which]});
      }
      at += kTokens;
    }
    return out;
  }
  Piece piece(int64_t sequence, const Prompt& prompt) const {
    return piece(sequence, prompt, 0, prompt.ids.size());
  }

  ModelRunner runner() const { return {*model_, std::ssize(prompts_), kContext, DType::f32}; }

  std::span<const float> golden(size_t first, size_t count) const {
    return std::span(logits_).subspan(first * kVocab, count * kVocab);
  }

  std::vector<Prompt> prompts_;
  std::vector<float> logits_;
  std::unique_ptr<models::LanguageModel> model_;
  Tensor pixels_;
  std::vector<Tensor> rows_;  // (tokens, width) of each picture
};

TEST_P(PictureGoldenTest, RowsOfPictures) {
  EXPECT_EQ(model_->pictures()->side(), kSide);
  EXPECT_EQ(model_->pictures()->tokens(), kTokens);
  const std::vector<float> wanted = read_npy<float>(data("rows.npy")).values;
  ASSERT_EQ(wanted.size(), 3u * kTokens * kWidth);
  for (size_t i = 0; i < 3; ++i) {
    const auto part = std::span(wanted).subspan(i * kTokens * kWidth, kTokens * kWidth);
    EXPECT_LE(max_difference(rows_[i].to_host<float>(), part), kLogitBound) << i;
  }
}

TEST_P(PictureGoldenTest, EachPromptAlone) {
  ModelRunner runner = this->runner();
  size_t first = 0;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    const Piece whole = piece(static_cast<int64_t>(i), prompts_[i]);
    const size_t count = whole.ids.size();
    EXPECT_LE(max_difference(runner.step({&whole, 1}), golden(first, count)), kLogitBound) << i;
    first += count;
  }
}

TEST_P(PictureGoldenTest, Together) {
  ModelRunner runner = this->runner();
  std::vector<Piece> pieces;
  for (const Prompt& prompt : prompts_) pieces.push_back(piece(std::ssize(pieces), prompt));
  EXPECT_LE(max_difference(runner.step(pieces), logits_), kLogitBound);
}

// Cuts anywhere except within a picture.
TEST_P(PictureGoldenTest, PromptsInChunks) {
  ModelRunner runner = this->runner();
  size_t before = 0;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    const Prompt& prompt = prompts_[i];
    for (size_t first = 0; first < prompt.ids.size();) {
      const bool soft = prompt.ids[first] == kSoft;
      const size_t end = soft ? first + kTokens : first + 1;
      const Piece part = piece(static_cast<int64_t>(i), prompt, first, end);
      const std::vector<float> logits = runner.step({&part, 1});
      ASSERT_LE(max_difference(logits, golden(before + first, end - first)), kLogitBound)
          << "prompt " << i << " token " << first;
      first = end;
    }
    before += prompt.ids.size();
  }
}

TEST_P(PictureGoldenTest, PlainWeights) {
  model_ = load(GetParam(), {.pack_weights = false});
  rows_[0] = (*model_->pictures())(picture(0));
  ModelRunner runner = this->runner();
  const Piece whole = piece(0, prompts_[0]);
  EXPECT_LE(max_difference(runner.step({&whole, 1}), golden(0, whole.ids.size())), kLogitBound);
}

// The tower is on the device, and its rows go into the token embeddings on the CPU.
TEST_P(PictureGoldenTest, LayersOnTheHost) {
  engine::FarDevice far;
  Device& under_test = device_under_test();
  Device& device = &under_test == &cpu_device() ? far : under_test;
  const models::ModelConfig config = model_->config();
  for (int64_t on_device = 1; on_device <= config.layers; ++on_device) {
    const std::unique_ptr<models::LanguageModel> model =
        load(GetParam(), {.device = &device, .gpu_layers = on_device, .host = &cpu_device()});
    ASSERT_EQ(model->host_layers().count, config.layers + 1 - on_device);
    rows_.clear();
    for (int64_t i = 0; i < 3; ++i) {
      rows_.push_back((*model->pictures())(contiguous(picture(i)).to(device)));
    }
    ModelRunner runner(*model, std::ssize(prompts_), kContext, DType::f32, device);
    size_t first = 0;
    for (size_t i = 0; i < prompts_.size(); ++i) {
      const Piece whole = piece(static_cast<int64_t>(i), prompts_[i]);
      const size_t count = whole.ids.size();
      EXPECT_LE(max_difference(runner.step({&whole, 1}), golden(first, count)), kLogitBound)
          << on_device << ", " << i;
      first += count;
    }
    rows_.clear();
  }
}

TEST_P(PictureGoldenTest, FiguresCountTheTower) {
  // Text: table 272 x 64; per layer q and output 64 x 64, k and v 64 x 16, the MLP 3 x 64 x 64,
  // four norms of 64 and two of 16; the last norm. Tower: patches 12 x 32 and bias, 256 positions,
  // per layer four matrices of 32 x 32 and two of 32 x 48 with biases, and two norms; the last
  // norm, and the projector.
  const int64_t text = 272 * 64 + 3 * (2 * 4096 + 2 * 1024 + 3 * 4096 + 4 * 64 + 2 * 16) + 64;
  const int64_t layer = 4 * (1024 + 32) + 2 * 32 * 48 + 48 + 32 + 4 * 32;
  const int64_t tower = 12 * 32 + 32 + 256 * 32 + 2 * layer + 2 * 32 + 32 + 32 * 64;
  EXPECT_EQ(model_->parameters(), text + tower);
  EXPECT_GE(model_->weight_bytes(), 2 * (text + tower));
}

std::string name_of(Form form) {
  if (form == Form::gguf) return "gguf";
  return form == Form::nested ? "nested" : "published";
}

INSTANTIATE_TEST_SUITE_P(Forms, PictureGoldenTest,
                         testing::Values(Form::published, Form::nested, Form::gguf),
                         [](const auto& test) { return name_of(test.param); });

TEST(PictureModels, StatesOfTheTower) {
  const models::LoadOptions options{.device = &device_under_test()};
  const models::Gemma3Pictures tower(io::Checkpoint::open(data("mmproj.gguf")), options, kWidth);
  const auto pixels = read_npy<float>(data("pixels.npy"));
  const std::vector<float> wanted = read_npy<float>(data("states.npy")).values;
  const size_t one = pixels.values.size() / 3, states = wanted.size() / 3;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor picture = from_host(std::span(pixels.values).subspan(i * one, one),
                                     Shape{kSide, kSide, 3}, device_under_test());
    const std::vector<float> found = tower.states(picture).to_host<float>();
    EXPECT_LE(max_difference(found, std::span(wanted).subspan(i * states, states)), kLogitBound);
  }
}

// A window that covers a picture and its whole prompt.
TEST(PictureModels, WideWindow) {
  const Folder folder(data("hf_wide") / "config.json", data("hf") / "model.safetensors");
  const auto model = models::load_language_model(
      io::Checkpoint::open(folder.path()), {.device = &device_under_test(), .context = kContext});
  const auto pixels = read_npy<float>(data("pixels.npy"));
  const Tensor picture =
      from_host(std::span(pixels.values).first(static_cast<size_t>(kSide * kSide * 3)),
                Shape{kSide, kSide, 3}, device_under_test());
  const Prompt prompt = read_prompts()[0];
  Piece whole{0, prompt.ids};
  whole.pictures.push_back({6, (*model->pictures())(picture)});
  ModelRunner runner(*model, 1, kContext);
  const std::vector<float> wanted = read_npy<float>(data("logits_wide.npy")).values;
  EXPECT_LE(
      max_difference(runner.step({&whole, 1}), std::span(wanted).first(prompt.ids.size() * kVocab)),
      kLogitBound);
}

void expect_error(const std::function<void()>& body, Code code, std::string_view part) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown, wanted " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
  }
}

void expect_refused(const std::string& from, const std::string& to, Code code,
                    const std::string& part) {
  const Folder folder(data("hf") / "config.json", data("hf") / "model.safetensors");
  folder.edit(from, to);
  expect_error(
      [&] {
        models::load_language_model(io::Checkpoint::open(folder.path()),
                                    {.device = &device_under_test()});
      },
      code, part);
}

TEST(PictureModels, BadSettingsAreRefused) {
  expect_refused("\"patch_size\": 2", "\"patch_size\": 3", Code::invalid_argument, "patch_size");
  expect_refused("\"mm_tokens_per_image\": 16", "\"mm_tokens_per_image\": 15",
                 Code::invalid_argument, "mm_tokens_per_image");
  expect_refused("\"mm_tokens_per_image\": 16", "\"mm_tokens_per_image\": 0",
                 Code::invalid_argument, "mm_tokens_per_image");
  expect_refused("\"hidden_act\": \"gelu_pytorch_tanh\"", "\"hidden_act\": \"relu\"",
                 Code::unsupported, "hidden_act");
  expect_refused("\"num_attention_heads\": 2", "\"num_attention_heads\": 3", Code::invalid_argument,
                 "num_attention_heads");
  expect_refused("\"image_size\": 32", "\"image_size\": 64", Code::invalid_argument,
                 "position_embedding");
}

TEST(PictureModels, OtherFilesAreNoTowers) {
  const io::Checkpoint text = io::Checkpoint::open(data("model.gguf"));
  models::LoadOptions options{.device = &device_under_test(), .pictures = &text};
  expect_error([&] { models::load_language_model(text, options); }, Code::invalid_argument,
               "mmproj");
  const io::Checkpoint tower = io::Checkpoint::open(data("mmproj.gguf"));
  const io::Checkpoint llama =
      io::Checkpoint::open(fs::path(test::data_folder()) / "models/language/data/llama/model.gguf");
  options.pictures = &tower;
  expect_error([&] { models::load_language_model(llama, options); }, Code::unsupported, "mmproj");
  expect_error([&] { models::load_language_model(tower, {.device = &device_under_test()}); },
               Code::unsupported, "clip");
}

TEST(PictureModels, TextAloneHasNoTower) {
  const auto model = models::load_language_model(io::Checkpoint::open(data("model.gguf")),
                                                 {.device = &device_under_test()});
  EXPECT_EQ(model->pictures(), nullptr);
}

}  // namespace
}  // namespace rbee::test
