// Texts of one pass with a common prefix: a ranking decoder's texts share the query and more.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/models/decoder_embedding.h"
#include "rbee/models/registry.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/data_folder.h"

namespace rbee::models {
namespace {

// Counts the tokens it evaluates.
class CountingModel final : public LanguageModel {
 public:
  CountingModel(std::unique_ptr<LanguageModel> model, int64_t& tokens)
      : model_(std::move(model)), tokens_(tokens) {}
  const ModelConfig& config() const override { return model_->config(); }
  Tensor forward(const ForwardBatch& batch, nn::KvCache& cache) const override {
    return model_->forward(batch, cache);
  }
  Tensor states(const ForwardBatch& batch, nn::KvCache& cache) const override {
    tokens_ += batch.ids.dim(0);
    return model_->states(batch, cache);
  }
  std::span<const nn::LoraTarget> lora_targets() const override { return {}; }
  DType activations() const override { return model_->activations(); }
  int64_t weight_bytes() const override { return model_->weight_bytes(); }
  int64_t parameters() const override { return model_->parameters(); }
  std::string quantization() const override { return model_->quantization(); }

 private:
  std::unique_ptr<LanguageModel> model_;
  int64_t& tokens_;
};

std::vector<int32_t> tokens(int32_t first, size_t count) {
  std::vector<int32_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>((first + 7 * i) % 100);
  return out;
}

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TextBatch batch_of(const std::vector<std::vector<int32_t>>& texts) {
  TextBatch out;
  for (const std::vector<int32_t>& text : texts) {
    out.ids.insert(out.ids.end(), text.begin(), text.end());
    out.lengths.push_back(std::ssize(text));
  }
  out.segments.resize(out.ids.size(), 0);
  return out;
}

class SharedBeginnings : public testing::TestWithParam<const char*> {
 protected:
  SharedBeginnings() {
    const std::filesystem::path path = std::filesystem::path(test::data_folder()) /
                                       "models/language/data" / GetParam() / "model.gguf";
    DecoderEmbeddingSpec spec{.device = &test::cpu_device(), .max_tokens = 256};
    spec.model = std::make_unique<CountingModel>(
        load_language_model(io::Checkpoint::open(path),
                            {.device = spec.device, .context = spec.max_tokens}),
        evaluated_);
    model_ = make_decoder_embedding(std::move(spec));
  }

  int64_t evaluated_ = 0;
  std::unique_ptr<EmbeddingModel> model_;
};

TEST_P(SharedBeginnings, AreEvaluatedOnceAndChangeNothing) {
  const std::vector<int32_t> query = tokens(3, 70);  // two blocks of 32 and a part
  const std::vector<std::vector<int32_t>> texts = {
      joined(query, tokens(5, 50)),        joined(tokens(4, 70), tokens(5, 50)),
      joined(query, tokens(40, 33)),       joined(query, tokens(6, 20)),
      joined(query, tokens(6, 20)),        {query.begin(), query.begin() + 65},
      {query.begin(), query.begin() + 66}, tokens(3, 9)};
  const std::vector<float> together =
      model_->embed(batch_of(texts), Pooling::last).to_host<float>();
  const int64_t all = std::accumulate(
      texts.begin(), texts.end(), int64_t{0},
      [](int64_t sum, const std::vector<int32_t>& text) { return sum + std::ssize(text); });
  // One block of 65 tokens is shared, so that no token is left alone.
  EXPECT_EQ(evaluated_, all - 3 * 64 - 32 - 64);
  const auto width = together.size() / texts.size();
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> alone =
        model_->embed(batch_of({texts[i]}), Pooling::last).to_host<float>();
    for (size_t j = 0; j < width; ++j) {
      ASSERT_NEAR(together[i * width + j], alone[j], 1e-3f) << "text " << i << ", " << j;
    }
  }
}

// There every state counts.
TEST_P(SharedBeginnings, OfMeansAreNot) {
  const std::vector<int32_t> text = tokens(3, 70);
  model_->embed(batch_of({text, text}), Pooling::mean);
  EXPECT_EQ(evaluated_, 140);
}

INSTANTIATE_TEST_SUITE_P(Models, SharedBeginnings,
                         testing::Values("smollm", "qwen3", "mistral", "gemma2", "deepseek_v2"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace rbee::models
