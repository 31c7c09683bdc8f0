#pragma once
// RRDBNet with the values of made_weights() and Real-ESRGAN's tensor names.

#include "rbee/models/image/upscaler_file.h"
#include "tests/checkpoints/image_folder.h"

namespace rbee::test {

std::vector<MadeTensor> made_upscaler(const models::RrdbShape& shape);

}  // namespace rbee::test
