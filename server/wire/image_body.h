#pragma once
// An image request as every API reads it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rbee/engine/api/image_fields.h"
#include "server/wire/image_names.h"

namespace rbee::server {

// A picture as sent.
struct SentImage {
  std::string data;    // bytes of the file, or their base64 form
  bool base64 = true;  // a "data:" URL counts as base64
  bool empty() const { return data.empty(); }
};

// A picture that guides a ControlNet; use.image is empty.
struct SentControl {
  engine::ControlUse use;
  SentImage image;
};

struct ImageBody {
  std::string client;                // the sender; no field of a body
  std::shared_ptr<const void> room;  // of a large body, held until the request ends
  // With the engine's defaults for absent and null fields; without job_id, client and pictures.
  engine::ImageRequest settings;
  engine::ImageFieldSet given;  // fields that the request gives, or defaults that were set
  ImageNames names;             // what its API, or the request, calls them

  template <typename T, typename Part, typename Value>
  void set(T Part::* member, Value&& value) {
    engine::image_part<Part>(settings)->*member = std::forward<Value>(value);
    given.add(engine::image_field(member));
  }
  // Only if the request does not give it.
  template <typename T, typename Part, typename Value>
  void set_default(T Part::* member, Value&& value) {
    if (!given.has(member)) set(member, std::forward<Value>(value));
  }

  SentImage init_image;
  SentImage mask_image;
  bool mask_of_init = false;  // without a mask, repaint init_image's transparent part
  std::vector<SentControl> controls;
  std::optional<float> distilled_guidance;  // Forge: for a model trained with guidance
  bool stream = false;                      // OpenAI: events instead of one answer
  std::optional<int32_t> partials;          // OpenAI: pictures before the last one
  bool as_url = false;                      // OpenAI: "data:" URLs instead of base64
  bool send_images = true;                  // AUTOMATIC1111
  std::string checkpoint;                   // AUTOMATIC1111: the model's name, if sent
  std::string hires_checkpoint;             // AUTOMATIC1111: the same for a second pass
  std::string task;                         // AUTOMATIC1111: name for progress requests
  std::string request;  // AUTOMATIC1111: the body without its pictures; the answer repeats it
};

}  // namespace rbee::server
