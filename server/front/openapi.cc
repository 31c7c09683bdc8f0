#include "server/front/openapi.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "rbee/core/cat.h"
#include "server/front/routing.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kComponents = "#/components/";

// The front's own statuses of routed requests: no such model or job, too many waiting requests, a
// lost worker, no ready worker.
constexpr std::array kOwnStatuses = {"404", "429", "502", "503"};

Json parsed(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

Json reference(std::string_view where, std::string_view name) {
  return {{"$ref", cat(kComponents, where, "/", name)}};
}

// A path with its parameters filled in.
std::string example_of(std::string_view pattern) {
  std::string out;
  bool inside = false;
  for (const char c : pattern) {
    if (c == '{') out += 'x';
    inside = c == '{' || (inside && c != '}');
    if (!inside && c != '}') out += c;
  }
  return out;
}

// Whether the front sends such requests to a worker of this kind.
bool is_routed(const std::string& pattern, ModelKind kind) {
  Request request;
  request.path = example_of(pattern);
  const std::optional<Wanted> wanted = wanted_by(request);
  return wanted && (!wanted->kind || *wanted->kind == kind);
}

constexpr std::string_view kHealth =
    R"({"type":"object","required":["status"],"properties":{"status":{"const":"healthy"},
    "pull":{"type":"boolean"},
    "models":{"type":"array","items":{"type":"object","required":["name","kind"],
     "properties":{"name":{"type":"string"},"kind":{"enum":["chat","image","embedding"]},
      "max_pictures":{"type":"integer","minimum":1},
      "default_width":{"type":"integer","minimum":1},
      "default_height":{"type":"integer","minimum":1},
      "default_steps":{"type":"integer","minimum":1},"parent":{"type":"string"}}}}}})";
constexpr std::string_view kReady =
    R"({"type":"object","required":["ready"],"properties":{"ready":{"type":"boolean"}}})";

