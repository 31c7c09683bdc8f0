#include "server/llm/reply.h"

namespace rbee::server {
namespace {

constexpr std::string_view kDone = "[DONE]";

}  // namespace

void finish_stream(EventQueue& queue) {
  queue.push_data(kDone);
  queue.close();
}

}  // namespace rbee::server
