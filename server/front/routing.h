#pragma once
// Finds the model for a request: the one that it names, or one of the kind that its path needs.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/front/config.h"
#include "server/http/message.h"
#include "server/http/router.h"

namespace rbee::server {

struct Wanted {
  std::string model;              // as the request names it; empty: none named
  std::optional<ModelKind> kind;  // by its path or operation; none: any model will do
  std::optional<bool> ranks;      // of an embedding model: whether the path is for reranking
  std::string job;                // the job whose worker gets it; empty: a new request
  std::string response;           // the stored response that it is about; empty: none
  std::string conversation;       // or this conversation; then `response` finds its worker
  bool named_events = false;      // a stream's events have names besides their data
  bool ollama = false;            // the model's name is as Ollama's clients write it
  Operation operation = Operation::other;
  std::string last_word;  // of the path
  // How long the model stays loaded afterwards, as Ollama's clients say; nothing: as before.
  std::optional<std::chrono::milliseconds> keep_alive;
  bool only_unloads = false;         // it only wants its model to be unloaded, as Ollama's do
  bool about_response = false;       // its path names the stored response
  bool about_item = false;           // only items of its input are of the stored response
  std::string invalid;               // the field of the body that no worker would take; empty: none
  std::string why_invalid;           // what the field must be
  std::vector<uint64_t> prefixes{};  // of a chat's prompt, see PromptPrefixes
};

// Nothing for a path that workers do not have, or that the front's clients may not use.
std::optional<Wanted> wanted_by(const Request& request);

// For a path of workers; see Router::error_form().
ErrorForm worker_error_form(std::string_view path);
// For such a request to workers; see Router::changes().
bool worker_changes(std::string_view method, std::string_view path);

// The text with U+FFFD in the place of what is no UTF-8.
std::string valid_text(const std::string& text);
// The message for a name that is not served, valid UTF-8 for any name.
std::string no_such_model(const std::string& name);
// The same in the words of the request's API.
std::string no_such_model(const Wanted& wanted);

}  // namespace rbee::server
