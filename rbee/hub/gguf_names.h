#pragma once
// What the names of GGUF files say: which are parts of one model, of which quantization.

#include <span>
#include <string>
#include <string_view>

#include "rbee/hub/choose.h"

namespace rbee::hub {

// Where "-00001-of-00003" begins at the end of a name without its extension; npos = not there.
size_t split_begin(std::string_view stem);

// True if both are parts of one file, by their names.
bool is_other_part(std::string_view path, std::string_view other);

bool is_mmproj(std::string_view path);
// A model's weights: neither a vision tower nor a calibration's matrix.
bool is_gguf_model(std::string_view path);

// Throws not_found if a split file has fewer parts than its names say.
void check_parts(std::span<const RepoFile> files);

// The one of 16 bits, else the smallest; without one, nothing.
void add_mmproj(std::span<const RepoFile> files, Choice& choice);

// The rules of choose_files() for GGUF.
Choice choose_gguf(std::span<const RepoFile> files, const WantedFiles& wanted);

}  // namespace rbee::hub
