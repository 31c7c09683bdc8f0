#pragma once
// POST /sdapi/v1/extra-single-image: a picture at another size, without any model.

#include <string>

#include "server/contract/image_requests.h"

namespace rbee::server {

// The picture as base64 of a PNG file. Throws invalid_argument for bytes that are no picture and
// for a result above 4096 pixels a side.
std::string upscaled(const SdapiUpscale& wanted);

}  // namespace rbee::server
