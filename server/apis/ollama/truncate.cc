#include "server/apis/ollama/truncate.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace rbee::server {
namespace {

using Messages = std::vector<SentMessage>;

// About the most that a template adds to a chat, and to each of its messages.
constexpr size_t kChatBytes = 1024;
constexpr size_t kMarkBytes = 64;

bool has_pictures(const Messages& messages) {
  return std::ranges::any_of(messages,
                             [](const SentMessage& message) { return !message.pictures.empty(); });
}

// Whether the prompt must fit, which needs no tokenizer: a token has at least one byte.
bool surely_fits(const GenerateRequest& request, size_t context) {
  if (!request.chat.tools.empty() || has_pictures(request.messages)) return false;
  size_t bytes = request.prompt.size() + request.chat.template_variables.size() + kChatBytes;
  for (const SentMessage& message : request.messages) {
    bytes += kMarkBytes + message.content.size() + message.reasoning.size();
    for (const SentCall& call : message.tool_calls) {
      bytes += kMarkBytes + call.name.size() + call.arguments.size();
    }
  }
  return bytes < context;
}

// room: tokens that are left for the answer.
bool fits(const LlmService& service, const GenerateRequest& request, size_t room = 1) {
  const size_t tokens = request.messages.empty()
                            ? service.engine().tokenize(request.prompt, {}).size()
                            : service.count_tokens(request);
  return tokens + room <= static_cast<size_t>(service.engine().model().context_length);
}

// Without the messages before index `first`, except system messages.
Messages from(const Messages& messages, size_t first) {
  const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(first);
  Messages out;
  std::ranges::copy_if(messages.begin(), begin, std::back_inserter(out),
                       [](const SentMessage& message) { return message.role == "system"; });
  out.insert(out.end(), begin, messages.end());
  return out;
}

// Where the chat may begin anew: its user's messages, unless nothing but system messages is before.
std::vector<size_t> beginnings(const Messages& messages) {
  std::vector<size_t> out;
  bool begun = false;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == "system") continue;
    if (begun && messages[i].role == "user") out.push_back(i);
    begun = true;
  }
  return out;
}

// Drops as few messages as it must, or all that it may. It halves what is left to try: rendering
// and tokenizing the chat once for each message would take long. A quarter of the context is left
// for the answer, unless it needs less: an answer ends where the context is full.
void drop_oldest(const LlmService& service, GenerateRequest& request) {
  const Messages all = std::move(request.messages);
  const std::vector<size_t> starts = beginnings(all);
  const int32_t quarter = service.engine().model().context_length / 4;
  const auto room = static_cast<size_t>(
      std::clamp(request.max_tokens.value_or(quarter), 1, std::max(quarter, 1)));
  const auto short_enough = [&](size_t start) {
    request.messages = from(all, start);
    return fits(service, request, room);
  };
  const auto first =
      std::ranges::partition_point(starts, [&](size_t start) { return !short_enough(start); });
  const size_t start = starts.empty() ? 0 : first == starts.end() ? starts.back() : *first;
  request.messages = from(all, start);
}

}  // namespace

void make_fit(const LlmService& service, OllamaRequest& body) {
  GenerateRequest& request = body.generate;
  const auto context = static_cast<size_t>(service.engine().model().context_length);
  // Will be refused for that, not for what its template cannot render.
  if (service.engine().model().max_pictures == 0 && has_pictures(request.messages)) return;
  // What fills a gap has its own cut.
  if (!body.truncate || !body.suffix.empty() || surely_fits(request, context)) return;
  if (fits(service, request)) return;
  if (request.messages.size() > 1) drop_oldest(service, request);
  const bool cuts = body.shift && !has_pictures(request.messages) && !fits(service, request);
  if (cuts) request.kept_tokens = -1;
}

}  // namespace rbee::server