class Document {
 public:
  explicit Document(std::string_view version) {
    out_["openapi"] = "3.1.0";
    out_["info"] = {{"title", "rbee serve"},
                    {"version", version},
                    {"description",
                     "The paths of the workers that are served. A request goes to the model that "
                     "it names, or to the first of the path's kind."}};
    out_["security"] = Json::array({Json{{"bearer", Json::array()}}});
    out_["paths"] = Json::object();
    out_["components"] = {
        {"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}},
        {"responses", {{"Error", error_response()}}},
        {"schemas", Json::object()}};
    add_own();
    add_models();
    add_files();
    for (const auto& path : out_["paths"].items()) own_.insert(path.key());
  }

  void add(ModelKind kind, Json document) {
    if (!document.is_object() || !document.value("paths", Json()).is_object()) return;
    const std::string prefix = cat(kind_name(kind), ".");
    rename(document, prefix);
    for (const char* where : {"schemas", "responses", "parameters", "headers"}) {
      const Json named = document.value("components", Json::object()).value(where, Json::object());
      for (const auto& [name, value] : named.items()) {
        out_["components"][where][prefix + name] = value;
      }
    }
    for (auto& [pattern, methods] : document["paths"].items()) {
      if (!own_.contains(pattern) && is_routed(pattern, kind))
        add_path(pattern, std::move(methods));
    }
  }

  // Call it after all workers' documents were added.
  std::string text() {
    for (auto& [pattern, methods] : out_["paths"].items()) {
      if (own_.contains(pattern)) continue;
      for (Json& operation : methods) {
        if (operation.contains("responses")) add_own_statuses(operation);
      }
    }
    return out_.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  static Json error_response() {
    return parsed(R"({"description":"What is wrong","content":{"application/json":{"schema":
        {"type":"object","required":["error"],"properties":{"error":{"type":"object",
         "required":["message"],"properties":{"message":{"type":"string"}}}}}}}})");
  }

  static Json own(std::string_view id, std::string_view summary, std::string_view schema,
                  bool anyone = false) {
    Json get = {{"summary", summary}, {"operationId", cat("front.", id)}};
    get["tags"] = Json::array({"front"});
    if (anyone) get["security"] = Json::array();
    get["responses"]["200"] = {{"description", "The answer"},
                               {"content", {{"application/json", {{"schema", parsed(schema)}}}}}};
    for (const char* status : {"400", "431"})
      get["responses"][status] = reference("responses", "Error");
    if (!anyone) get["responses"]["401"] = reference("responses", "Error");
    return {{"get", std::move(get)}};
  }

  void add_alias(const char* path, const char* of, const char* id) {
    Json copy = out_["paths"][of];
    copy["get"]["operationId"] = id;
    out_["paths"][path] = std::move(copy);
  }

  // For a path that answers in Anthropic's form on request.
  void add_request_id(const char* path) {
    out_["paths"][path]["get"]["responses"]["200"]["headers"] =
        parsed(R"({"request-id":{"schema":{"type":"string","minLength":1},
        "description":"Of answers in Anthropic's form: the request's name"}})");
  }

  void add_own() {
    Json& paths = out_["paths"];
    paths["/openapi.json"] = own("openapi", "This document", R"({"type":"object"})", true);
    paths["/health"] = own("health", "Whether the front lives", kHealth, true);
    paths["/health/live"] = own("live", "The same", kHealth, true);
    paths["/health/ready"] = own("ready", "Whether every model has a ready worker", kReady, true);
    paths["/ready"] = own("plainReady", "The same", kReady, true);
    paths["/v1/ready"] = own("v1Ready", "The same", kReady);
    for (const char* path : {"/health/ready", "/ready", "/v1/ready"}) {
      Json& ready = paths[path]["get"]["responses"];
      ready["503"] = ready["200"];
    }
    paths["/v1/health"] = own("v1Health", "The same as /health", kHealth, true);
    constexpr std::string_view kVersion =
        R"({"type":"object","required":["version"],"properties":{"version":{"type":"string"}}})";
    paths["/version"] = own("version", "Of the front", kVersion, true);
    paths["/workers"] = own("workers", "Every worker's state",
                            R"({"type":"object","required":["status","version","models"],
        "properties":{"status":{"enum":["healthy","degraded"]},"version":{"type":"string"},
         "models":{"type":"array","items":{"type":"object","required":["name","kind","workers"],
          "properties":{"aliases":{"type":"array","items":{"type":"string"}},
           "made":{"type":"array","items":{"type":"string"}},
           "workers":{"type":"array","items":{"type":"object",
           "required":["name","state","restarts","running"],"properties":{
            "state":{"enum":["unloaded","starting","ready","ending","paused","given_up"]},
            "progress":{"type":"object"},"restarts":{"type":"integer","minimum":0},
            "running":{"type":"integer","minimum":0}}}}}}}}})");
    paths["/kv-events"] = own("kvEvents", "Where the workers publish what their caches hold",
                              R"({"type":"object","required":["publishers"],
        "properties":{"publishers":{"type":"array","items":{"type":"object",
         "required":["model","worker","state","endpoint","replay_endpoint","topic"],
         "additionalProperties":{"type":"string"}}}}})");
    paths["/metrics"] = own("metrics", "Figures of the front and its workers", "{}");
    paths["/metrics"]["get"]["responses"]["200"]["content"] = {
        {"text/plain", {{"schema", {{"type", "string"}}}}}};
  }

  void add_models() {
    Json& paths = out_["paths"];
    constexpr std::string_view kModel =
        R"({"type":"object","required":["id","object","created","owned_by","kind"],
        "properties":{"kind":{"enum":["chat","image","embedding"]},
         "max_model_len":{"type":"integer","minimum":1}}})";
    constexpr std::string_view kAnthropicModel =
        R"({"type":"object","required":["type","id","display_name","created_at"],
        "properties":{"type":{"const":"model"}}})";
    const Json version = parsed(R"({"name":"anthropic-version","in":"header",
        "description":"Answers in Anthropic's form where it is there",
        "schema":{"type":"string"}})");
    paths["/v1/models"] =
        own("models", "What is served",
            cat(R"({"anyOf":[{"type":"object","required":["object","data"],"properties":{
        "object":{"const":"list"},"data":{"type":"array","items":)",
                kModel, R"(}}},{"type":"object","required":["data","has_more","first_id","last_id"],
        "properties":{"has_more":{"const":false},"data":{"type":"array","items":)",
                kAnthropicModel, "}}}]}"));
    paths["/v1/models"]["get"]["parameters"] = Json::array({version});
    paths["/v1/models/{id}"] =
        own("model", "One of them", cat(R"({"anyOf":[)", kModel, ",", kAnthropicModel, "]}"));
    Json& model = paths["/v1/models/{id}"]["get"];
    model["parameters"] = parsed(R"([{"name":"id","in":"path","required":true,
        "schema":{"type":"string","minLength":1}}])");
    model["parameters"].push_back(version);
    model["responses"]["404"] = reference("responses", "Error");
    add_request_id("/v1/models");
    add_request_id("/v1/models/{id}");
    add_alias("/models", "/v1/models", "front.plainModels");
    add_alias("/models/{id}", "/v1/models/{id}", "front.plainModel");
  }

  static void add_ollama_errors(Json& operation) {
    Json error = {{"description", "What is wrong"}};
    error["content"]["application/json"]["schema"] = parsed(
        R"({"type":"object","required":["error"],"properties":{"error":{"type":"string"}}})");
    for (const char* status :
         {"400", "401", "403", "404", "413", "415", "429", "431", "500", "501", "503", "507"}) {
      operation["responses"][status] = error;
    }
  }

  // Files that clients upload.
  void add_blobs() {
    const Json digest = parsed(R"([{"name":"digest","in":"path","required":true,
        "description":"sha256: and 64 hexadecimal digits","schema":{"type":"string"}}])");
    for (const char* method : {"get", "head", "post"}) {
      const bool post = std::string_view(method) == "post";
      Json operation = {{"summary", post ? "Keeps a file under its SHA-256; needs --manage"
                                         : "Whether a file is here; needs --manage"},
                        {"operationId", cat("front.", method, "Blob")},
                        {"parameters", digest}};
      operation["tags"] = Json::array({"front"});
      if (post) {
        operation["requestBody"] = parsed(R"({"required":true,"content":
            {"application/octet-stream":{"schema":{"type":"string","format":"binary"}}}})");
        operation["responses"]["201"] = {{"description", "It is kept"}};
      }
      operation["responses"]["200"] = {{"description", "It is here"}};
      add_ollama_errors(operation);
      out_["paths"]["/api/blobs/{digest}"][method] = std::move(operation);
    }
  }

  // Ollama's paths about files, which the front answers itself.
  void add_files() {
    const auto add = [this](const char* path, const char* method, std::string_view id,
                            std::string_view summary, Json content) {
      Json operation = {{"summary", summary}, {"operationId", cat("front.", id)}};
      operation["tags"] = Json::array({"front"});
      operation["requestBody"] = parsed(R"({"required":true,"content":{"application/json":
          {"schema":{"type":"object","properties":{"model":{"type":"string"},
           "name":{"type":"string","description":"The older name of model"},
           "stream":{"type":"boolean","default":true},"insecure":{"type":"boolean"}}}}}})");
      operation["responses"]["200"] = {{"description", "Done"}};
      if (!content.is_null()) operation["responses"]["200"]["content"] = std::move(content);
      add_ollama_errors(operation);
      out_["paths"][path][method] = std::move(operation);
    };
    const Json line = parsed(R"({"schema":{"type":"object","properties":{
        "status":{"type":"string"},"digest":{"type":"string"},"total":{"type":"integer"},
        "completed":{"type":"integer"},"error":{"type":"string"}}}})");
    add("/api/pull", "post", "pull", "Fetches a model of the hub; needs --pull",
        {{"application/x-ndjson", line}, {"application/json", line}});
    add("/api/create", "post", "create", "Makes a model of another; needs --manage",
        {{"application/x-ndjson", line}, {"application/json", line}});
    add("/api/copy", "post", "copy", "Gives a model one more name; needs --manage", Json());
    const auto takes = [this](const char* path, const char* properties) {
      Json& body = out_["paths"][path]["post"]["requestBody"];
      body["content"]["application/json"]["schema"]["properties"] = parsed(properties);
    };
    takes("/api/create", R"({"model":{"type":"string"},"from":{"type":"string"},
        "name":{"type":"string","description":"The older name of model"},
        "files":{"type":"object","additionalProperties":{"type":"string"},
         "description":"Names and digests of uploaded files, instead of from"},
        "adapters":{"type":"object","additionalProperties":{"type":"string"}},
        "quantize":{"type":"string","description":"A type of rbee quantize, such as q4_K_M"},
        "quantization":{"type":"string","description":"The older name of quantize"},
        "system":{"type":"string"},
        "template":{"type":"string","description":"In Go's form or Jinja"},
        "parameters":{"type":"object"},"messages":{"type":"array","items":{"type":"object"}},
        "license":{"type":["string","array"],"items":{"type":"string"}},
        "stream":{"type":"boolean","default":true}})");
    takes("/api/copy", R"({"source":{"type":"string"},"destination":{"type":"string"}})");
    add_blobs();
    add("/api/delete", "delete", "delete", "Deletes a model of the cache; needs --manage", Json());
  }

  // References and operation ids get the prefix.
  static void rename(Json& value, const std::string& prefix) {
    if (value.is_structured()) {
      for (Json& member : value) rename(member, prefix);
    }
    if (!value.is_object()) return;
    const auto renamed = [&](const char* key, auto make) {
      const auto found = value.find(key);
      if (found != value.end() && found->is_string()) *found = make(found->get<std::string>());
    };
    renamed("$ref", [&](const std::string& text) {
      const size_t name = text.rfind('/') + 1;
      return text.starts_with(kComponents) ? text.substr(0, name) + prefix + text.substr(name)
                                           : text;
    });
    renamed("operationId", [&](const std::string& text) { return prefix + text; });
  }

  void add_path(const std::string& pattern, Json methods) {
    Json& path = out_["paths"][pattern];
    for (auto& [method, operation] : methods.items()) {
      Json& there = path[method];
      if (there.is_null()) {
        there = std::move(operation);
      } else if (there.is_object() && operation.is_object()) {
        unite(there, std::move(operation));
      }
    }
  }

  // Adds the front's own statuses, with the headers of this path's answers.
  void add_own_statuses(Json& operation) {
    Json& responses = operation["responses"];
    const Json answer = responses.contains("200") ? resolved(responses["200"]) : Json::object();
    for (const char* status : kOwnStatuses) {
      Json& response = responses[status];
      if (!response.is_null()) {
        response = united_response(std::move(response), error_response());
      } else if (answer.contains("headers")) {
        response = error_response();
        response["headers"] = answer["headers"];
      } else {
        response = reference("responses", "Error");
      }
    }
  }

  // Merges the operations of two kinds of model.
  void unite(Json& there, Json other) {
    if (other.contains("requestBody")) {
      Json& body = there["requestBody"];
      Json& content = other["requestBody"]["content"];
      if (body.is_null()) {
        body = std::move(other["requestBody"]);
      } else {
        unite_content(body["content"], std::move(content));
      }
    }
    for (auto& [status, response] : other["responses"].items()) {
      Json& mine = there["responses"][status];
      mine = mine.is_null() ? std::move(response)
                            : united_response(std::move(mine), std::move(response));
    }
  }

  Json united_response(Json a, Json b) {
    a = resolved(std::move(a));
    b = resolved(std::move(b));
    if (b.contains("content")) unite_content(a["content"], std::move(b["content"]));
    return a;
  }

  Json resolved(Json response) const {
    const std::string name = response.value("$ref", "");
    if (name.empty()) return response;
    const Json& named = out_["components"]["responses"];
    return named.value(name.substr(name.rfind('/') + 1), Json::object());
  }

  // Merges media types; if both have one, its schema becomes either of the two.
  static void unite_content(Json& there, Json other) {
    for (auto& [type, media] : other.items()) {
      Json& mine = there[type];
      if (mine.is_null() || !mine.contains("schema") || !media.contains("schema")) {
        mine = std::move(media);
      } else if (mine["schema"] != media["schema"]) {
        mine["schema"] = {
            {"anyOf", Json::array({std::move(mine["schema"]), std::move(media["schema"])})}};
      }
    }
  }

  std::set<std::string> own_;  // paths that the front answers itself
  Json out_;
};

}  // namespace

std::string front_openapi(const std::vector<WorkerDocument>& documents, std::string_view version) {
  Document out(version);
  for (const WorkerDocument& document : documents) out.add(document.kind, parsed(document.text));
  return out.text();
}

}  // namespace rbee::server
