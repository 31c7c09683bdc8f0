#pragma once
// RRDBNet with made_weights() by the names of Real-ESRGAN, in files that may name them otherwise.

#include "rbee/models/image/upscaler_file.h"
#include "tests/models/image_folder.h"

namespace rbee::test {

enum class UpscalerNames { current, published, old };

std::vector<MadeTensor> made_upscaler(const models::UpscalerShape& shape,
                                      UpscalerNames names = UpscalerNames::current);

}  // namespace rbee::test
