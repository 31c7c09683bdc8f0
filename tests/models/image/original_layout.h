#pragma once
// Files in the layouts of other programs, written from the tiny models' parts.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/checkpoints/image_folder.h"

namespace rbee::test {

using Replacements = std::vector<std::pair<std::string, std::string>>;

// `name` with the first text of the list that it contains replaced.
std::string replaced(std::string name, const Replacements& list);

// CompVis' name for a tensor of a VAE with `levels` levels.
std::string original_vae(const std::string& name, int64_t levels);

// A file as stable-diffusion.cpp writes it: matrices quantised, the rest in f16. `tokens`: of a
// vocabulary, if any.
void write_gguf(const std::filesystem::path& file, const std::vector<MadeTensor>& tensors,
                const std::vector<std::string>& tokens = {});

// A UNet as ComfyUI-GGUF writes it: quantises tensors of at least 512 elements. If a row is no
// multiple of 256, stores rows of 256 and the original shape.
void write_comfy_gguf(const std::filesystem::path& file, const std::vector<MadeTensor>& tensors,
                      std::string_view architecture);

// Rounds vectors to numbers that f16 and bf16 both hold: loaders widen one-byte floats to bf16, and
// some processors multiply f32 by bf16 and f32 by f32 differently.
void round_vectors(std::vector<MadeTensor>& tensors);

// Matrices as one-byte floats, the rest in f16; whole: everything in e4m3. scaled: e4m3 with a
// scale, as old ComfyUI wrote it. described: plain bytes with a scale and metadata, as ComfyUI
// writes now.
enum class Fp8 : uint8_t { e4m3, e5m2, scaled, described, whole };
// Sets the tensors to the values that the file represents.
void write_fp8(const std::filesystem::path& file, std::vector<MadeTensor>& tensors, Fp8 kind);

}  // namespace rbee::test
