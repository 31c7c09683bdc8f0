#include "rbee/models/encoder.h"

#include "rbee/models/decoder.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "embed";

class Encoder final : public EmbeddingModel {
 public:
  Encoder(const io::Checkpoint& checkpoint, const LoadOptions& options, const EncoderSpec& spec)
      : config_(spec.config),
        first_place_(spec.first_place),
        segment_count_(spec.segments),
        doubles_separator_(spec.doubles_separator),
        device_(*options.device),
        activations_(options.activations),
        max_tokens_(text_positions(spec.config, options)) {
    const int64_t dim = config_.dim;
    const nn::WeightScope weights(checkpoint, weight_options(options, spec.names, spec.ignored));
    words_ = nn::Embedding(weights / "token_embd", config_.vocab_size, dim);
    if (spec.place_table) {
      places_.emplace(weights / "position_embd", first_place_ + config_.context_length, dim);
    }
    if (segment_count_ > 0) segments_.emplace(weights / "token_types", segment_count_, dim);
    norm_ = nn::LayerNorm(weights / "token_embd_norm", {.dim = dim, .eps = config_.norm_eps});
    for (int64_t i = 0; i < config_.layers; ++i) layers_.push_back(spec.layer(weights.layer(i)));
    if (RankHead::in(checkpoint)) head_.emplace(checkpoint, options, RankHeadSpec{.dim = dim});
    weights.finish();
    figures_ = weights.figures();
  }

  const ModelConfig& config() const override { return config_; }
  int64_t max_tokens() const override { return max_tokens_; }
  Tensor embed(const TextBatch& texts, Pooling pooling) override {
    return pool(states(texts), texts.lengths, pooling);
  }
  bool ranks() const override { return head_.has_value(); }
  Tensor rank(const TextBatch& pairs) override {
    check(ranks(), "rank", "the model has no head that ranks");
    return (*head_)(cast(pool(states(pairs), pairs.lengths, Pooling::cls), activations_));
  }
  bool doubles_separator() const override { return doubles_separator_; }
  DType activations() const override { return activations_; }
  int64_t weight_bytes() const override {
    return figures_.resident_bytes + (head_ ? head_->figures().resident_bytes : 0);
  }
  int64_t parameters() const override {
    return figures_.parameters + (head_ ? head_->figures().parameters : 0);
  }
  std::string quantization() const override {
    return std::string(rbee::name(figures_.most_common()));
  }

 private:
  void check_batch(const TextBatch& texts) const {
    int64_t tokens = 0;
    for (const int64_t length : texts.lengths) {
      check(length >= 1 && length <= max_tokens_, kOp, "a text has ", length,
            " tokens, wanted from 1 to ", max_tokens_);
      tokens += length;
    }
    check(tokens > 0 && tokens == std::ssize(texts.ids) && tokens == std::ssize(texts.segments),
          kOp, texts.ids.size(), " ids and ", texts.segments.size(), " segments for texts of ",
          tokens, " tokens");
  }

  Tensor states(const TextBatch& texts) const {
    check_batch(texts);
    const auto tokens = static_cast<int64_t>(texts.ids.size());
    const auto on_device = [&](const std::vector<int32_t>& values) {
      return from_host<int32_t>(values, {tokens}, device_);
    };
    const Tensor places = on_device(places_of(texts));
    Tensor x = words_(on_device(texts.ids));
    if (places_) x = x + (*places_)(places);
    if (segments_) x = x + (*segments_)(on_device(segment_rows(texts)));
    x = norm_(x);
    const std::vector<nn::TextRun> runs = nn::text_runs(texts.lengths);
    for (const auto& layer : layers_) x = (*layer)(x, {.runs = runs, .places = places});
    return x;
  }

  std::vector<int32_t> places_of(const TextBatch& texts) const {
    std::vector<int32_t> places;
    places.reserve(texts.ids.size());
    for (const int64_t length : texts.lengths) {
      for (int64_t i = 0; i < length; ++i) {
        places.push_back(static_cast<int32_t>(first_place_ + i));
      }
    }
    return places;
  }

  // RoBERTa has a single segment.
  std::vector<int32_t> segment_rows(const TextBatch& texts) const {
    if (segment_count_ > 1) return texts.segments;
    return std::vector<int32_t>(texts.segments.size(), 0);
  }

  ModelConfig config_;
  int64_t first_place_, segment_count_;
  bool doubles_separator_;
  Device& device_;
  DType activations_;
  int64_t max_tokens_;
  nn::Embedding words_;
  std::optional<nn::Embedding> places_, segments_;
  nn::LayerNorm norm_;
  std::vector<std::unique_ptr<const EncoderLayer>> layers_;
  std::optional<RankHead> head_;
  nn::WeightFigures figures_;
};

}  // namespace

std::unique_ptr<EmbeddingModel> load_encoder(const io::Checkpoint& checkpoint,
                                             const LoadOptions& options, const EncoderSpec& spec) {
  return std::make_unique<Encoder>(checkpoint, options, spec);
}

int64_t text_positions(const ModelConfig& config, const LoadOptions& options) {
  const int64_t wanted = options.context;
  check(wanted >= 0 && wanted <= config.context_length, "context", wanted, " is above the model's ",
        config.context_length, " positions");
  return wanted > 0 ? wanted : config.context_length;
}

}  // namespace rbee::models
