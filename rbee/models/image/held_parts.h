#pragma once
// Parts of a model that can leave the device between uses and be read again with other adapters,
// while callers keep the same objects. For one thread; other threads may only ask what a part says
// about itself.

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

// Decides which of the leaving parts is on the device: the one used last.
class PartTurns {
 public:
  // Call this before a part is used: a part that leaves, or nullptr for one that stays.
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
  stashed,  // leaves; keeps its weights in host memory, in the device's form
  reread,   // leaves; reads its weights from their files again
};

template <typename Part>
class Holder final : public HeldPart {
 public:
  // Reads the part, or takes its weights from a filled stash (null: no stash).
  using Make = std::function<std::unique_ptr<Part>(nn::WeightStash*)>;
  Holder(PartTurns& turns, PartStay stay, Make make)
      : turns_(turns), stay_(stay), make_(std::move(make)) {}

  // Brings the part to the device, until another part is used. Throws what `make` throws; the next
  // call tries again.
  const Part& use();
  // Makes the part by `make` from its next use on.
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

// The parts in a model's form: each call brings its part to the device first. What they say about
// themselves is kept; any thread may ask for it at any time.
std::unique_ptr<TextEncoder> held_encoder(std::shared_ptr<HeldParts> parts, size_t index);
std::unique_ptr<Denoiser> held_denoiser(std::shared_ptr<HeldParts> parts);
std::unique_ptr<Vae> held_vae(std::shared_ptr<HeldParts> parts);

}  // namespace rbee::models
