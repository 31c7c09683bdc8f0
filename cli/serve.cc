// rbee serve: several models, each with its workers, behind one port.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/serve_files.h"
#include "cli/serve_made.h"
#include "cli/serve_models.h"
#include "rbee/core/device_id.h"
#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "rbee/core/served_name.h"
#include "rbee/core/system/process.h"
#include "rbee/engine/api/text.h"
#include "server/front/front.h"
#include "server/front/keep_alive.h"
#include "server/front/worker_command.h"
#include "server/http/clock.h"
#include "workers/common/graphs_flag.h"
#include "workers/common/logging.h"
#include "workers/common/memory.h"
#include "workers/common/server_flags.h"
#include "workers/common/stop_signals.h"
#include "workers/common/tracing.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using workers::environment;

constexpr milliseconds kTick{500};
constexpr milliseconds kDrainTick{50};
constexpr milliseconds kWorkerPatience{2000};  // from SIGTERM to SIGKILL
constexpr milliseconds kStreamGrace{700};
constexpr milliseconds kTraceGrace{300};
constexpr std::chrono::seconds kStopSeconds{3};  // both above, plus time for a slow machine
constexpr int kMostDevice = 1023;                // as workers take it
constexpr size_t kMaxBody = size_t{64} << 20;

struct Options {
  workers::ServerFlags server;
  std::string config;
  server::ServedModel model;
  std::string kind = "chat";
  std::string device = "cpu";
  std::string keep_alive = "5m";
  int64_t max_memory = 0;  // bytes; 0 = as are free
  bool pull = false;
  bool manage = false;
  size_t max_upload_bytes = server::FrontHooks().max_upload_bytes;
  size_t max_uploads = server::FrontHooks().max_uploads;
  std::string host_warning;  // about OLLAMA_HOST; empty: none

  // Models on demand from the hub's cache.
  bool by_name() const { return config.empty() && model.model.empty(); }
};

// The adapters' names; requests use them like model names.
std::vector<std::string> adapters_of(const std::vector<std::string>& flags) {
  std::vector<std::string> out;
  for (size_t i = 0; i < flags.size(); ++i) {
    for (const std::string_view flag : {"--lora", "--lora-modules"}) {
      const std::string_view word = flags[i];
      if (word == flag && i + 1 < flags.size()) {
        out.push_back(engine::parse_lora(flags[i + 1]).name);
      } else if (word.starts_with(cat(flag, "="))) {
        out.push_back(engine::parse_lora(word.substr(flag.size() + 1)).name);
      }
    }
  }
  for (const std::string& name : out) {
    check(is_served_name(name), "--lora", "the name '", name, "' must be ", kServedNameRule);
  }
  return out;
}

// A kind, or one device of it for all workers.
void read_device(const std::string& text, server::ServedModel& model) {
  const auto id = parse_device_id(text);
  check(id.has_value() && id->ordinal <= kMostDevice, "--device", "'", text,
        "' is none of cpu, cuda, rocm, metal, nor one of their devices such as cuda:1, 0 to ",
        kMostDevice);
  model.device = name(id->kind);
  if (text.find(':') != std::string::npos) model.devices = {{id->ordinal}};
}

// Null: the models are given.
std::shared_ptr<HubModels> models_on_demand(const Options& options) {
  if (!options.by_name()) return nullptr;
  const auto keep_alive = server::parse_keep_alive(options.keep_alive);
  return std::make_shared<HubModels>(
      HubModels::Options{.keep_alive = keep_alive.value(), .pull = options.pull});
}

server::FrontConfig read_config(const Options& options, HubModels* on_demand) {
  server::FrontConfig config;
  if (on_demand != nullptr) {
    config.models = on_demand->list();
  } else if (!options.config.empty()) {
    config = server::parse_front_config(read_file(options.config), options.config);
  } else {
    config.models.push_back(options.model);
    server::ServedModel& model = config.models.front();
    if (options.kind == "image") model.kind = server::ModelKind::image;
    if (options.kind == "embedding") model.kind = server::ModelKind::embedding;
    read_device(options.device, model);
    if (model.name.empty()) model.name = fs::path(model.model).filename().string();
    check(is_served_name(model.name), "--name", "'", model.name, "' must be ", kServedNameRule);
  }
  if (options.max_memory > 0) config.max_memory = options.max_memory;
  if (on_demand != nullptr) return config;
  server::check_kv_publishers(config.models);
  find_programs(config);
  for (server::ServedModel& model : config.models) {
    if (model.kind == server::ModelKind::chat) model.adapters = adapters_of(model.flags);
    count_memory(model);
  }
  return config;
}

