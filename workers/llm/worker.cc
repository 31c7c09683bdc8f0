#include "workers/llm/worker.h"

#include <filesystem>
#include <optional>

#include "rbee/core/written_at.h"
#include "server/apis/chat_routes.h"
#include "server/apis/embeddings/routes.h"
#include "server/apis/error_forms.h"
#include "server/llm/service.h"
#include "workers/common/crash_handler.h"
#include "workers/common/group_flags.h"
#include "workers/common/logging.h"
#include "workers/common/lost_files.h"

namespace rbee::workers {
namespace {

server::LlmDefaults defaults_of(const Flags& flags) {
  const auto limit = [](int32_t tokens) {
    return tokens < 0 ? std::nullopt : std::optional(tokens);
  };
  return {.reasoning_budget = limit(flags.reasoning_budget),
          .temperature = flags.temperature,
          .seed = flags.seed,
          .max_tokens = limit(flags.max_answer)};
}

// Also if a folder's path ends with a slash.
std::string file_name(const std::filesystem::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::vector<server::LoraField> loras_of(const Flags& flags) {
  std::vector<server::LoraField> out;
  for (const engine::LoraInfo& lora : flags.loras) {
    out.push_back({.id = {}, .name = lora.name, .scale = lora.scale});
  }
  return out;
}

class ServedChat final : public Served {
 public:
  ServedChat(std::unique_ptr<engine::TextEngine> engine, server::ServiceOptions options,
             const Flags& flags)
      : engine_(std::move(engine)),
        service_(*engine_, std::move(options), defaults_of(flags),
                 {.bytes = static_cast<size_t>(flags.response_store_mib) << 20,
                  .most = static_cast<size_t>(flags.response_store_count),
                  .age = std::chrono::hours(flags.response_store_hours)}),
        routes_{.lora_loading = flags.lora_loading, .kv_events = engine_->kv_events()} {
    if (flags.kv_events.publishes()) publisher_.emplace(flags.kv_events, engine_->kv_events());
    if (flags.apply_loras) service_.set_default_loras(loras_of(flags));
  }

  server::WorkerService& service() override { return service_; }
  server::Router routes(std::function<void()> shutdown) override {
    return server::chat_routes(service_, std::move(shutdown), routes_);
  }
  // Room for pictures, which come in the body.
  size_t max_body_bytes() const override {
    return engine_->model().max_pictures > 0 ? size_t{64} << 20 : Served::max_body_bytes();
  }
  void stop() override { engine_->stop(); }

 private:
  std::unique_ptr<engine::TextEngine> engine_;
  server::LlmService service_;
  server::ChatRouteOptions routes_;
  std::optional<KvPublisher> publisher_;
};

class ServedEmbeddings final : public Served {
 public:
  ServedEmbeddings(std::unique_ptr<engine::EmbeddingEngine> engine, server::ServiceOptions options)
      : engine_(std::move(engine)), service_(*engine_, std::move(options)) {}

  server::WorkerService& service() override { return service_; }
  server::Router routes(std::function<void()> shutdown) override {
    return server::embedding_routes(service_, std::move(shutdown));
  }
  // Room for two thousand texts.
  size_t max_body_bytes() const override { return size_t{16} << 20; }
  void stop() override { engine_->stop(); }

 private:
  std::unique_ptr<engine::EmbeddingEngine> engine_;
  server::EmbeddingService service_;
};

std::unique_ptr<Served> serve(std::unique_ptr<engine::TextEngine> engine,
                              server::ServiceOptions options, const Flags& flags) {
  return std::make_unique<ServedChat>(std::move(engine), std::move(options), flags);
}

std::unique_ptr<Served> serve(std::unique_ptr<engine::EmbeddingEngine> engine,
                              server::ServiceOptions options, const Flags& flags) {
  if (flags.kv_events.enabled) {
    fail(Code::unsupported, "--kv-events-config", "a model for embeddings keeps no texts");
  }
  return std::make_unique<ServedEmbeddings>(std::move(engine), std::move(options));
}

}  // namespace

int run_llm_worker(const Program& program, const LoadEngine& load, int argc,
                   const char* const* argv, const FollowLeader& follow) {
  const std::variant<Flags, int> parsed = parse_flags(argc, argv, program);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const Flags& flags = std::get<Flags>(parsed);
  if (follow && group_place(flags.group).rank > 0) {
    start_log();
    end_on_lost_files(program.name, kLost);
    install_crash_handler(program.name);
    try {
      return follow(flags);
    } catch (const std::exception& error) {
      log(LogLevel::error, "this rank cannot start", {{"error", error.what()}});
      return 1;
    }
  }
  return run_worker(
      program, flags, flags.model, server::text_error_form,
      [&](server::LoadingState& loading) -> std::unique_ptr<Served> {
        if (flags.kv_events.publishes()) require_zmq();  // before the weights are read
        Flags local = flags;
        LoadedEngine loaded = load(local, loading);
        server::ServiceOptions options{.worker_id = flags.worker_id,
                                       .model_id = flags.model_ref,
                                       .implementation = program.name,
                                       .version = RBEE_VERSION,
                                       .aliases = flags.aliases,
                                       .tags = flags.tags,
                                       .model_file = file_name(local.model),
                                       .model_modified = written_at(local.model)};
        return std::visit(
            [&](auto engine) { return serve(std::move(engine), std::move(options), flags); },
            std::move(loaded));
      });
}

}  // namespace rbee::workers
