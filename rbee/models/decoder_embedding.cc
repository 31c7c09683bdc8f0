// Decoders as models for embeddings: a text is a prompt, its vector comes from the states behind
// the final norm.

#include <algorithm>
#include <bit>
#include <numeric>

#include "rbee/models/bert/model.h"
#include "rbee/models/embedding_model.h"
#include "rbee/models/registry.h"
#include "rbee/nn/kv_cache.h"

namespace rbee::models {
namespace {

constexpr int64_t kBlock = 32;  // positions of a block of the cache

// Index lists of one pass in which every text begins anew.
struct Pass {
  std::vector<int32_t> positions, slots, starts{0}, lengths, table;
  int64_t blocks = 0;

  explicit Pass(std::span<const int64_t> texts) {
    const int64_t widest = blocks_of(*std::ranges::max_element(texts));
    for (const int64_t length : texts) {
      for (int64_t i = 0; i < length; ++i) {
        positions.push_back(static_cast<int32_t>(i));
        slots.push_back(static_cast<int32_t>(blocks * kBlock + i));
      }
      for (int64_t i = 0; i < widest; ++i) {
        table.push_back(static_cast<int32_t>(i < blocks_of(length) ? blocks + i : 0));
      }
      starts.push_back(static_cast<int32_t>(positions.size()));
      lengths.push_back(static_cast<int32_t>(length));
      blocks += blocks_of(length);
    }
  }

  static int64_t blocks_of(int64_t length) { return (length + kBlock - 1) / kBlock; }
};

class DecoderEmbedding final : public EmbeddingModel {
 public:
  DecoderEmbedding(std::unique_ptr<LanguageModel> model, Device& device, int64_t max_tokens)
      : model_(std::move(model)), device_(device), max_tokens_(max_tokens) {}

  const ModelConfig& config() const override { return model_->config(); }
  int64_t max_tokens() const override { return max_tokens_; }
  Tensor embed(const TextBatch& texts, Pooling pooling) override {
    if (pooling == Pooling::mean) {
      std::vector<int32_t> all(texts.ids.size());
      std::iota(all.begin(), all.end(), 0);
      return pool(states(texts, all), texts.lengths, pooling);
    }
    const std::vector<int64_t> ones(texts.lengths.size(), 1);
    return pool(states(texts, pooled_rows(texts.lengths, pooling)), ones, Pooling::last);
  }
  Tensor rank(const TextBatch&) override {
    fail(Code::unsupported, "rank", "the model has no head that ranks");
  }
  DType activations() const override { return model_->activations(); }
  int64_t weight_bytes() const override { return model_->weight_bytes(); }
  int64_t parameters() const override { return model_->parameters(); }
  std::string quantization() const override { return model_->quantization(); }

 private:
  // (rows, dim)
  Tensor states(const TextBatch& texts, const std::vector<int32_t>& rows) {
    const Pass pass(texts.lengths);
    const auto on_device = [&](const std::vector<int32_t>& values) {
      return from_host<int32_t>(values, {std::ssize(values)}, device_);
    };
    const int64_t count = std::ssize(texts.lengths);
    const Tensor table = on_device(pass.table);
    const ForwardBatch batch{.ids = on_device(texts.ids),
                             .positions = on_device(pass.positions),
                             .paged = {.seq_starts = on_device(pass.starts),
                                       .kv_lens = on_device(pass.lengths),
                                       .block_table = table.reshape({count, table.dim(0) / count}),
                                       .slots = on_device(pass.slots)},
                             .logit_rows = on_device(rows),
                             .on_layer = {}};
    return model_->states(batch, cache(pass.blocks));
  }

  // Grows with the largest pass.
  nn::KvCache& cache(int64_t blocks) {
    if (cache_ && cache_->blocks() >= blocks) return *cache_;
    const ModelConfig& config = model_->config();
    cache_.reset();
    cache_.emplace(nn::KvCacheOptions{.layers = config.layers,
                                      .kv_heads = config.kv_heads,
                                      .head_dim = config.head_dim,
                                      .blocks = static_cast<int64_t>(
                                          std::bit_ceil(static_cast<uint64_t>(blocks))),
                                      .block_size = kBlock,
                                      .dtype = model_->activations(),
                                      .one_tensor = config.one_cache},
                   device_);
    return *cache_;
  }

  std::unique_ptr<LanguageModel> model_;
  Device& device_;
  int64_t max_tokens_;
  std::optional<nn::KvCache> cache_;
};

}  // namespace

bool is_encoder(std::string_view architecture) {
  constexpr std::string_view kEncoders[] = {"bert", "roberta", "xlm-roberta", "camembert"};
  return std::ranges::find(kEncoders, architecture) != std::end(kEncoders);
}

std::unique_ptr<EmbeddingModel> load_embedding_model(const io::Checkpoint& checkpoint,
                                                     const LoadOptions& options) {
  check(options.device != nullptr, "load_embedding_model", "no device is given");
  if (is_encoder(checkpoint.architecture())) return load_bert(checkpoint, options);
  LoadOptions without_output = options;
  without_output.output = false;
  auto model = find_family(checkpoint.architecture()).load(checkpoint, without_output);
  constexpr int64_t kDefault = 4096;
  const int64_t context =
      options.context > 0 ? options.context : std::min(model->config().context_length, kDefault);
  return std::make_unique<DecoderEmbedding>(std::move(model), *options.device, context);
}

}  // namespace rbee::models
