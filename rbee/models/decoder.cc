#include "rbee/models/decoder.h"

#include <algorithm>

#include "rbee/models/common_config.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

void check_cache(const CacheShape& wanted, const nn::KvCache& cache) {
  const nn::KvCacheOptions& has = cache.options();
  check(has.layers.size() == wanted.layers.size() && has.one_tensor == wanted.one_tensor, "forward",
        "the cache has ", has.layers.size(), " layers, the model ", wanted.layers.size());
  for (size_t i = 0; i < wanted.layers.size(); ++i) {
    const nn::CacheLayer &own = has.layers[i], &layer = wanted.layers[i];
    check(own == layer, "forward", "layer ", i, " of the cache has ", own.kv_heads, " heads of ",
          own.head_dim, " and states of ", own.state.bytes(), " bytes, that of the model ",
          layer.kv_heads, " of ", layer.head_dim, " and ", layer.state.bytes());
  }
}

// Latents are whole on every rank. A rank without heads has one that nobody reads, since caches
// are not empty.
CacheShape shape_of_cache(const ModelConfig& config, const group::Share& share) {
  nn::CacheLayer each{.kv_heads = config.kv_heads, .head_dim = config.head_dim};
  if (!share.alone() && !config.one_cache) {
    const int64_t own = share_heads(share, config.heads, config.kv_heads).keys.count;
    each.kv_heads = std::max<int64_t>(own, 1);
  }
  return {.layers = std::vector(static_cast<size_t>(config.layers), each),
          .one_tensor = config.one_cache};
}

ModelConfig with_layers(ModelConfig config, int64_t layers) {
  config.layers = layers;
  return config;
}

void check_group(const LoadOptions& options) {
  const group::Membership& group = options.group;
  check_share(group.share);
  check(group.share.ranks == group.view.ranks && group.share.rank == group.view.rank, "group",
        "the share is of rank ", group.share.rank, " of ", group.share.ranks, ", the view of rank ",
        group.view.rank, " of ", group.view.ranks);
  const bool host = options.gpu_layers != kAllLayers || options.cpu_moe_layers > 0;
  if (!group.alone() && host) {
    fail(Code::unsupported, "group", "ranks of a group keep no layers or experts on the host ",
         "(gpu_layers, cpu_moe_layers)");
  }
  if (!group.alone() && options.expert_parallel && !options.device->host_accessible()) {
    fail(Code::unsupported, "group", "GPUs have no kernels for a range of the experts ",
         "(--enable-expert-parallel)");
  }
}

void check_batch(const ForwardBatch& batch, const CacheShape& shape) {
  const auto [tokens] = batch.ids.dims<1>();
  check(tokens > 0, "forward", "the batch has no tokens");
  check(batch.positions.shape() == Shape{tokens}, "forward", "positions are ", batch.positions,
        " for ", tokens, " tokens");
  check(batch.logit_rows.defined() && batch.logit_rows.rank() == 1, "forward", "logit_rows is ",
        batch.logit_rows, ", wanted one axis");
  check(!shape.has_states() || batch.state_slots.defined(), "forward",
        "the model has layers with states, and the batch no slots for them");
}

}  // namespace

nn::WeightOptions weight_options(const LoadOptions& options, std::span<const nn::TensorName> names,
                                 std::span<const std::string_view> ignored) {
  check_group(options);
  check(options.first_layers >= 1, "first_layers", options.first_layers, " is below 1");
  const int64_t layers = options.cpu_moe_layers;
  check(layers >= 0, "cpu_moe_layers", layers, " is negative");
  check(layers == 0 || options.host != nullptr, "cpu_moe_layers",
        "no device is given for the experts on the host");
  check(options.op_offload_min_batch >= 0, "op_offload_min_batch", options.op_offload_min_batch,
        " is negative");
  return {.device = options.device,
          .names = names,
          .ignored = ignored,
          .pack = options.pack_weights,
          .output = options.output,
          .first_layers = options.first_layers,
          .expert_parallel = options.expert_parallel,
          .activations = options.activations,
          .host = options.host,
          .cpu_moe_layers = layers,
          .op_offload_min_batch = options.op_offload_min_batch,
          .group = options.group,
          .stash = options.stash,
          .progress = options.progress};
}

std::unique_ptr<LanguageModel> load_decoder(const io::Checkpoint& checkpoint,
                                            const LoadOptions& options,
                                            std::span<const nn::TensorName> names,
                                            const ModelConfig& config, nn::RopeOptions rope,
                                            const MakeRotatedBlock& block,
                                            const DecoderSpec& spec) {
  const nn::WeightScope weights(checkpoint, weight_options(options, names));
  add_rope_tensors(rope, weights);
  const LayerPlaces places(config, options);
  const LayerRopes tables(rope, context_positions(config, options), places, *options.device);
  const auto make = [&](int64_t layer) {
    return block(places.layer(weights, layer), layer, tables.of_layer(layer));
  };
  return std::make_unique<Decoder>(config, weights, spec, make, places.host());
}

LayerPlaces::LayerPlaces(const ModelConfig& config, const LoadOptions& options) {
  check(options.gpu_layers >= 1, "gpu_layers", options.gpu_layers, " is below 1");
  if (options.gpu_layers > config.layers) return;
  check(options.host != nullptr, "gpu_layers", "no device is given for the layers on the host");
  host_ = {.host = options.host, .count = config.layers + 1 - options.gpu_layers};
}

LayerRopes::LayerRopes(const nn::RopeOptions& rope, int64_t positions, const LayerPlaces& places,
                       Device& device)
    : host_layers_(places.host().count), on_device_(rope, positions, device) {
  if (places.host().any()) on_host_ = nn::Rope(rope, positions, *places.host().host);
}

