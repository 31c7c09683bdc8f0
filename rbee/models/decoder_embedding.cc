#include "rbee/models/decoder_embedding.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "rbee/models/bert/model.h"
#include "rbee/models/modern_bert/model.h"
#include "rbee/models/nomic_bert/model.h"
#include "rbee/models/registry.h"
#include "rbee/nn/kv_cache.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr int64_t kBlock = 32;  // positions of a block of the cache

// Index lists of one pass in which every text begins anew.
struct Pass {
  std::vector<int32_t> ids, positions, slots, starts{0}, lengths, table;
  std::vector<int32_t> ends;         // of each token's text
  std::vector<int32_t> window_ends;  // of the keys that it sees in layers with a window
  int64_t blocks = 0;

  struct Options {
    int64_t reach = 0;  // see ModelConfig
    // A beginning that several texts have is evaluated for the first of them alone: only where
    // tokens do not see what comes after them, and for the states of the last ones.
    bool share = false;
  };
  Pass(const TextBatch& texts, const Options& options) {
    const auto longest = static_cast<size_t>(blocks_of(*std::ranges::max_element(texts.lengths)));
    std::span<const int32_t> rest(texts.ids);
    for (const int64_t length : texts.lengths) {
      const std::span<const int32_t> text = rest.first(static_cast<size_t>(length));
      rest = rest.subspan(text.size());
      std::vector<int32_t> held = options.share ? shared_blocks(text) : std::vector<int32_t>();
      const int64_t first = std::ssize(held) * kBlock;
      while (std::ssize(held) < blocks_of(length)) held.push_back(static_cast<int32_t>(blocks++));
      if (options.share) note_blocks(text, held);
      for (int64_t i = first; i < length; ++i) {
        ids.push_back(text[static_cast<size_t>(i)]);
        positions.push_back(static_cast<int32_t>(i));
        slots.push_back(
            static_cast<int32_t>(held[static_cast<size_t>(i / kBlock)] * kBlock + i % kBlock));
        ends.push_back(static_cast<int32_t>(length));
        window_ends.push_back(static_cast<int32_t>(std::min(length, i + options.reach)));
      }
      held.resize(longest, 0);
      table.insert(table.end(), held.begin(), held.end());
      starts.push_back(static_cast<int32_t>(positions.size()));
      lengths.push_back(static_cast<int32_t>(length));
    }
  }

 private:
  // The block before, -1 at the beginning, and the contents of a block after it.
  using Beginning = std::pair<int32_t, std::vector<int32_t>>;

  static int64_t blocks_of(int64_t length) { return (length + kBlock - 1) / kBlock; }
  static Beginning beginning(std::span<const int32_t> text, std::span<const int32_t> held,
                             size_t index) {
    const auto tokens = text.subspan(index * kBlock, kBlock);
    return {index == 0 ? -1 : held[index - 1], {tokens.begin(), tokens.end()}};
  }
  // Of earlier texts. Two tokens at least are left: a lone one would be evaluated otherwise.
  std::vector<int32_t> shared_blocks(std::span<const int32_t> text) const {
    std::vector<int32_t> held;
    while ((held.size() + 1) * kBlock + 2 <= text.size()) {
      const auto found = known_.find(beginning(text, held, held.size()));
      if (found == known_.end()) break;
      held.push_back(found->second);
    }
    return held;
  }
  void note_blocks(std::span<const int32_t> text, std::span<const int32_t> held) {
    for (size_t i = 0; (i + 1) * kBlock <= text.size(); ++i) {
      known_.try_emplace(beginning(text, held, i), held[i]);
    }
  }

  std::map<Beginning, int32_t> known_;
};

class DecoderEmbedding final : public EmbeddingModel {
 public:
  explicit DecoderEmbedding(DecoderEmbeddingSpec spec) : spec_(std::move(spec)) {}

  const ModelConfig& config() const override { return spec_.model->config(); }
  int64_t max_tokens() const override { return spec_.max_tokens; }
  Tensor embed(const TextBatch& texts, Pooling pooling) override {
    const bool last = pooling == Pooling::last;
    const bool share = last && config().causal && config().reach == 0;
    const Pass pass(texts, {.reach = config().reach, .share = share});
    if (pooling == Pooling::mean) {
      std::vector<int32_t> all(texts.ids.size());
      std::iota(all.begin(), all.end(), 0);
      return pool(states(pass, all), texts.lengths, pooling);
    }
    std::vector<int32_t> rows;
    rows.reserve(texts.lengths.size());
    for (size_t i = 0; i < texts.lengths.size(); ++i) {
      rows.push_back(last ? pass.starts[i + 1] - 1 : pass.starts[i]);
    }
    const std::vector<int64_t> ones(rows.size(), 1);
    return pool(states(pass, rows), ones, Pooling::last);
  }
  bool ranks() const override { return spec_.head.has_value(); }
  Tensor rank(const TextBatch& pairs) override {
    check(ranks(), "rank", "the model has no head that ranks");
    return (*spec_.head)(cast(embed(pairs, spec_.head_pooling), activations()));
  }
  DType activations() const override { return spec_.model->activations(); }
  int64_t weight_bytes() const override {
    return spec_.model->weight_bytes() + (ranks() ? spec_.head->figures().resident_bytes : 0);
  }
  int64_t parameters() const override {
    return spec_.model->parameters() + (ranks() ? spec_.head->figures().parameters : 0);
  }
  std::string quantization() const override { return spec_.model->quantization(); }

