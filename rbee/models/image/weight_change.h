#pragma once
// Changes that adapters make to the weights of layers: products of two matrices (LoRA, Hu et al.
// 2021), with a core of the kernel's size between them (LoCon), element-wise products of two such
// (LoHa, Hyeon-Woo et al. 2022), Kronecker products (LoKr), products of which one is with the
// weight itself (GLoRA, Chavan et al. 2023), each also with learned magnitudes of the result's rows
// (DoRA, Liu et al. 2024), whole differences, vectors that scale inputs or outputs (IA3, Liu et al.
// 2022), and rotations (rotation_change.h); all but the first as LyCORIS (Yeh et al. 2024) saves
// them.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/device.h"
#include "rbee/models/image/entry_parts.h"

namespace rbee::models {

// One adapter's tensors of a layer by their roles: "up", "down", "mid", and "up_bias", which is
// added after "up"; "diff_b", which is added to the layer's own bias; LyCORIS's own names such as
// "hada_w1_a", "lokr_t2", "a1", "oft_blocks", "diff", "dora_scale"; "magnitude", which is PEFT's
// name of the last, always of rows; "scale" and "on_input" of IA3.
struct AdapterLayer {
  std::map<std::string, const io::TensorEntry*, std::less<>> tensors;
  std::optional<float> alpha;
  std::optional<float> factor;  // in place of alpha / rank, also of whole Kronecker factors

  const io::TensorEntry* find(std::string_view role) const;
};

class WeightChange {
 public:
  virtual ~WeightChange() = default;

  // The change of a weight of this shape, the share `rows` of the layer, before the factor scale().
  // `weight`: the weight without adapters, row-major.
  virtual std::vector<float> values(std::span<const float> weight, const Shape& shape,
                                    const RowShare& rows, Device& device) const = 0;
  // Throws invalid_argument if it does not fit such a weight; `name` is for the error.
  virtual void check_fit(const std::string& name, const Shape& shape,
                         const RowShare& rows) const = 0;
  float scale() const { return scale_; }  // alpha / rank

 protected:
  explicit WeightChange(float scale) : scale_(scale) {}

 private:
  float scale_;
};

// Null if a tensor that belongs to the change is missing. `path` is for errors. Throws
// invalid_argument naming a tensor that is not a matrix.
std::shared_ptr<const WeightChange> read_change(const std::string& path, const AdapterLayer& layer);
// The same for the layer's bias; null if the adapter has no tensor for it.
std::shared_ptr<const WeightChange> read_bias_change(const std::string& path,
                                                     const AdapterLayer& layer);

}  // namespace rbee::models
