#include "rbee/models/image/language_text.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "rbee/models/config_reader.h"
#include "rbee/nn/kv_cache.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "text encoder";
constexpr int64_t kBlock = 32;  // positions of a block of the cache

std::unique_ptr<LanguageModel> load(const io::Checkpoint& checkpoint, LoadOptions options,
                                    const LanguageTextUse& use) {
  const int64_t layers = language_layers(checkpoint);
  const bool rise =
      std::ranges::adjacent_find(use.behind, std::greater_equal{}) == use.behind.end();
  check(!use.behind.empty() && rise && use.behind.front() >= 1 && use.behind.back() <= layers, kOp,
        "states behind layer ", use.behind.empty() ? 0 : use.behind.back(),
        " are read, the model has ", layers);
  options.output = false;
  options.first_layers = use.behind.back();
  options.context = use.max_tokens;
  std::unique_ptr<LanguageModel> model = load_language_model(checkpoint, options);
  if (model->cache_shape().has_states()) {
    fail(Code::unsupported, kOp, "architecture \"", checkpoint.architecture(),
         "\" has layers with states (gated delta net), which encode no prompts yet");
  }
  return model;
}

// Index lists of a pass over prompts of one length, each of which begins anew.
ForwardBatch batch_of(const TextInput& input, int64_t blocks, Device& device) {
  const auto count = static_cast<int64_t>(input.ids.size());
  const int64_t tokens = count / input.batch;
  std::vector<int32_t> positions, slots, starts, table(static_cast<size_t>(input.batch * blocks));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t prompt = i / tokens, place = i % tokens;
    positions.push_back(static_cast<int32_t>(place));
    slots.push_back(static_cast<int32_t>(prompt * blocks * kBlock + place));
  }
  for (int64_t i = 0; i <= input.batch; ++i) starts.push_back(static_cast<int32_t>(i * tokens));
  std::iota(table.begin(), table.end(), 0);
  const std::vector<int32_t> lengths(static_cast<size_t>(input.batch),
                                     static_cast<int32_t>(tokens));
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  const auto on_device = [&](const std::vector<int32_t>& values) {
    return from_host<int32_t>(values, {std::ssize(values)}, device);
  };
  ForwardBatch out;
  out.ids = from_host<int32_t>(input.ids, {count}, device);
  out.positions = on_device(positions);
  out.paged.seq_starts = on_device(starts);
  out.paged.kv_lens = on_device(lengths);
  out.paged.block_table = on_device(table).reshape({input.batch, blocks});
  out.paged.slots = on_device(slots);
  out.logit_rows = on_device(rows);
  return out;
}

}  // namespace

int64_t language_layers(const io::Checkpoint& checkpoint) {
  return ConfigReader(checkpoint).integer({"block_count", "num_hidden_layers"}, {1, 1024});
}

LanguageTextEncoder::LanguageTextEncoder(const io::Checkpoint& checkpoint,
                                         const LoadOptions& options, LanguageTextUse use)
    : device_(options.device), use_(std::move(use)), model_(load(checkpoint, options, use_)) {}

int64_t LanguageTextEncoder::width() const {
  return model_->config().dim * std::ssize(use_.behind);
}

void LanguageTextEncoder::check_input(const TextInput& input) const {
  const auto count = static_cast<int64_t>(input.ids.size());
  check(input.batch >= 1 && count > 0 && count % input.batch == 0, kOp, count,
        " ids are no batch of ", input.batch, " prompts");
  check(count / input.batch <= use_.max_tokens, kOp, "a prompt has ", count / input.batch,
        " tokens, at most ", use_.max_tokens, " fit");
  for (const int32_t id : input.ids) {
    check(id >= 0 && id < vocab_size(), kOp, "id ", id, " is not in the vocabulary of ",
          vocab_size());
  }
  check(input.vectors.empty(), kOp, "vectors in the place of tokens are not for this encoder");
}

TextEncoding LanguageTextEncoder::operator()(const TextInput& input) const {
  check_input(input);
  const int64_t tokens = static_cast<int64_t>(input.ids.size()) / input.batch;
  const int64_t blocks = (tokens + kBlock - 1) / kBlock;
  const CacheShape shape = model_->cache_shape();
  // Layers share it: no pass goes on from another one.
  nn::KvCache cache({.layers = shape.layers,
                     .blocks = input.batch * blocks,
                     .block_size = kBlock,
                     .dtype = model_->activations(),
                     .one_tensor = shape.one_tensor,
                     .one_layer = true},
                    *device_);
  ForwardBatch batch = batch_of(input, blocks, *device_);
  std::vector<Tensor> states;
  batch.on_layer = [&](int64_t layer, const Tensor& hidden) {
    if (std::ranges::count(use_.behind, layer + 1) == 0) return;
    states.push_back(cast(hidden, DType::f32));
  };
  model_->states(batch, cache);
  const Tensor all = states.size() == 1 ? states.front() : concat(states, Axis{1});
  return {.hidden = all.reshape({input.batch, tokens, width()}), .pooled = {}};
}

}  // namespace rbee::models
