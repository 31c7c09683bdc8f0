#pragma once
// What a request calls its fields: messages of the engine, which has one name for each, then say
// what the client wrote.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/engine/api/image_fields.h"

namespace rbee::server {

class ImageNames {
 public:
  // The request has this name in place of the engine's ("schedule", "hires.upscaler").
  void set(std::string_view engine_name, std::string_view name) {
    names_.insert_or_assign(std::string(engine_name), std::string(name));
  }
  // A field of the table.
  void set(const engine::ImageField& field, std::string_view name);
  // A name without another one stays.
  std::string_view of(std::string_view engine_name) const;
  // "schedule: it is none" with the request's name, and pictures that the rest names.
  std::string renamed(std::string_view message) const;
  Error renamed(const Error& error) const;

 private:
  std::map<std::string, std::string, std::less<>> names_;
};

// Of bodies with AUTOMATIC1111's names, and with OpenAI's.
const ImageNames& a1111_names();
const ImageNames& openai_image_names();

}  // namespace rbee::server
