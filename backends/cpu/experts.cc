#include "backends/cpu/experts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/api/dispatch.h"
#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/linear/linear.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/run_first.h"
#include "backends/cpu/thread_pool.h"
#include "rbee/core/half.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kFewChoices = 64;         // of a step: its experts have a row or two each
constexpr int64_t kSliceBytes = 64 * 1024;  // of an expert's weights that are worth a slice
constexpr int64_t kSlicesPerThread = 4;

// A view of `rows` rows of two axes at `data`.
View rows_at(const View& like, void* data, int64_t rows) {
  View out = like;
  out.data = data;
  out.sizes[0] = rows;
  return out;
}

int64_t bytes_of_row(const View& x) {
  return x.size(1) * info(x.dtype).block_bytes;
}

std::byte* row_of(const View& x, int64_t row) {
  return x.as<std::byte>() + row * bytes_of_row(x);
}

// Bytes of a matrix's first rows: as many as the packing's unit divides, or all.
int64_t bytes_of_rows(View matrix, int64_t rows) {
  if (matrix.packing == 0) return rows * row_bytes(matrix.dtype, matrix.size(1));
  if (rows == 0) return 0;
  matrix.packing = 0;
  matrix.sizes[0] = rows;
  return plan_packing(matrix).bytes;
}

// Slice `index` of `count` of a matrix's rows, cut between `unit` rows.
struct Slice {
  int64_t index = 0, count = 1;

  int64_t begin(int64_t rows, int64_t unit) const {
    return std::min((rows + unit - 1) / unit * index / count * unit, rows);
  }
  Slice next() const { return {index + 1, count}; }
};

View matrix_of(const View& weight, int64_t expert) {
  View out = weight;
  out.rank = 2;
  std::copy_n(weight.sizes + 1, 2, out.sizes);
  std::copy_n(weight.strides + 1, 2, out.strides);
  out.data = weight.as<std::byte>() + expert * bytes_of_rows(out, out.size(0));
  return out;
}

// Rows of a weight that may be cut apart without packing it again; 0: none.
int64_t unit_of(const View& weight) {
  if (weight.packing == 0) return 1;
  View plain = matrix_of(weight, 0);
  plain.packing = 0;
  return plan_packing(plain).unit_rows;
}

// The choices, numbered through all tokens, in the order of their experts.
struct Groups {
  std::vector<int64_t> starts;  // (experts + 1)
  std::vector<int64_t> choices;
  std::vector<int64_t> absent;  // choices of no expert

  Groups(const View& ids, int64_t experts) : starts(static_cast<size_t>(experts) + 1) {
    const auto* id = ids.as<const int32_t>();
    for (int64_t i = 0; i < ids.numel(); ++i) {
      if (id[i] < 0) {
        absent.push_back(i);
      } else {
        ++starts[static_cast<size_t>(id[i]) + 1];
      }
    }
    for (size_t e = 1; e < starts.size(); ++e) starts[e] += starts[e - 1];
    choices.resize(static_cast<size_t>(starts.back()));
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (int64_t i = 0; i < ids.numel(); ++i) {
      if (id[i] >= 0) choices[static_cast<size_t>(next[static_cast<size_t>(id[i])]++)] = i;
    }
  }
};

// The products of one expert, or of a slice of its rows.
class Expert {
 public:
  Expert(const ExpertLinearArgs& args, const int64_t* choices, int64_t count, int64_t expert)
      : args_(args), choices_(choices), count_(count), expert_(expert) {}

