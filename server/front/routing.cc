#include "server/front/routing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/apis/chat_routes.h"
#include "server/apis/embeddings/routes.h"
#include "server/apis/image_routes.h"
#include "server/apis/ollama/embedding.h"
#include "server/apis/responses/routes.h"
#include "server/front/keep_alive.h"
#include "server/front/prefix.h"
#include "server/http/multipart.h"
#include "server/http/router.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

using nlohmann::json;

// What a path says about a request, whatever its method.
struct WorkerPath {
  std::optional<ModelKind> kind;  // none: several kinds of workers have the path
  std::optional<bool> ranks;
  bool named_events = false;
  bool responses = false;  // its body may name a stored response
  Body body = Body::none;
};

// The paths of workers of all kinds that clients of the front may use.
class WorkerPaths {
 public:
  WorkerPaths() {
    for (const auto& route : chat_route_list()) add(route, {.kind = ModelKind::chat});
    for (const auto& route : image_route_list()) add(route, {.kind = ModelKind::image});
    add_all(embedding_route_list(), {.kind = ModelKind::embedding, .ranks = false});
    add_all(ranking_route_list(), {.kind = ModelKind::embedding, .ranks = true});
    add_all(pooling_route_list(), {.kind = ModelKind::embedding});
    add_all(ollama_embedding_routes(), {.kind = ModelKind::embedding, .ranks = false});
    add_all(ollama_embedding_model_routes(), {.kind = ModelKind::embedding});
    add_all(job_routes(), {});
    for (const auto& route : responses_routes()) {
      known_.find(route.pattern)->second.responses = true;
    }
  }

  const WorkerPath* find(std::string_view path, Headers& params) const {
    std::optional<Router::PathMatch> found = router_.find_path(path);
    if (!found) return nullptr;
    params = std::move(found->params);
    return &known_.find(router_.routes()[found->route].pattern)->second;
  }
  const Router& router() const { return router_; }

 private:
  template <typename Service>
  void add_all(std::span<const ServiceRoute<Service>> routes, const WorkerPath& path) {
    for (const auto& route : routes) add(route, path);
  }

  template <typename Service>
  void add(const ServiceRoute<Service>& route, WorkerPath path) {
    path.named_events = route.named_events;
    path.body = route.body;
    router_.add({.method = std::string(route.method),
                 .pattern = std::string(route.pattern),
                 .handler = {},
                 .errors = route.errors,
                 .operation = route.operation,
                 .changes = route.changes});
    const auto [place, fresh] = known_.emplace(route.pattern, path);
    if (!fresh && place->second.kind != path.kind) place->second.kind = std::nullopt;
  }

  Router router_;
  std::map<std::string, WorkerPath, std::less<>> known_;  // by pattern
};

const WorkerPaths& worker_paths() {
  static const WorkerPaths paths;
  return paths;
}

// The texts of a body that select model and job, and hashes of its prompt. All else is skipped and
// not kept: as a tree, a body of [[[... would take eighty times its size.
class Texts final : public nlohmann::json_sax<json> {
 public:
  // No texts if the body is not JSON.
  explicit Texts(std::string_view body) {
    whole_ = json::sax_parse(body, this);
    if (!whole_) found_.clear();
  }

  // path: "name", or "object/name". Empty if there is no such text.
  std::string of(const std::string& path) const {
    const auto at = found_.find(path);
    return at == found_.end() ? "" : at->second;
  }

  std::optional<std::chrono::milliseconds> keep_alive() const {
    if (seconds_) return keep_alive_of(*seconds_);
    return parse_keep_alive(of("keep_alive"));
  }
  // It is there, and no duration.
  bool bad_keep_alive() const { return whole_ && has_keep_alive_ && !keep_alive(); }
  // The id of the first item of "input" that stands for a stored one; empty: none does.
  const std::string& item_reference() const { return reference_; }
  bool whole() const { return whole_; }
  // There is something to answer: each operation of Ollama's reads only its own field.
  bool has_text(Operation operation) const {
    return !whole_ || (operation == Operation::ollama_chat ? has_message_ : !of("prompt").empty());
  }

  // It is there, and no text.
  bool bad_model() const { return whole_ && bad_model_; }
  bool bad_name() const { return whole_ && bad_name_; }

