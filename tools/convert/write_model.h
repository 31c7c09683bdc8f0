#pragma once
// Writes the planned tensors, a bounded part at a time.

#include <atomic>
#include <filesystem>
#include <functional>
#include <span>

#include "rbee/io/gguf_writer.h"
#include "rbee/io/safetensors_writer.h"
#include "tools/convert/importance.h"
#include "tools/convert/type_plan.h"

namespace rbee::tools {

struct WriteOptions {
  std::filesystem::path to;
  int threads = 1;
  const std::atomic<bool>* stop =
      nullptr;  // set from elsewhere: write_model() ends with `cancelled`
  const Importance* importance = nullptr;  // null: all columns are equal
  // After each tensor.
  std::function<void(const TensorPlan&, int64_t bytes, size_t index)> progress;
};

// Bytes of tensors that the plan makes.
int64_t planned_bytes(std::span<const TensorPlan> plans);

// Throws invalid_argument when writing `to` would replace one of the tensors' own files, also
// through a link, and when it is a folder; io when its disk has no room for the plan.
void check_target(std::span<const TensorPlan> plans, const std::filesystem::path& to);

// Adds the tensors to a writer that has its keys, and writes the file. It appears when it is whole;
// on any error nothing is left. Throws as the writers and convert_rows() do.
void write_model(io::GgufWriter& writer, std::span<const TensorPlan> plans,
                 const WriteOptions& options);
void write_model(io::SafetensorsWriter& writer, std::span<const TensorPlan> plans,
                 const WriteOptions& options);

}  // namespace rbee::tools
