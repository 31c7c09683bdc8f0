#pragma once
// JSON with pictures as base64. A large picture's base64 is written into the sent text once: as a
// value of the JSON it would be held twice, or three times while the text grows.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace rbee::server {

struct PictureText {
  std::string_view file;       // the picture's bytes
  std::string_view head = {};  // before its base64
};

// The value that stands for a picture.
nlohmann::ordered_json picture_here();

// As dump(), with the pictures in place of picture_here(), in this order. Each must stand before
// all objects that a client sent, since these could hold the same value.
std::string dump(const nlohmann::ordered_json& json, std::span<const PictureText> pictures);

}  // namespace rbee::server
