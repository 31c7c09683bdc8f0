#pragma once
// What the model sees of the pictures asked about lately, so that a chat that goes on, and a
// request that lost its place, do not look at them again. Used by one thread.

#include <cstdint>
#include <list>
#include <memory>

#include "rbee/io/image/pixels.h"
#include "rbee/models/picture_encoder.h"

namespace rbee::engine {

struct SeenPicture {
  // A negative number that no other picture has, in place of its tokens where beginnings of texts
  // are compared.
  int32_t key = 0;
  Tensor rows;  // (tokens, dim), see models::PictureEncoder
  std::shared_ptr<const io::Pixels> pixels;
};

class PictureCache {
 public:
  // Keeps up to `most` pictures, at least 1; both references outlive the cache.
  PictureCache(const models::PictureEncoder& encoder, Device& device, size_t most = 16)
      : encoder_(encoder), device_(device), most_(most) {}

  // pixels: squares of the encoder's side, of three channels. Equal pixels, which are compared as
  // a whole, give what they gave before while it is kept.
  std::shared_ptr<const SeenPicture> see(const std::shared_ptr<const io::Pixels>& pixels);

  int64_t encoded() const { return encoded_; }  // pictures that the encoder has looked at

 private:
  const models::PictureEncoder& encoder_;
  Device& device_;
  const size_t most_;
  std::list<std::shared_ptr<const SeenPicture>> seen_;  // the one unused for the longest first
  int64_t encoded_ = 0;
};

}  // namespace rbee::engine
