#pragma once
// Strict reading of a JSON object: bounded depth, no duplicate names, and every wrong field noted
// (the first 32) instead of only the first. Internal to server/contract.

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/contract/requests.h"

namespace rbee::server {

inline constexpr int kMaxJsonDepth = 32;
// Names and values of a body, counted while it is read: a tree takes up to eighty times its text. A
// body of 1 MiB holds at most so many.
inline constexpr size_t kMaxJsonParts = 512 * 1024;
// Names of one object: look-ups in objects that keep the client's order are linear.
inline constexpr size_t kMaxJsonNames = 4096;

// Throws InvalidBody unless `body` is one JSON object in valid UTF-8 within the limits above,
// without duplicate names.
nlohmann::json parse_object(std::string_view body);
// The same of a list.
nlohmann::json parse_array(std::string_view body);

// Inclusive bounds of a number.
template <typename T>
struct Range {
  T low;
  T high;
  bool open_low = false;  // low itself is outside
};

bool is_utf8(const std::string& text);

// While one lives, it notes the names, with their prefixes, that readers of its thread look up:
// what a document of the API has to hold.
class NamesRead {
 public:
  NamesRead();  // at most one of a thread
  ~NamesRead();
  NamesRead(const NamesRead&) = delete;
  NamesRead& operator=(const NamesRead&) = delete;
  const std::set<std::string>& names() const { return names_; }

 private:
  friend class ObjectReader;
  std::set<std::string> names_;
};

class ObjectReader {
 public:
  // The object must outlive the reader. prefix: put before field names in errors.
  ObjectReader(const nlohmann::json& object, std::string prefix, std::vector<FieldError>& errors)
      : object_(object), prefix_(std::move(prefix)), errors_(errors) {}

  // Null and absent give nothing; a wrong value gives nothing and notes why.
  std::optional<std::string> text(const char* name);
  std::optional<bool> boolean(const char* name);
  std::optional<float> number(const char* name, Range<double> range);
  std::optional<int32_t> integer(const char* name, Range<int32_t> range);
  // Of random numbers; below 0 it gives nothing: a fresh one is wanted.
  std::optional<uint64_t> seed(const char* name);
  const nlohmann::json* find(const char* name) const;  // null when absent or null

  void note(std::string_view name, std::string constraint, std::string_view message,
            const nlohmann::json* value);

 private:
  const nlohmann::json& object_;
  std::string prefix_;
  std::vector<FieldError>& errors_;
};

}  // namespace rbee::server
