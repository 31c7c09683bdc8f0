#pragma once
// `rbee serve` without its command line: workers as child processes behind one server.

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
  std::string version;
  std::shared_ptr<Tracer> tracer;  // whose figures are among the metrics; null: none
};

class Front {
 public:
  // Starts the workers, and a thread that looks after them. Throws io.
  explicit Front(FrontOptions options);
  ~Front();  // stop(0)
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Handlers hold the front.
  Router routes();
  // True while a request runs or waits, or a job waits for its reader.
  bool busy() const;
  // True when every worker of every model was given up.
  bool given_up() const;
  // Takes no new request; those that run go on.
  void drain();
  // Ends what runs, and the workers: SIGTERM, and SIGKILL after `patience`. Idempotent.
  void stop(std::chrono::milliseconds patience);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rbee::server
