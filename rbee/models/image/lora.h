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
    RowShare rows;     // of the change, where that is for several layers
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
  // Reads adapters whose keys are in the form of kohya's scripts (diffusers' or the original
  // names; also LyCORIS's LoHa, LoKr, GLoRA, OFT, BOFT, full and IA3), of diffusers or of PEFT, all
  // also with the lengths of DoRA. PEFT's adapter_config.json beside adapter_model.safetensors
  // tells each layer's factor. Biases of layers and what norms have are changed too. Keys that no
  // layer of the model goes by are logged with their number. Throws invalid_argument naming the
  // file when it has no layer of this model, or a strength that is not finite, or a matrix that
  // does not fit its layer; unsupported naming a tensor that is of a layer of the model and no
  // change of a known kind, or a bias that the layer does not have; and what PeftConfig and
  // Checkpoint::open throw.
  LoraSet(const ModelFiles& files, std::span<const LoraSource> sources, Device& device);

  std::vector<std::string> parts() const;  // that some adapter changes
  // nullptr when no adapter changes the part.
  const nn::WeightPatch* patch(const std::string& part) const;

 private:
  struct Target {
    std::string part;
    std::string tensor;
    Shape shape;
    RowShare rows;              // of the adapter's result, where that is for several layers
    std::optional<Shape> bias;  // of the layer, where it has one

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
