#include "server/http/request_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kShownBytes = 128;

// Clients may choose these field names.
std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return printable(found->get<std::string>().substr(0, kShownBytes));
}

RefusalReason reason_in(const std::string& text) {
  const json body = json::parse(text, nullptr, false);
  const auto error = body.find("error");
  if (error == body.end() || !error->is_object()) return {};
  RefusalReason out{.code = text_at(*error, "code"), .field = text_at(*error, "param")};
  if (out.code.empty()) out.code = text_at(*error, "type");
  const auto fields = error->find("fields");
  if (fields != error->end() && fields->is_array() && !fields->empty()) {
    out.field = text_at(fields->front(), "field");
  }
  return out;
}

}  // namespace

RefusalReason refusal_reason(const Response& response) {
  if (response.status < 400) return {};
  RefusalReason out = reason_in(response.body);
  const auto complete = [](std::string& field, const std::string& known) {
    if (field.empty()) field = printable(known.substr(0, kShownBytes));
  };
  complete(out.code, response.reason.code);
  complete(out.field, response.reason.field);
  complete(out.constraint, response.reason.constraint);
  return out;
}

void log_request(const Request& request, int status, const RefusalReason& reason,
                 std::chrono::duration<double, std::milli> elapsed) {
  if (!log_enabled(LogLevel::info)) return;
  log(LogLevel::info, "request",
      {{"method", request.method},
       {"path", printable(request.path)},
       {"status", cat(status)},
       {"ms", cat(std::round(elapsed.count() * 1000) / 1000)},
       {"remote", request.remote},
       {"key", request.key_name},
       {"code", reason.code},
       {"field", reason.field},
       {"constraint", reason.constraint},
       {"correlation_id", request.correlation_id},
       {"request_id", request.request_id}});
}

}  // namespace rbee::server
