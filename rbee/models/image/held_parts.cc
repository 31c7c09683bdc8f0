#include "rbee/models/image/held_parts.h"

#include "rbee/core/log.h"

namespace rbee::models {
namespace {

class HeldEncoder final : public TextEncoder {
 public:
  HeldEncoder(std::shared_ptr<HeldParts> parts, size_t index)
      : parts_(std::move(parts)), holder_(*parts_->text.at(index)) {
    const TextEncoder& own = holder_.use();
    width_ = own.width();
    pooled_width_ = own.pooled_width();
    max_tokens_ = own.max_tokens();
    vocab_size_ = own.vocab_size();
    layers_ = own.layers();
  }

  TextEncoding operator()(const TextInput& input) const override { return holder_.use()(input); }
  int64_t width() const override { return width_; }
  int64_t pooled_width() const override { return pooled_width_; }
  int64_t max_tokens() const override { return max_tokens_; }
  int64_t vocab_size() const override { return vocab_size_; }
  int64_t layers() const override { return layers_; }

 private:
  std::shared_ptr<HeldParts> parts_;
  Holder<TextEncoder>& holder_;
  int64_t width_, pooled_width_, max_tokens_, vocab_size_, layers_;
};

class HeldDenoiser final : public Denoiser {
 public:
  explicit HeldDenoiser(std::shared_ptr<HeldParts> parts)
      : parts_(std::move(parts)), info_(parts_->denoiser->use().info()) {}

  const DenoiserInfo& info() const override { return info_; }
  std::unique_ptr<Conditioning> prepare(const TextStates& text) const override {
    return parts_->denoiser->use().prepare(text);
  }
  Tensor operator()(const Tensor& x, const Tensor& timesteps, const Conditioning& conditioning,
                    const DenoiserOptions& options) const override {
    return parts_->denoiser->use()(x, timesteps, conditioning, options);
  }

 private:
  std::shared_ptr<HeldParts> parts_;
  DenoiserInfo info_;
};

class HeldVae final : public Vae {
 public:
  explicit HeldVae(std::shared_ptr<HeldParts> parts)
      : parts_(std::move(parts)), info_(parts_->vae->use().info()) {}

  const VaeInfo& info() const override { return info_; }
  LatentDistribution encode(const Tensor& image, Circular circular) const override {
    return parts_->vae->use().encode(image, circular);
  }
  Tensor decode(const Tensor& latent, const Between& between, Circular circular) const override {
    return parts_->vae->use().decode(latent, between, circular);
  }

 private:
  std::shared_ptr<HeldParts> parts_;
  VaeInfo info_;
};

}  // namespace

template <typename Part>
const Part& Holder<Part>::use() {
  turns_.enter(stay_ == PartStay::always ? nullptr : this);
  if (part_) return *part_;
  try {
    part_ = make_(stay_ == PartStay::stashed ? &stash_ : nullptr);
  } catch (...) {
    if (!stash_.filled()) stash_.clear();
    throw;
  }
  return *part_;
}

template <typename Part>
void Holder<Part>::replace(Make make) {
  part_.reset();
  stash_.clear();
  make_ = std::move(make);
}

template <typename Part>
void Holder<Part>::leave() noexcept {
  try {
    stash_.fill();
  } catch (const std::exception& error) {
    stash_.clear();
    log(LogLevel::warn, "a part's weights will be read from their files again",
        {{"reason", error.what()}});
  }
  part_.reset();
}

template class Holder<TextEncoder>;
template class Holder<Denoiser>;
template class Holder<Vae>;

std::unique_ptr<TextEncoder> held_encoder(std::shared_ptr<HeldParts> parts, size_t index) {
  return std::make_unique<HeldEncoder>(std::move(parts), index);
}

std::unique_ptr<Denoiser> held_denoiser(std::shared_ptr<HeldParts> parts) {
  return std::make_unique<HeldDenoiser>(std::move(parts));
}

std::unique_ptr<Vae> held_vae(std::shared_ptr<HeldParts> parts) {
  return std::make_unique<HeldVae>(std::move(parts));
}

}  // namespace rbee::models
