#pragma once
// A megabyte of code, many scripts, emoji, runs and broken UTF-8. Every run, and
// tools/goldens/make_tokenizer_goldens.py, makes the same from data/fragments.txt.

#include <cstdint>
#include <string>
#include <vector>

namespace rbee::text::testing {

inline constexpr size_t kMixedBytes = size_t{1} << 20;

std::vector<std::string> mixed_blocks(uint64_t seed = 1, size_t bytes = kMixedBytes);

std::string read_data(const std::string& name);  // a file of data/

}  // namespace rbee::text::testing
