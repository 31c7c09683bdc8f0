#include "server/apis/ollama/file_requests.h"

#include "server/wire/json_object.h"
#include "server/wire/other_names.h"

namespace rbee::server {

OllamaPull parse_ollama_pull(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OllamaPull out{.model = reader.text("model").value_or(""),
                 .stream = reader.boolean("stream").value_or(true)};
  const std::string older = reader.text("name").value_or("");
  (void)given_name(reader, {"model", "name"});
  (void)reader.boolean("insecure");
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  if (out.model.empty()) out.model = older;
  return out;
}

}  // namespace rbee::server