// OLLAMA_HOST says where to listen if neither --host nor --port does.
void read_ollama_host(const CLI::App& app, Options& options) {
  const std::string text = environment("OLLAMA_HOST");
  if (text.empty()) return;
  const auto given = [&](const char* name) { return app.get_option(name)->count() > 0; };
  const workers::OllamaHost place = workers::parse_ollama_host(text);
  if (!given("--host")) options.server.host = place.host;
  if (given("--port")) return;
  options.server.port = place.port;
  options.host_warning = place.warning;
}

// The workers' environment: this program's, except variables that the front sets itself.
std::vector<std::string> worker_environment(const workers::ServerFlags& flags) {
  std::vector<std::string> out;
  for (char* const* variable = process_environment(); *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (!flags.otlp_endpoint.empty() && name == "OTEL_EXPORTER_OTLP_ENDPOINT") continue;
    if (name == "LLORCH_API_TOKEN" || name == "LLORCH_LOG_FORMAT" || name == "RUST_LOG") continue;
    out.emplace_back(text);
  }
  // The front reads the workers' log.
  out.insert(out.end(), {"LLORCH_LOG_FORMAT=json", "RUST_LOG=info"});
  if (!flags.otlp_endpoint.empty()) {
    out.push_back("OTEL_EXPORTER_OTLP_ENDPOINT=" + flags.otlp_endpoint);
  }
  return out;
}

// Returns after a stop signal. False if no worker is left.
bool watch(const Options& options, server::Server& server, const server::Front& front) {
  workers::MemoryTrimmer memory;
  while (!workers::wait_for_stop(kTick)) {
    memory.tick();
    if (workers::take_reload()) workers::reload(options.server, server);
    if (front.given_up()) return false;
  }
  return true;
}

void drain(server::Front& front, const server::Server& server, std::chrono::seconds patience) {
  front.drain();
  log(LogLevel::info, "draining", {{"seconds", cat(patience.count())}});
  const auto end = std::chrono::steady_clock::now() + patience;
  while ((front.busy() || server.busy()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kDrainTick);
  }
}

// Files that clients uploaded and never used.
void prune(ModelRecords& records) {
  try {
    records.prune();
  } catch (const Error& error) {
    log(LogLevel::warn, "unused files of models stay", {{"error", printable_line(error.what())}});
  }
}

server::FrontHooks hooks_of(const Options& options, const std::shared_ptr<HubModels>& on_demand) {
  server::FrontHooks out{.free_memory = free_memory};
  if (!on_demand) return out;
  const std::shared_ptr<ModelRecords> records = make_model_records();
  const auto made = std::make_shared<MadeModels>(on_demand, records);
  out.find_model = [made](const std::string& name) { return made->find(name); };
  out.list_models = [on_demand, made] {
    std::vector<server::ServedModel> models = on_demand->list();
    for (server::ServedModel& model : made->list()) models.push_back(std::move(model));
    return models;
  };
  out.has_files = [made](const server::ServedModel& model) { return made->still_served(model); };
  out.files = make_model_store(on_demand, records, options.pull);
  out.may_pull = options.pull;
  out.may_manage = options.manage;
  out.max_upload_bytes = options.max_upload_bytes;
  out.max_uploads = options.max_uploads;
  if (options.manage) prune(*records);
  return out;
}

