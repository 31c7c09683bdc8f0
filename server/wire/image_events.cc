#include "server/wire/image_events.h"

#include <nlohmann/json.hpp>

#include "server/wire/json_text.h"

namespace rbee::server {

std::string to_json(const ImageHealth& health) {
  nlohmann::ordered_json out = {{"status", health.healthy ? "healthy" : "unhealthy"},
                                {"model", health.model},
                                {"resident", health.healthy},
                                {"architecture", health.architecture},
                                {"dtype", health.dtype},
                                {"device", health.device},
                                {"default_width", health.default_width},
                                {"default_height", health.default_height},
                                {"default_steps", health.default_steps},
                                {"inpainting_model", health.inpainting},
                                {"parameters", health.parameters},
                                {"vram_bytes_used", health.memory_bytes},
                                {"uptime_seconds", rounded(health.uptime_seconds)},
                                {"graphs", graphs(health.capture_refusal)}};
  if (!health.experimental.empty()) out["experimental"] = health.experimental;
  return dump(out);
}

}  // namespace rbee::server
