#pragma once
// Parts of a model that can leave the device between their uses, and be read again with other
// adapters, while who uses the model goes on seeing the same objects. For one thread, but for what
// a part says about itself.

#include <functional>
#include <memory>
#include <vector>

#include "rbee/models/image/parts.h"
#include "rbee/nn/weight_stash.h"

namespace rbee::models {

class HeldPart {
 public:
  virtual ~HeldPart() = default;
  virtual void leave() noexcept = 0;
};

// Which of the parts that leave is on the device: the one used last, until another part is used.
class PartTurns {
 public:
  // A part that leaves, or nullptr for one that stays, is about to be used.
  void enter(HeldPart* part) {
    if (guest_ == part) return;
    if (guest_ != nullptr) guest_->leave();
    guest_ = part;
  }

 private:
  HeldPart* guest_ = nullptr;
};

enum class PartStay : uint8_t {
  always,   // on the device for good
  stashed,  // leaves; its weights wait in host memory as they were on the device
  reread,   // leaves; its weights are read from their files again
};

template <typename Part>
class Holder final : public HeldPart {
 public:
  // Reads the part, or takes its weights from a filled stash (null: there is none).
  using Make = std::function<std::unique_ptr<Part>(nn::WeightStash*)>;
  Holder(PartTurns& turns, PartStay stay, Make make)
      : turns_(turns), stay_(stay), make_(std::move(make)) {}

  // On the device until another part is used. Throws what `make` throws; the next call tries again.
  const Part& use();
  // The part is made by `make` from its next use on.
  void replace(Make make);
  void leave() noexcept override;

 private:
  PartTurns& turns_;
  PartStay stay_;
  Make make_;
  nn::WeightStash stash_;
  std::unique_ptr<Part> part_;
};

struct HeldParts {
  PartTurns turns;
  std::vector<std::unique_ptr<Holder<TextEncoder>>> text;
  std::unique_ptr<Holder<Denoiser>> denoiser;
  std::unique_ptr<Holder<Vae>> vae;
};

// The parts as a model shows them: each call brings its part to the device first. What they say
// about themselves is kept, and may be asked for by any thread at any time.
std::unique_ptr<TextEncoder> held_encoder(std::shared_ptr<HeldParts> parts, size_t index);
std::unique_ptr<Denoiser> held_denoiser(std::shared_ptr<HeldParts> parts);
std::unique_ptr<Vae> held_vae(std::shared_ptr<HeldParts> parts);

}  // namespace rbee::models
