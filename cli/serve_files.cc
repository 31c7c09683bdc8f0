#include "cli/serve_files.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "backends/api/registry.h"
#include "rbee/core/error.h"
#include "rbee/engine/common/device_choice.h"
#include "rbee/hub/cache.h"
#include "rbee/hub/pull.h"

namespace rbee::tools {
namespace {

using server::ModelPart;
using server::PullWatch;
using server::Removal;
using server::ServedModel;

// Tells one file's progress from that of all files together.
class Parts {
 public:
  explicit Parts(const PullWatch& watch) : watch_(watch) {}

  void begin(const hub::RepoFile& file, bool in_cache) {
    const std::scoped_lock lock(mutex_);
    if (!in_cache) {
      before_ += file_.total;
      file_ = part_of(file);
    }
    watch_.part(in_cache ? whole(part_of(file)) : file_);
  }

  void grew(const hub::Progress& progress) {
    const std::scoped_lock lock(mutex_);
    file_.done = std::clamp<int64_t>(progress.done - before_, 0, file_.total);
    watch_.part(file_);
    if (progress.done >= progress.total) say_fetched();
  }

  // Nothing was missing, if grew() did not say it.
  void end() {
    const std::scoped_lock lock(mutex_);
    say_fetched();
  }

 private:
  static ModelPart part_of(const hub::RepoFile& file) {
    return {.digest = file.sha256.empty() ? "" : "sha256:" + file.sha256,
            .name = file.path,
            .total = file.size};
  }
  static ModelPart whole(ModelPart part) {
    part.done = part.total;
    return part;
  }
  void say_fetched() {
    if (!std::exchange(said_, true)) watch_.fetched();
  }

  const PullWatch& watch_;
  std::mutex mutex_;  // guards what follows: several connections fetch
  ModelPart file_;
  int64_t before_ = 0;  // bytes of the files before it
  bool said_ = false;
};

class HubFiles final : public server::ModelFiles {
 public:
  explicit HubFiles(std::shared_ptr<const HubModels> models) : models_(std::move(models)) {}

  void check_name(const std::string& name) const override { hub::check_written_name(name); }

  std::optional<ServedModel> pull(const std::string& name, const PullWatch& watch) override {
    const std::optional<std::string> text = HubModels::hub_name(name);
    if (!text) return std::nullopt;
    Parts parts(watch);
    const hub::ModelName found = hub::parse_model_name(*text);
    (void)hub::pull(found, {.settings = hub::read_settings(),
                            .memory = engine::most_free_memory(backends()),
                            .progress = [&](const hub::Progress& now) { parts.grew(now); },
                            .next_file = [&](const hub::RepoFile& file,
                                             bool in_cache) { parts.begin(file, in_cache); }});
    parts.end();
    return by_its_usual_name(found.repo, models_->describe(*text));
  }

  std::optional<Removal> removal(const std::string& name) override {
    const std::optional<std::string> text = HubModels::hub_name(name);
    if (!text) return std::nullopt;
    const hub::ModelName found = hub::parse_model_name(*text);
    const hub::Cache cache(hub::read_settings().cache);
    if (!cache.find(found.repo)) return std::nullopt;
    if (!names_all_of(found, cache)) return std::nullopt;
    return Removal{.concerns =
                       [repo = found.repo](const std::string& served) {
                         return hub::is_hub_name(served) &&
                                hub::parse_model_name(served).repo == repo;
                       },
                   .check = [cache, repo = found.repo] { cache.check_not_fetched(repo); },
                   .erase =
                       [cache, repo = found.repo] {
                         if (cache.remove(repo)) return;
                         fail(Code::not_found, "delete", "hf:", repo, " is not in the cache");
                       }};
  }

 private:
  // As a list of the cache names it, so that one model is not served under two names.
  ServedModel by_its_usual_name(const std::string& repo, ServedModel model) const {
    for (const std::string& name : models_->names(repo)) {
      try {
        ServedModel listed = models_->describe(name);
        if (listed.model == model.model) return listed;
      } catch (const Error&) {
        continue;  // another one, which cannot be read
      }
    }
    return model;
  }

  // The cache deletes repositories as a whole. A name of a part of one means all of it only if
  // there is nothing else; false: that part is not here. Throws unsupported.
  bool names_all_of(const hub::ModelName& name, const hub::Cache& cache) const {
    const bool part = !name.file.empty() || !name.quantization.empty() || name.revision != "main";
    if (!part) return true;
    const std::vector<std::string> models = models_->names(name.repo);
    std::string here;
    try {
      here = models_->describe(hub::to_text(name)).model;
    } catch (const Error&) {
      return false;  // it is not in the cache
    }
    if (here == hub::to_text(name)) return false;  // nor are its files
    const size_t revisions = cache.find(name.repo)->revisions.size();
    if (models.size() == 1 && revisions == 1)
      return models_->describe(models.front()).model == here;
    fail(Code::unsupported, "delete", hub::to_text(name), " is one of ", models.size(),
         " models in ", revisions, " revisions of hf:", name.repo,
         ", which are deleted together: name hf:", name.repo);
  }

  const std::shared_ptr<const HubModels> models_;
};

}  // namespace

std::shared_ptr<server::ModelFiles> make_model_files(std::shared_ptr<const HubModels> models) {
  return std::make_shared<HubFiles>(std::move(models));
}

}  // namespace rbee::tools
