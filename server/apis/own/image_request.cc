#include "server/apis/own/image_request.h"

#include "server/wire/image_fields.h"

namespace rbee::server {

namespace {

std::optional<ImageOperation> operation_of(ObjectReader& reader) {
  const std::optional<std::string> name = reader.text("operation");
  if (name == "image_generation") return ImageOperation::generation;
  if (name == "image_transform") return ImageOperation::transform;
  if (name == "image_inpaint") return ImageOperation::inpaint;
  constexpr const char* kAll = "image_generation, image_transform, image_inpaint";
  reader.note("operation", cat("one_of(", kAll, ")"), cat("must be one of ", kAll),
              reader.find("operation"));
  return std::nullopt;
}

}  // namespace

ImageJobBody parse_image_job(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ImageJobBody out;
  out.operation = operation_of(reader).value_or(ImageOperation::generation);
  read_common(reader, errors, out.image);
  out.image.count = reader.integer(present(reader, {"count", "num_images"}), kCount);
  out.image.batch = reader.integer("batch", {0, kCount.high});
  out.image.width = side(reader, "width");
  out.image.height = side(reader, "height");
  if (out.operation == ImageOperation::generation) {
    read_hires(reader, errors, out.image);
  } else {
    const char* name = present(
        reader, out.operation == ImageOperation::transform
                    ? std::initializer_list<const char*>{"input_image", "init_image", "image"}
                    : std::initializer_list<const char*>{"init_image", "input_image", "image"});
    out.image.init_image = image(reader, name, true);
  }
  if (out.operation == ImageOperation::inpaint) {
    out.image.mask_image = image(reader, present(reader, {"mask_image", "mask"}), true);
    if (!out.image.strength) out.image.strength = 1.0f;
  }
  finish(errors);
  return out;
}

}  // namespace rbee::server
