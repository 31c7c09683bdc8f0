#pragma once

#include "rbee/nn/weight_scope.h"
#include "rbee/ops/image.h"

namespace rbee::nn {

struct GroupNormSpec {
  int64_t channels = 0;
  int64_t groups = 32;
  float eps = 1e-5f;
  NormActivation activation = NormActivation::none;  // of the result
};

// Wu and He 2018, over pictures with their channels last: (batch, spatial..., channels)
class GroupNorm {
 public:
  GroupNorm() = default;
  // Takes "weight" and "bias". Throws invalid_argument naming the layer if the channels cannot be
  // split into equal groups.
  GroupNorm(const WeightScope& scope, const GroupNormSpec& spec) : spec_(spec) {
    check(spec.groups >= 1 && spec.channels % spec.groups == 0, scope.name("weight"), spec.channels,
          " channels do not make ", spec.groups, " equal groups");
    weight_ = scope.vector("weight", spec.channels);
    bias_ = scope.vector("bias", spec.channels);
  }

  Tensor operator()(const Tensor& x) const {
    return image_group_norm(x, static_cast<int32_t>(spec_.groups), weight_, bias_, spec_.eps,
                            spec_.activation);
  }

 private:
  GroupNormSpec spec_;
  Tensor weight_, bias_;
};

}  // namespace rbee::nn
