#pragma once
// Runs the vision tower over pictures, in slices between steps, and caches its output, so that a
// continued chat or a preempted request does not pay for it again. Used by one thread.

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "rbee/io/image/pixels.h"
#include "rbee/models/picture_encoder.h"

namespace rbee::engine {

struct SeenPicture {
  // A negative number, unique to this picture. It replaces the picture's tokens when texts are
  // compared.
  int32_t key = 0;
  std::shared_ptr<const io::Pixels> pixels;
  int64_t stages = 0;  // stages of the encoder that are done
  Tensor states;       // output of the last stage done
  Tensor rows;         // (tokens, dim), see models::PictureEncoder; undefined before the last stage

  bool seen() const { return rows.defined(); }
};

class PictureCache {
 public:
  // Keeps unused pictures while their rows and pixels take at most `most_bytes`. Both references
  // must outlive the cache.
  PictureCache(const models::PictureEncoder& encoder, Device& device, int64_t most_bytes)
      : encoder_(encoder), device_(device), most_bytes_(most_bytes) {}

  // pixels: a square of the encoder's side with three channels. Equal pixels (all are compared)
  // give the same picture while it is in use or kept.
  std::shared_ptr<SeenPicture> find(const std::shared_ptr<const io::Pixels>& pixels);

  // Continues a picture that is not seen yet: as many of the encoder's stages as cost about
  // `multiplications`, at least one. If it throws, nothing changes.
  void encode(const std::shared_ptr<SeenPicture>& picture, double multiplications);

  int64_t encoded() const { return encoded_; }  // pictures that the encoder has looked at
  int64_t kept_bytes() const { return kept_bytes_; }

 private:
  void keep(std::shared_ptr<SeenPicture> picture);

  const models::PictureEncoder& encoder_;
  Device& device_;
  const int64_t most_bytes_;
  std::vector<std::weak_ptr<SeenPicture>> known_;  // all in use, kept ones too
  std::list<std::shared_ptr<SeenPicture>> kept_;   // least recently used first
  int64_t kept_bytes_ = 0;
  int32_t keys_ = 0;  // last key given
  int64_t encoded_ = 0;
};

}  // namespace rbee::engine
