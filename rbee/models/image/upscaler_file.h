#pragma once
// Files of upscalers. The tensors' shapes tell the network's.

#include <filesystem>
#include <string>
#include <variant>

#include "rbee/io/checkpoint.h"

namespace rbee::models {

inline constexpr int64_t kDenseBlocks = 3;  // of a residual block
inline constexpr int64_t kDenseConvs = 5;   // of a dense block
inline constexpr int64_t kColours = 3;

// RRDBNet of ESRGAN (Wang et al. 2018), ESRGAN+ (Rakotonirina and Rasoanaivo 2020) and Real-ESRGAN
// (Wang et al. 2021).
struct RrdbShape {
  int64_t blocks = 23;     // residual ones
  int64_t width = 64;      // channels between them
  int64_t growth = 32;     // channels that a convolution in a dense block adds
  int64_t unshuffle = 1;   // pixels on a side of the squares that the network reads as one pixel
  int64_t doublings = 2;   // of the size, after the blocks
  bool shortcuts = false;  // ESRGAN+'s, between the convolutions of a dense block

  int64_t in_channels() const { return kColours * unshuffle * unshuffle; }
  int64_t scale() const { return (int64_t{1} << doublings) / unshuffle; }
};

// SRVGGNetCompact, Real-ESRGAN's small networks.
struct CompactShape {
  int64_t convs = 16;  // between the first and the last
  int64_t width = 64;  // channels between them
  int64_t scale = 4;
};

struct UpscalerFile {
  std::variant<RrdbShape, CompactShape> shape;
  // RrdbShape: conv_first, body.<block>.rdb<1 to 3>.conv<1 to 5> and .conv1x1, conv_body, conv_up1,
  // ..., conv_hr, conv_last. CompactShape: body.<layer>, where slopes of activations are layers.
  io::Checkpoint weights;
};

// The names above of a convolution and of a shortcut; all numbers count from 0.
std::string upscaler_conv(int64_t block, int64_t dense, int64_t conv);
std::string upscaler_shortcut(int64_t block, int64_t dense);

// RRDBNet by the names of Real-ESRGAN (those above), of ESRGAN's publication (RRDB_trunk.0.RDB1.
// conv1) and of its old form (model.1.sub.0.RDB1.conv1.0), 1 to 16 times the size; SRVGGNetCompact
// with PReLU, 1 to 8 times; also below "params_ema." or "params.", of which "params_ema." wins.
// Throws as Checkpoint::open and refuse_pickle; unsupported for files of other networks, naming a
// tensor that these do not have; not_found and invalid_argument naming the tensor as the file does.
UpscalerFile read_upscaler_file(const std::filesystem::path& path);

}  // namespace rbee::models
