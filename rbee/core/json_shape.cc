#include "rbee/core/json_shape.h"

#include <algorithm>

namespace rbee {

JsonShape shape_of_json(std::string_view text) {
  JsonShape out{.depth = 0, .values = 1};
  size_t open = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '"') quoted = !quoted;
    if (quoted) {
      if (letter == '\\') ++at;
      continue;
    }
    if (letter == ',') ++out.values;
    if (letter == '{' || letter == '[') {
      ++out.values;
      out.depth = std::max(out.depth, ++open);
    }
    if ((letter == '}' || letter == ']') && open > 0) --open;
  }
  return out;
}

}  // namespace rbee
