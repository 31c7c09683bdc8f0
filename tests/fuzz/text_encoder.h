#pragma once

#include "rbee/models/image/image_model.h"

namespace rbee::fuzz {

// Loaders ask it for its widths only.
class WideTextEncoder final : public models::TextEncoder {
 public:
  explicit WideTextEncoder(int64_t width) : width_(width) {}
  models::TextEncoding operator()(const models::TextInput&) const override { return {}; }
  int64_t width() const override { return width_; }
  int64_t pooled_width() const override { return width_; }
  int64_t max_tokens() const override { return 77; }
  int64_t vocab_size() const override { return 16; }
  int64_t layers() const override { return 1; }

 private:
  int64_t width_;
};

inline models::ImageModel model_of(models::ImageFamily family,
                                   std::initializer_list<int64_t> widths,
                                   Device* device = nullptr) {
  models::ImageModel out;
  out.family = family;
  out.device = device;
  for (const int64_t width : widths) {
    out.text.push_back({std::make_unique<WideTextEncoder>(width), {}});
  }
  return out;
}

}  // namespace rbee::fuzz
