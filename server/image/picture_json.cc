#include "server/image/picture_json.h"

#include "rbee/io/image/base64.h"
#include "server/wire/json_text.h"

namespace rbee::server {

// No text can look like it, because dump() escapes quotes.
nlohmann::ordered_json picture_here() {
  return nlohmann::ordered_json::binary({});
}

std::string dump(const nlohmann::ordered_json& json, std::span<const PictureText> pictures) {
  const std::string place = dump(picture_here()), frame = dump(json);
  size_t bytes = frame.size();
  for (const PictureText& picture : pictures) {
    bytes += picture.head.size() + (picture.file.size() + 2) / 3 * 4 + 2;
  }
  std::string out;
  out.reserve(bytes);
  size_t at = 0;
  for (const PictureText& picture : pictures) {
    const size_t end = frame.find(place, at);
    out.append(frame, at, end - at) += '"';
    out += picture.head;
    io::append_base64(out, picture.file);
    out += '"';
    at = end + place.size();
  }
  out.append(frame, at);
  return out;
}

}  // namespace rbee::server
