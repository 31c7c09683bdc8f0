#pragma once
// The fields of a request that ask for an answer of a form, in the spellings of OpenAI,
// llama-server and vLLM. Internal to the server.

#include <string_view>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// response_format, grammar, json_schema, guided_* and structured_outputs, of which one may be
// given. body: what the reader's object was read from; the order of a schema's properties is taken
// from it.
ConstraintFields read_constraint(ObjectReader& reader, const JsonBody& body,
                                 std::vector<FieldError>& errors);
// The same for "format" of the Responses API's "text", which `text` reads.
ConstraintFields read_text_format(ObjectReader& text, const JsonBody& body,
                                  std::vector<FieldError>& errors);

// The same for "format" of the Messages API's "output_config", which `config` reads.
ConstraintFields read_output_format(ObjectReader& config, const JsonBody& body,
                                    std::vector<FieldError>& errors);

}  // namespace rbee::server
