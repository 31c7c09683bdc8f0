#pragma once
// Adapters of image models: weight + strength * change (weight_change.h), added while the weights
// are loaded.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rbee/models/image/model_files.h"
#include "rbee/models/image/weight_change.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

// The adapters of one part of a model.
class LoraPatch final : public nn::WeightPatch {
 public:
  struct Update {
    std::shared_ptr<const WeightChange> change;
    RowShare rows;     // of the change, if it is for several layers
    float factor = 1;  // strength * alpha / rank
  };

  explicit LoraPatch(Device& device) : device_(&device) {}

  void add(const std::string& name, Update update) { updates_[name].push_back(std::move(update)); }
  bool touches(std::string_view name) const override;
  void apply(std::string_view name, const Shape& shape, std::span<float> values) const override;

 private:
  Device* device_;
  std::unordered_map<std::string, std::vector<Update>> updates_;
};

class LoraSet {
 public:
  // Reads adapters with the keys of kohya's scripts (diffusers' or original names; also LyCORIS's
  // LoHa, LoKr, GLoRA, OFT, BOFT, full and IA3), of diffusers or of PEFT; all may have DoRA's
  // magnitudes. PEFT's adapter_config.json beside adapter_model.safetensors gives each layer's
  // factor. Biases of layers and the weights of norms change too. Logs the number of keys that
  // match no layer of the model. Throws invalid_argument naming the file if it has no layer of this
  // model, a strength that is not finite, or a matrix that does not fit its layer; unsupported
  // naming a tensor of a layer that is no known kind of change, or a bias that the layer does not
  // have; and what PeftConfig and Checkpoint::open throw.
  LoraSet(const ModelFiles& files, std::span<const LoraSource> sources, Device& device);

  std::vector<std::string> parts() const;  // that an adapter changes
  // nullptr if no adapter changes the part.
  const nn::WeightPatch* patch(const std::string& part) const;

 private:
  struct Target {
    std::string part;
    std::string tensor;
    Shape shape;
    RowShare rows;              // of the adapter's result, if it is for several layers
    std::optional<Shape> bias;  // of the layer, if it has one

    std::string bias_name() const;
  };
  struct Changes;
  using Targets = std::unordered_map<std::string, std::vector<Target>>;

  static Targets find_targets(const ModelFiles& files);
  static void add_transformer(const ModelPart& part, Targets& targets);
  static Target target(const ModelPart& part, const io::TensorEntry& weight, const RowShare& rows);
  static void refuse_kinds(const std::string& path, const std::vector<std::string>& unknown,
                           const Targets& targets);
  // All targets are of one part.
  static void add(const Changes& changes, const std::vector<Target>& targets, float strength,
                  LoraPatch& patch);
  void read(const LoraSource& source, const Targets& targets, Device& device);

  std::map<std::string, LoraPatch> patches_;  // by part
};

}  // namespace rbee::models
