#include "workers/common/worker.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>

#include "rbee/core/log.h"
#include "server/http/clock.h"
#include "server/http/local_host.h"
#include "server/http/server.h"
#include "server/worker/heartbeat.h"
#include "workers/common/logging.h"
#include "workers/common/stop_signals.h"

namespace rbee::workers {
namespace {

// Of kStopTime: for clients to read what is left of their streams.
constexpr std::chrono::milliseconds kStreamGrace{700};
constexpr std::chrono::seconds kTick{1};
// How long a worker without a device still answers: clients read why their streams ended, and what
// polls its health sees it. Then the process gives place to a new one.
constexpr std::chrono::seconds kLostGrace{3};

constexpr int kCannotRun = 1;
constexpr int kDeviceLost = 3;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Null when there is no hive to report to.
std::unique_ptr<server::Heartbeat> start_heartbeat(const CommonFlags& flags,
                                                   const server::WorkerService& service) {
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

server::ServerOptions server_options(const Program& program, const CommonFlags& flags,
                                     const server::BearerAuth& auth) {
  server::ServerOptions options;
  options.host = flags.host.empty() ? default_host(auth.enabled()) : flags.host;
  options.port = flags.port;
  options.name = cat(program.name, "/", RBEE_VERSION);
  if (auth.enabled()) {
    log(LogLevel::info, "a bearer token is needed", {{"fingerprint", auth.fingerprint()}});
  } else if (!server::is_loopback_host(options.host)) {
    log(LogLevel::warn,
        "ANYBODY WHO REACHES THIS ADDRESS MAY USE THE WORKER: set LLORCH_API_TOKEN, or listen on "
        "127.0.0.1",
        {{"host", options.host}});
  }
  return options;
}

// Until a stop is asked for, or the device is lost. The hive hears within kTick that the worker
// became busy, ready or unable to go on. False when the device is lost.
bool watch(server::WorkerService& service, server::Heartbeat* heartbeat) {
  std::string reported = service.info().status;
  while (!wait_for_stop(kTick)) {
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
  const server::BearerAuth auth(environment("LLORCH_API_TOKEN"));
  // Without a token any web page of this machine's browser could stop the worker.
  const std::function<void()> shutdown = auth.enabled() ? ask_for_stop : nullptr;
  server::ServerOptions options = server_options(program, flags, auth);
  options.max_body_bytes = served->max_body_bytes();
  server::Server server(options, served->routes(shutdown), auth);
  service.set_port(server.port());
  arm_stop_signals();
  const std::unique_ptr<server::Heartbeat> heartbeat = start_heartbeat(flags, service);
  log(LogLevel::info, "ready",
      {{"worker_id", flags.worker_id}, {"host", options.host}, {"port", cat(server.port())}});

  const bool whole = watch(service, heartbeat.get());

  service.shutdown();
  if (heartbeat) heartbeat->stop();
  server.stop(kStreamGrace);
  served->stop();
  log(LogLevel::info, "stopped");
  return whole ? 0 : kDeviceLost;
}

}  // namespace

int run_worker(const Program& program, const CommonFlags& flags, const std::string& model,
               const std::function<std::unique_ptr<Served>()>& load) {
  const LogFormat usual = isatty(STDOUT_FILENO) != 0 ? LogFormat::pretty : LogFormat::json;
  start_logging(log_format(environment("LLORCH_LOG_FORMAT"), usual), environment("RUST_LOG"));
  catch_stop_signals();
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

std::string default_host(bool has_token) {
  return has_token ? "0.0.0.0" : "127.0.0.1";
}

}  // namespace rbee::workers
