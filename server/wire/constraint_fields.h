#pragma once
// Request fields that constrain the form of an answer, in the spellings of OpenAI, llama-server and
// vLLM. Internal to the server.

#include <string_view>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// response_format, grammar, json_schema, guided_* and structured_outputs; a request may have only
// one. body: the source of the reader's object; it gives the order of a schema's properties.
ConstraintFields read_constraint(ObjectReader& reader, const JsonBody& body,
                                 std::vector<FieldError>& errors);
// The same for "format" in the Responses API's "text", which `text` reads.
ConstraintFields read_text_format(ObjectReader& text, const JsonBody& body,
                                  std::vector<FieldError>& errors);

// The same for "format" in the Messages API's "output_config", which `config` reads.
ConstraintFields read_output_format(ObjectReader& config, const JsonBody& body,
                                    std::vector<FieldError>& errors);

}  // namespace rbee::server