  // Of the prompt as this model or adapter reads it.
  std::vector<uint64_t> prefixes() const {
    return whole_ ? prompt_.hashes() : std::vector<uint64_t>();
  }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return note_value(); }
  bool number_integer(int64_t value) override { return number(double(value)); }
  bool number_unsigned(uint64_t value) override { return number(double(value)); }
  bool number_float(double value, const std::string& /*text*/) override { return number(value); }
  bool binary(json::binary_t& /*value*/) override { return true; }
  bool string(std::string& value) override {
    if (depth_ == 1 && name_ == "keep_alive") has_keep_alive_ = true;
    if (depth_ == 2 && name_ == "messages") has_message_ = true;
    note_prompt(value);
    const std::string path = depth_ == 1 ? name_ : depth_ == 2 ? cat(name_, "/", inner_) : "";
    if (std::ranges::count(kWanted, path) > 0) found_[path] = std::move(value);
    if (in_item()) item_.note(std::move(value));
    return true;
  }
  bool start_object(size_t /*size*/) override { return open(); }
  bool start_array(size_t /*size*/) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (in_item()) item_.begin(name);
    if (depth_ <= 2) (depth_ == 1 ? name_ : inner_) = std::move(name);
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  static constexpr std::array<std::string_view, 10> kWanted = {
      "model",
      "name",
      "prompt",
      "job_id",
      "operation",
      "keep_alive",
      "previous_response_id",
      "conversation",
      "conversation/id",
      "override_settings/sd_model_checkpoint"};

  // Parts of a prompt that templates write before its messages.
  static constexpr std::array<std::string_view, 5> kFirst = {"tools", "functions", "system",
                                                             "instructions", "documents"};
  static constexpr std::array<std::string_view, 2> kScope = {"model", "cache_salt"};
  static constexpr std::array<std::string_view, 3> kPrompt = {"messages", "prompt", "input"};

  void note_prompt(std::string_view text) {
    if (std::ranges::count(kPrompt, name_) > 0) prompt_.add(text);
    if (std::ranges::count(kFirst, name_) > 0) prompt_.add_first(text);
    if (std::ranges::count(kScope, name_) > 0) prompt_.add_scope(text);
  }

  // An object of "input".
  struct Item {
    std::string id, type, name;  // name: of the next value
    bool message = false;        // it has what messages have

    void begin(const std::string& next) {
      name = next;
      message = message || next == "role" || next == "content";
    }
    void note(std::string value) {
      if (name == "id")
        id = std::move(value);
      else if (name == "type")
        type = std::move(value);
    }
    bool is_reference() const { return type == "item_reference" || (type.empty() && !message); }
  };

  bool in_item() const { return depth_ == 3 && name_ == "input"; }
  bool number(double value) {
    const auto bits = std::bit_cast<std::array<char, sizeof value>>(value);  // a token's id
    note_prompt({bits.data(), bits.size()});
    if (depth_ == 1 && name_ == "keep_alive") seconds_ = value;
    return note_value();
  }
  bool note_value() {
    if (depth_ == 1 && name_ == "keep_alive") has_keep_alive_ = true;
    if (depth_ == 2 && name_ == "messages") has_message_ = true;
    if (depth_ == 1 && name_ == "model") bad_model_ = true;
    if (depth_ == 1 && name_ == "name") bad_name_ = true;
    return true;
  }

  bool open() {
    note_value();
    ++depth_;
    inner_.clear();
    return true;
  }
  bool close() {
    if (in_item()) {
      if (reference_.empty() && item_.is_reference()) reference_ = std::move(item_.id);
      item_ = {};
    }
    --depth_;
    return true;
  }

  size_t depth_ = 0;
  bool whole_ = false;
  bool has_keep_alive_ = false, has_message_ = false, bad_model_ = false, bad_name_ = false;
  std::optional<double> seconds_;  // of "keep_alive" as a number
  std::string name_, inner_;       // of the next value, in the outermost object and one level below
  Item item_;
  std::string reference_;
  std::map<std::string, std::string> found_;
  PromptPrefixes prompt_;
};

// The ids of a worker's responses, their items and its conversations begin alike after "resp_",
// "msg_", "conv_" and so on.
std::string as_response(const std::string& id) {
  const size_t prefix = id.find('_');
  return prefix == std::string::npos ? "" : cat("resp_", id.substr(prefix + 1));
}

void refuse_type(std::string_view field, Wanted& wanted) {
  if (!wanted.invalid.empty()) return;
  wanted.invalid = field;
  wanted.why_invalid = "must be a text";
}

void read_ollama(const Request& request, const Texts& body, Wanted& wanted) {
  wanted.keep_alive = body.keep_alive();
  if (wanted.model.empty()) {  // in older bodies
    wanted.model = body.of("name");
    if (body.bad_name()) refuse_type("name", wanted);
  }
  if (body.bad_keep_alive()) {
    wanted.invalid = "keep_alive";
    wanted.why_invalid = "must be a duration such as \"5m\", or a number of seconds";
  }
  if (wanted.model.empty() && wanted.invalid.empty() && request.method == "POST") {
    wanted.invalid = "model";
    wanted.why_invalid = "must name a model";
  }
  const bool answers =
      wanted.operation == Operation::ollama_generate || wanted.operation == Operation::ollama_chat;
  wanted.only_unloads = answers && !wanted.model.empty() && !body.has_text(wanted.operation) &&
                        wanted.keep_alive == std::chrono::milliseconds(0);
}

