#pragma once
// What the model's tower makes of pictures, in slices between steps, and what it made of those
// asked about lately, so that a chat that goes on, and a request that lost its place, do not look
// at them again. Used by one thread.

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "rbee/io/image/pixels.h"
#include "rbee/models/picture_encoder.h"

namespace rbee::engine {

struct SeenPicture {
  // A negative number that no other picture has, in place of its tokens where beginnings of texts
  // are compared.
  int32_t key = 0;
  std::shared_ptr<const io::Pixels> pixels;
  int64_t stages = 0;  // of the encoder that are done
  Tensor states;       // what the last of them gave
  Tensor rows;         // (tokens, dim), see models::PictureEncoder; undefined before the last stage

  bool seen() const { return rows.defined(); }
};

class PictureCache {
 public:
  // Keeps pictures that nobody refers to any more while their rows and pixels have `most_bytes`
  // together; both references outlive the cache.
  PictureCache(const models::PictureEncoder& encoder, Device& device, int64_t most_bytes)
      : encoder_(encoder), device_(device), most_bytes_(most_bytes) {}

  // pixels: squares of the encoder's side, of three channels. Equal pixels, which are compared as
  // a whole, give the same picture while somebody refers to it or it is kept.
  std::shared_ptr<SeenPicture> find(const std::shared_ptr<const io::Pixels>& pixels);

  // Goes on with a picture that is not seen yet, by as many of the encoder's stages as cost about
  // as much as `multiplications`, at least one. What throws changes nothing.
  void look(const std::shared_ptr<SeenPicture>& picture, double multiplications);

  int64_t encoded() const { return encoded_; }  // pictures that the encoder has looked at
  int64_t kept_bytes() const { return kept_bytes_; }

 private:
  void keep(std::shared_ptr<SeenPicture> picture);

  const models::PictureEncoder& encoder_;
  Device& device_;
  const int64_t most_bytes_;
  std::vector<std::weak_ptr<SeenPicture>> known_;  // all that somebody refers to, kept ones too
  std::list<std::shared_ptr<SeenPicture>> kept_;   // the one unused for the longest first
  int64_t kept_bytes_ = 0;
  int32_t keys_ = 0;  // given
  int64_t encoded_ = 0;
};

}  // namespace rbee::engine
