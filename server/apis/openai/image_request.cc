#include "server/apis/openai/image_request.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "server/wire/image_fields.h"

namespace rbee::server {

namespace {

using nlohmann::json;
using Settings = engine::ImageRequest;

// "1024x768", or "auto" for the model's own.
void read_size(ObjectReader& reader, ImageBody& out) {
  const std::optional<std::string> size = reader.text("size");
  if (!size || *size == "auto") return;
  const char* const end = size->data() + size->size();
  int32_t width = 0, height = 0;
  const auto first = std::from_chars(size->data(), end, width);
  const bool split = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
  const auto second = split ? std::from_chars(first.ptr + 1, end, height) : first;
  const engine::ImageField& field = engine::image_field(&Settings::width);
  const auto fits = [&](int32_t v) {
    return v >= field.low && v <= field.high && v % field.multiple == 0;
  };
  if (!split || second.ec != std::errc() || second.ptr != end || !fits(width) || !fits(height)) {
    reader.note("size", cat("<width>x<height>, range(", field.low, "..=", field.high, ")"),
                cat("must be auto or <width>x<height>, multiples of ", field.multiple, " from ",
                    field.low, " to ", field.high),
                reader.find("size"));
    return;
  }
  out.set(&Settings::width, width);
  out.set(&Settings::height, height);
}

// What OpenAI's image API has on top.
void read_openai(ObjectReader& reader, ImageBody& out) {
  read_size(reader, out);
  for (const engine::ImageField& field : engine::image_fields()) {
    if (!field.openai.empty()) read_field(reader, field, out, field.openai.data());
  }
  out.stream = reader.boolean("stream").value_or(false);
  out.partials = reader.integer("partial_images", kPartials);
  out.as_url = choice(reader, "response_format", {"b64_json", "url"}) == "url";
  constexpr int32_t kBest = 100;
  out.set_default(&io::Encoding::quality, kBest);
  choice(reader, "background", {"auto", "opaque"});
  for (const char* name : {"frame_count", "frame_duration_ms", "svg", "markup"}) {
    const json* value = reader.find(name);
    const bool still = value != nullptr && name == std::string_view("frame_count") && *value == 1;
    if (value == nullptr || still) continue;
    reader.note(name, "unsupported", "asks for what this worker does not do", value);
  }
}

// Whether a field's value is always a text. tiling may also be a boolean.
bool is_text(std::string_view name) {
  constexpr std::array<std::string_view, 3> kTexts = {"size", "response_format", "background"};
  return std::ranges::count(kTexts, name) > 0 ||
         std::ranges::any_of(engine::image_fields(), [&](const engine::ImageField& field) {
           const bool text = std::holds_alternative<std::string Settings::*>(field.member) ||
                             (!field.choices.empty() &&
                              field.member != engine::ImageField::Member(&Settings::tiling));
           return text && (name == field.name || std::ranges::count(field.aliases, name) > 0);
         });
}

// A multipart field as the JSON value that it means.
json field_value(const std::string& name, const std::string& text) {
  if (is_text(name)) return text;
  // A longer text would make a tree of many times its size, and the parser ends at a null byte.
  constexpr size_t kMostOfNumber = 64;
  if (text.size() > kMostOfNumber || text.find('\0') != std::string::npos) return text;
  json value = json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : json(text);
}

using FormFields = std::vector<std::pair<std::string, std::string>>;

json object_of(const FormFields& fields, std::vector<FieldError>& errors) {
  json object = json::object();
  ObjectReader reader(object, "", errors);
  for (const auto& [name, text] : fields) {
    if (!is_utf8(name) || !is_utf8(text)) {
      reader.note(is_utf8(name) ? name : "body", "utf8", "is not text in UTF-8", nullptr);
    } else if (!object.emplace(name, field_value(name, text)).second) {
      reader.note(name, "unique", "is given twice", nullptr);
    }
  }
  return object;
}

// The pictures of a form; notes files that it has no use for.
void take_files(const FormFields& files, ObjectReader& reader, ImageBody& out) {
  for (const auto& [name, bytes] : files) {
    const std::string_view plain = std::string_view(name).substr(0, name.find('['));
    const bool mask = plain == "mask";
    if (!mask && plain != "image" && plain != "images") {
      reader.note(is_utf8(name) ? name : "body", "one_of(image, mask)",
                  "is a file; this route takes them as image and mask", nullptr);
      continue;
    }
    SentImage& place = mask ? out.mask_image : out.init_image;
    if (!place.empty()) {
      reader.note(mask ? "mask" : "image", "max_count(1)", "can be given once to this model",
                  nullptr);
    }
    place = {.data = bytes, .base64 = false};
  }
}

constexpr float kVariationStrength = 0.7f;  // alike, but not the same

ImageBody read_edit(ObjectReader& reader, std::vector<FieldError>& errors) {
  ImageBody out;
  out.names = openai_image_names();
  read_common(reader, errors, out);
  read_openai(reader, out);
  return out;
}

// With the pictures set. Throws what is wrong.
void finish_edit(ImageBody& out, OpenAiEdit kind, std::vector<FieldError>& errors) {
  out.mask_of_init = kind == OpenAiEdit::edit;
  if (!out.mask_image.empty()) out.set_default(&Settings::strength, 1.0f);
  if (kind == OpenAiEdit::variation) out.set_default(&Settings::strength, kVariationStrength);
  finish(errors);
}

// value: base64, a data: URL, or {"image_url": one of these}; null: none.
SentImage picture_of(ObjectReader& reader, const char* name, const json* value) {
  if (value == nullptr || value->is_null()) return {};
  if (value->is_object()) {
    const auto url = value->find("image_url");
    if (url == value->end()) {
      reader.note(name, "image_url", "has no image_url; files of an account are not known here",
                  nullptr);
      return {};
    }
    value = &*url;
    const auto inner = value->is_object() ? value->find("url") : value->end();
    if (inner != value->end()) value = &*inner;
  }
  if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
    reader.note(name, "base64", "must be a file as base64 or a data: URL", nullptr);
    return {};
  }
  const std::string& text = value->get_ref<const std::string&>();
  if (text.starts_with("http:") || text.starts_with("https:")) {
    reader.note(name, "base64", "is a URL, which is not fetched: send a data: URL", nullptr);
    return {};
  }
  return {.data = text};
}

}  // namespace

