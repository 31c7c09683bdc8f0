#pragma once
// The denoiser of Stable Diffusion 3 and 3.5 (Esser et al. 2024, section 4) with the settings and
// names of diffusers' SD3Transformer2DModel.

#include "rbee/io/json_config.h"
#include "rbee/models/image/parts.h"
#include "rbee/models/image/stream_layers.h"

namespace rbee::models {

struct MmditConfig {
  int64_t sample_size = 128;
  int64_t patch = 2;
  int64_t in_channels = 16;
  int64_t out_channels = 16;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t context_width = 4096;
  int64_t pooled_width = 2048;
  int64_t max_patches = 96;          // along each side of the table of positions
  std::vector<int64_t> dual_layers;  // where the picture attends to itself once more (3.5 medium)
  bool query_norms = false;          // 3.5

  int64_t width() const { return heads * head_dim; }
  // Throws invalid_argument naming a field and its value, and unsupported for norms of queries that
  // are not implemented.
  static MmditConfig read(const io::JsonConfig& config);
};

class MmditBlock {
 public:
  // The last block does not change the text.
  MmditBlock(const nn::WeightScope& scope, const MmditConfig& config, int64_t index);

  // Appends the picture's modulation, then the text's.
  void add_modulations(std::vector<const Modulation*>& modulations) const;
  // Replaces both streams by the block's results. Takes its modulations' results off the front.
  void operator()(Tensor& picture, Tensor& text,
                  std::span<const std::vector<Tensor>>& modulations) const;

 private:
  Tensor norm_text(const Tensor& text, const std::vector<Tensor>& parts) const;

  bool last_, dual_;
  Modulation picture_norm_, text_norm_;
  StreamProjections picture_heads_, text_heads_, own_heads_;
  nn::Linear picture_out_, text_out_, own_out_;
  StreamMlp picture_mlp_, text_mlp_;
};

class Mmdit final : public Denoiser {
 public:
  Mmdit(const nn::WeightScope& scope, const MmditConfig& config);

  const DenoiserInfo& info() const override { return info_; }
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const override;
  Tensor operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                    const DenoiserOptions& options) const override;

 private:
  Tensor embed_patches(const Tensor& x) const;
  Tensor join_patches(const Tensor& rows, int64_t height, int64_t width) const;

  MmditConfig config_;
  DenoiserInfo info_;
  DType activations_;
  nn::Conv2d patches_;
  Tensor places_;  // (max_patches, max_patches, width)
  StreamVector vector_;
  nn::Linear context_;
  std::vector<MmditBlock> blocks_;
  Modulation out_norm_;
  nn::Linear out_;
};

}  // namespace rbee::models
