#pragma once
// Models of real sizes without weights: names, shapes and settings of Stable Diffusion 1.5 and XL
// in f16, over memory that no test reads.

#include "rbee/models/image/model_files.h"

namespace rbee::test {

// For devices that copy nothing; `family`: sd1 or sdxl.
models::ModelFiles true_size_model(models::ImageFamily family);

}  // namespace rbee::test