// Reads a JSON body. If it is not JSON, the worker refuses it.
void read_json(const Request& request, const WorkerPath& path, Wanted& wanted) {
  const Texts body(request.body);
  if (!body.whole() && !request.body.empty()) {
    wanted.invalid = "body";
    wanted.why_invalid = "must be JSON";
  }
  if (body.bad_model()) refuse_type("model", wanted);
  wanted.model = body.of("model");
  if (path.kind.value_or(ModelKind::chat) == ModelKind::chat) wanted.prefixes = body.prefixes();
  if (wanted.ollama) read_ollama(request, body, wanted);
  if (wanted.operation == Operation::cancel_job) wanted.job = body.of("job_id");
  if (path.responses && wanted.response.empty()) {
    wanted.response = body.of("previous_response_id");
    if (wanted.response.empty()) {
      const std::string id = body.of("conversation/id");
      wanted.conversation = id.empty() ? body.of("conversation") : id;
      wanted.response = as_response(wanted.conversation);
    }
    if (wanted.response.empty()) {
      wanted.response = as_response(body.item_reference());
      wanted.about_item = !wanted.response.empty();
    }
  }
  if (wanted.model.empty()) wanted.model = body.of("override_settings/sd_model_checkpoint");
  if (wanted.operation != Operation::create_job || wanted.kind) return;
  const std::string operation = body.of("operation");
  if (operation.empty()) return;
  constexpr std::array<std::string_view, 3> kOfPictures = {"image_generation", "image_transform",
                                                           "image_inpaint"};
  if (std::ranges::count(kOfPictures, operation) > 0) {
    wanted.kind = ModelKind::image;
  } else if (operation == "infer") {
    wanted.kind = ModelKind::chat;
  } else {
    wanted.invalid = "operation";
    wanted.why_invalid = "must be one of infer, image_generation, image_transform, image_inpaint";
  }
}

void read_form(const Request& request, Wanted& wanted) {
  try {
    bool named = false;
    for (FormPart& part : parse_form(request.header("content-type"), request.body)) {
      if (part.name != "model") continue;
      if (!part.filename.empty()) refuse_type("model", wanted);
      if (std::exchange(named, true) && wanted.invalid.empty()) {
        wanted.invalid = "model";
        wanted.why_invalid = "is given twice";
      }
      wanted.model = std::move(part.data);
    }
    if (!wanted.invalid.empty()) wanted.model.clear();
  } catch (const Error&) {
    wanted.model.clear();  // the worker reports what is wrong
  }
}

}  // namespace

std::optional<Wanted> wanted_by(const Request& request) {
  Wanted wanted;
  const std::string_view path = request.path;
  Headers params;
  const WorkerPath* known = worker_paths().find(path, params);
  if (known == nullptr) return std::nullopt;
  wanted.kind = known->kind;
  wanted.ranks = known->ranks;
  wanted.named_events = known->named_events;
  wanted.ollama = worker_error_form(path) == ErrorForm::ollama;
  const Route* route = worker_paths().router().find(request.method, path).route;
  if (route != nullptr) wanted.operation = route->operation;
  wanted.last_word = path.substr(path.rfind('/') + 1);
  for (auto& [name, value] : params) {
    if (name == "job_id") wanted.job = std::move(value);
    if (name == "response_id") {
      wanted.response = std::move(value);
      wanted.about_response = true;
    }
    if (name == "conversation_id") {
      wanted.response = as_response(value);
      wanted.conversation = std::move(value);
    }
  }
  const std::string_view type = request.header("content-type");
  if (is_json_type(type) || known->body == Body::any) read_json(request, *known, wanted);
  if (is_form_type(type)) read_form(request, wanted);
  if (wanted.operation == Operation::page) wanted.model = query_value(request.query, "model");
  return wanted;
}

ErrorForm worker_error_form(std::string_view path) {
  return worker_paths().router().error_form(path);
}

bool worker_changes(std::string_view method, std::string_view path) {
  return worker_paths().router().changes(method, path);
}

// Through JSON, which replaces what is no UTF-8.
std::string valid_text(const std::string& text) {
  const std::string quoted = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(quoted).get<std::string>();
}

std::string no_such_model(const std::string& name) {
  return cat("The model '", valid_text(name), "' does not exist");
}

std::string no_such_model(const Wanted& wanted) {
  if (!wanted.ollama) return no_such_model(wanted.model);
  return cat("model '", valid_text(wanted.model), "' not found");
}

}  // namespace rbee::server
