#pragma once
// Which page a browser gets at "/". Internal to server/front: used on the pool's thread.

#include <optional>
#include <string>

#include "server/apis/ollama/record.h"
#include "server/front/pool.h"

namespace rbee::server {

struct PageChoice {
  std::string name;               // of the model as lists have it; empty: none has the asked name
  std::optional<ModelKind> kind;  // whose page; nothing: no served model has one
};

// name: as the address has it, perhaps as Ollama's clients write names; made: the model that a
// client made by this name. Without such a model, or if it has no page, the choice is the page of
// the first one that has, a chat model if there is one. Where nothing is served it is the page for
// chats, which can fetch a model.
PageChoice choose_page(const Pool& pool, const std::string& name,
                       const std::optional<OllamaRecord>& made);

}  // namespace rbee::server
