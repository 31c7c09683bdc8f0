#pragma once
// Pan and scan (Gemma Team 2025, "Gemma 3", section 2.1): a picture that is much wider than high,
// or higher than wide, is shown whole and in parts, as the tower sees squares of one size.

#include <cstdint>
#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/image/pixels.h"

namespace rbee::engine {

// Of Hugging Face's Gemma3Processor.
struct PanAndScan {
  bool on = false;
  int32_t min_crop = 256;  // pixels: no part has a shorter side
  int32_t max_crops = 4;
  double min_ratio = 1.2;  // of the longer side to the shorter: below it there are no parts
};

// What preprocessor_config.json or processor_config.json says, where the checkpoint has one of
// them. Throws invalid_argument naming the field, its value and its range.
PanAndScan read_pan_and_scan(const io::Checkpoint& checkpoint);

// The parts from left to right, or from the top; none where the settings are off or want none. The
// last may be smaller.
std::vector<io::Pixels> parts_of(const io::Pixels& picture, const PanAndScan& settings);

}  // namespace rbee::engine