Decoder::Decoder(const ModelConfig& config, const nn::WeightScope& weights, const DecoderSpec& spec,
                 const MakeBlock& block, HostLayers host)
    : config_(with_layers(config, weights.wanted_layers(config.layers))),
      cache_shape_(spec.cache_layers.empty()
                       ? shape_of_cache(config_, weights.group().share)
                       : CacheShape{.layers = spec.cache_layers, .one_tensor = config.one_cache}),
      group_(weights.group().view),
      vocabulary_(config.vocab_size, weights.group()),
      host_(host),
      logit_scale_(spec.logit_scale),
      logit_softcap_(spec.logit_softcap),
      pictures_(spec.pictures),
      activations_(weights.activations()),
      embedding_((host.any() ? weights.on_host() : weights) / "token_embd", config.vocab_size,
                 config.dim, spec.embedding_scale) {
  if (spec.embedding_norm) {
    const nn::WeightScope first = host.any() ? weights.on_host() : weights;
    embedding_norm_ =
        nn::LayerNorm(first / "token_embd_norm", {.dim = config.dim, .eps = config.norm_eps});
  }
  if (!config.causal && weights.wants_output()) {
    fail(Code::unsupported, "model", "its tokens see what comes after them ",
         "(use_bidirectional_attention, attention.causal): it makes embeddings, not text");
  }
  cache_shape_.layers.resize(static_cast<size_t>(config_.layers));
  for (int64_t layer = 0; layer < config_.layers; ++layer) blocks_.push_back(block(layer));
  const nn::NormOptions norm{
      .dim = config.dim, .eps = config.norm_eps, .weight_offset = spec.norm_weight_offset};
  if (spec.layer_norm) {
    output_norm_ = nn::LayerNorm(weights / "output_norm", norm);
  } else {
    output_norm_ = nn::RmsNorm(weights / "output_norm", norm);
  }
  if (weights.wants_output()) take_output(weights);
  weights.finish();
  visitors_ = weights.visitors();
  figures_ = weights.figures();
  lora_targets_ = weights.lora_targets();
}

void Decoder::take_output(const nn::WeightScope& weights) {
  const nn::LinearShape shape =
      nn::part_of({.in = config_.dim, .out = config_.vocab_size}, vocabulary_.own());
  output_ = nn::Linear(weights / (config_.tied_embeddings ? "token_embd" : "output"), shape);
  output_.let_adapt(weights / "output", shape, DType::f32);
}

Tensor Decoder::embed(const ForwardBatch& batch) const {
  Tensor x = embedding_(batch.ids);
  if (embedding_norm_) x = (*embedding_norm_)(x);
  for (const PictureRows& picture : batch.pictures) {
    const int64_t count = picture.rows.dim(0);
    check(picture.first >= 0 && picture.first + count <= x.dim(0), "forward", "a picture of ",
          count, " rows begins at row ", picture.first, " of ", x.dim(0));
    Tensor to = x.slice(Axis{0}, picture.first, count);
    copy_(to, cast(picture.rows.to(x.device()), x.dtype()));
  }
  return x;
}

// Layers first ... end - 1.
void Decoder::run_layers(nn::Residual& x, const ForwardBatch& batch, nn::KvCache& cache,
                         int64_t first, int64_t end) const {
  for (int64_t layer = first; layer < end; ++layer) {
    nn::LayerStep step{.positions = batch.positions,
                       .paged = batch.paged,
                       .keys = cache.keys(layer),
                       .values = cache.values(layer),
                       .logit_rows = {},
                       .state_slots = batch.state_slots,
                       .state = cache.state(layer)};
    if (layer + 1 == config_.layers) step.logit_rows = batch.logit_rows;
    (*blocks_[static_cast<size_t>(layer)])(x, step);
    if (batch.on_layer) batch.on_layer(layer, x.value());
  }
}

int64_t Decoder::visiting_bytes(int64_t tokens) const {
  return visitors_ ? visitors_->bytes_for(tokens) : 0;
}

int64_t Decoder::cpu_moe_layers() const {
  return std::ranges::count_if(blocks_, [](const auto& block) { return block->has_cpu_moe(); });
}

Tensor Decoder::run_host_layers(const ForwardBatch& batch, nn::KvCache& cache) const {
  RB_ASSERT(host_.any());
  check_batch(batch, cache_shape_);
  check_cache(cache_shape_, cache);
  nn::Residual x(embed(batch), batch.lora);
  run_layers(x, batch, cache, 0, host_.count);
  return x.value();
}

Tensor Decoder::states(const ForwardBatch& batch, nn::KvCache& cache) const {
  check_batch(batch, cache_shape_);
  check_cache(cache_shape_, cache);
  check(batch.hidden.defined() == host_.any(), "forward", host_.count,
        " layers are on the host, and their result is ", batch.hidden);
  nn::Residual x(host_.any() ? cast(batch.hidden, activations_) : embed(batch), batch.lora);
  run_layers(x, batch, cache, host_.count, config_.layers);
  return std::visit([&](const auto& norm) { return x.norm(norm); }, output_norm_);
}

Tensor Decoder::forward(const ForwardBatch& batch, nn::KvCache& cache) const {
  // In f32 whatever the activations are: rounded logits would tie.
  Tensor raw = output_.in_f32(states(batch, cache), batch.lora.take(batch.logit_rows));
  if (logit_scale_ != 1) raw = affine(raw, logit_scale_, 0);
  if (logit_softcap_ == 0) return raw;
  const double cap = logit_softcap_;
  return affine(unary(UnaryOp::tanh, affine(raw, 1 / cap, 0)), cap, 0);
}

}  // namespace rbee::models
