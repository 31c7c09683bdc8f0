#pragma once
// Bodies of AUTOMATIC1111's API. The parsers ignore unknown fields and throw InvalidBody with all
// errors of a body.

#include <string>
#include <string_view>

#include "server/image/upscale.h"
#include "server/wire/image_body.h"

namespace rbee::server {

// POST /sdapi/v1/txt2img and img2img
ImageBody parse_sdapi(std::string_view body, bool img2img);
// POST /sdapi/v1/options: the model's name, if one is sent. Options that would change pictures are
// errors, because they are fixed.
std::string parse_sdapi_options(std::string_view body);
// POST /sdapi/v1/png-info: the base64 form of a file.
std::string parse_png_info(std::string_view body);

// POST /sdapi/v1/extra-single-image, and extra-batch-images for up to 16
UpscaleOrder parse_sdapi_upscale(std::string_view body, bool batch);

struct SdapiTask {
  std::string id;       // of a request: its force_task_id, or its job's id
  int32_t preview = 0;  // the last one that the client has; below 1: none
};
// POST /internal/progress
SdapiTask parse_sdapi_task(std::string_view body);

}  // namespace rbee::server
