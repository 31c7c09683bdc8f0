#pragma once
// The fields of a body, parsed one by one on access: an unused field costs only its text. Internal
// to the server.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/json_bytes.h"

namespace rbee::server {

inline constexpr int kMaxJsonDepth = 32;
// Most names and values of a body, counted while it is read: a tree takes up to eighty times its
// text. A body of 1 MiB cannot hold more.
inline constexpr size_t kMaxJsonParts = 512 * 1024;
// Most names of one object: look-ups in objects that keep the client's order are linear.
inline constexpr size_t kMaxJsonNames = 4096;

class JsonBody {
 public:
  // Throws InvalidBody unless `text` is one JSON object in valid UTF-8 within the limits above,
  // without duplicate names. `text` must outlive this.
  explicit JsonBody(std::string_view text);

  // Whether the name is there, null or not.
  bool has(const std::string& name) const { return fields_.contains(name); }
  // The object with the fields that read() or operator[] has parsed so far.
  const nlohmann::json& object() const { return object_; }
  void read(const std::string& name) const;
  // Null if there is none; an assigned value replaces the field.
  nlohmann::json& operator[](const std::string& name);
  // A field with its names in the client's order (`json` sorts them), for dump_in_order(). Throws
  // if there is none.
  nlohmann::ordered_json in_order(const std::string& name) const;

 private:
  std::vector<LongString> strings_;                 // of the whole body
  std::map<std::string, std::string_view> fields_;  // by name: the text after the name
  mutable nlohmann::json object_ = nlohmann::json::object();
};

// Throws InvalidBody unless `text` is a JSON list, as above.
nlohmann::json parse_array(std::string_view text);
// A value for messages, shortened if it is long.
std::string shown(const nlohmann::json& value);
// Parses JSON that was checked before, or made here; linear in its size, unlike
// ordered_json::parse(). Numbers that would be rounded are held as in core/wide_integers.h.
nlohmann::ordered_json parse_in_order(std::string_view text);
// Such a tree, or a part of one, with its numbers.
std::string dump_in_order(const nlohmann::ordered_json& tree);

}  // namespace rbee::server
