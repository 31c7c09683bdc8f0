#pragma once
// Vectors as bytes: what OpenAI's, vLLM's and Cohere's clients read in the place of numbers.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/apis/embeddings/request.h"

namespace rbee::server {

// Of a number. Types of fewer bits round to the nearest.
size_t size_of(VectorType type);
std::string vector_bytes(std::span<const float> vector, const VectorEncoding& encoding);
std::string to_base64(std::string_view bytes);
// Cohere's ubinary: a bit for each number, 1 where it is 0 or above, eight in a byte, the first one
// highest; those of the last byte that are left are 0. Its binary is 128 less.
std::vector<uint8_t> sign_bits(std::span<const float> vector);
// Cohere's int8, of which no formula is known: x becomes 127 x / m, to the nearest, where m is the
// vector's largest magnitude. Its uint8 is 128 more.
std::vector<int8_t> scaled_bytes(std::span<const float> vector);

}  // namespace rbee::server
