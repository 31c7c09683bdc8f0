// What the pool answers itself, so that no model on demand is loaded only to refuse a request.

#include "rbee/core/cat.h"
#include "server/apis/a1111/routes.h"
#include "server/apis/ollama/response.h"
#include "server/front/pool.h"

namespace rbee::server {
namespace {

std::string_view made_by(ModelKind kind) {
  return kind == ModelKind::chat ? "text" : kind == ModelKind::image ? "pictures" : "vectors";
}

// For a model of another kind than the request needs.
std::string other_kind(const Wanted& wanted, const ServedModel& model) {
  if (wanted.ollama) return cat('"', model.name, "\" does not support ", wanted.last_word);
  return cat("The model '", model.name, "' is for ", made_by(model.kind), ", this request for ",
             made_by(*wanted.kind));
}

}  // namespace

// loads: the model is on demand and not ready.
bool Pool::answered_early(const Held& exchange, const ServedModel& model, bool loads) {
  const Wanted& wanted = exchange->wanted;
  const auto no = [&](int status, const ErrorText& error) {
    refuse(exchange, status, error);
    return true;
  };
  const bool image_for_ollama = wanted.ollama && model.kind == ModelKind::image;
  const bool other = wanted.kind && wanted.kind != model.kind &&
                     (model.kind_known || wanted.kind == ModelKind::image);
  if (image_for_ollama || (model.on_demand() && other)) {
    return no(400, {"UNSUPPORTED", other_kind(wanted, model), "model"});
  }
  if (!loads) return false;
  if (!wanted.invalid.empty()) {
    const std::string message = cat(wanted.invalid, ": ", wanted.why_invalid);
    return no(400, {"INVALID_REQUEST", message, wanted.invalid});
  }
  // Its process keeps responses, and does not run.
  if (!wanted.response.empty() && holder_of(wanted.response) == nullptr) {
    const std::string id = valid_text(wanted.response);
    if (!wanted.conversation.empty()) {
      const std::string message =
          cat("Conversation with id '", valid_text(wanted.conversation), "' not found.");
      return no(404, {"NOT_FOUND", message, "conversation"});
    }
    if (wanted.about_response) {
      return no(404, {"NOT_FOUND", cat("Response with id '", id, "' not found."), "response_id"});
    }
    if (wanted.about_item) {
      return no(404, {"NOT_FOUND", "An item of the input is of no answer that is kept.", "input"});
    }
    return no(
        400, {"previous_response_not_found", cat("Previous response with id '", id, "' not found."),
              "previous_response_id"});
  }
  const bool of_pictures = wanted.kind == ModelKind::image;
  std::optional<Response> idle = of_pictures ? a1111_idle_answer(exchange->request) : std::nullopt;
  if (!idle) return false;
  ++counts_.answered;
  answer(exchange, std::move(*idle));
  return true;
}

// Ollama's request without a text whose keep_alive is 0. A model that is not loaded stays so.
void Pool::unload(const Held& exchange, size_t model) {
  use(exchange, model);
  exchange->head.status = 200;  // so that its keep_alive counts
  ++counts_.answered;
  const Wanted& wanted = exchange->wanted;
  const std::string& name = exchange->record ? exchange->record->name : wanted.model;
  answer(exchange, json_response(200, ollama_unloaded_json(
                                          {.model = valid_text(name),
                                           .chat = wanted.operation == Operation::ollama_chat})));
}

}  // namespace rbee::server
