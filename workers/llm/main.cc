// The chat worker. Exit status: 0 after a signal or POST /v1/shutdown, 1 when it cannot start,
// 2 wrong usage.

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>

#include "backends/cpu/cpu_backend.h"
#include "rbee/core/log.h"
#include "rbee/engine/llm_engine.h"
#include "server/http/clock.h"
#include "server/http/server.h"
#include "server/llm/heartbeat.h"
#include "server/llm/routes.h"
#include "workers/llm/flags.h"
#include "workers/llm/logging.h"
#include "workers/llm/program.h"
#include "workers/llm/stop_signals.h"

namespace rbee::workers {
namespace {

// Of kStopTime: for clients to read what is left of their streams.
constexpr std::chrono::milliseconds kStreamGrace{800};
constexpr std::chrono::seconds kTick{1};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Device& open_device(const Flags& flags) {
  const Program& self = program();
  cpu::set_thread_count(flags.threads);
  register_backend(cpu::cpu_backend());
  register_backend(self.backend());
  // There is one CPU, whatever number a hive gives it.
  return get_device({self.kind, self.kind == DeviceKind::cpu ? 0 : flags.device});
}

engine::TextModel load_model(const Flags& flags, Device& device) {
  log(LogLevel::info, "loading the model",
      {{"model", flags.model}, {"device", device.description()}});
  int64_t quarters = 0;
  const auto progress = [&quarters](int64_t done, int64_t total) {
    const int64_t now = total > 0 ? done * 4 / total : 4;
    if (now <= quarters) return;
    quarters = now;
    log(LogLevel::info, "loading", {{"percent", cat(now * 25)}});
  };
  engine::TextModel model = engine::load_text_model(
      flags.model, {.device = &device, .context = flags.context, .progress = progress});
  log(LogLevel::info, "the model is loaded",
      {{"id", model.info.id},
       {"architecture", model.info.architecture},
       {"quantization", model.info.quantization},
       {"context", cat(model.info.context_length)},
       {"bytes", cat(model.info.weight_bytes)}});
  return model;
}

// Null when there is no hive to report to.
std::unique_ptr<server::Heartbeat> start_heartbeat(const Flags& flags,
                                                   const server::LlmService& service) {
  if (flags.hive_url.empty()) return nullptr;
  try {
    return std::make_unique<server::Heartbeat>(
        server::HeartbeatOptions{.hive = server::parse_url(flags.hive_url)}, [&service] {
          return server::heartbeat_json(service.info(),
                                        server::iso8601(std::chrono::system_clock::now()));
        });
  } catch (const Error& error) {
    log(LogLevel::warn, "no heartbeats: the hive's address is not usable",
        {{"error", error.what()}});
    return nullptr;
  }
}

server::ServerOptions server_options(const Flags& flags, const server::BearerAuth& auth) {
  server::ServerOptions options;
  options.host = flags.host.empty() ? default_host(auth.enabled()) : flags.host;
  options.port = flags.port;
  options.name = cat(program().name, "/", RBEE_VERSION);
  if (auth.enabled()) {
    log(LogLevel::info, "a bearer token is needed", {{"fingerprint", auth.fingerprint()}});
  } else if (!is_loopback(options.host)) {
    log(LogLevel::warn,
        "ANYBODY WHO REACHES THIS ADDRESS MAY USE THE WORKER: set LLORCH_API_TOKEN, or listen on "
        "127.0.0.1",
        {{"host", options.host}});
  }
  return options;
}

void serve(const Flags& flags) {
  const std::unique_ptr<engine::Engine> engine =
      engine::make_llm_engine(load_model(flags, open_device(flags)), {});
  server::LlmService service(*engine, {.worker_id = flags.worker_id,
                                       .model_id = flags.model_ref,
                                       .implementation = program().name,
                                       .version = RBEE_VERSION});
  service.set_port(flags.port);
  const server::BearerAuth auth(environment("LLORCH_API_TOKEN"));
  // Without a token any web page of this machine's browser could stop the worker.
  const std::function<void()> shutdown = auth.enabled() ? ask_for_stop : nullptr;
  const server::ServerOptions options = server_options(flags, auth);
  server::Server server(options, server::llm_routes(service, shutdown), auth);
  service.set_port(server.port());
  arm_stop_signals();
  const std::unique_ptr<server::Heartbeat> heartbeat = start_heartbeat(flags, service);
  log(LogLevel::info, "ready",
      {{"worker_id", flags.worker_id}, {"host", options.host}, {"port", cat(server.port())}});

  while (!wait_for_stop(kTick)) service.tick(server::Clock::now());

  service.shutdown();
  if (heartbeat) heartbeat->stop();
  server.stop(kStreamGrace);
  engine->stop();
  log(LogLevel::info, "stopped");
}

int run(int argc, char** argv) {
  const std::variant<Flags, int> parsed = parse_flags(argc, argv, program().name);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const Flags& flags = std::get<Flags>(parsed);
  const LogFormat usual = isatty(STDOUT_FILENO) != 0 ? LogFormat::pretty : LogFormat::json;
  start_logging(log_format(environment("LLORCH_LOG_FORMAT"), usual), environment("RUST_LOG"));
  catch_stop_signals();
  log(LogLevel::info, "starting",
      {{"worker_id", flags.worker_id},
       {"model", flags.model},
       {"port", cat(flags.port)},
       {"backend", std::string(name(program().kind))},
       {"version", RBEE_VERSION}});
  for (const std::string& extra : flags.ignored) {
    log(LogLevel::warn, "not a flag of this worker, ignored", {{"flag", extra}});
  }
  try {
    serve(flags);
    return 0;
  } catch (const std::exception& error) {
    log(LogLevel::error, "the worker cannot run", {{"error", error.what()}});
    std::cerr << program().name << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace rbee::workers

int main(int argc, char** argv) {
  return rbee::workers::run(argc, argv);
}
