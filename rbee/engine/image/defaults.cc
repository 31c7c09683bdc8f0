#include "rbee/engine/image/defaults.h"

#include "rbee/core/error.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

// The number called `name`, or `absent`.
double number(const nlohmann::json& config, const char* name, double least, double most,
              double absent, std::string_view file) {
  const auto found = config.find(name);
  if (found == config.end() || found->is_null()) return absent;
  const bool fits = found->is_number() && *found >= least && *found <= most;
  check(fits, file, name, " is ", found->dump(), ", not a number from ", least, " to ", most);
  return found->get<double>();
}

}  // namespace

void read_defaults(std::string_view json, std::string_view file, ImageModelInfo& info) {
  const nlohmann::json config = io::parse_json(json, file);
  check(config.is_object(), file, "not a JSON object");
  const double steps = number(config, "num_inference_steps", 1, 150, info.default_steps, file);
  check(steps == static_cast<int32_t>(steps), file, "num_inference_steps is ", steps,
        ", not a whole number");
  const double guidance = number(config, "guidance_scale", 0, 30, info.default_guidance, file);
  info.default_steps = static_cast<int32_t>(steps);
  info.default_guidance = static_cast<float>(guidance);
}

}  // namespace rbee::engine
