#pragma once
// Strict reading of a JSON object: every wrong field is noted (the first 32) instead of only the
// first. Internal to the server.

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
  // Of a body, whose fields are made as they are looked up.
  ObjectReader(const JsonBody& body, std::vector<FieldError>& errors)
      : object_(body.object()), body_(&body), errors_(errors) {}

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
  const JsonBody* body_ = nullptr;
  std::string prefix_;
  std::vector<FieldError>& errors_;
};

}  // namespace rbee::server
