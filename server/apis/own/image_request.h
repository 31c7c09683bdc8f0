#pragma once
// Bodies of the worker's own jobs for pictures. The parser ignores unknown fields.

#include <string_view>

#include "server/wire/image_body.h"

namespace rbee::server {

enum class ImageOperation : uint8_t { generation, transform, inpaint };

struct ImageJobBody {
  ImageOperation operation = ImageOperation::generation;
  ImageBody image;
};

// POST /v1/jobs: {"operation": "image_generation" | "image_transform" | "image_inpaint", ...}.
// Throws InvalidBody with all errors of a body.
ImageJobBody parse_image_job(std::string_view body);

}  // namespace rbee::server
