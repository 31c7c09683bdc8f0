#pragma once
// Adapters in bodies: those of an answer, and the list of all.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/json_object.h"

namespace rbee::server {

// "model", and "lora": a list of {"id" or "name", "scale"}.
void read_adapters(ObjectReader& reader, std::vector<FieldError>& errors, GenerateRequest& request);

// The list of POST /lora-adapters: [{"id" or "name", "scale"}]. Throws InvalidBody.
std::vector<LoraField> parse_lora_scales(std::string_view body);

// vLLM's {"lora_name", "lora_path"}; the path is absent in a body of /v1/unload_lora_adapter.
// Throws InvalidBody.
struct LoraOrder {
  std::string name;
  std::string path;
};
LoraOrder parse_lora_load(std::string_view body);
LoraOrder parse_lora_unload(std::string_view body);

struct LoraEntry {
  std::string name;
  std::string path;
  float scale = 0;  // for requests that name none
};
// llama-server's [{"id", "name", "path", "scale"}]
std::string lora_list_json(const std::vector<LoraEntry>& adapters);

}  // namespace rbee::server
