#pragma once
// OpenAI's request bodies for pictures. The parsers ignore unknown fields and throw InvalidBody
// with all errors of a body.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/wire/image_body.h"

namespace rbee::server {

// POST /v1/images/generations
ImageBody parse_openai_generation(std::string_view body);
// POST /v1/images/edits, and /v1/images/variations, which has no prompt. For a multipart body:
// fields as (name, value), files as (name, bytes).
enum class OpenAiEdit : uint8_t { edit, variation };
ImageBody parse_openai_edit(const std::vector<std::pair<std::string, std::string>>& fields,
                            const std::vector<std::pair<std::string, std::string>>& files,
                            OpenAiEdit kind = OpenAiEdit::edit);
// The same as JSON: "image" or "images" with one picture, and "mask", each a file as base64, a
// data: URL, or {"image_url": ...}.
ImageBody parse_openai_edit(std::string_view body, OpenAiEdit kind = OpenAiEdit::edit);

}  // namespace rbee::server
