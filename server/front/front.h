#pragma once
// `rbee serve` without its command line: one server before workers in child processes.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/front/config.h"
#include "server/http/router.h"

namespace rbee::server {

struct FrontOptions {
  FrontConfig config;                    // with each model's program
  std::vector<std::string> environment;  // of the workers: "NAME=value"
  FrontHooks hooks{};
  std::string version;
  std::vector<std::string> cors_origins{};  // as in ServerOptions
  std::shared_ptr<Tracer> tracer;           // its figures are among the metrics; null: none
};

class Front {
 public:
  // Starts the workers, and a thread that manages them. Throws io.
  explicit Front(FrontOptions options);
  ~Front();  // stop(0)
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Handlers hold the front.
  Router routes();
  // True while a request runs or waits, or a job's stream is unread.
  bool busy() const;
  // True if all workers of all models were given up.
  bool given_up() const;
  // Accepts no new requests; running ones go on.
  void drain();
  // Ends running requests, then the workers: SIGTERM, and SIGKILL after `patience`. Idempotent.
  void stop(std::chrono::milliseconds patience);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::server