  void run(Stream& stream, const Slice& slice = {}) const {
    const bool direct = count_ == 1;  // without copies
    std::vector<Rows> rows;
    for (const ExpertPart& part : args_.parts) rows.push_back(rows_of(part, slice));
    Buffers at;
    if (!direct) at = reserve(rows);
    std::vector<LinearPart> parts;
    for (size_t i = 0; i < args_.parts.size(); ++i) {
      if (rows[i].count == 0) continue;
      const ExpertPart& part = args_.parts[i];
      std::byte* const y =
          direct ? row_of(part.y, choices_[0]) + bytes_of(part, rows[i].first) : at.results[i];
      parts.push_back({.weight = weight_of(part, rows[i]),
                       .bias = bias_of(part, rows[i]),
                       .y = result_at(part.y, y, rows[i].count)});
    }
    if (parts.empty()) return;
    const View x = rows_at(args_.x, direct ? x_row(0) : gather(at.x), count_);
    run_first(cpu_kernels().linear, LinearArgs{.x = x, .parts = parts}, stream);
    if (direct) return;
    for (size_t i = 0; i < args_.parts.size(); ++i) scatter(at.results[i], args_.parts[i], rows[i]);
  }

 private:
  struct Buffers {
    std::byte* x = nullptr;
    std::vector<std::byte*> results;
  };

  struct Rows {
    int64_t first, count;  // of the expert's matrix
  };

  static Rows rows_of(const ExpertPart& part, const Slice& slice) {
    const int64_t rows = part.weight.size(1);
    if (slice.count == 1) return {0, rows};
    const int64_t unit = unit_of(part.weight), first = slice.begin(rows, unit);
    return {first, slice.next().begin(rows, unit) - first};
  }

  static int64_t bytes_of(const ExpertPart& part, int64_t columns) {
    return columns * info(part.y.dtype).block_bytes;
  }

  View weight_of(const ExpertPart& part, const Rows& rows) const {
    View out = matrix_of(part.weight, expert_);
    out.data = out.as<std::byte>() + bytes_of_rows(out, rows.first);
    out.sizes[0] = rows.count;
    return out;
  }

  View result_at(const View& y, void* data, int64_t columns) const {
    View out = rows_at(y, data, count_);
    out.sizes[1] = out.strides[0] = columns;
    return out;
  }

  Buffers reserve(const std::vector<Rows>& rows) const {
    static thread_local Scratch scratch;
    Carver counter(nullptr);
    carve(counter, rows);
    Carver carver(scratch.reserve(counter.used()));
    return carve(carver, rows);
  }

  Buffers carve(Carver& carver, const std::vector<Rows>& rows) const {
    Buffers out{.x = carver.take<std::byte>(count_ * bytes_of_row(args_.x)), .results = {}};
    for (size_t i = 0; i < rows.size(); ++i) {
      out.results.push_back(
          carver.take<std::byte>(count_ * bytes_of(args_.parts[i], rows[i].count)));
    }
    return out;
  }

  View bias_of(const ExpertPart& part, const Rows& rows) const {
    if (!part.bias) return {};
    View bias = part.bias;
    bias.rank = 1;
    bias.sizes[0] = rows.count;
    bias.strides[0] = 1;
    bias.data = row_of(part.bias, expert_) + rows.first * info(part.bias.dtype).block_bytes;
    return bias;
  }

  std::byte* x_row(int64_t i) const {
    const int64_t each = args_.ids.numel() / args_.x.size(0);
    return row_of(args_.x, choices_[i] / each);
  }

  std::byte* gather(std::byte* to) const {
    const int64_t bytes = bytes_of_row(args_.x);
    for (int64_t i = 0; i < count_; ++i) {
      std::memcpy(to + i * bytes, x_row(i), static_cast<size_t>(bytes));
    }
    return to;
  }

  void scatter(const std::byte* from, const ExpertPart& part, const Rows& rows) const {
    const auto bytes = static_cast<size_t>(bytes_of(part, rows.count));
    const int64_t column = bytes_of(part, rows.first);
    for (int64_t i = 0; i < count_; ++i, from += bytes) {
      std::memcpy(row_of(part.y, choices_[i]) + column, from, bytes);
    }
  }

  const ExpertLinearArgs& args_;
  const int64_t* choices_;
  int64_t count_;
  int64_t expert_;
};

// How threads share the chosen experts.
struct Shares {
  int64_t slices = 1;  // of each expert's rows
  bool at_once =
      false;  // they meet once, and take slices of all experts; else once for each expert
};

