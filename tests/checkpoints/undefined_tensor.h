#pragma once

#include <filesystem>
#include <string_view>

namespace rbee::test {

// Sets every number of that tensor, f32, f16 or bf16, in a .safetensors or .gguf file to NaN.
void make_undefined(const std::filesystem::path& file, std::string_view tensor);

}  // namespace rbee::test
