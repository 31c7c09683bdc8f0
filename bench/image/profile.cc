#include "bench/image/profile.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "rbee/core/error.h"

namespace rbee::bench {
namespace {

std::string describe(const View* view) {
  if (view == nullptr) return "";
  std::string text = cat(view->dtype, ' ');
  for (int i = 0; i < view->rank; ++i) text += cat(i > 0 ? "x" : "", view->sizes[i]);
  return text;
}

// Of the operations that do most of a model's arithmetic.
double flops_of(const TracedOp& op) {
  const std::string_view name = op.op;
  if (op.x == nullptr || op.other == nullptr) return 0;
  const View &x = *op.x, &other = *op.other;
  const auto product = [](auto... sizes) { return 2 * (static_cast<double>(sizes) * ...); };
  if (name == "image_conv") {
    // Of a stride of one and the input's size: exact for most convolutions of image models.
    return product(x.size(0), x.size(1), x.size(2), other.numel());
  }
  if (name == "attention")
    return 2 * product(x.size(0), x.size(1), x.size(2), x.size(3), other.size(2));
  if (name == "linear" || name == "fused_linear") {
    return product(x.size(0), x.size(1), op.weight_rows);
  }
  return 0;
}

// Seconds from queueing a tiny piece of work to its end; 0 on devices that work at once.
double empty_operation(Device& device) {
  if (device.host_accessible()) return 0;
  constexpr size_t kBytes = 64;
  Stream& stream = device.default_stream();
  void* data = device.allocate(kBytes, stream);
  double least = 1e30;
  for (int i = 0; i < 100; ++i) {
    device.synchronize(stream);
    const double start = now();
    device.fill_bytes(data, 0, kBytes, stream);
    device.synchronize(stream);
    least = std::min(least, now() - start);
  }
  device.free(data, kBytes, stream);
  return least;
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Profile::Profile(Device& device) : device_(device), empty_(empty_operation(device)) {
  set_op_trace([this](const TracedOp& op) { start(op); });
}

Profile::~Profile() {
  set_op_trace({});
}

void Profile::start(const TracedOp& op) {
  stop();
  const std::string name = cat(op.op, '/', op.implementation);
  const std::string shapes =
      cat(describe(op.x), op.other != nullptr ? " * " : "", describe(op.other));
  Row& row = rows_[name + shapes];
  row.op = name;
  row.shapes = shapes;
  ++row.calls;
  row.flops += flops_of(op);
  current_ = &row;
  since_ = now();
}

void Profile::stop() {
  if (current_ == nullptr) return;
  device_.synchronize(device_.default_stream());
  current_->seconds += std::max(0.0, now() - since_ - empty_);
  current_ = nullptr;
}

std::vector<Profile::Row> Profile::rows() const {
  std::vector<Row> out;
  for (const auto& [key, row] : rows_) out.push_back(row);
  std::ranges::sort(out, [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace rbee::bench
