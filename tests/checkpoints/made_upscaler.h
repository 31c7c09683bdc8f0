#pragma once
// RRDBNet with made_weights() by the names of Real-ESRGAN.

#include "rbee/models/image/upscaler_file.h"
#include "tests/checkpoints/image_folder.h"

namespace rbee::test {

std::vector<MadeTensor> made_upscaler(const models::RrdbShape& shape);

}  // namespace rbee::test
