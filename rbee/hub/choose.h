#pragma once
// Which files of a repository a model needs.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/hub/listing.h"

namespace rbee::hub {

struct WantedFiles {
  std::string file;          // path within the repository; empty = by the rules below
  std::string quantization;  // e.g. "Q4_K_M", in any case; empty = the best that fits
  int64_t memory = 0;        // bytes of the device; 0 = unknown
  // What needs no download; null: nothing.
  std::function<bool(const RepoFile&)> is_there{};
};

struct Choice {
  std::vector<RepoFile> files;
  std::string model;   // path within the repository; empty = its whole folder
  std::string mmproj;  // the vision tower of a GGUF model; empty = none
  std::string why;     // for the log

  int64_t bytes() const;
};

// Throws not_found, naming what is there, if the repository has no such file or quantization, or no
// weights that this project reads. The rules:
// - a file that is named: with all parts of it, and of .safetensors the configuration beside it;
// - GGUF: all parts of one quantization, and one mmproj file. Without a wish, one that is there
//   already; else the largest below 16 bits that fits into the memory beside a context; of unknown
//   memory Q4_K_M;
// - a folder of diffusers: of each part one variant of its weights, fp16 if there is one;
// - other folders: configuration, tokenizer and .safetensors files of the root.
Choice choose_files(std::span<const RepoFile> files, const WantedFiles& wanted);

// Bytes of memory that weights of so many bytes are taken to need: a sixteenth more, and 512 MiB
// for keys and values of some thousand tokens, and what a step needs.
int64_t needed_memory(int64_t weight_bytes);

// Of a GGUF file's name, in upper case, such as "Q4_K_M" or "UD-IQ2_XXS"; empty if it names none.
std::string quantization_of(std::string_view path);

}  // namespace rbee::hub
