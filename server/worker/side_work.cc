#include "server/worker/side_work.h"

#include <utility>

#include "rbee/core/cat.h"
#include "server/wire/error_map.h"
#include "server/worker/service.h"

namespace rbee::server {
namespace {

Response answer_of(const SideWork::Work& work, const ErrorBody& error_body) {
  try {
    try {
      return work();
    } catch (const std::exception&) {
      return error_answer(std::current_exception(), error_body);
    }
  } catch (const std::exception& error) {
    const WireError wire = wire_error(Code::internal);
    return json_response(wire.status, error_json(wire.code, error.what()));
  }
}

Refused refusal(size_t waiting) {
  return Refused(Refused::Why::overloaded, cat(waiting, " such requests wait already"));
}

}  // namespace

SideWork::SideWork(Options options)
    : options_(std::move(options)),
      threads_({.most_waiting = options_.most_waiting,
                .threads = options_.threads,
                .most_each = options_.most_each}) {}

void SideWork::count_refused() const {
  if (options_.on_refused) options_.on_refused();
}

std::shared_ptr<DelayedResponse> SideWork::submit(Task task) {
  auto response = threads_.submit(
      {.client = std::move(task.client),
       .work = [work = std::move(task.work),
                form = task.error_body] { return answer_of(work, form); },
       .on_leave = std::move(task.on_leave),
       .refusal =
           [this, form = task.error_body] {
             count_refused();
             return error_answer(std::make_exception_ptr(refusal(options_.most_waiting)), form);
           }});
  if (response) return response;
  count_refused();
  throw refusal(options_.most_waiting);
}

}  // namespace rbee::server
