#include "server/front/page_choice.h"

#include <algorithm>

namespace rbee::server {
namespace {

bool has_page(ModelKind kind) {
  return kind != ModelKind::embedding;
}

std::optional<ModelKind> first_page(const Pool& pool) {
  std::optional<ModelKind> out;
  bool none = true;
  for (const Pool::Model& model : pool.models()) {
    if (model.gone) continue;
    none = false;
    if (!has_page(model.served.kind)) continue;
    if (!out || model.served.kind == ModelKind::chat) out = model.served.kind;
  }
  return none ? ModelKind::chat : out;
}

}  // namespace

PageChoice choose_page(const Pool& pool, const std::string& name,
                       const std::optional<OllamaRecord>& made) {
  PageChoice out{.name = {}, .kind = first_page(pool)};
  const auto found = name.empty() ? std::nullopt : pool.find_named(made ? made->from : name, true);
  if (!found) return out;
  const ServedModel& model = pool.models()[*found].served;
  if (!has_page(model.kind)) return out;
  return {.name = made ? made->name : Pool::listed_name(model, name), .kind = model.kind};
}

}  // namespace rbee::server
