#pragma once
// Files of RRDBNet, whose shape is read off the tensors.

#include <filesystem>
#include <string>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

inline constexpr int64_t kDenseBlocks = 3;  // of a residual block
inline constexpr int64_t kDenseConvs = 5;   // of a dense block
inline constexpr int64_t kColours = 3;

struct UpscalerShape {
  int64_t blocks = 23;    // residual ones
  int64_t width = 64;     // channels between them
  int64_t growth = 32;    // channels that a convolution in a dense block adds
  int64_t unshuffle = 1;  // pixels on a side of the squares that the network reads as one pixel
  int64_t doublings = 2;  // of the size, behind the blocks

  int64_t in_channels() const { return kColours * unshuffle * unshuffle; }
  int64_t scale() const { return (int64_t{1} << doublings) / unshuffle; }
};

struct UpscalerFile {
  UpscalerShape shape;
  // conv_first, body.<block>.rdb<1 to 3>.conv<1 to 5>, conv_body, conv_up1, ..., conv_hr, conv_last
  io::Checkpoint weights;
};

// The convolution's name above; all count from 0.
std::string upscaler_conv(int64_t block, int64_t dense, int64_t conv);

// Reads the names of Real-ESRGAN (those above), of ESRGAN's publication (RRDB_trunk.0.RDB1.conv1)
// and of its old form (model.1.sub.0.RDB1.conv1.0). The scale is 1, 2 or 4. Throws as
// Checkpoint::open and refuse_pickle; unsupported for files of other networks, naming a tensor that
// RRDBNet has not; not_found and invalid_argument naming the tensor as the file calls it.
UpscalerFile read_upscaler_file(const std::filesystem::path& path);

}  // namespace rbee::models
