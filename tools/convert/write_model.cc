#include "tools/convert/write_model.h"

#include <system_error>

#include "rbee/core/error.h"
#include "tools/convert/tensor_rows.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;

// Writer: GgufWriter or SafetensorsWriter.
template <typename Writer>
void write_with(Writer& writer, std::span<const TensorPlan> plans, const WriteOptions& options) {
  for (const TensorPlan& plan : plans) {
    writer.add_tensor(plan.tensor->stored.name, plan.to, plan.tensor->stored.shape);
  }
  writer.begin(options.to);
  for (size_t i = 0; i < plans.size(); ++i) {
    const TensorPlan& plan = plans[i];
    int64_t bytes = 0;
    std::vector<float> importance;
    if (options.importance != nullptr) importance = options.importance->of(plan);
    const RowOptions how{
        .to = plan.to, .threads = options.threads, .stop = options.stop, .importance = importance};
    convert_rows(*plan.tensor, how, [&](std::span<const std::byte> rows) {
      bytes += static_cast<int64_t>(rows.size());
      writer.write(rows);
    });
    for (const io::TensorEntry& source : plan.tensor->sources()) {
      if (source.file) source.file->dont_need(source.data);
    }
    if (options.progress) options.progress(plan, bytes, i);
  }
  writer.finish();
}

}  // namespace

int64_t planned_bytes(std::span<const TensorPlan> plans) {
  int64_t bytes = 0;
  for (const TensorPlan& plan : plans) {
    bytes += io::tensor_bytes(plan.to, plan.tensor->stored.shape, plan.tensor->stored.name);
  }
  return bytes;
}

void check_target(std::span<const TensorPlan> plans, const fs::path& to) {
  const std::string name = to.string();
  std::error_code error;
  check(!fs::is_directory(to, error), name, "is a folder; give the name of a file");
  for (const TensorPlan& plan : plans) {
    for (const io::TensorEntry& source : plan.tensor->sources()) {
      check(!source.file || !fs::equivalent(source.file->path(), to, error), name,
            "is the input; give another name");
    }
  }
  const fs::path folder = to.has_parent_path() ? to.parent_path() : fs::path(".");
  const fs::space_info space = fs::space(folder, error);
  if (error) fail(Code::io, name, "cannot be written: ", error.message());
  const auto bytes = static_cast<uintmax_t>(planned_bytes(plans));
  if (bytes > space.available) {
    fail(Code::io, name, "needs ", bytes, " bytes, the disk has ", space.available, " left");
  }
}

void write_model(io::GgufWriter& writer, std::span<const TensorPlan> plans,
                 const WriteOptions& options) {
  write_with(writer, plans, options);
}

void write_model(io::SafetensorsWriter& writer, std::span<const TensorPlan> plans,
                 const WriteOptions& options) {
  write_with(writer, plans, options);
}

}  // namespace rbee::tools
