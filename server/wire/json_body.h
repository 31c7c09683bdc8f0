#pragma once
// The fields of a body, made into trees one by one when they are asked for: what nobody reads costs
// its text alone. Internal to the server.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rbee::server {

inline constexpr int kMaxJsonDepth = 32;
// Names and values of a body, counted while it is read: a tree takes up to eighty times its text. A
// body of 1 MiB holds at most so many.
inline constexpr size_t kMaxJsonParts = 512 * 1024;
// Names of one object: look-ups in objects that keep the client's order are linear.
inline constexpr size_t kMaxJsonNames = 4096;

class JsonBody {
 public:
  // Throws InvalidBody unless `text`, which outlives this, is one JSON object in valid UTF-8 within
  // the limits above, without duplicate names.
  explicit JsonBody(std::string_view text);

  // The name is there, null or not.
  bool has(const std::string& name) const { return fields_.contains(name); }
  // The object, with the fields so far that read() or operator[] were asked for.
  const nlohmann::json& object() const { return object_; }
  void read(const std::string& name) const;
  // Null where there is none; what is put there is read in the field's place.
  nlohmann::json& operator[](const std::string& name);
  // A field as the client orders its names, which `json` sorts, for dump_in_order(). Throws where
  // there is none.
  nlohmann::ordered_json in_order(const std::string& name) const;

 private:
  std::map<std::string, std::string_view> fields_;  // by name: the text behind the name
  mutable nlohmann::json object_ = nlohmann::json::object();
};

// Throws InvalidBody unless `text` is a list in JSON, as above.
nlohmann::json parse_array(std::string_view text);
// A value as it stands in messages, cut off where it is long.
std::string shown(const nlohmann::json& value);
// Of JSON that was read before, or made here; linear in its size, unlike ordered_json::parse().
// Numbers that would be rounded are held as core/wide_integers.h has them.
nlohmann::ordered_json parse_in_order(std::string_view text);
// Such a tree, or a part of one, with its numbers.
std::string dump_in_order(const nlohmann::ordered_json& tree);

}  // namespace rbee::server
