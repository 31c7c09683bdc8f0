// The pool's models whose files come and go while it runs.

#include <algorithm>
#include <utility>

#include "server/front/pool.h"

namespace rbee::server {
namespace {

constexpr size_t kMostModels = 1000;                        // with those that requests named
constexpr std::chrono::milliseconds kUnloadPatience{2000};  // from SIGTERM to SIGKILL

}  // namespace

std::optional<size_t> Pool::offer(const ServedModel& model) {
  const auto known = std::ranges::find_if(
      models_, [&](const Model& one) { return !one.gone && one.served.name == model.name; });
  if (known != models_.end()) return static_cast<size_t>(known - models_.begin());
  if (models_.size() >= kMostModels && !free_place()) return std::nullopt;
  return add(model);
}

// Of a model that is gone, once nothing refers to it.
std::optional<size_t> Pool::free_place() const {
  const auto found = std::ranges::find_if(models_, [](const Model& model) {
    return model.gone && model.users == 0 && !model.replica->running();
  });
  if (found == models_.end()) return std::nullopt;
  return static_cast<size_t>(found - models_.begin());
}

void Pool::drop(const std::function<bool(const std::string&)>& which, std::function<void()> done) {
  Drop drop{.models = {}, .done = std::move(done)};
  for (size_t i = 0; i < models_.size(); ++i) {
    Model& model = models_[i];
    if (model.gone || !model.served.on_demand() || !which(model.served.name)) continue;
    model.gone = true;
    drop.models.push_back(i);
  }
  for (const size_t i : drop.models) models_[i].replica->unload(kUnloadPatience);
  drops_.push_back(std::move(drop));
  end_drops();
  place_waiting();
}

void Pool::end_drops() {
  const auto over = [this](const Drop& drop) {
    return std::ranges::none_of(
        drop.models, [this](size_t i) { return models_[i].gone && models_[i].replica->running(); });
  };
  const auto first = std::ranges::stable_partition(drops_, std::not_fn(over)).begin();
  const std::vector<Drop> ended(std::make_move_iterator(first),
                                std::make_move_iterator(drops_.end()));
  drops_.erase(first, drops_.end());
  for (const Drop& drop : ended) drop.done();
}

}  // namespace rbee::server