 private:
  // (rows, dim)
  Tensor states(const Pass& pass, const std::vector<int32_t>& rows) {
    const auto on_device = [&](const std::vector<int32_t>& values) {
      return from_host<int32_t>(values, {std::ssize(values)}, *spec_.device);
    };
    const int64_t count = std::ssize(pass.lengths);
    const Tensor table = on_device(pass.table);
    ForwardBatch batch{.ids = on_device(pass.ids),
                       .positions = on_device(pass.positions),
                       .paged = {.seq_starts = on_device(pass.starts),
                                 .kv_lens = on_device(pass.lengths),
                                 .block_table = table.reshape({count, table.dim(0) / count}),
                                 .slots = on_device(pass.slots)},
                       .logit_rows = on_device(rows),
                       .on_layer = {}};
    if (!config().causal) batch.paged.key_ends = on_device(pass.ends);
    if (config().reach > 0) batch.paged.window_key_ends = on_device(pass.window_ends);
    return spec_.model->states(batch, cache(pass.blocks));
  }

  // Grows with the largest pass. Layers may share it: no pass goes on from another one.
  nn::KvCache& cache(int64_t blocks) {
    if (cache_ && cache_->blocks() >= blocks) return *cache_;
    cache_.reset();
    cache_.emplace(nn::KvCacheOptions{.layers = spec_.model->cache_shape().layers,
                                      .blocks = static_cast<int64_t>(
                                          std::bit_ceil(static_cast<uint64_t>(blocks))),
                                      .block_size = kBlock,
                                      .dtype = activations(),
                                      .one_tensor = config().one_cache,
                                      .one_layer = true},
                   *spec_.device);
    return *cache_;
  }

  DecoderEmbeddingSpec spec_;
  std::optional<nn::KvCache> cache_;
};

}  // namespace

std::unique_ptr<EmbeddingModel> make_decoder_embedding(DecoderEmbeddingSpec spec) {
  return std::make_unique<DecoderEmbedding>(std::move(spec));
}

namespace {

struct Encoder {
  std::string_view architecture;
  std::unique_ptr<EmbeddingModel> (*load)(const io::Checkpoint&, const LoadOptions&);
};

constexpr Encoder kEncoders[] = {
    {"bert", load_bert},
    {"roberta", load_bert},
    {"xlm-roberta", load_bert},
    {"camembert", load_bert},
    {"modernbert", load_modern_bert},
    {"modern-bert", load_modern_bert},
    {"nomic_bert", load_nomic_bert},
    {"nomic-bert", load_nomic_bert},
    {"nomic-bert-moe", load_nomic_bert},
};

const Encoder* find_encoder(std::string_view architecture) {
  const auto at = std::ranges::find(kEncoders, architecture, &Encoder::architecture);
  return at == std::end(kEncoders) ? nullptr : at;
}

}  // namespace

bool is_encoder(std::string_view architecture) {
  return find_encoder(architecture) != nullptr;
}

std::unique_ptr<EmbeddingModel> load_embedding_model(const io::Checkpoint& checkpoint,
                                                     const LoadOptions& options,
                                                     const std::optional<RankWords>& words) {
  check(options.device != nullptr, "load_embedding_model", "no device is given");
  if (const Encoder* encoder = find_encoder(checkpoint.architecture())) {
    if (words) fail(Code::unsupported, "model", "an encoder has no words to rank by");
    return encoder->load(checkpoint, options);
  }
  const Family& family = find_family(checkpoint.architecture());
  LoadOptions without_output = options;
  without_output.output = false;
  DecoderEmbeddingSpec spec{.device = options.device};
  spec.model = family.load(checkpoint, without_output);
  if (spec.model->cache_shape().has_states()) {
    fail(Code::unsupported, "model", "architecture \"", checkpoint.architecture(),
         "\" has layers with states (gated delta net), which make text, and no embeddings yet");
  }
  constexpr int64_t kDefault = 4096;
  spec.max_tokens = options.context > 0 ? options.context
                                        : std::min(spec.model->config().context_length, kDefault);
  if (words) {
    spec.head.emplace(checkpoint, options, family.tensor_names(), spec.model->config(), *words);
  } else if (RankHead::in(checkpoint)) {
    spec.head.emplace(checkpoint, options, RankHeadSpec{.dim = spec.model->config().dim});
  }
  return make_decoder_embedding(std::move(spec));
}

}  // namespace rbee::models
