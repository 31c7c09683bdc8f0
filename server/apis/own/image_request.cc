#include "server/apis/own/image_request.h"

#include "server/wire/image_fields.h"
#include "server/wire/other_names.h"

namespace rbee::server {

namespace {

using nlohmann::json;

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

// Notes fields that the operation would pass over, though they ask for another picture.
void refuse_others(ObjectReader& reader, ImageOperation operation) {
  const auto refuse = [&](const char* name, const char* those) {
    const json* value = reader.find(name);
    if (value == nullptr || *value == "") return;
    reader.note(name, "requires(operation)", cat("is only for ", those), value);
  };
  if (operation == ImageOperation::generation) {
    for (const char* name : {"input_image", "init_image", "image"}) {
      refuse(name, "image_transform and image_inpaint");
    }
  } else {
    refuse("hires", "image_generation");
  }
  if (operation == ImageOperation::inpaint) return;
  for (const char* name : {"mask_image", "mask"}) refuse(name, "image_inpaint");
}

}  // namespace

ImageJobBody parse_image_job(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ImageJobBody out;
  out.operation = operation_of(reader).value_or(ImageOperation::generation);
  read_common(reader, errors, out.image);
  for (const engine::ImageField& field : engine::image_fields()) {
    if (!field.everywhere) read_field(reader, field, out.image);
  }
  if (out.operation == ImageOperation::generation) {
    read_hires(reader, errors, out.image);
  } else {
    const char* name = given_name(
        reader, out.operation == ImageOperation::transform
                    ? std::initializer_list<const char*>{"input_image", "init_image", "image"}
                    : std::initializer_list<const char*>{"init_image", "input_image", "image"});
    out.image.init_image = image(reader, name, true);
    out.image.names.set("init_image", name);
  }
  if (out.operation == ImageOperation::inpaint) {
    const char* name = given_name(reader, {"mask_image", "mask"});
    out.image.mask_image = image(reader, name, true);
    out.image.names.set("mask_image", name);
    out.image.set_default(&engine::ImageRequest::strength, 1.0f);
  }
  refuse_others(reader, out.operation);
  finish(errors);
  return out;
}

}  // namespace rbee::server
