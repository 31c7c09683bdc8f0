// The pool's models whose files come and go while it runs.

#include <algorithm>
#include <utility>

#include "server/front/pool.h"

namespace rbee::server {
namespace {

constexpr std::chrono::milliseconds kUnloadPatience{2000};  // from SIGTERM to SIGKILL

}  // namespace

void Pool::offer(const ServedModel& model, const std::string& name) {
  std::optional<size_t> index = settle(model);
  if (!index) index = add(model);
  for (const std::string& one : {model.name, name}) note_alias(*index, one);
  models_[*index].listed = true;
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
