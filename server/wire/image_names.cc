#include "server/wire/image_names.h"

#include <cctype>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

bool is_name(char c) {
  return c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

using Others = std::initializer_list<std::pair<const char*, const char*>>;

ImageNames names_by(std::string_view (*name_of)(const engine::ImageField&), Others others) {
  ImageNames out;
  for (const engine::ImageField& field : engine::image_fields()) {
    if (const std::string_view name = name_of(field); !name.empty()) out.set(field, name);
  }
  for (const auto& [engine_name, name] : others) out.set(engine_name, name);
  return out;
}

}  // namespace

void ImageNames::set(const engine::ImageField& field, std::string_view name) {
  set(cat(field.prefix(), field.name), name);
}

std::string_view ImageNames::of(std::string_view engine_name) const {
  const auto found = names_.find(engine_name);
  return found == names_.end() ? engine_name : found->second;
}

std::string ImageNames::renamed(std::string_view message) const {
  const size_t end = message.find(": ");
  std::string out(of(message.substr(0, end)));
  if (end == std::string_view::npos) return std::string(message);
  bool quoted = false;
  for (size_t at = end; at < message.size();) {
    size_t next = at;
    while (next < message.size() && is_name(message[next])) ++next;
    const std::string_view word = message.substr(at, next - at);
    const bool picture = word == "init_image" || word == "mask_image";
    out += picture && !quoted ? of(word) : word;
    if (next < message.size()) {
      if (message[next] == '"') quoted = !quoted;
      out += message[next];
    }
    at = next + 1;
  }
  return out;
}

Error ImageNames::renamed(const Error& error) const {
  const std::string_view own = of(error.op());
  const std::string message = renamed(cat(own, ": ", error.message()));
  return {error.code(), own, std::string_view(message).substr(own.size() + 2)};
}

const ImageNames& a1111_names() {
  static const ImageNames kNames =
      names_by([](const engine::ImageField& field) { return field.a1111_name(); },
               {{"init_image", "init_images"},
                {"mask_image", "mask"},
                {"hires", "enable_hr"},
                {"control", "alwayson_scripts.controlnet"},
                {"control.image", "alwayson_scripts.controlnet.args.image"},
                {"control.model", "alwayson_scripts.controlnet.args.model"}});
  return kNames;
}

const ImageNames& openai_image_names() {
  static const ImageNames kNames =
      names_by([](const engine::ImageField& field) { return field.openai; },
               {{"init_image", "image"}, {"mask_image", "mask"}});
  return kNames;
}

}  // namespace rbee::server
