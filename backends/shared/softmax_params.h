#pragma once

#include "backends/shared/rows.h"

namespace rbee {
namespace shared {

struct SoftmaxParams {
  const void* x;
  void* y;
  i64 rows;
  i64 dim;
  Rows x_rows, y_rows;
};

}  // namespace shared
}  // namespace rbee
