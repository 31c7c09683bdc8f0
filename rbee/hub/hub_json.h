#pragma once
// JSON that the hub sent, or that lies in its cache. Others wrote it: all of it is read here.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rbee::hub {

// Bytes of a text of JSON. A listing of 100000 files has some 40 million.
inline constexpr size_t kMaxJson = size_t{64} << 20;

// `what` names the text in errors. Throws io unless it is JSON of at most kMaxJson bytes that is
// nested neither deeper nor has more values than any listing: nlohmann copies and compares by
// recursion, so depth costs stack.
nlohmann::json parse_json(std::string_view text, std::string_view what);

// A member of an object; empty or 0 if it is not there or of another type.
std::string text_of(const nlohmann::json& object, const char* key);
// The largest int64_t stands for all above it.
int64_t integer_of(const nlohmann::json& object, const char* key);

}  // namespace rbee::hub
