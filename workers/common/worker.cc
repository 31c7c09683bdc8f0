#include "workers/common/worker.h"

#include <unistd.h>

#include <exception>
#include <iostream>
#include <thread>

#include "rbee/core/log.h"
#include "server/http/clock.h"
#include "server/http/server.h"
#include "server/worker/heartbeat.h"
#include "workers/common/logging.h"
#include "workers/common/stop_signals.h"
#include "workers/common/tracing.h"

namespace rbee::workers {
namespace {

// Of kStopTime: for clients to read what is left of their streams.
constexpr std::chrono::milliseconds kStreamGrace{700};
constexpr std::chrono::milliseconds kTraceGrace{300};  // for the last spans, of the same
constexpr std::chrono::seconds kTick{1};
constexpr std::chrono::milliseconds kDrainTick{50};
// How long a worker without a device still answers: clients read why their streams ended, and what
// polls its health sees it. Then the process gives place to a new one.
constexpr std::chrono::seconds kLostGrace{3};

constexpr int kCannotRun = 1;
constexpr int kDeviceLost = 3;

// Null when there is no hive to report to.
std::unique_ptr<server::Heartbeat> start_heartbeat(const CommonFlags& flags,
                                                   const server::WorkerService& service) {
  if (flags.hive_url.empty()) return nullptr;
  try {
    return std::make_unique<server::Heartbeat>(
        server::HeartbeatOptions{.hive = server::parse_url(flags.hive_url)}, [&service] {
          return server::heartbeat_json(service.info(), service.memory(),
                                        server::iso8601(std::chrono::system_clock::now()));
        });
  } catch (const Error& error) {
    log(LogLevel::warn, "no heartbeats: the hive's address is not usable",
        {{"error", error.what()}});
    return nullptr;
  }
}

// Lets running answers end, while new ones are refused.
void drain(server::WorkerService& service, std::chrono::seconds patience) {
  service.drain();
  const auto end = server::Clock::now() + patience;
  log(LogLevel::info, "draining", {{"seconds", cat(patience.count())}});
  while (service.busy() && server::Clock::now() < end) {
    service.tick(server::Clock::now());
    std::this_thread::sleep_for(kDrainTick);
  }
}

// Until a stop is asked for, or the device is lost. The hive hears within kTick that the worker
// became busy, ready or unable to go on. False when the device is lost.
bool watch(const CommonFlags& flags, server::Server& server, server::WorkerService& service,
           server::Heartbeat* heartbeat) {
  std::string reported = service.info().status;
  while (!wait_for_stop(kTick)) {
    if (take_reload()) reload(flags, server);
    service.tick(server::Clock::now());
    std::string status = service.info().status;
    if (heartbeat != nullptr && status != reported) heartbeat->send_now();
    reported = std::move(status);
    if (service.healthy()) continue;
    log(LogLevel::error, "the device is lost: the worker ends",
        {{"seconds", cat(kLostGrace.count())}});
    wait_for_stop(kLostGrace);
    end_within(kStopTime, kDeviceLost);  // calls to a lost device need not return
    return false;
  }
  return true;
}

// Returns the exit status.
int serve(const Program& program, const CommonFlags& flags,
          const std::function<std::unique_ptr<Served>()>& load) {
  const std::unique_ptr<Served> served = load();
  server::WorkerService& service = served->service();
  service.set_port(flags.port);
  const server::ApiKeys keys = read_keys(flags);
  // Without a token any web page of this machine's browser could stop the worker.
  const bool has_token = server::ApiKeys(environment("LLORCH_API_TOKEN")).enabled();
  const std::function<void()> shutdown = has_token ? ask_for_stop : nullptr;
  server::ServerOptions options = server_options(cat(program.name, "/", RBEE_VERSION), flags, keys);
  options.max_body_bytes =
      flags.max_body_bytes > 0 ? flags.max_body_bytes : served->max_body_bytes();
  const std::shared_ptr<server::Tracer> tracer =
      make_tracer(flags, {.service = program.name, .instance = flags.worker_id});
  options.tracer = tracer;
  service.set_tracer(tracer);
  server::Server server(options, served->routes(shutdown), keys);
  service.set_port(server.port());
  const std::chrono::seconds patience(flags.drain_seconds);
  arm_stop_signals(patience);
  const std::unique_ptr<server::Heartbeat> heartbeat = start_heartbeat(flags, service);
  log(LogLevel::info, "ready",
      {{"worker_id", flags.worker_id}, {"host", options.host}, {"port", cat(server.port())}});

  const bool whole = watch(flags, server, service, heartbeat.get());
  if (whole && patience.count() > 0) {
    if (heartbeat) heartbeat->send_now();
    drain(service, patience);
  }

  service.shutdown();
  if (heartbeat) heartbeat->stop();
  server.stop(kStreamGrace);
  work_is_over();
  served->stop();
  if (tracer) tracer->stop(kTraceGrace);
  log(LogLevel::info, "stopped");
  return whole ? 0 : kDeviceLost;
}

}  // namespace

int run_worker(const Program& program, const CommonFlags& flags, const std::string& model,
               const std::function<std::unique_ptr<Served>()>& load) {
  const LogFormat usual = isatty(STDOUT_FILENO) != 0 ? LogFormat::pretty : LogFormat::json;
  start_logging(log_format(environment("LLORCH_LOG_FORMAT"), usual), environment("RUST_LOG"));
  catch_stop_signals(flags.api_keys.empty() && flags.tls_cert.empty() ? Hangup::ends
                                                                      : Hangup::reloads);
  log(LogLevel::info, "starting",
      {{"worker_id", flags.worker_id},
       {"model", model},
       {"port", cat(flags.port)},
       {"backend", std::string(name(program.kind))},
       {"version", RBEE_VERSION}});
  for (const std::string& extra : flags.ignored) {
    log(LogLevel::warn, "not a flag of this worker, ignored", {{"flag", extra}});
  }
  try {
    return serve(program, flags, load);
  } catch (const std::exception& error) {
    log(LogLevel::error, "the worker cannot run", {{"error", error.what()}});
    std::cerr << program.name << ": " << error.what() << '\n';
    return kCannotRun;
  }
}

}  // namespace rbee::workers
