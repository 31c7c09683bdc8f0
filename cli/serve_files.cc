#include "cli/serve_files.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "backends/api/registry.h"
#include "cli/model_maker.h"
#include "rbee/core/error.h"
#include "rbee/engine/common/device_choice.h"
#include "rbee/hub/cache.h"
#include "rbee/hub/pull.h"
#include "rbee/text/template/chat_template.h"
#include "server/apis/ollama/models.h"
#include "server/apis/ollama/names.h"
#include "server/front/pulls.h"
#include "tools/convert/recipe.h"

namespace rbee::tools {
namespace {

using server::CreateWatch;
using server::OllamaCopy;
using server::OllamaCreate;
using server::OllamaRecord;
using server::PulledFile;
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

  void grew(const hub::DownloadProgress& progress) {
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
  static PulledFile part_of(const hub::RepoFile& file) {
    return {.digest = file.sha256.empty() ? "" : "sha256:" + file.sha256,
            .name = file.path,
            .total = file.size};
  }
  static PulledFile whole(PulledFile part) {
    part.done = part.total;
    return part;
  }
  void say_fetched() {
    if (!std::exchange(said_, true)) watch_.fetched();
  }

  const PullWatch& watch_;
  std::mutex mutex_;  // guards what follows: several connections fetch
  PulledFile file_;
  int64_t before_ = 0;  // bytes of the files before it
  bool said_ = false;
};

void check_here(bool was_here, const std::string& problem) {
  if (!was_here) fail(Code::not_found, "delete", problem);
}

class HubFiles final : public server::ModelStore {
 public:
  HubFiles(std::shared_ptr<const HubModels> models, std::shared_ptr<ModelRecords> records,
           bool may_pull)
      : models_(std::move(models)),
        records_(std::move(records)),
        maker_(models_, records_),
        may_pull_(may_pull) {}

  std::vector<OllamaRecord> records() override { return records_->list(); }
  std::optional<OllamaRecord> find_record(const std::string& name) override {
    return records_->find(name);
  }

  void create(const OllamaCreate& create, const CreateWatch& watch) override {
    const Recipe* recipe = create.quantize.empty() ? nullptr : &recipe_of(create.quantize);
    check_free_name(create.record.name);
    if (!create.record.chat_template.empty()) check_template(create.record.chat_template);
    watch.step({.status = "reading model metadata"});
    OllamaRecord made = create.record;
    if (made.files.empty()) made = create.made_of(source_or_pulled(made.from, watch));
    if (recipe != nullptr) made = maker_.quantized(std::move(made), *recipe, watch);
    watch.step({.status = "writing manifest"});
    save(std::move(made));
  }

  void copy(const OllamaCopy& copy) override {
    OllamaRecord made = source(copy.source);
    made.name = copy.destination;
    save(std::move(made));
  }

  bool has_blob(const std::string& digest) override { return records_->blobs().touch(digest); }
  std::unique_ptr<server::Upload> upload(const std::string& digest,
                                         std::optional<int64_t> bytes) override {
    return records_->blobs().upload(digest, bytes);
  }

  std::string problem_of_name(const std::string& name) const override {
    try {
      hub::check_written_name(name);
      return {};
    } catch (const Error& error) {
      return std::string(error.message());
    }
  }

  std::optional<ServedModel> pull(const std::string& name, const PullWatch& watch) override {
    const std::optional<std::string> text = HubModels::hub_name(name);
    if (!text) return std::nullopt;
    Parts parts(watch);
    const hub::ModelName found = hub::parse_model_name(*text);
    (void)hub::pull(found, {.settings = hub::read_settings(),
                            .memory = engine::most_free_memory(backends()),
                            .progress = [&](const hub::DownloadProgress& now) { parts.grew(now); },
                            .next_file = [&](const hub::RepoFile& file,
                                             bool in_cache) { parts.begin(file, in_cache); }});
    parts.end();
    ++*changes_;
    return by_its_usual_name(found.repo, models_->describe(*text));
  }

  uint64_t changes() const override { return *changes_; }
  std::optional<Removal> removal(const std::string& name) override {
    if (const auto record = records_->find(name)) return removal_of(*record);
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
                   .check =
                       [this, cache, repo = found.repo] {
                         check_not_used(repo);
                         cache.check_not_fetched(repo);
                       },
                   .erase =
                       [cache, repo = found.repo, changes = changes_] {
                         const bool was_here = cache.remove(repo);
                         ++*changes;
                         check_here(was_here, cat("hf:", repo, " is not in the cache"));
                       }};
  }

