#pragma once
// The pictures of a request, prepared for the model's vision tower.

#include <memory>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/engine/text/prompt/pan_and_scan.h"
#include "rbee/io/image/pixels.h"

namespace rbee::engine {

// Decodes the pictures of all messages in order, removes opacity, and resizes them and their parts
// to squares of `side` pixels as Hugging Face's Gemma3ImageProcessor does. side: 0 = the model
// reads no pictures. Throws invalid_argument naming the picture's field, and as io::decode_image().
std::vector<PictureSquares> read_pictures(const TextRequest& request, int64_t side, int64_t most,
                                          const PanAndScan& parts = {});

}  // namespace rbee::engine
