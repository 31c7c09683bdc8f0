#pragma once
// The events of an image request, for the replies of every API. Pictures are files: PNG
// unless the request says otherwise; previews are always PNG.

#include <cstdint>
#include <string>
#include <vector>

namespace rbee::server {

struct ImageHealth {
  bool healthy = true;
  std::string model;
  std::string architecture;
  std::string dtype;
  std::string device;
  int32_t default_width = 0, default_height = 0;  // pixels
  int32_t default_steps = 0;
  bool inpainting = false;
  int64_t parameters = 0;
  int64_t memory_bytes = 0;
  double uptime_seconds = 0;
  std::string capture_refusal = {};  // why steps are not captured and replayed; empty: they are
  std::string experimental = {};     // what users are told of the kind of device; empty: nothing
};

struct ImageStartedEvent {
  std::string job_id;
  std::string model;
  std::string started_at;  // ISO 8601
  uint64_t seed = 0;
  int32_t width = 0, height = 0;
  int32_t steps = 0;
  int32_t count = 0;
  std::string sampler;
  std::string schedule;
  float guidance_scale = 0;
};

struct ImageProgressEvent {
  int32_t step = 0;
  int32_t total = 0;
  double seconds = 0;
  double steps_per_second = 0;
  double images_per_second = 0;
  int32_t tile = 0, tiles = 0;  // of a picture that a network enlarges; 0: none is
};

struct ImageResult {
  std::string file;        // its bytes
  std::string format;      // "png", "jpeg" or "webp"
  std::string parameters;  // its settings in AUTOMATIC1111's form
  uint64_t seed = 0;
  int32_t index = 0;
  int32_t width = 0, height = 0;
};

struct ImageTimes {
  double text_ms = 0, sample_ms = 0, decode_ms = 0;
  double total_ms = 0;  // since the request's arrival
};

// The answer of /health.
std::string to_json(const ImageHealth& health);

}  // namespace rbee::server
