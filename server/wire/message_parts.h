#pragma once
// Contents of messages: a text, or parts that are texts and pictures.

#include "server/wire/json_object.h"

namespace rbee::server {

// The answer can go on from this message, which comes last.
bool goes_on(const SentMessage& message);

enum class PartSpelling : uint8_t {
  openai_chat,       // text and image_url
  openai_responses,  // input_text, output_text, text and input_image
};

// Reads `value`, the field "content" of `fields`, into message.content and message.pictures, which
// a user's message alone may have. prefix: of the message's fields in errors.
void read_parts(const nlohmann::json& value, PartSpelling spelling, ObjectReader& fields,
                const std::string& prefix, SentMessage& message);

// A picture in a data: URL, behind the message's content so far; notes anything else, as nothing is
// fetched. name: of the field within `fields`.
void add_picture_url(const nlohmann::json& url, const std::string& name, ObjectReader& fields,
                     const std::string& prefix, SentMessage& message);

// Notes a picture that stands outside of a user's message; true where it does not.
bool takes_pictures(const SentMessage& message, const std::string& name, ObjectReader& fields);

}  // namespace rbee::server
