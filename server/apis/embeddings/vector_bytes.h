#pragma once
// Vectors as bytes, which clients of OpenAI, vLLM and Cohere read in place of numbers.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/apis/embeddings/request.h"

namespace rbee::server {

// Bytes of a number. Narrower types round to the nearest.
size_t size_of(VectorType type);
std::string vector_bytes(std::span<const float> vector, const VectorEncoding& encoding);
std::string to_base64(std::string_view bytes);
// Cohere's ubinary: a bit for each number, 1 if it is 0 or above, eight to a byte, the first one
// highest; the last byte's unused bits are 0. Its binary is 128 less.
std::vector<uint8_t> sign_bits(std::span<const float> vector);
// Cohere's int8, whose formula is not published: x becomes 127 x / m, to the nearest, where m is
// the vector's largest magnitude. Its uint8 is 128 more.
std::vector<int8_t> scaled_bytes(std::span<const float> vector);

}  // namespace rbee::server
