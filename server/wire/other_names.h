#pragma once
// Fields that have several names, such as max_tokens and n_predict. Internal to the server.

#include <initializer_list>

#include <initializer_list>
#include <span>

#include "server/wire/json_object.h"

namespace rbee::server {

// Which of one field's names the object has; the first if none. Notes a second one with another
// value. An empty text counts as absent where another name has a value.
const char* given_name(ObjectReader& reader, std::span<const char* const> names);
inline const char* given_name(ObjectReader& reader, std::initializer_list<const char*> names) {
  return given_name(reader, std::span(names.begin(), names.size()));
}

}  // namespace rbee::server
