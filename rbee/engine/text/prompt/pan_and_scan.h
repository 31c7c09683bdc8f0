#pragma once
// Pan and scan (Gemma Team 2025, "Gemma 3", section 2.1): the vision tower sees squares of one
// size, so a long picture is shown whole and also in parts.

#include <cstdint>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/image/pixels.h"

namespace rbee::engine {

// Defaults of Hugging Face's Gemma3Processor.
struct PanAndScan {
  bool on = false;
  int32_t min_crop = 256;  // pixels: the shortest side of a part
  int32_t max_crops = 4;
  double min_ratio = 1.2;  // longer side to shorter side; below it there are no parts
};

// The settings of preprocessor_config.json or processor_config.json, if the checkpoint has one.
// Throws invalid_argument naming the field, its value and its range.
PanAndScan read_pan_and_scan(const io::Checkpoint& checkpoint);

// The parts, from left to right or from top to bottom; the last may be smaller. Empty if the
// settings are off or the picture needs no parts.
std::vector<io::Pixels> parts_of(const io::Pixels& picture, const PanAndScan& settings);

}  // namespace rbee::engine
