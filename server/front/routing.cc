#include "server/front/routing.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/error.h"
#include "server/http/multipart.h"
#include "server/http/router.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, ModelKind>, 23> kPaths = {{
    {"/v1/images/", ModelKind::image},    {"/sdapi/", ModelKind::image},
    {"/controlnet/", ModelKind::image},   {"/v1/embeddings", ModelKind::embedding},
    {"/v1/rerank", ModelKind::embedding}, {"/v2/rerank", ModelKind::embedding},
    {"/rerank", ModelKind::embedding},    {"/v1/score", ModelKind::embedding},
    {"/score", ModelKind::embedding},     {"/v1/chat/", ModelKind::chat},
    {"/chat/", ModelKind::chat},          {"/v1/completions", ModelKind::chat},
    {"/v1/responses", ModelKind::chat},   {"/v1/messages", ModelKind::chat},
    {"/v1/infer", ModelKind::chat},       {"/completion", ModelKind::chat},
    {"/infill", ModelKind::chat},         {"/props", ModelKind::chat},
    {"/slots", ModelKind::chat},          {"/tokenize", ModelKind::chat},
    {"/detokenize", ModelKind::chat},     {"/apply-template", ModelKind::chat},
    {"/page/", ModelKind::chat},
}};

std::string text_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// What a JSON body says. One that is not JSON is the worker's to refuse.
void read_json(const Request& request, Wanted& wanted) {
  const json body = json::parse(request.body, nullptr, false);
  wanted.model = text_of(body, "model");
  if (request.path == "/v1/cancel" && request.method == "POST")
    wanted.job = text_of(body, "job_id");
  if (wanted.model.empty() && body.is_object() && body.contains("override_settings")) {
    wanted.model = text_of(body["override_settings"], "sd_model_checkpoint");
  }
  if (!wanted.makes_job || wanted.kind) return;
  const std::string operation = text_of(body, "operation");
  if (operation.starts_with("image_")) wanted.kind = ModelKind::image;
  if (operation == "infer") wanted.kind = ModelKind::chat;
}

void read_form(const Request& request, Wanted& wanted) {
  try {
    for (FormPart& part : parse_form(request.header("content-type"), request.body)) {
      if (part.name == "model") wanted.model = std::move(part.data);
    }
  } catch (const Error&) {
    wanted.model.clear();  // the worker says what is wrong with it
  }
}

// The id in "/v1/jobs/{id}" and "/v1/jobs/{id}/stream".
std::string job_of(std::string_view rest) {
  return std::string(rest.substr(0, rest.find('/')));
}

}  // namespace

std::optional<Wanted> wanted_by(const Request& request) {
  Wanted wanted;
  const std::string_view path = request.path;
  bool known = path == "/" || path == "/v1/cancel";
  for (const std::string_view jobs : {"/v1/jobs", "/v1/inference"}) {
    if (!path.starts_with(jobs)) continue;
    const std::string_view rest = path.substr(jobs.size());
    if (rest.empty()) wanted.makes_job = known = true;
    if (rest.size() < 2 || rest.front() != '/') continue;
    wanted.job = job_of(rest.substr(1));
    known = true;
  }
  for (const auto& [prefix, kind] : kPaths) {
    if (known || !path.starts_with(prefix)) continue;
    wanted.kind = kind;
    if (kind == ModelKind::embedding) wanted.ranks = !path.starts_with("/v1/embeddings");
    known = true;
  }
  if (!known) return std::nullopt;
  const std::string_view type = request.header("content-type");
  if (is_json_type(type)) read_json(request, wanted);
  if (is_form_type(type)) read_form(request, wanted);
  if (path == "/") wanted.model = query_value(request.query, "model");
  return wanted;
}

std::string no_such_model(const std::string& name) {
  // Through JSON, which replaces what is no UTF-8.
  const std::string quoted = json(name).dump(-1, ' ', false, json::error_handler_t::replace);
  return cat("The model '", json::parse(quoted).get<std::string>(), "' does not exist");
}

}  // namespace rbee::server