 private:
  // A model that others can be made of. Throws not_found.
  OllamaRecord source(const std::string& name) const {
    if (auto made = records_->find(name)) return std::move(*made);
    const std::optional<std::string> text = HubModels::hub_name(name);
    if (!text) fail(Code::not_found, "create", name, " is not here");
    const ServedModel model =
        by_its_usual_name(hub::parse_model_name(*text).repo, models_->describe(*text));
    if (hub::is_hub_name(model.model)) fail(Code::not_found, "create", name, " is not fetched");
    return {.from = model.name};
  }

  // The same, fetched first where that is allowed.
  OllamaRecord source_or_pulled(const std::string& name, const CreateWatch& watch) {
    try {
      return source(name);
    } catch (const Error& error) {
      if (error.code() != Code::not_found || !HubModels::hub_name(name)) throw;
      if (!may_pull_) {
        fail(Code::invalid_argument, "from", "'", name,
             "' is not here, and nothing is fetched without rbee serve --pull");
      }
    }
    watch.begin();
    const auto tell = [&](const PulledFile& part) {
      watch.step({.status = server::pulling_status(part),
                  .digest = part.digest,
                  .done = part.done,
                  .total = part.total});
    };
    (void)pull(name, {.part = tell,
                      .fetched = [&] { watch.step({.status = "verifying sha256 digest"}); }});
    return source(name);
  }

  static const Recipe& recipe_of(const std::string& type) {
    try {
      return find_recipe(type);
    } catch (const Error& error) {
      fail(error.code(), "quantize", error.message());
    }
  }

  static void check_free_name(const std::string& name) {
    check(!names_hub_model(name), "model", "'", name,
          "' is the name of a model of the hub: choose another");
  }

  void save(OllamaRecord made) {
    check_free_name(made.name);
    const server::ModelKind kind = maker_.check_files(made);
    check(kind != server::ModelKind::image, "from", "a model for pictures has no other names");
    const bool has_text = made.has_settings() || !made.chat_template.empty();
    check(kind == server::ModelKind::chat || !has_text, "from",
          "a model for embeddings takes no template, system, parameters and messages");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    made.created = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    records_->save(made);
    ++*changes_;
  }

  static bool names_hub_model(const std::string& name) {
    try {
      return HubModels::hub_name(name).has_value();
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      return false;  // another tag of a family of Ollama's
    }
  }

  // Some that are read fail only when they are rendered.
  static void check_template(const std::string& text) {
    const text::Message hello{.role = "user", .content = "Hello", .extra_json = {}};
    const text::Message chat[] = {
        {.role = "system", .content = "Be brief.", .extra_json = {}},
        hello,
        {.role = "assistant", .content = "Hi.", .extra_json = {}},
        hello,
    };
    try {
      const text::ChatTemplate code(text);
      (void)code.render({&hello, 1}, true, "<s>", "</s>");
      if (code.is_go()) (void)code.render(chat, true, "<s>", "</s>");
    } catch (const Error& error) {
      fail(Code::invalid_argument, "template", "this is no template of a chat, in Go's form or ",
           "Jinja (", error.what(), ")");
    }
  }

  Removal removal_of(const OllamaRecord& record) const {
    return {.concerns =
                [name = record.name](const std::string& served) {
                  return server::same_model_name(served, name);
                },
            .check = [] {},
            .erase =
                [records = records_, name = record.name, changes = changes_] {
                  const bool was_here = records->remove(name);
                  ++*changes;
                  check_here(was_here, cat(name, " is gone"));
                }};
  }

  void check_not_used(const std::string& repo) const {
    for (const OllamaRecord& record : records_->list()) {
      if (record.from.empty() || hub::parse_model_name(record.from).repo != repo) continue;
      fail(Code::unsupported, "delete", "the model '", record.name, "' is made of hf:", repo,
           ": delete that first");
    }
  }

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
  const std::shared_ptr<ModelRecords> records_;
  const ModelMaker maker_;
  const bool may_pull_;
  const std::shared_ptr<std::atomic<uint64_t>> changes_ =
      std::make_shared<std::atomic<uint64_t>>(0);  // removals outlive this
};

}  // namespace

std::shared_ptr<ModelRecords> make_model_records() {
  return std::make_shared<ModelRecords>(hub::read_settings().cache.parent_path() / "rbee-models");
}

std::shared_ptr<server::ModelStore> make_model_store(std::shared_ptr<const HubModels> models,
                                                     std::shared_ptr<ModelRecords> records,
                                                     bool may_pull) {
  return std::make_shared<HubFiles>(std::move(models), std::move(records), may_pull);
}

}  // namespace rbee::tools
