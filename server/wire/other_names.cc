#include "server/wire/other_names.h"

#include "rbee/core/cat.h"

namespace rbee::server {

const char* given_name(ObjectReader& reader, std::span<const char* const> names) {
  const char* out = names.front();
  const nlohmann::json* value = nullptr;  // of `out`
  for (const char* name : names) {
    const nlohmann::json* other = reader.find(name);
    if (other == nullptr) continue;
    if (value == nullptr || *value == "") {
      out = name;
      value = other;
    } else if (*other != "" && *other != *value) {
      reader.note(name, cat("equal(", out, ")"),
                  cat("must be the same as ", out, ", its other name"), other);
    }
  }
  return out;
}

}  // namespace rbee::server
