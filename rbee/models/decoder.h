#pragma once
// The parts that all decoder-only families share: token embedding, the stack of layers, final norm
// and output matrix. A family supplies the settings and its Block.

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "rbee/models/language_model.h"
#include "rbee/nn/attention.h"
#include "rbee/nn/embedding.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"
#include "rbee/nn/residual.h"
#include "rbee/nn/rope.h"

namespace rbee::models {

// One transformer layer: adds its branches to the residual stream.
class Block {
 public:
  virtual ~Block() = default;
  virtual void operator()(nn::Residual& x, const nn::LayerStep& step) const = 0;
  // Whether a device's layer has its experts on the host.
  virtual bool has_cpu_moe() const { return false; }
};

struct DecoderSpec {
  float embedding_scale = 1;     // of the token embedding
  float norm_weight_offset = 0;  // of the final norm, see nn::NormOptions
  bool embedding_norm = false;   // "token_embd_norm", a layer norm, follows the token embedding
  bool layer_norm = false;       // the final norm is a layer norm, else an RMS norm
  float logit_scale = 1;         // of the logits, before the cap
  float logit_softcap = 0;       // softcap * tanh(logit / softcap); 0 = off
  std::shared_ptr<const PictureEncoder> pictures = nullptr;
  // Of a model whose layers keep unlike things, which ranks of a group cannot share yet; empty: all
  // keep keys and values as the settings say.
  std::vector<nn::CacheLayer> cache_layers = {};
};

// Every family ignores tensors with these in their names: old files hold rotary tables, and
// multimodal ones a tower for pictures.
inline constexpr std::string_view kBesideTheText[] = {".rotary_emb.inv_freq", "vision_tower.",
                                                      "multi_modal_projector."};

// The weights of a checkpoint under a family's names; both lists must outlive the scope.
// Throws invalid_argument for a model without layers, for a negative number of layers with experts
// on the host, for one without a host, and for a group whose share and view differ; and unsupported
// for a group with layers or experts on the host.
nn::WeightOptions weight_options(const LoadOptions& options, std::span<const nn::TensorName> names,
                                 std::span<const std::string_view> ignored = kBesideTheText);

class Decoder final : public LanguageModel {
 public:
  using MakeBlock = std::function<std::unique_ptr<const Block>(int64_t layer)>;

  // Takes token_embd, the blocks' weights in order, output_norm and output. `block` must make the
  // layers of `host` there: see LayerPlaces.
  Decoder(const ModelConfig& config, const nn::WeightScope& weights, const DecoderSpec& spec,
          const MakeBlock& block, HostLayers host = {});

  const ModelConfig& config() const override { return config_; }
  Tensor forward(const ForwardBatch& batch, nn::KvCache& cache) const override;
  Tensor states(const ForwardBatch& batch, nn::KvCache& cache) const override;
  CacheShape cache_shape() const override { return cache_shape_; }
  GroupView group() const override { return group_; }
  nn::SplitVocabulary vocabulary() const override { return vocabulary_; }
  HostLayers host_layers() const override { return host_; }
  int64_t cpu_moe_layers() const override;
  int64_t visiting_bytes(int64_t tokens) const override;
  Tensor run_host_layers(const ForwardBatch& batch, nn::KvCache& cache) const override;
  const PictureEncoder* pictures() const override { return pictures_.get(); }
  std::span<const nn::LoraTarget> lora_targets() const override { return lora_targets_; }
  DType activations() const override { return activations_; }
  int64_t weight_bytes() const override {
    return figures_.resident_bytes + (pictures_ ? pictures_->weight_bytes() : 0);
  }
  int64_t parameters() const override {
    return figures_.parameters + (pictures_ ? pictures_->parameters() : 0);
  }
  std::string quantization() const override { return name(figures_.most_common()); }

 private:
  Tensor embed(const ForwardBatch& batch) const;
  void run_layers(nn::Residual& x, const ForwardBatch& batch, nn::KvCache& cache, int64_t first,
                  int64_t end) const;

  void take_output(const nn::WeightScope& weights);

  ModelConfig config_;
  CacheShape cache_shape_;
  GroupView group_;
  nn::SplitVocabulary vocabulary_;
  HostLayers host_;
  float logit_scale_, logit_softcap_;
  std::shared_ptr<const PictureEncoder> pictures_;
  DType activations_;
  nn::Embedding embedding_;
  std::optional<nn::LayerNorm> embedding_norm_;
  std::vector<std::unique_ptr<const Block>> blocks_;
  std::variant<nn::RmsNorm, nn::LayerNorm> output_norm_;
  nn::Linear output_;
  std::vector<nn::LoraTarget> lora_targets_;
  nn::WeightFigures figures_;
  std::shared_ptr<const nn::Visitors> visitors_;  // null: no weights leave the host
};

// Where each layer of a model is.
class LayerPlaces {
 public:
  // Throws invalid_argument if options.gpu_layers is below 1, or needs a host that is not given.
  LayerPlaces(const ModelConfig& config, const LoadOptions& options);

  HostLayers host() const { return host_; }
  bool on_host(int64_t layer) const { return layer < host_.count; }
  nn::WeightScope layer(const nn::WeightScope& weights, int64_t index) const {
    return (on_host(index) ? weights.on_host() : weights).layer(index);
  }

 private:
  HostLayers host_;
};

// A rotary table on the device, and one on the host if that has layers. Throws as Rope does.
class LayerRopes {
 public:
  LayerRopes(const nn::RopeOptions& rope, int64_t positions, const LayerPlaces& places,
             Device& device);
  const nn::Rope& of_layer(int64_t index) const {
    return index < host_layers_ ? *on_host_ : on_device_;
  }

 private:
  int64_t host_layers_;
  nn::Rope on_device_;
  std::optional<nn::Rope> on_host_;
};

// Makes layer `index` of a family whose layers share one rotary table.
using MakeRotatedBlock = std::function<std::unique_ptr<const Block>(
    const nn::WeightScope& layer, int64_t index, const nn::Rope& rope)>;

// Loads such a family. `rope` comes from the settings; this adds the factors that GGUF files keep
// as tensors. Throws as load_language_model() does.
std::unique_ptr<LanguageModel> load_decoder(const io::Checkpoint& checkpoint,
                                            const LoadOptions& options,
                                            std::span<const nn::TensorName> names,
                                            const ModelConfig& config, nn::RopeOptions rope,
                                            const MakeRotatedBlock& block,
                                            const DecoderSpec& spec = {});

}  // namespace rbee::models
