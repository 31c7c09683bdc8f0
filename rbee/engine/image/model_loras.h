#pragma once
// The adapters in a picture model's weights.

#include <optional>
#include <string>
#include <vector>

#include "rbee/engine/image/pipeline.h"
#include "rbee/engine/image/source.h"

namespace rbee::engine {

// Names the adapters that a request needs. Requests with the same text need the same weights.
std::string adapters_of(const ImageRequest& request);

// Merges LoRAs into the weights; for other LoRAs it reads parts of the model again. Source and
// pipeline must outlive it.
class ModelLoras {
 public:
  ModelLoras(ImageSource& source, ImagePipeline& pipeline) : source_(source), pipeline_(pipeline) {}

  // Puts the request's adapters into the model, in place of those that are there. Throws if one is
  // missing, does not fit, or the files cannot be read; the next call then reads the weights anew.
  void set(const ImageRequest& request);

 private:
  [[noreturn]] void fail_with(const Error& error,
                              const std::vector<models::LoraSource>& wanted) const;

  ImageSource& source_;
  ImagePipeline& pipeline_;
  std::vector<models::LoraSource> present_;
  bool unsure_ = false;  // whether the model has those
};

}  // namespace rbee::engine
