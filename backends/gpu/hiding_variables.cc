#include "backends/gpu/hiding_variables.h"

#include <cstdlib>

#include "rbee/core/cat.h"

namespace rbee::gpu {

std::string hiding_variables(std::initializer_list<const char*> names) {
  std::string out;
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr) out += cat(out.empty() ? "" : ", ", name, "=\"", value, '"');
  }
  return out;
}

}  // namespace rbee::gpu
