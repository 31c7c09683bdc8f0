#pragma once

#include <filesystem>
#include <string_view>

namespace rbee::test {

// Every number of the tensor in that .safetensors or .gguf file, of f32, f16 or bf16, becomes NaN.
void make_undefined(const std::filesystem::path& file, std::string_view tensor);

}  // namespace rbee::test