Shares shares_of(const ExpertLinearArgs& args, int64_t experts) {
  if (experts == 0 || args.ids.numel() > kFewChoices) return {};
  int64_t bytes = 0, units = std::numeric_limits<int64_t>::max();
  for (const ExpertPart& part : args.parts) {
    const View matrix = matrix_of(part.weight, 0);
    bytes += bytes_of_rows(matrix, matrix.size(0));
    const int64_t unit = unit_of(part.weight);
    units =
        std::min(units, unit == 0 ? 1 : std::max<int64_t>((matrix.size(0) + unit - 1) / unit, 1));
  }
  const int64_t wanted =
      (kSlicesPerThread * ThreadPool::shared().threads() + experts - 1) / experts;
  return {.slices = std::clamp<int64_t>(std::min(wanted, bytes / kSliceBytes), 1, units),
          .at_once = true};
}

void clear_rows(const View& y, const std::vector<int64_t>& rows) {
  const auto bytes = static_cast<size_t>(bytes_of_row(y));
  for (const int64_t row : rows) std::memset(row_of(y, row), 0, bytes);
}

void run_linear(const ExpertLinearArgs& args, Stream& stream) {
  const int64_t experts = args.parts.front().weight.size(0);
  const Groups groups(args.ids, experts);
  for (const ExpertPart& part : args.parts) clear_rows(part.y, groups.absent);
  std::vector<int64_t> chosen;
  for (int64_t e = 0; e < experts; ++e) {
    const auto at = static_cast<size_t>(e);
    if (groups.starts[at + 1] > groups.starts[at]) chosen.push_back(e);
  }
  const auto run = [&](int64_t e, const Slice& slice) {
    const int64_t first = groups.starts[static_cast<size_t>(e)];
    const int64_t count = groups.starts[static_cast<size_t>(e) + 1] - first;
    Expert(args, groups.choices.data() + first, count, e).run(stream, slice);
  };
  const Shares shares = shares_of(args, std::ssize(chosen));
  if (!shares.at_once) {
    for (const int64_t e : chosen) run(e, {});
    return;
  }
  ThreadPool::shared().parallel_for(
      std::ssize(chosen) * shares.slices, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          run(chosen[static_cast<size_t>(i / shares.slices)], {i % shares.slices, shares.slices});
        }
      });
}

float widened(float x) {
  return x;
}
template <typename T>
float widened(T x) {
  return to_float(x);
}

template <typename T>
T rounded(float x) {
  if constexpr (std::is_same_v<T, f16>) return to_f16(x);
  if constexpr (std::is_same_v<T, bf16>) return to_bf16(x);
  if constexpr (std::is_same_v<T, float>) return x;
}

template <typename T>
void sum_token(const ExpertSumArgs& args, int64_t token, std::vector<float>& sums) {
  const int64_t k = args.weights.size(1), dim = args.y.size(1);
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (int64_t j = 0; j < k; ++j) {
    const float weight = args.weights.as<const float>()[token * k + j];
    const T* x = args.x.as<const T>() + (token * k + j) * dim;
    for (int64_t i = 0; i < dim; ++i) sums[static_cast<size_t>(i)] += weight * widened(x[i]);
  }
  T* y = args.y.as<T>() + token * dim;
  for (int64_t i = 0; i < dim; ++i) y[i] = rounded<T>(sums[static_cast<size_t>(i)]);
}

void run_sum(const ExpertSumArgs& args, Stream&) {
  dispatch<float, f16, bf16>("expert_sum", args.x.dtype, [&]<typename T>() {
    ThreadPool::shared().parallel_for(
        args.weights.size(0), 4, [&](int64_t begin, int64_t end, int) {
          std::vector<float> sums(static_cast<size_t>(args.y.size(1)));
          for (int64_t token = begin; token < end; ++token) sum_token<T>(args, token, sums);
        });
  });
}

}  // namespace

const Impl<ExpertLinearArgs> grouped_expert_linear{"grouped", never_refuse, run_linear};
const Impl<ExpertSumArgs> rows_expert_sum{"rows", never_refuse, run_sum};

}  // namespace rbee::cpu
