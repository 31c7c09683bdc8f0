#include "tools/convert/tensor_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/nn/unpack_integers.h"
#include "rbee/quant/quant.h"

namespace rbee::tools {
namespace {

constexpr const char* kOp = "convert";
constexpr int64_t kBatchBytes = int64_t{16} << 20;

template <typename T>
void read_plain(const std::byte* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof value, sizeof value);
    if constexpr (std::is_arithmetic_v<T>) {
      to[i] = static_cast<float>(value);
    } else {
      to[i] = to_float(value);
    }
  }
}

// Upper halves of f16 numbers.
void read_e5m2(const std::byte* from, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = to_float(f16{static_cast<uint16_t>(static_cast<uint16_t>(from[i]) << 8)});
  }
}

template <typename T, typename Convert>
void write_plain(const float* from, std::byte* to, int64_t n, Convert convert) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = convert(from[i]);
    std::memcpy(to + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
  }
}

// The largest magnitude that surely neither becomes an infinity nor is clipped by a block's scale,
// which most types keep as a half.
float highest_magnitude(DType to) {
  if (to == DType::f16) return 65519;  // above it rounds to infinity
  if (to == DType::nvfp4) return 448 * 6;
  return is_quantized(to) ? 65504 : INFINITY;
}

// The first value of the row that `to` cannot hold, or n.
int64_t find_bad(const std::vector<float>& row, DType to) {
  const float highest = highest_magnitude(to);
  const auto bad = std::ranges::find_if(
      row, [&](float value) { return !std::isfinite(value) || std::fabs(value) > highest; });
  return bad - row.begin();
}

// Runs `work` on threads; the first error of any is thrown when all are done.
template <typename Work>
void on_threads(int threads, Work work) {
  std::exception_ptr error;
  std::mutex mutex;
  std::vector<std::thread> others;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  for (int i = 1; i < threads; ++i) others.emplace_back(guarded);
  guarded();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

class RowConverter {
 public:
  RowConverter(const SourceTensor& tensor, const RowOptions& options)
      : tensor_(tensor.stored),
        edit_(tensor.edit),
        to_(options.to),
        importance_(options.importance),
        columns_(columns_of(tensor)),
        rows_(columns_ == 0 ? 0 : numel(tensor_.shape) / columns_),
        row_in_(row_bytes(tensor_.dtype, columns_)),
        row_out_(row_bytes(to_, columns_)) {
    const int64_t heads = edit_.pair_heads;
    check(heads == 0 || rows_ % (2 * heads) == 0, kOp, "tensor ", tensor_.name, " has ", rows_,
          " rows for ", heads, " heads");
    if (edit_.transposed && info(tensor_.dtype).block_size != 1) {
      fail(Code::unsupported, kOp, "tensor ", tensor_.name, " of ", tensor_.dtype,
           " is not transposed; take weights of f32, f16 or bf16");
    }
  }

  int64_t rows() const { return rows_; }
  int64_t row_out() const { return row_out_; }

  // The new file's `row` into `out`; `values` is room for it as f32.
  void convert(int64_t row, std::vector<float>& values, std::byte* out) const {
    const int64_t from = stored_row(row);
    if (tensor_.dtype == to_ && is_quantized(to_) && !edit_.changes_values()) {
      std::memcpy(out, tensor_.data.data() + from * row_in_, static_cast<size_t>(row_in_));
      return;
    }
    values.resize(static_cast<size_t>(columns_));
    std::vector<std::byte> gathered;
    const std::byte* stored = tensor_.data.data() + from * row_in_;
    if (edit_.transposed) {
      gathered = gather(row);
      stored = gathered.data();
    }
    if (tensor_.is_e5m2) {
      read_e5m2(stored, values);
    } else {
      row_to_float(tensor_.dtype, stored, values.data(), columns_);
    }
    if (io::is_fp8(tensor_)) io::scale_row(tensor_, from, values);
    if (edit_.changes_values()) {
      const float scale = edit_.scale * scale_of(row);
      for (float& value : values) value = (value + edit_.offset) * scale;
    }
    const int64_t bad = find_bad(values, to_);
    check(bad == columns_, kOp, "tensor ", tensor_.name, " has the value ",
          bad < columns_ ? values[static_cast<size_t>(bad)] : 0.0f, " in row ", row, ", column ",
          bad, ", which ", to_, " cannot hold; the file may be damaged");
    row_from_float(to_, values.data(), out, columns_, importance_of(row));
  }

 private:
  static int64_t columns_of(const SourceTensor& tensor) {
    const Shape& shape = tensor.stored.shape;
    if (shape.rank() == 0 || (shape.rank() == 1 && tensor.edit.pair_heads > 0)) return 1;
    return shape[shape.rank() - 1];
  }

  // A row of the new file's, which is a column of one of the stored matrices.
  std::vector<std::byte> gather(int64_t row) const {
    const int64_t size = row_bytes(tensor_.dtype, 1);
    const int64_t width = tensor_.shape[tensor_.shape.rank() - 2];  // of a stored row
    const std::byte* from =
        tensor_.data.data() + row / width * width * row_in_ + row % width * size;
    std::vector<std::byte> out(static_cast<size_t>(row_in_));
    for (int64_t i = 0; i < columns_; ++i) {
      std::memcpy(out.data() + i * size, from + i * width * size, static_cast<size_t>(size));
    }
    return out;
  }

  float scale_of(int64_t row) const {
    const auto matrices = static_cast<int64_t>(edit_.scales.size());
    return matrices == 0 ? 1.0f : edit_.scales[static_cast<size_t>(row / (rows_ / matrices))];
  }

  const float* importance_of(int64_t row) const {
    if (importance_.empty()) return nullptr;
    const int64_t matrices = static_cast<int64_t>(importance_.size()) / columns_;
    return importance_.data() + row / (rows_ / matrices) * columns_;
  }

  int64_t stored_row(int64_t row) const {
    if (edit_.pair_heads == 0) return row;
    const int64_t head_dim = rows_ / edit_.pair_heads;
    const int64_t head = row / head_dim, within = row % head_dim;
    return head * head_dim + within % 2 * (head_dim / 2) + within / 2;
  }

  const io::TensorEntry& tensor_;
  RowEdit edit_;
  DType to_;
  std::span<const float> importance_;
  int64_t columns_;
  int64_t rows_;
  int64_t row_in_;   // bytes
  int64_t row_out_;  // bytes
};

}  // namespace

