// Times linear layers of every weight type, beside what the machine could do.
//   bench_linear [--threads N] [--seconds S] [--rows R,...] [--types q4_1,f16,...] [--shapes
//   576x576,1536x576,...] [--clock wall|thread]
// One row of x is limited by memory (the weights come from DRAM: copies larger than any cache);
// many rows by arithmetic. Shapes are out x in. On a machine that others use too, the processor
// time of one thread says more than the wall's: --threads 1 --clock thread.
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <random>
#include <sstream>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/peak.h"
#include "rbee/core/error.h"
#include "rbee/ops/linear.h"

namespace rbee {
namespace {

constexpr int64_t kColdBytes = int64_t{160} << 20;

struct Options {
  int threads = 0;
  double seconds = 0.5;  // for each line
  bool thread_clock = false;
  std::vector<int64_t> rows = {1, 512};
  std::vector<DType> types = {DType::q4_0, DType::q4_1, DType::q8_0, DType::f16,
                              DType::bf16, DType::q4_k, DType::q6_k};
  std::vector<Shape> shapes = {{576, 576}, {1536, 576}, {576, 1536}, {49152, 576}, {2048, 2048}};
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::vector<std::string> values = split(argv[i + 1], ',');
    if (flag == "--threads") {
      options.threads = std::stoi(values[0]);
    } else if (flag == "--seconds") {
      options.seconds = std::stod(values[0]);
    } else if (flag == "--clock") {
      check(values[0] == "wall" || values[0] == "thread", "bench_linear",
            "--clock is wall or thread, not ", values[0]);
      options.thread_clock = values[0] == "thread";
    } else if (flag == "--rows") {
      options.rows.clear();
      for (const std::string& v : values) options.rows.push_back(std::stoll(v));
    } else if (flag == "--types") {
      options.types.clear();
      for (const std::string& v : values) {
        const std::optional<DType> type = parse_dtype(v);
        check(type.has_value(), "bench_linear", "unknown type ", v);
        options.types.push_back(*type);
      }
    } else if (flag == "--shapes") {
      options.shapes.clear();
      for (const std::string& v : values) {
        const std::vector<std::string> sizes = split(v, 'x');
        check(sizes.size() == 2, "bench_linear", "a shape is OUTxIN, not ", v);
        options.shapes.push_back({std::stoll(sizes[0]), std::stoll(sizes[1])});
      }
    } else {
      fail(Code::invalid_argument, "bench_linear", "unknown option ", flag);
    }
  }
  check(!options.thread_clock || options.threads == 1, "bench_linear",
        "--clock thread is for --threads 1");
  return options;
}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Small random numbers: blocks of random bytes with a harmless exponent would do for time, but
// denormals in scales would not.
Tensor random_weight(const Shape& shape, DType dtype, Device& device) {
  Tensor weight = zeros(shape, dtype, device);
  auto* bytes = static_cast<uint8_t*>(weight.view().data);
  std::minstd_rand random(7);
  for (int64_t i = 0; i < weight.bytes(); ++i) {
    bytes[i] = static_cast<uint8_t>(0x20 | (random() >> 8 & 0x1f));
  }
  return weight;
}

struct Timing {
  double seconds = 0;  // of one call, the best of many: other programs disturb long runs
  int64_t packed_bytes = 0;
};

Timing time_layer(const Shape& shape, DType dtype, int64_t rows, const Options& options,
                  Device& device) {
  const Tensor plain = random_weight(shape, dtype, device);
  const int64_t copies = rows > 1 ? 4 : std::max<int64_t>(4, kColdBytes / plain.bytes());
  std::vector<Tensor> weights;
  weights.reserve(static_cast<size_t>(copies));
  for (int64_t i = 0; i < copies; ++i) weights.push_back(pack_weight(plain));
  std::vector<float> values(static_cast<size_t>(rows * shape[1]));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 61) * 0.03f - 0.9f;
  const Tensor x = from_host<float>(values, {rows, shape[1]}, device);
  Timing best{.seconds = 1e9, .packed_bytes = static_cast<int64_t>(weights[0].buffer()->bytes())};
  const clockid_t clock = options.thread_clock ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double end = seconds_of(clock) + options.seconds;
  for (int pass = 0; pass < 2 || seconds_of(clock) < end; ++pass) {
    for (const Tensor& weight : weights) {
      const double start = seconds_of(clock);
      linear(x, weight);
      best.seconds = std::min(best.seconds, seconds_of(clock) - start);
    }
  }
  return best;
}

void print_row(const Shape& shape, DType dtype, int64_t rows, const Timing& t,
               const cpu::Peak& peak) {
  const double bytes_per_second = static_cast<double>(t.packed_bytes) / t.seconds;
  const double ops = 2.0 * static_cast<double>(rows * shape[0] * shape[1]) / t.seconds;
  const bool bf16 = dtype == DType::bf16 && peak.bf16_flops > 0;
  const double unit = is_quantized(dtype) ? peak.int8_ops : bf16 ? peak.bf16_flops : peak.f32_flops;
  std::cout << std::left << std::setw(8) << name(dtype) << std::right << std::setw(7) << shape[0]
            << " x " << std::setw(5) << shape[1] << std::setw(6) << rows << std::fixed
            << std::setprecision(4) << std::setw(11) << t.seconds * 1e3 << std::setprecision(1)
            << std::setw(9) << bytes_per_second * 1e-9 << std::setw(6)
            << 100 * bytes_per_second / peak.read_bytes_per_second << '%' << std::setw(9)
            << ops * 1e-9 << std::setw(6) << 100 * ops / unit << "%\n";
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  cpu::set_thread_count(options.threads);
  Device& device = cpu::cpu_backend().device(0);
  const int threads = options.threads > 0 ? options.threads : 2;
  const cpu::Peak peak = cpu::measure_peak(threads);
  std::cout << device.description() << "\nlimits with " << threads << " threads: read "
            << peak.read_bytes_per_second * 1e-9 << " GB/s, f32 " << peak.f32_flops * 1e-9
            << ", bf16 " << peak.bf16_flops * 1e-9 << ", int8 " << peak.int8_ops * 1e-9
            << " GOP/s\ntype        out x in     rows         ms     GB/s  mem%    GOP/s unit%\n";
  for (const DType dtype : options.types) {
    for (const Shape& shape : options.shapes) {
      if (shape[1] % info(dtype).block_size != 0) continue;
      for (const int64_t rows : options.rows) {
        print_row(shape, dtype, rows, time_layer(shape, dtype, rows, options, device), peak);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace rbee

int main(int argc, char** argv) {
  try {
    return rbee::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
