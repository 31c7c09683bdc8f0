#pragma once

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {

struct RandomParams {
  void* y;
  i64 count;
  u64 seed, offset;
  double a, b;
};

}  // namespace shared
}  // namespace rbee
