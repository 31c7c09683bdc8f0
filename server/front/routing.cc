#include "server/front/routing.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/http/multipart.h"
#include "server/http/router.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, ModelKind>, 31> kPaths = {{
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
    {"/page/", ModelKind::chat},          {"/responses", ModelKind::chat},
    {"/v2/embed", ModelKind::embedding},  {"/reranking", ModelKind::embedding},
    {"/pooling", ModelKind::embedding},   {"/classify", ModelKind::embedding},
    {"/embed", ModelKind::embedding},     {"/generate", ModelKind::chat},
    {"/v2/chat", ModelKind::chat},
}};

// The texts of an object that say whose a request is. The rest of it is read past and not kept: a
// body of [[[... would take eighty times its size.
class Texts final : public nlohmann::json_sax<json> {
 public:
  // Empty for what is no JSON.
  explicit Texts(std::string_view body) {
    if (!json::sax_parse(body, this)) found_.clear();
  }

  // path: "name", or "object/name". Empty where there is no such text.
  std::string of(const std::string& path) const {
    const auto at = found_.find(path);
    return at == found_.end() ? "" : at->second;
  }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(int64_t /*value*/) override { return true; }
  bool number_unsigned(uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool binary(json::binary_t& /*value*/) override { return true; }
  bool string(std::string& value) override {
    const std::string path = depth_ == 1 ? name_ : depth_ == 2 ? cat(name_, "/", inner_) : "";
    if (std::ranges::count(kWanted, path) > 0) found_[path] = std::move(value);
    return true;
  }
  bool start_object(size_t /*size*/) override { return open(); }
  bool start_array(size_t /*size*/) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (depth_ <= 2) (depth_ == 1 ? name_ : inner_) = std::move(name);
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  static constexpr std::array<std::string_view, 4> kWanted = {
      "model", "job_id", "operation", "override_settings/sd_model_checkpoint"};

  bool open() {
    ++depth_;
    inner_.clear();
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  size_t depth_ = 0;
  std::string name_, inner_;  // of the value that comes, in the outermost object and one below
  std::map<std::string, std::string> found_;
};

// What a JSON body says. One that is not JSON is the worker's to refuse.
void read_json(const Request& request, Wanted& wanted) {
  const Texts body(request.body);
  wanted.model = body.of("model");
  if (request.path == "/v1/cancel" && request.method == "POST") wanted.job = body.of("job_id");
  if (wanted.model.empty()) wanted.model = body.of("override_settings/sd_model_checkpoint");
  if (!wanted.makes_job || wanted.kind) return;
  const std::string operation = body.of("operation");
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

// Of a model for embeddings or ranking; nothing where both have the path.
std::optional<bool> is_for_ranking(std::string_view path) {
  if (path.starts_with("/pooling")) return std::nullopt;
  return path.find("embed") == path.npos;
}

// The id in "/v1/jobs/{id}" and "/v1/jobs/{id}/stream".
std::string job_of(std::string_view rest) {
  return std::string(rest.substr(0, rest.find('/')));
}

}  // namespace

std::optional<Wanted> wanted_by(const Request& request) {
  Wanted wanted;
  const std::string_view path = request.path;
  bool known = path == "/" || path == "/v1/cancel" || path == "/invocations";
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
    if (kind == ModelKind::embedding) wanted.ranks = is_for_ranking(path);
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