ImageBody parse_openai_generation(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ImageBody out;
  out.names = openai_image_names();
  read_common(reader, errors, out);
  read_openai(reader, out);
  read_hires(reader, errors, out);
  finish(errors);
  return out;
}

ImageBody parse_openai_edit(const FormFields& fields, const FormFields& files, OpenAiEdit kind) {
  std::vector<FieldError> errors;
  json object = object_of(fields, errors);
  if (kind == OpenAiEdit::variation) object.emplace("prompt", "");
  ObjectReader reader(object, "", errors);
  ImageBody out = read_edit(reader, errors);
  take_files(files, reader, out);
  if (out.init_image.empty()) reader.note("image", "required", "is missing: a file", nullptr);
  finish_edit(out, kind, errors);
  return out;
}

ImageBody parse_openai_edit(std::string_view text, OpenAiEdit kind) {
  JsonBody body(text);
  std::vector<FieldError> errors;
  if (kind == OpenAiEdit::variation && body["prompt"].is_null()) body["prompt"] = "";
  ObjectReader reader(body, errors);
  ImageBody out = read_edit(reader, errors);
  const char* name = reader.find("image") != nullptr ? "image" : "images";
  const json* pictures = reader.find(name);
  const bool both = reader.find("image") != nullptr && reader.find("images") != nullptr;
  if (both || (pictures != nullptr && pictures->is_array() && pictures->size() > 1)) {
    reader.note(name, "max_count(1)", "can be given once to this model", nullptr);
    pictures = nullptr;
  } else if (pictures != nullptr && pictures->is_array() && !pictures->empty()) {
    pictures = &pictures->front();
  }
  out.init_image = picture_of(reader, name, pictures);
  if (out.init_image.empty() && errors.empty()) {
    reader.note("image", "required", "is missing: a file as base64 or a data: URL", nullptr);
  }
  if (const json* mask = reader.find("mask")) out.mask_image = picture_of(reader, "mask", mask);
  finish_edit(out, kind, errors);
  return out;
}

}  // namespace rbee::server
