// bench_image: a text-to-image model's parts on one device, beside the limit measured on it.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <thread>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/linked/linked_backends.h"
#include "bench/image/profile.h"
#include "cli/limits.h"
#include "rbee/core/error.h"
#include "rbee/models/image/image_model.h"
#include "rbee/ops/random.h"
#include "rbee/tensor/graph_capture.h"

namespace rbee::bench {
namespace {

struct Options {
  std::string model;
  std::string device = "cpu";
  int size = 512;   // pixels along each side
  int batch = 2;    // samples of one step of the denoiser
  int threads = 0;  // 0 = one for each processor
  int repetitions = 3;
  std::string dtype = "auto";
  std::vector<std::string> parts = {"text", "denoiser", "vae"};
  bool profile = false;
  bool json = false;  // one object a line
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Times the parts of a text-to-image model");
  app.add_option("model", options.model, "diffusers folder or single file")->required();
  app.add_option("--device", options.device, "cpu, cuda:0, rocm:0, ...");
  app.add_option("--size", options.size, "pixels along each side")->check(CLI::Range(64, 4096));
  app.add_option("--batch", options.batch, "samples of a step: 2 with guidance")
      ->check(CLI::Range(1, 64));
  app.add_option("--threads", options.threads, "of the CPU; 0 = one for each processor")
      ->check(CLI::Range(0, 1024));
  app.add_option("-r,--repetitions", options.repetitions, "runs of each part; the best is shown")
      ->check(CLI::Range(1, 1000));
  app.add_option("--dtype", options.dtype, "what layers compute in; int8 on CPUs")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "int8"}));
  app.add_option("--parts", options.parts, "text, denoiser, vae");
  app.add_flag("--profile", options.profile, "time by operation and shape");
  app.add_flag("--json", options.json, "one object a line");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  if (options.threads == 0) {
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  return options;
}

Tensor normal(const Shape& shape, Device& device) {
  return random_normal(shape, DType::f32, device);
}

double user_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec) +
         static_cast<double>(use.ru_utime.tv_usec) * 1e-6;
}

double peak_megabytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_maxrss) / 1024;
}

// What is measured, and on what.
struct Bench {
  const Options& options;
  Device& device;
  tools::HardwareLimits limits;

  double peak_flops() const {
    return limits.bf16_flops > 0 && !device.host_accessible() ? limits.bf16_flops
                                                              : limits.f32_flops;
  }
};

void print_profile(const std::vector<Profile::Row>& rows, double peak_flops) {
  double total = 0;
  for (const Profile::Row& row : rows) total += row.seconds;
  std::printf("  %8s %6s %6s %9s %6s  %s\n", "ms", "%", "calls", "GFLOP/s", "%peak", "operation");
  for (const Profile::Row& row : rows) {
    if (row.seconds < total * 0.002) break;
    const double rate = row.flops / row.seconds;
    std::printf("  %8.3f %6.1f %6lld %9.1f %6.1f  %s  %s\n", row.seconds * 1e3,
                100 * row.seconds / total, static_cast<long long>(row.calls), rate * 1e-9,
                100 * rate / peak_flops, row.op.c_str(), row.shapes.c_str());
  }
}

struct Times {
  double wall = 1e30, user = 1e30;  // seconds
};

// The best of the runs, each waited for.
Times best_of(const Bench& bench, const std::function<void()>& run) {
  Times best;
  for (int i = 0; i < bench.options.repetitions; ++i) {
    const double user = user_seconds(), start = now();
    run();
    bench.device.synchronize(bench.device.default_stream());
    best.wall = std::min(best.wall, now() - start);
    best.user = std::min(best.user, user_seconds() - user);
  }
  return best;
}

// Seconds; 0 where the device cannot capture.
struct Captured {
  double making = 0, replay = 0;
};

Captured captured(const Bench& bench, const std::function<void()>& run) {
  if (!GraphCapture::supported(bench.device)) return {};
  Captured out;
  const double start = now();
  const GraphCapture capture(bench.device, run);
  out.making = now() - start;
  out.replay = best_of(bench, [&] { capture.replay(); }).wall;
  return out;
}

void print(const Bench& bench, const char* name, const Times& times, const Captured& captured) {
  if (bench.options.json) {
    std::printf("{\"part\":\"%s\",\"size\":%d,\"batch\":%d,\"seconds\":%.6g", name,
                bench.options.size, bench.options.batch, times.wall);
    if (captured.replay > 0) {
      std::printf(",\"captured_seconds\":%.6g,\"capturing_seconds\":%.6g", captured.replay,
                  captured.making);
    }
    std::printf("}\n");
    return;
  }
  std::printf("%-10s %10.2f ms", name, times.wall * 1e3);
  if (captured.replay > 0) {
    std::printf("  captured %.2f ms (in %.2f ms)", captured.replay * 1e3, captured.making * 1e3);
  }
  if (bench.device.host_accessible()) {
    std::printf("  (processor time %.1f ms)  peak memory %.0f MiB", times.user * 1e3,
                peak_megabytes());
  } else {
    const MemoryInfo memory = bench.device.memory();
    std::printf("  (host %.2f ms)  device memory in use %.0f MiB", times.user * 1e3,
                static_cast<double>(memory.total - memory.free) / (1 << 20));
  }
  std::printf("\n");
}

