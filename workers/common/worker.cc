#include "workers/common/worker.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

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
constexpr std::chrono::milliseconds kDrainTick{50};
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
                                     const server::ApiKeys& keys) {
  server::ServerOptions options;
  options.host = flags.host.empty() ? default_host(keys.enabled()) : flags.host;
  options.port = flags.port;
  options.name = cat(program.name, "/", RBEE_VERSION);
  options.max_connections = flags.max_connections;
  options.max_client_connections = flags.max_client_connections;
  options.cors_origins = flags.cors_origins;
  if (keys.enabled()) {
    log(LogLevel::info, "a key is needed", {{"keys", keys.describe()}});
  } else if (!server::is_loopback_host(options.host)) {
    log(LogLevel::warn,
        "ANYBODY WHO REACHES THIS ADDRESS MAY USE THE WORKER: set LLORCH_API_TOKEN, or listen on "
        "127.0.0.1",
        {{"host", options.host}});
  }
  return options;
}

// Throws io, and invalid_argument for a file that is not one of keys.
server::ApiKeys read_keys(const CommonFlags& flags) {
  server::ApiKeys keys(environment("LLORCH_API_TOKEN"));
  if (flags.api_keys.empty()) return keys;
  std::ifstream file(flags.api_keys, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail(Code::io, "api keys", "cannot read ", flags.api_keys);
  keys.add_file(text, flags.api_keys);
  return keys;
}

// A file that cannot be used leaves the keys as they are.
void reload(const CommonFlags& flags, server::Server& server) {
  try {
    const server::ApiKeys keys = read_keys(flags);
    server.set_keys(keys);
    log(LogLevel::info, "keys are read again", {{"keys", keys.describe()}});
  } catch (const Error& error) {
    log(LogLevel::error, "the keys stay as they were", {{"error", error.what()}});
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
  server::ServerOptions options = server_options(program, flags, keys);
  options.max_body_bytes = served->max_body_bytes();
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
  served->stop();
  log(LogLevel::info, "stopped");
  return whole ? 0 : kDeviceLost;
}

}  // namespace

int run_worker(const Program& program, const CommonFlags& flags, const std::string& model,
               const std::function<std::unique_ptr<Served>()>& load) {
  const LogFormat usual = isatty(STDOUT_FILENO) != 0 ? LogFormat::pretty : LogFormat::json;
  start_logging(log_format(environment("LLORCH_LOG_FORMAT"), usual), environment("RUST_LOG"));
  catch_stop_signals(flags.api_keys.empty() ? Hangup::ends : Hangup::reloads);
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
