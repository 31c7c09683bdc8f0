#pragma once
// Strict reading of a JSON object: notes every invalid field (the first 32), not just the first
// one. Internal to the server.

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/generate_request.h"
#include "server/wire/json_body.h"

namespace rbee::server {

// Inclusive bounds of a number.
template <typename T>
struct FieldRange {
  T low;
  T high;
  bool open_low = false;  // low itself is outside
};

bool is_utf8(const std::string& text);

// While it exists, records the names, with their prefixes, that readers of its thread look up: an
// API's document must have these.
class NamesRead {
 public:
  NamesRead();  // at most one for each thread
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
  // The object must outlive the reader. prefix: comes before field names in errors.
  ObjectReader(const nlohmann::json& object, std::string prefix, std::vector<FieldError>& errors)
      : object_(object), prefix_(std::move(prefix)), errors_(errors) {}
  // For a body, whose fields are parsed when they are looked up.
  ObjectReader(const JsonBody& body, std::vector<FieldError>& errors)
      : object_(body.object()), body_(&body), errors_(errors) {}

  // Null and absent give nothing; an invalid value gives nothing and is noted.
  std::optional<std::string> text(const char* name);
  std::optional<bool> boolean(const char* name);
  std::optional<float> number(const char* name, FieldRange<double> range);
  std::optional<int32_t> integer(const char* name, FieldRange<int32_t> range);
  // For random numbers. A negative number gives nothing, and then the engine draws a seed.
  std::optional<uint64_t> seed(const char* name);
  const nlohmann::json* find(const char* name) const;  // null if absent or null

  // As messages have it.
  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }
  void note(std::string_view name, std::string constraint, std::string_view message,
            const nlohmann::json* value);

 private:
  const nlohmann::json& object_;
  const JsonBody* body_ = nullptr;
  std::string prefix_;
  std::vector<FieldError>& errors_;
};

}  // namespace rbee::server
