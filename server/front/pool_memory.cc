// The pool's models on demand: loading them, unloading them, and the requests that wait for that.

#include <algorithm>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"
#include "rbee/core/system/process.h"
#include "server/front/keep_alive.h"
#include "server/front/paths.h"
#include "server/front/pool.h"

namespace rbee::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kUnloadPatience{2000};  // from SIGTERM to SIGKILL
// A job's stream may still be read, or a client comes just now.
constexpr milliseconds kLookAgain{1000};
constexpr int64_t kUnlimited = int64_t{1} << 60;
constexpr int64_t kMegabyte = 1'000'000;

// Rounded down, so that a need which is rounded up never reads like what is available.
std::string megabytes(int64_t bytes) {
  return cat(bytes / kMegabyte, " MB");
}

}  // namespace

void Pool::use(const Held& exchange, size_t model) {
  exchange->model = model;
  ++models_[model].users;
  if (const Replica* replica = on_demand(model)) exchange->failures = replica->failures();
}

// Nothing runs on the model's worker, and nothing there waits to be read.
bool Pool::is_quiet(size_t model) const {
  const Replica* replica = on_demand(model);
  if (replica->state() == ReplicaState::starting) return models_[model].users == 0;
  return replica->busy == 0 && !has_unread_jobs(replica);
}

std::vector<Resident> Pool::residents(const std::string& device) const {
  std::vector<Resident> out;
  for (size_t i = 0; i < members_.size(); ++i) {
    const size_t index = members_[i].model;
    const std::shared_ptr<Replica>& replica = members_[i].replica;
    const Model& model = models_[index];
    if (!replica->running() || model.served.device != device) continue;
    const ReplicaState state = replica->state();
    const bool starts = state == ReplicaState::starting;
    Resident one{.member = i,
                 .need = model.served.memory,
                 .on_demand = model.served.on_demand(),
                 .used = std::max(model.used, replica->further_at())};
    if (device == "cpu") {
      one.taken = process_memory(replica->pid());
    } else if (!starts) {
      one.taken = one.need;
    }
    one.going = one.on_demand && state == ReplicaState::ending;
    const bool wanted_there = starts && model.users > 0;  // its requests came first
    one.may_leave = one.on_demand && !one.going && !wanted_there;
    one.busy = one.may_leave && !is_quiet(index);
    out.push_back(one);
  }
  return out;
}

// Loads the model if there is room; else lets other models leave. Returns why it will never fit.
std::optional<std::string> Pool::make_room(size_t index) {
  const ServedModel& served = models_[index].served;
  const auto free = hooks_.free_memory ? hooks_.free_memory(served.device) : std::nullopt;
  const std::vector<Resident> others = residents(served.device);
  const RoomPlan plan = plan_room({.need = served.memory,
                                   .free = free.value_or(kUnlimited),
                                   .most = config_.max_memory,
                                   .residents = others});
  if (plan.fits) {
    models_[index].keep_alive = *served.keep_alive;
    on_demand(index)->load();
    return std::nullopt;
  }
  if (plan.most < served.memory) {
    return cat("The model '", served.name, "' needs ", megabytes(served.memory + kMegabyte - 1),
               " of memory, and ", megabytes(plan.most), " are available");
  }
  for (const size_t member : plan.leave) {
    const size_t leaver = members_[member].model;
    models_[leaver].leaving = true;
    if (!is_quiet(leaver)) continue;
    log(LogLevel::info, "a model needs the memory of another",
        {{"model", served.name}, {"other", models_[leaver].served.name}});
    members_[member].replica->unload(kUnloadPatience);
  }
  return std::nullopt;
}

void Pool::place_on_demand(const Held& exchange, Replica& replica) {
  const size_t index = *exchange->model;
  if (replica.state() == ReplicaState::unloaded) {
    if (replica.failures() != exchange->failures) {
      if (!is_current(models_[index])) let_go(models_[index]);
      if (models_[index].gone && look_again(exchange)) return;
      return refuse(
          exchange, 503,
          {"MODEL_UNAVAILABLE", cat("The model '", models_[index].served.name,
                                    "' cannot be loaded: ", without_folders(replica.problem()))});
    }
    // Requests that wait came first, and may need the memory. They are placed in their order.
    if (!placing_) asked_.clear();
    if (!placing_ && !waiting_.empty()) return wait(exchange);
    if (!asked_.contains(index)) {
      if (const std::optional<std::string> never = make_room(index)) {
        return refuse(exchange, 503, {"MODEL_TOO_LARGE", *never});
      }
      asked_.insert(index);
    }
  }
  const bool ready = replica.state() == ReplicaState::ready;
  if (ready && answered_early(exchange, models_[index].served, false)) return;
  const bool takes = ready && !models_[index].leaving;
  takes ? send(exchange, replica.shared_from_this()) : wait(exchange);
}

// Until then the request waits. A load that goes on is waited for.
steady_clock::time_point Pool::deadline_of(const Exchange& exchange) const {
  steady_clock::time_point out = exchange.deadline;
  for (const Member& member : members_) {
    const Replica& replica = *member.replica;
    if (member.model != exchange.model || replica.state() != ReplicaState::starting) continue;
    const bool goes_on = models_[member.model].served.on_demand() || replica.progress().is_object();
    if (goes_on) out = std::max(out, replica.further_at() + config_.wait);
  }
  return out;
}

void Pool::give_up_waiting(const Held& exchange) {
  const Replica* replica = exchange->model ? on_demand(*exchange->model) : nullptr;
  if (replica == nullptr || replica->state() == ReplicaState::starting) {
    return refuse(exchange, 503, {"MODEL_UNAVAILABLE", "No worker of the model became ready"});
  }
  const ServedModel& served = models_[*exchange->model].served;
  refuse(exchange, 503,
         {"MODEL_UNAVAILABLE",
          cat("The model '", served.name, "' needs ", megabytes(served.memory + kMegabyte - 1),
              " of memory, which other models did not free in time")});
}

std::optional<steady_clock::time_point> Pool::expiry(size_t index) const {
  const Model& model = models_[index];
  const Replica* replica = on_demand(index);
  const bool loaded = replica != nullptr && (replica->state() == ReplicaState::ready ||
                                             replica->state() == ReplicaState::starting);
  if (!loaded || model.keep_alive == kForEver) return std::nullopt;
  const steady_clock::time_point now = steady_clock::now();
  const auto since = model.users > 0 ? now : std::max(model.used, replica->further_at());
  return since + model.keep_alive;
}

// Unloads the models whose time is over, and sets the timer for the others.
void Pool::unload_idle() {
  std::optional<steady_clock::time_point> next;
  const steady_clock::time_point now = steady_clock::now();
  for (size_t i = 0; i < models_.size(); ++i) {
    std::optional<steady_clock::time_point> end = expiry(i);
    if (!end || models_[i].users > 0) continue;
    if (*end <= now && is_quiet(i)) {
      on_demand(i)->unload(kUnloadPatience);
      continue;
    }
    end = std::max(*end, now + (*end <= now ? kLookAgain : milliseconds(0)));
    next = std::min(next.value_or(*end), *end);
  }
  if (!next) return;
  idle_timer_.expires_at(*next);
  idle_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) unload_idle();
  });
}

}  // namespace rbee::server
