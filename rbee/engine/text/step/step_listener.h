#pragma once
// What the leader of a group tells the other ranks, so that they do the same: all integers of a
// step are one list, and that list is the message.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rbee/core/dtype.h"
#include "rbee/core/error.h"

namespace rbee::engine {

// A new, empty cache, of a new Stepper.
struct OpenCommand {
  int64_t cache_tokens = 0;
  int64_t block_size = 0;
  std::optional<DType> kv_dtype;
  int64_t host_blocks = 0;

  bool operator==(const OpenCommand&) const = default;
};

// A step, see Stepper::Indices and TopLogitsWanted.
struct StepCommand {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t table_width = 0;
  int64_t rows = 0;
  int64_t single_queries = 0;
  int64_t lora_each = 0;
  bool key_ends = false;
  std::vector<int32_t> values;
  int64_t top_logits = 0;  // of each row
  int64_t vocab = 0;
  std::vector<float> scales;
  int64_t top_rows = 0;  // the first ones, whose largest logits are searched
  // The rest is of steps that are captured: replays of a capture, or its first run.
  bool captured = false;
  bool has_capture = false;         // the leader has captured it before
  int64_t next_token = 0;           // Stepper::captured_'s last key
  std::vector<int32_t> draws = {};  // NextStep::draw_words()

  bool operator==(const StepCommand&) const = default;
};

// The last captured step once more, with the integers that it wrote.
struct AsyncStepCommand {
  bool operator==(const AsyncStepCommand&) const = default;
};

// The last captured step once more, with these integers.
struct AgainCommand {
  std::vector<int32_t> values;
  int32_t turn = 0;  // see NextStep

  bool operator==(const AgainCommand&) const = default;
};

// Captured steps are dropped.
struct ForgetCommand {
  bool operator==(const ForgetCommand&) const = default;
};

// Whole rows of the last step's logits go to the leader.
struct RowsCommand {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const RowsCommand&) const = default;
};

// An adapter's file or folder goes into a slot of the layers.
struct LoraCommand {
  int32_t slot = 0;
  std::string path;

  bool operator==(const LoraCommand&) const = default;
};

// Copies between the cache and host memory: block, slot and 1 for a copy to the host, for each.
struct CopyCommand {
  bool beside = false;  // see BlockCopier
  std::vector<int32_t> values;

  bool operator==(const CopyCommand&) const = default;
};

// Each function returns when the command is on its way, before the leader does the same. Throws
// device if a rank is lost.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void on_open(const OpenCommand& command) = 0;
  virtual void on_step(const StepCommand& command) = 0;
  virtual void on_rows(const RowsCommand& command) = 0;
  virtual void on_lora(const LoraCommand& command) = 0;
  virtual void on_copies(const CopyCommand& command) = 0;
  virtual void on_async_step(const AsyncStepCommand& command) = 0;
  virtual void on_again(const AgainCommand& command) = 0;
  virtual void on_forget(const ForgetCommand& command) = 0;
  // The leader begins to wait for the device.
  virtual void on_wait() = 0;
  // The leader has waited. Throws device if a rank is lost: the device's results may then be
  // incomplete.
  virtual void on_results() = 0;
  // The leader could not do what the others have been told: their states differ from now on.
  // Throws device.
  [[noreturn]] virtual void on_failure(const std::exception& error) = 0;
};

}  // namespace rbee::engine