int serve(const Options& options) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  workers::start_logging(
      workers::log_format(environment("LLORCH_LOG_FORMAT"),
                          terminal ? workers::LogFormat::pretty : workers::LogFormat::json),
      environment("RUST_LOG"));
  workers::catch_stop_signals(workers::hangup_of(options.server));
  if (!options.host_warning.empty()) {
    log(LogLevel::warn, "a part of OLLAMA_HOST is not used", {{"why", options.host_warning}});
  }
  const std::shared_ptr<HubModels> on_demand = models_on_demand(options);
  const server::FrontConfig config = read_config(options, on_demand.get());
  const server::ApiKeys keys = workers::read_keys(options.server);
  server::ServerOptions server_options =
      workers::server_options("rbee/" RBEE_VERSION, options.server, keys);
  server_options.max_body_bytes =
      options.server.max_body_bytes > 0 ? options.server.max_body_bytes : kMaxBody;
  server_options.tracer = workers::make_tracer(
      options.server, {.service = "rbee serve", .instance = cat("rbee-", getpid())});
  server::Front front({.config = config,
                       .environment = worker_environment(options.server),
                       .hooks = hooks_of(options, on_demand),
                       .version = RBEE_VERSION,
                       .cors_origins = options.server.cors_origins,
                       .tracer = server_options.tracer});
  server::Server server(server_options, front.routes(), keys);
  const std::chrono::seconds patience(options.server.drain_seconds);
  workers::arm_stop_signals(patience + kStopSeconds);
  log(LogLevel::info, "ready",
      {{"host", server_options.host},
       {"port", cat(server.port())},
       {"models", cat(config.models.size())}});

  const bool whole = watch(options, server, front);
  if (!whole) log(LogLevel::error, "no worker can be started: the front ends");
  if (whole && patience.count() > 0) drain(front, server, patience);
  front.stop(kWorkerPatience);
  server.stop(kStreamGrace);
  workers::work_is_over();
  if (server_options.tracer) server_options.tracer->stop(kTraceGrace);
  log(LogLevel::info, "stopped");
  return whole ? 0 : 1;
}

std::string is_keep_alive(const std::string& text) {
  return server::parse_keep_alive(text) ? "" : cat("'", text, "' is no duration such as 5m");
}

}  // namespace

Command add_serve(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "serve",
      "serve several models behind one port: those of a file, or on demand all of the hub's cache");
  const auto options = std::make_shared<Options>();
  CLI::Option* config = app->add_option("--config", options->config, "What to serve, a JSON file")
                            ->check(CLI::ExistingFile);
  server::ServedModel& model = options->model;
  CLI::Option* path =
      app->add_option("--model", model.model, "The one model to serve, a path")->excludes(config);
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app->add_option(name, value, help)->needs(path);
  };
  add("--name", model.name, "Its name in requests; by default the name of its file");
  add("--kind", options->kind, "Kind of model")
      ->check(CLI::IsMember({"chat", "image", "embedding"}))
      ->capture_default_str();
  add("--device", options->device,
      "Device of its workers: cpu, cuda, rocm, metal, or one such as cuda:1")
      ->capture_default_str();
  add("--replicas", model.replicas, "How many workers it has")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  add("--worker-flag", model.flags,
      "One more word of its workers' command line; may be given several times");
  const auto add_by_name = [&](CLI::Option* option) { option->excludes(config)->excludes(path); };
  add_by_name(app->add_option("--keep-alive", options->keep_alive,
                              "How long a model stays loaded after its last request: 5m, 0, -1 = "
                              "until its memory is needed")
                  ->check(is_keep_alive)
                  ->capture_default_str());
  add_by_name(app->add_flag("--pull", options->pull,
                            "Fetch the models of the hub that requests name (hf:org/repo)"));
  add_by_name(app->add_flag("--manage", options->manage,
                            "Clients may delete, copy and make models, by Ollama's routes"));
  add_by_name(app->add_option("--max-upload-bytes", options->max_upload_bytes,
                              "Size of a file that a client uploads for a model, such as 40GB")
                  ->transform(CLI::AsSizeValue(true))
                  ->check(CLI::Range(size_t{1}, size_t{1} << 50))
                  ->capture_default_str());
  add_by_name(app->add_option("--max-uploads", options->max_uploads,
                              "Files that clients upload at once; one client has half at most")
                  ->check(CLI::Range(1, 10'000))
                  ->capture_default_str());
  app->add_option("--max-memory", options->max_memory,
                  "Memory of a device that all models together may need, such as 24GB; 0 = what "
                  "is free")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::NonNegativeNumber);
  workers::add_server_flags(*app, options->server);
  workers::add_graphs_flag(*app);
  app->final_callback([app, options] { read_ollama_host(*app, *options); });
  return {app, [options] { return serve(*options); }};
}

}  // namespace rbee::tools
