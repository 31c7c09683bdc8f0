#pragma once
// The content of messages: a text, or parts that are texts and pictures.

#include "server/wire/json_object.h"

namespace rbee::server {

// Whether the answer can continue this message, which comes last.
bool goes_on(const SentMessage& message);

enum class PartSpelling : uint8_t {
  openai_chat,       // text and image_url
  openai_responses,  // input_text, output_text, text and input_image
};

// Reads `value`, the field "content" of `fields`, into message.content and message.pictures; only a
// user's message may have pictures. prefix: of the message's fields in errors.
void read_parts(const nlohmann::json& value, PartSpelling spelling, ObjectReader& fields,
                const std::string& prefix, SentMessage& message);

// Adds a picture from a data: URL at the end of the message's content; notes any other URL, because
// the worker fetches nothing. name: of the field within `fields`.
void add_picture_url(const nlohmann::json& url, const std::string& name, ObjectReader& fields,
                     const std::string& prefix, SentMessage& message);

// Notes a picture outside a user's message; true if there is no error.
bool takes_pictures(const SentMessage& message, const std::string& name, ObjectReader& fields);

}  // namespace rbee::server