void measure(const Bench& bench, const char* name, const std::function<void()>& run) {
  run();  // pays for first-touched memory
  const Times times = best_of(bench, run);
  print(bench, name, times, captured(bench, run));
  if (!bench.options.profile) return;
  Profile profile(bench.device);
  run();
  profile.stop();
  print_profile(profile.rows(), bench.peak_flops());
}

// Encoders copy their tokens to the device, which a capture may not do.
void measure_text(const models::ImageModel& model, const Bench& bench) {
  const int64_t batch = bench.options.batch;
  for (const models::TextPart& part : model.text) {
    const std::vector<int32_t> ids(static_cast<size_t>(batch * part.encoder->max_tokens()), 5);
    const auto run = [&] { (*part.encoder)({.ids = ids, .batch = batch}); };
    run();
    print(bench, "text", best_of(bench, run), {});
  }
}

// Of one prompt, as the denoiser reads it.
int64_t context_tokens(const models::ImageModel& model) {
  const models::TextEncoder& first = *model.text.front().encoder;
  const models::TextEncoder& last = *model.text.back().encoder;
  if (model.join == models::TextJoin::sd3) return first.max_tokens() + models::kSd3T5Tokens;
  if (model.join == models::TextJoin::flux) return last.max_tokens();
  return first.max_tokens();
}

void measure_denoiser(const models::ImageModel& model, const Bench& bench) {
  Device& device = bench.device;
  const models::DenoiserInfo& info = model.denoiser->info();
  const int64_t batch = bench.options.batch, side = bench.options.size / model.vae->info().scale;
  const Shape context{batch, context_tokens(model), info.context_width};
  models::TextStates text{
      .context = normal(context, device), .pooled = {}, .size_ids = {}, .guidance = {}};
  if (info.pooled_width > 0) text.pooled = normal({batch, info.pooled_width}, device);
  if (info.size_ids > 0) text.size_ids = normal({batch, info.size_ids}, device);
  if (info.guidance) text.guidance = normal({batch}, device);
  const auto prompt = model.denoiser->prepare(text);
  const Tensor x = normal({batch, side, side, info.in_channels}, device);
  const std::vector<float> steps(static_cast<size_t>(batch), 500.0f);
  const Tensor timesteps = from_host<float>(steps, {batch}, device);
  measure(bench, "denoiser", [&] { (*model.denoiser)(x, timesteps, *prompt); });
}

void measure_vae(const models::ImageModel& model, const Bench& bench) {
  const models::VaeInfo& info = model.vae->info();
  const int64_t side = bench.options.size / info.scale;
  const Tensor latent = normal({1, side, side, info.latent_channels}, bench.device);
  measure(bench, "vae", [&] { model.vae->decode(latent); });
}

Device& device_of(const Options& options) {
  register_linked_backends();
  const std::optional<DeviceId> id = parse_device_id(options.device);
  check(id.has_value(), "bench", "--device is '", options.device,
        "', wanted cpu, cuda:N or rocm:N");
  return get_device(*id);
}

models::ImageModel load(const Options& options, Device& device) {
  const double start = now();
  models::ImageLoadOptions loading;
  loading.device = &device;
  const models::ImageArithmetic arithmetic = models::image_arithmetic(options.dtype);
  loading.activations = arithmetic.activations;
  loading.int8 = arithmetic.int8;
  models::ImageModel model = models::load_image_model(options.model, loading);
  if (!options.json) {
    std::printf("%s, %d x %d, batch %d, %s, %.0f MiB of weights, loaded in %.1f s\n",
                model.model_name.c_str(), options.size, options.size, options.batch,
                model.int8 ? "int8" : name(model.activations),
                static_cast<double>(model.weight_bytes) / (1 << 20), now() - start);
  }
  return model;
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  cpu::set_thread_count(options.threads);
  Device& device = device_of(options);
  const Bench bench{options, device, tools::measure_limits(device, options.threads, 1 << 30)};
  const double tera = bench.peak_flops() * 1e-12, giga = bench.limits.bytes_per_second * 1e-9;
  if (options.json) {
    std::printf("{\"part\":\"limits\",\"flops\":%.6g,\"bytes_per_second\":%.6g}\n",
                bench.peak_flops(), bench.limits.bytes_per_second);
  } else {
    std::printf("%s: %.3f TFLOP/s, memory %.1f GB/s\n", device.description().c_str(), tera, giga);
  }
  const models::ImageModel model = load(options, device);
  for (const std::string& part : options.parts) {
    if (part == "text") measure_text(model, bench);
    if (part == "denoiser") measure_denoiser(model, bench);
    if (part == "vae") measure_vae(model, bench);
  }
  return 0;
}

}  // namespace
}  // namespace rbee::bench

int main(int argc, char** argv) {
  try {
    return rbee::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
