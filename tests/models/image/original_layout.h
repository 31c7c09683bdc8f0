#pragma once
// Files in the layouts of other programs, made of the tiny models' parts.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/checkpoints/image_folder.h"

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

// As ComfyUI-GGUF writes UNets: tensors of at least 512 elements quantised, those whose rows are no
// whole blocks of 256 in rows of 256 beside the shape that they had.
void write_comfy_gguf(const std::filesystem::path& file, const std::vector<MadeTensor>& tensors,
                      std::string_view architecture);

// Vectors become numbers that f16 and bf16 hold alike: floats of one byte are widened to bf16, and
// some processors multiply f32 by bf16 otherwise than by f32.
void round_vectors(std::vector<MadeTensor>& tensors);

// Matrices as floats of one byte, the rest in f16; whole: all in e4m3. scaled: those of e4m3 with a
// scale besides, as ComfyUI wrote them; described: plain bytes with a scale and words on what they
// are, as it does.
enum class Fp8 : uint8_t { e4m3, e5m2, scaled, described, whole };
// Gives the tensors the values that the file stands for.
void write_fp8(const std::filesystem::path& file, std::vector<MadeTensor>& tensors, Fp8 kind);

}  // namespace rbee::test
