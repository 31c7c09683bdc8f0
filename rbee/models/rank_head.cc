#include "rbee/models/rank_head.h"

#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

// Of RoBERTa, BERT and ModernBERT, decoders that classify, and all of them in GGUF files.
constexpr const char* kOutputs[] = {"classifier.out_proj", "classifier", "score", "cls.output"};
constexpr const char* kDense[] = {"classifier.dense", "bert.pooler.dense", "head.dense", "cls"};
constexpr const char* kNorms[] = {"head.norm", "cls.norm"};

const char* find_output(const io::Checkpoint& checkpoint) {
  for (const char* name : kOutputs) {
    if (checkpoint.find(cat(name, ".weight")) != nullptr) return name;
  }
  return nullptr;
}

nn::WeightOptions head_options(const LoadOptions& options) {
  return {.device = options.device,
          .own_names = true,
          .pack = options.pack_weights,
          .activations = options.activations};
}

bool says_yes_or_no(const io::Checkpoint& checkpoint) {
  if (checkpoint.format() != io::Checkpoint::Format::gguf) return false;
  const auto labels = checkpoint.metadata().get_strings(
      cat(checkpoint.architecture(), ".classifier.output_labels"));
  return labels && labels->size() == 2 && (*labels)[0] == "yes" && (*labels)[1] == "no";
}

}  // namespace

bool RankHead::in(const io::Checkpoint& checkpoint) {
  return find_output(checkpoint) != nullptr;
}

std::vector<std::pair<std::string_view, std::string_view>> RankHead::tensor_names(
    const io::Checkpoint& checkpoint) {
  std::vector<std::pair<std::string_view, std::string_view>> names;
  const auto add = [&](std::string_view gguf, std::span<const char* const> known) {
    for (const char* name : known) {
      if (checkpoint.find(cat(name, ".weight")) == nullptr) continue;
      names.emplace_back(gguf, name);
      return;
    }
  };
  add("cls", kDense);
  add("cls.norm", kNorms);
  add("cls.output", kOutputs);
  return names;
}

RankHead::RankHead(const io::Checkpoint& checkpoint, const LoadOptions& options,
                   const RankHeadSpec& spec)
    : weights_(checkpoint, head_options(options)), spec_(spec) {
  const std::string name = find_output(checkpoint);
  const io::TensorEntry& out = checkpoint.require(cat(name, ".weight"));
  const int64_t labels = numel(out.shape) / spec.dim;
  const bool words = labels == 2 && says_yes_or_no(checkpoint);
  if (labels != 1 && !words) {
    fail(Code::unsupported, "load", out.name, " is (", out.shape, "): a classifier of ", labels,
         " labels; only rankers, with one, are implemented");
  }
  const auto row = [&](int64_t index) {
    return nn::Linear(weights_ / name, {.in = spec.dim,
                                        .out = 1,
                                        .bias = nn::Bias::optional,
                                        .first_row = index,
                                        .total_rows = labels});
  };
  output_ = row(0);
  if (words) against_ = row(1);
  for (const char* dense : kDense) {
    if (dense_ || !(weights_ / dense).has("weight")) continue;
    dense_ =
        nn::Linear(weights_ / dense, {.in = spec.dim, .out = spec.dim, .bias = nn::Bias::optional});
  }
  for (const char* norm : kNorms) {
    if (norm_ || !(weights_ / norm).has("weight")) continue;
    norm_ = nn::LayerNorm(weights_ / norm, {.dim = spec.dim, .eps = spec.norm_eps});
  }
}

RankHead::RankHead(const io::Checkpoint& checkpoint, const LoadOptions& options,
                   std::span<const nn::TensorName> names, const ModelConfig& config,
                   const RankWords& words)
    : weights_(checkpoint, {.device = options.device,
                            .names = names,
                            .pack = options.pack_weights,
                            .activations = options.activations}) {
  const auto row = [&](int32_t word) {
    check(word >= 0 && word < config.vocab_size, "rank", "token ", word,
          " is outside of the vocabulary of ", config.vocab_size);
    return nn::Linear(
        weights_ / (config.tied_embeddings ? "token_embd" : "output"),
        {.in = config.dim, .out = 1, .first_row = word, .total_rows = config.vocab_size});
  };
  output_ = row(words.yes);
  if (words.no) against_ = row(*words.no);
}

Tensor RankHead::operator()(const Tensor& states) const {
  Tensor x = dense_ ? unary(spec_.activation, (*dense_)(states)) : states;
  if (norm_) x = (*norm_)(x);
  const Shape scores{states.dim(0)};
  const Tensor score = cast(output_(x), DType::f32).reshape(scores);
  return against_ ? score - cast((*against_)(x), DType::f32).reshape(scores) : score;
}

}  // namespace rbee::models
