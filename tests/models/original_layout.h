#pragma once
// Files in the layouts of other programs, made of the tiny models' parts.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/image_folder.h"

namespace rbee::test {

using Replacements = std::vector<std::pair<std::string, std::string>>;

// The first of the texts that is in `name`, replaced.
std::string replaced(std::string name, const Replacements& list);

// CompVis' name of a VAE's tensor with `levels` levels.
std::string original_vae(const std::string& name, int64_t levels);

// As stable-diffusion.cpp writes them: matrices quantised, the rest in f16. `tokens`: of a
// vocabulary, if any.
void write_gguf(const std::filesystem::path& file, const std::vector<MadeTensor>& tensors,
                const std::vector<std::string>& tokens = {});

}  // namespace rbee::test
