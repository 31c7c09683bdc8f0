#include "server/front/event.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr std::string_view kField = "data: ";

// The data of the event's only data line; empty if there is none.
std::string_view data_of(std::string_view event) {
  while (!event.empty()) {
    const size_t end = std::min(event.find('\n'), event.size());
    if (event.starts_with(kField)) return event.substr(kField.size(), end - kField.size());
    event.remove_prefix(std::min(end + 1, event.size()));
  }
  return {};
}

std::string text_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool is_unserved(const json& payload) {
  const json& holder = payload.contains("response") ? payload["response"] : payload;
  if (!holder.is_object() || !holder.contains("error")) return false;
  const json& error = holder["error"];
  if (error.is_string()) return holder.value("status", json()) == 503;  // Ollama's
  static constexpr std::array<std::string_view, 3> kCodes = {"STOPPING", "VRAM_OOM",
                                                             "WORKER_UNHEALTHY"};
  return std::ranges::count(kCodes, text_of(error, "code")) > 0 ||
         text_of(error, "type") == "overloaded_error";  // errors in Anthropic's form have no codes
}

// The first chunk of a chat's choice has its role and no text.
bool is_role(const json& choice) {
  if (!choice.is_object() || !choice.contains("delta")) return false;
  const json& delta = choice["delta"];
  return delta.is_object() && delta.contains("role") && text_of(delta, "content").empty() &&
         std::ranges::all_of(delta.items(), [](const auto& field) {
           return field.key() == "role" || field.key() == "content";
         });
}

bool is_opening(const json& payload) {
  static constexpr std::array<std::string_view, 5> kTypes = {
      "started", "message_start", "ping", "response.created", "response.in_progress"};
  if (std::ranges::count(kTypes, text_of(payload, "type")) > 0) return true;
  const auto choices = payload.find("choices");
  return choices != payload.end() && choices->is_array() && !choices->empty() &&
         std::ranges::all_of(*choices, is_role);
}

}  // namespace

EventKind kind_of_event(std::string_view event, StreamForm form) {
  const std::string_view data = form == StreamForm::lines ? event : data_of(event);
  if (data.empty()) return EventKind::comment;
  const json payload = json::parse(data, nullptr, false);
  if (!payload.is_object()) return EventKind::substance;
  if (is_unserved(payload)) return EventKind::unserved;
  return is_opening(payload) ? EventKind::opening : EventKind::substance;
}

std::string error_event(const Request& request, const Wanted& wanted, StreamForm form,
                        const ErrorText& error) {
  if (!wanted.job.empty()) {
    return cat("event: error\ndata: ", R"({"type":"error","code":)", json_quote(error.code),
               R"(,"message":)", json_quote(error.message), R"(,"retriable":true})", "\n\n");
  }
  if (form == StreamForm::lines) {
    return cat(error_response(request, 502, error).body, end_of_event(form));
  }
  return cat(wanted.named_events ? "event: error\n" : "", kField,
             error_response(request, 502, error).body, "\n\n");
}

}  // namespace rbee::server
