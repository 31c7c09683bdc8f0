#pragma once
// A worker whose model is not loaded yet: how far it is, and its answers meanwhile.

#include <functional>
#include <mutex>
#include <optional>

#include "server/http/router.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

// For any thread.
class LoadingState {
 public:
  // on_phase: called when a phase begins, on the thread that tells of it.
  explicit LoadingState(std::function<void()> on_phase = nullptr)
      : on_phase_(std::move(on_phase)) {}

  void set(const LoadProgress& progress);
  // Nothing before the first set().
  std::optional<LoadProgress> progress() const;

 private:
  const std::function<void()> on_phase_;
  mutable std::mutex mutex_;
  std::optional<LoadProgress> progress_;  // guarded by mutex_
};

// Routes that say how far it is, with 503. All other paths get 503 MODEL_LOADING before their
// bodies are read, in the form that error_form has for them. info: of the worker, with the status
// "starting". The state must outlive the router.
Router loading_routes(WorkerInfo info, const LoadingState& state,
                      ErrorForm (*error_form)(std::string_view path));

}  // namespace rbee::server
