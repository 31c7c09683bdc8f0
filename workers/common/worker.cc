#include "workers/common/worker.h"

#include <unistd.h>

#include <exception>
#include <future>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "server/http/clock.h"
#include "server/http/server.h"
#include "server/worker/heartbeat.h"
#include "workers/common/crash_handler.h"
#include "workers/common/logging.h"
#include "workers/common/lost_files.h"
#include "workers/common/memory.h"
#include "workers/common/stop_signals.h"
#include "workers/common/tracing.h"

namespace rbee::workers {
namespace {

// The part of kStopTime in which clients read the rest of their streams.
constexpr std::chrono::milliseconds kStreamGrace{700};
constexpr std::chrono::milliseconds kTraceGrace{300};  // for the last spans, also part of it
constexpr std::chrono::milliseconds kHiveGrace{700};   // for the hive's answer, at the same time
// For the last requests to the loading server, and then as long for their answers.
constexpr std::chrono::milliseconds kLoadingGrace{200};
// loading_routes() refuses large bodies unread, with a better answer than 413.
constexpr size_t kUnreadBodyBytes = size_t{1} << 30;
constexpr int kIdleLooks = 5;  // then the device returns memory
constexpr std::chrono::milliseconds kDrainTick{50};
// How long a worker that lost its device still answers: clients read why their streams ended, and
// health probes see it. Then the process ends so that a new one can start.
constexpr std::chrono::seconds kLostGrace{3};

constexpr int kCannotRun = 1;

// Before the model is loaded, with which the device is chosen.
std::string device_of(const Program& program, const CommonFlags& flags) {
  if (program.kind == DeviceKind::cpu) return cat(DeviceId{program.kind, 0});
  return flags.any_device ? "auto" : cat(DeviceId{program.kind, flags.device});
}

// What a hive hears of the worker: that it starts, and how far it is; how it is while there is a
// service; and that it has stopped.
class HiveReports {
 public:
  HiveReports(const Program& program, const CommonFlags& flags, const std::string& model)
      : info_{.id = flags.worker_id,
              .model_id = flags.model_ref.empty() ? model : flags.model_ref,
              .device = device_of(program, flags),
              .port = flags.port,
              .status = "starting",
              .implementation = program.name,
              .version = RBEE_VERSION} {
    if (flags.hive_url.empty()) return;
    try {
      heartbeat_.emplace(server::HeartbeatOptions{.hive = server::parse_url(flags.hive_url),
                                                  .last_timeout = kHiveGrace},
                         [this] { return json(); });
    } catch (const Error& error) {
      log(LogLevel::warn, "no heartbeats: the hive's address is not usable",
          {{"error", error.what()}});
    }
  }
  ~HiveReports() { leave(); }
  HiveReports(const HiveReports&) = delete;
  HiveReports& operator=(const HiveReports&) = delete;

  // Of a worker that starts.
  server::LoadingState& loading() { return loading_; }
  server::WorkerInfo info() {
    const std::scoped_lock lock(mutex_);
    return info_;
  }
  void listens(uint16_t port) {
    {
      const std::scoped_lock lock(mutex_);
      if (std::exchange(info_.port, port) == port) return;
    }
    changed();
  }

  // Must outlive leave().
  void serve(const server::WorkerService& service) {
    {
      const std::scoped_lock lock(mutex_);
      service_ = &service;
    }
    changed();
  }
  // Reports at once, without waiting for the next heartbeat.
  void changed() {
    if (heartbeat_) heartbeat_->send_now();
  }
  // Reports that the service accepts nothing new; after that only the end follows.
  void stop() {
    stopped_ = true;
    if (heartbeat_) heartbeat_->stop();
  }
  // The last report. Idempotent.
  void leave() {
    {
      const std::scoped_lock lock(mutex_);
      if (service_ != nullptr) info_ = service_->info();
      service_ = nullptr;
      if (std::exchange(info_.status, "stopped") == "stopped") return;
    }
    if (!heartbeat_) return;
    stopped_ ? heartbeat_->send_last() : heartbeat_->stop();
  }

 private:
  std::string json() {
    const std::scoped_lock lock(mutex_);
    const bool serves = service_ != nullptr;
    const bool starts = !serves && info_.status == "starting";
    return server::heartbeat_json(serves ? service_->info() : info_,
                                  serves ? service_->memory() : server::MemoryFigures{},
                                  server::iso8601(std::chrono::system_clock::now()),
                                  starts ? loading_.progress() : std::nullopt);
  }

