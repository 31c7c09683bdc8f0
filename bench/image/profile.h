#pragma once
// Where the time of a model's run goes: by operation, implementation and shape. A device that
// queues its work is waited for after each operation, and what an empty one takes is taken off.

#include <map>
#include <string>
#include <vector>

#include "backends/api/device.h"
#include "rbee/ops/trace.h"

namespace rbee::bench {

// Times operations while it lives; what follows an operation until the next one counts as its.
class Profile {
 public:
  explicit Profile(Device& device);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  struct Row {
    std::string op;      // and its implementation
    std::string shapes;  // of the first two operands
    int64_t calls = 0;
    double seconds = 0;
    double flops = 0;  // multiplications and additions of all calls; 0 = not counted
  };

  // Ends the current operation.
  void stop();
  // Longest first.
  std::vector<Row> rows() const;

 private:
  void start(const TracedOp& op);

  Device& device_;
  double empty_ = 0;  // seconds of an operation that does nothing
  std::map<std::string, Row> rows_;
  Row* current_ = nullptr;
  double since_ = 0;
};

// Seconds on a clock that never goes back.
double now();

}  // namespace rbee::bench