void row_to_float(DType dtype, const std::byte* from, float* to, int64_t n) {
  if (is_quantized(dtype)) return quant::dequantize_row(dtype, from, to, n);
  switch (dtype) {
    case DType::f32:
      return read_plain<float>(from, to, n);
    case DType::f16:
      return read_plain<f16>(from, to, n);
    case DType::bf16:
      return read_plain<bf16>(from, to, n);
    case DType::f64:
      return read_plain<double>(from, to, n);
    case DType::f8e4m3:
      return read_plain<f8e4m3>(from, to, n);
    default:
      fail(Code::unsupported, kOp, dtype, " is not converted to floats");
  }
}

void row_from_float(DType dtype, const float* from, std::byte* to, int64_t n,
                    const float* importance) {
  if (is_quantized(dtype)) return quant::quantize_row(dtype, from, to, n, importance);
  switch (dtype) {
    case DType::f32:
      return write_plain<float>(from, to, n, [](float x) { return x; });
    case DType::f16:
      return write_plain<f16>(from, to, n, to_f16);
    case DType::bf16:
      return write_plain<bf16>(from, to, n, to_bf16);
    default:
      fail(Code::unsupported, kOp, "floats are not converted to ", dtype);
  }
}

bool can_convert_to(DType dtype) {
  return is_quantized(dtype) || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

void convert_rows(const SourceTensor& tensor, const RowOptions& options,
                  const std::function<void(std::span<const std::byte>)>& write) {
  const auto check_stop = [&] {
    if (options.stop != nullptr && *options.stop) fail(Code::cancelled, kOp, "stopped");
  };
  if (!tensor.stack.empty()) {
    const size_t own = options.importance.size() / tensor.stack.size();
    const auto columns = static_cast<size_t>(tensor.stored.shape[tensor.stored.shape.rank() - 1]);
    for (size_t i = 0; i < tensor.stack.size(); ++i) {
      RowOptions how = options;  // one row of importance may be for all
      if (own >= columns) how.importance = options.importance.subspan(i * own, own);
      SourceTensor expert{.stored = tensor.stack[i], .edit = tensor.edit, .made = {}, .stack = {}};
      if (!expert.edit.scales.empty()) expert.edit.scales = {tensor.edit.scales[i]};
      convert_rows(expert, how, write);
    }
    return;
  }
  if (tensor.stored.integers) {
    SourceTensor plain = tensor;
    plain.stored = nn::unpacked(tensor.stored, 0, tensor.stored.shape[0], DType::f32);
    return convert_rows(plain, options, write);
  }
  const bool edited =
      tensor.edit.pair_heads != 0 || tensor.edit.transposed || tensor.edit.changes_values();
  if (tensor.stored.dtype == options.to && !edited) {
    std::span<const std::byte> left = tensor.stored.data;
    while (!left.empty()) {
      check_stop();
      const size_t count = std::min(left.size(), static_cast<size_t>(kBatchBytes));
      write(left.first(count));
      left = left.subspan(count);
    }
    return;
  }
  const RowConverter converter(tensor, options);
  const int64_t total = converter.rows();
  const int64_t batch = std::clamp(kBatchBytes / std::max<int64_t>(converter.row_out(), 1),
                                   int64_t{1}, std::max<int64_t>(total, 1));
  std::vector<std::byte> out(static_cast<size_t>(batch * converter.row_out()));
  for (int64_t first = 0; first < total; first += batch) {
    const int64_t count = std::min(batch, total - first);
    std::atomic<int64_t> next = 0;
    on_threads(static_cast<int>(std::min<int64_t>(options.threads, count)), [&] {
      std::vector<float> values;
      for (int64_t i = next++; i < count; i = next++) {
        check_stop();
        converter.convert(first + i, values, out.data() + i * converter.row_out());
      }
    });
    write(std::span(out).first(static_cast<size_t>(count * converter.row_out())));
  }
}

}  // namespace rbee::tools