  std::mutex mutex_;  // guards the two below
  server::WorkerInfo info_;
  const server::WorkerService* service_ = nullptr;
  server::LoadingState loading_{[this] { changed(); }};
  bool stopped_ = false;
  std::optional<server::Heartbeat> heartbeat_;  // last: it calls json()
};

// The worker leaves its hive before its service ends.
struct Leaving {
  HiveReports& reports;
  ~Leaving() { reports.leave(); }
};

// Lets running answers end and reach their clients, and refuses new requests.
void drain(server::WorkerService& service, const server::Server& server,
           std::chrono::seconds patience) {
  service.drain();
  const auto end = server::Clock::now() + patience;
  log(LogLevel::info, "draining", {{"seconds", cat(patience.count())}});
  const auto busy = [&] { return service.busy() || service.has_unread() || server.busy(); };
  while (busy() && server::Clock::now() < end) {
    service.tick(server::Clock::now());
    std::this_thread::sleep_for(kDrainTick);
  }
}

// Returns after a stop signal or the loss of the device. Reports to the hive within a tick that the
// worker became busy, ready or unable to go on. False if the device was lost.
bool watch(const Program& program, const CommonFlags& flags, server::Server& server,
           server::WorkerService& service, HiveReports& reports) {
  std::string reported = service.info().status;
  MemoryTrimmer memory;
  int idle = 0;  // consecutive looks at which nothing ran
  while (!wait_for_stop(program.tick)) {
    memory.tick();
    idle = service.busy() ? 0 : idle + 1;
    if (idle % kIdleLooks == 0 && idle > 0 && program.trim_memory != nullptr) program.trim_memory();
    if (take_reload()) reload(flags, server);
    service.tick(server::Clock::now());
    std::string status = service.info().status;
    if (status != reported) reports.changed();
    reported = std::move(status);
    if (service.healthy()) continue;
    log(LogLevel::error, "the device is lost: the worker ends",
        {{"seconds", cat(kLostGrace.count())}});
    wait_for_stop(kLostGrace);
    end_within(kStopTime, kLost);  // calls to a lost device may never return
    return false;
  }
  return true;
}

// Answers while the model loads.
std::unique_ptr<server::Server> loading_server(server::ServerOptions options,
                                               const server::ApiKeys& keys, HiveReports& reports,
                                               PathErrorForm error_form) {
  options.max_body_bytes = kUnreadBodyBytes;
  auto out = std::make_unique<server::Server>(
      options, server::loading_routes(reports.info(), reports.loading(), error_form), keys);
  reports.listens(out->port());
  log(LogLevel::info, "listening", {{"host", options.host}, {"port", cat(out->port())}});
  return out;
}

// Returns the exit status.
int serve(const Program& program, const CommonFlags& flags, HiveReports& reports,
          PathErrorForm error_form, const Load& load) {
  const std::shared_ptr<server::Tracer> tracer =
      make_tracer(flags, {.service = program.name, .instance = flags.worker_id});
  const server::ApiKeys keys = read_keys(flags);
  server::ServerOptions options = server_options(cat(program.name, "/", RBEE_VERSION), flags, keys);
  const std::unique_ptr<server::Server> before = loading_server(options, keys, reports, error_form);
  const std::unique_ptr<Served> served = load(reports.loading());
  const Leaving leaving{reports};
  server::WorkerService& service = served->service();
  service.set_port(before->port());
  // Without a token, any web page in this machine's browser could stop the worker.
  const bool has_token = server::ApiKeys(environment("LLORCH_API_TOKEN")).enabled();
  const std::function<void()> shutdown = has_token ? ask_for_stop : nullptr;
  options.max_body_bytes =
      flags.max_body_bytes > 0 ? flags.max_body_bytes : served->max_body_bytes();
  options.tracer = tracer;
  service.set_tracer(tracer);
  server::Server server(options, served->routes(shutdown), keys, *before);
  // A client that has just connected may still send its request there.
  const auto gone = std::async(std::launch::async, [&before] {
    std::this_thread::sleep_for(kLoadingGrace);
    before->stop(kLoadingGrace);
  });
  const std::chrono::seconds patience(flags.drain_seconds);
  arm_stop_signals(patience);
  reports.serve(service);
  log(LogLevel::info, "ready",
      {{"worker_id", flags.worker_id},
       {"host", options.host},
       {"port", cat(server.port())},
       {"max_body_bytes", cat(options.max_body_bytes)}});

  const bool whole = watch(program, flags, server, service, reports);
  if (whole && patience.count() > 0) {
    reports.changed();
    drain(service, server, patience);
  }

  service.shutdown();
  // On its own, because a hive that does not answer must not delay the rest.
  const auto told = std::async(std::launch::async, [&reports] { reports.stop(); });
  server.stop(kStreamGrace);
  work_is_over();
  served->stop();
  if (tracer) tracer->stop(kTraceGrace);
  told.wait();
  reports.leave();
  log(LogLevel::info, "stopped");
  return whole ? 0 : kLost;
}

}  // namespace

void start_log() {
  const LogFormat usual = isatty(STDOUT_FILENO) != 0 ? LogFormat::pretty : LogFormat::json;
  start_logging(log_format(environment("LLORCH_LOG_FORMAT"), usual), environment("RUST_LOG"));
}

int run_worker(const Program& program, const CommonFlags& flags, const std::string& model,
               PathErrorForm error_form, const Load& load) {
  start_log();
  catch_stop_signals(flags.api_keys.empty() && flags.tls_cert.empty() ? Hangup::ends
                                                                      : Hangup::reloads);
  end_on_lost_files(program.name, kLost);
  install_crash_handler(program.name);
  log(LogLevel::info, "starting",
      {{"worker_id", flags.worker_id},
       {"model", model},
       {"port", cat(flags.port)},
       {"backend", std::string(name(program.kind))},
       {"version", RBEE_VERSION}});
  for (const std::string& extra : flags.ignored) {
    log(LogLevel::warn, "not a flag of this worker, ignored", {{"flag", extra}});
  }
  HiveReports reports(program, flags, model);
  try {
    return serve(program, flags, reports, error_form, load);
  } catch (const std::exception& error) {
    log(LogLevel::error, "the worker cannot run", {{"error", error.what()}});
    std::cerr << program.name << ": " << printable_text(error.what()) << '\n';
    // Another rank that is lost while the model loads; a device that is not there cannot run.
    const auto* const known = dynamic_cast<const Error*>(&error);
    const bool lost = known != nullptr && known->code() == Code::device && known->op() == "group";
    return lost ? kLost : kCannotRun;
  }
}

}  // namespace rbee::workers
