#pragma once
// What one rendering of a chat template may take.

#include <cstdint>

namespace rbee::text {

struct TemplateLimits {
  int64_t max_steps = 2'000'000;           // nodes evaluated plus items and 32-byte pieces handled
  int64_t max_output_bytes = 16 << 20;     // of the rendered text
  int64_t max_memory_bytes = 256LL << 20;  // all values one rendering makes, freed at its end
  int max_depth = 100;                     // nesting of source and variables; calls of macros
  int64_t max_source_bytes = 1 << 20;
};

}  // namespace rbee::text
