// bench_image: a text-to-image model's parts on the CPU, beside the processor's measured limit.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/peak.h"
#include "bench/image/profile.h"
#include "rbee/core/error.h"
#include "rbee/models/image/image_model.h"
#include "rbee/ops/random.h"

namespace rbee::bench {
namespace {

struct Options {
  std::string model;
  int size = 512;   // pixels along each side
  int batch = 2;    // samples of one step of the denoiser
  int threads = 0;  // 0 = one for each processor
  int repetitions = 3;
  std::string dtype = "f32";
  std::vector<std::string> parts = {"text", "denoiser", "vae"};
  bool profile = false;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Times the parts of a text-to-image model on the CPU");
  app.add_option("model", options.model, "diffusers folder or single file")->required();
  app.add_option("--size", options.size, "pixels along each side")->check(CLI::Range(64, 4096));
  app.add_option("--batch", options.batch, "samples of a step: 2 with guidance")
      ->check(CLI::Range(1, 64));
  app.add_option("--threads", options.threads, "threads; 0 = one for each processor")
      ->check(CLI::Range(0, 1024));
  app.add_option("-r,--repetitions", options.repetitions, "runs of each part; the best is shown")
      ->check(CLI::Range(1, 1000));
  app.add_option("--dtype", options.dtype, "activations")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  app.add_option("--parts", options.parts, "text, denoiser, vae");
  app.add_flag("--profile", options.profile, "time by operation and shape");
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

void print_profile(const std::vector<Profile::Row>& rows, double peak_flops) {
  double total = 0;
  for (const Profile::Row& row : rows) total += row.seconds;
  std::printf("  %8s %6s %6s %9s %6s  %s\n", "ms", "%", "calls", "GFLOP/s", "%peak", "operation");
  for (const Profile::Row& row : rows) {
    if (row.seconds < total * 0.002) break;
    const double rate = row.flops / row.seconds;
    std::printf("  %8.1f %6.1f %6lld %9.1f %6.1f  %s  %s\n", row.seconds * 1e3,
                100 * row.seconds / total, static_cast<long long>(row.calls), rate * 1e-9,
                100 * rate / peak_flops, row.op.c_str(), row.shapes.c_str());
  }
}

void measure(const char* name, const Options& options, const cpu::Peak& peak,
             const std::function<void()>& run) {
  run();  // pays for first-touched memory
  double best = 1e30, best_user = 1e30;
  for (int i = 0; i < options.repetitions; ++i) {
    const double user = user_seconds(), start = now();
    run();
    best = std::min(best, now() - start);
    best_user = std::min(best_user, user_seconds() - user);
  }
  std::printf("%-10s %10.1f ms  (processor time %.1f ms)  peak memory %.0f MiB\n", name, best * 1e3,
              best_user * 1e3, peak_megabytes());
  if (!options.profile) return;
  Profile profile;
  run();
  profile.stop();
  print_profile(profile.rows(), peak.f32_flops);
}

void measure_text(const models::ImageModel& model, const Options& options, const cpu::Peak& peak) {
  for (const models::TextPart& part : model.text) {
    const std::vector<int32_t> ids(static_cast<size_t>(options.batch * part.encoder->max_tokens()),
                                   5);
    measure("text", options, peak, [&] { (*part.encoder)({.ids = ids, .batch = options.batch}); });
  }
}

void measure_denoiser(const models::ImageModel& model, const Options& options,
                      const cpu::Peak& peak) {
  Device& device = *model.device;
  const models::DenoiserInfo& info = model.denoiser->info();
  const int64_t batch = options.batch, side = options.size / model.vae->info().scale;
  models::TextStates text{.context = normal({batch, 77, info.context_width}, device),
                          .pooled = {},
                          .size_ids = {},
                          .guidance = {}};
  if (info.pooled_width > 0) text.pooled = normal({batch, info.pooled_width}, device);
  if (info.size_ids > 0) text.size_ids = normal({batch, info.size_ids}, device);
  if (info.guidance) text.guidance = normal({batch}, device);
  const auto prompt = model.denoiser->prepare(text);
  const Tensor x = normal({batch, side, side, info.in_channels}, device);
  const std::vector<float> steps(static_cast<size_t>(batch), 500.0f);
  const Tensor timesteps = from_host<float>(steps, {batch}, device);
  measure("denoiser", options, peak, [&] { (*model.denoiser)(x, timesteps, *prompt); });
}

void measure_vae(const models::ImageModel& model, const Options& options, const cpu::Peak& peak) {
  const models::VaeInfo& info = model.vae->info();
  const int64_t side = options.size / info.scale;
  const Tensor latent = normal({1, side, side, info.latent_channels}, *model.device);
  measure("vae", options, peak, [&] { model.vae->decode(latent); });
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  cpu::set_thread_count(options.threads);
  Device& device = cpu::cpu_backend().device(0);
  const cpu::Peak peak = cpu::measure_peak(options.threads);
  std::printf("%s, %d threads: f32 %.1f GFLOP/s, memory %.1f GB/s\n", device.description().c_str(),
              options.threads, peak.f32_flops * 1e-9, peak.read_bytes_per_second * 1e-9);
  const double start = now();
  models::ImageLoadOptions loading;
  loading.device = &device;
  loading.activations = parse_dtype(options.dtype).value();
  const models::ImageModel model = models::load_image_model(options.model, loading);
  std::printf("%s, %d x %d, batch %d, activations %s, %.0f MiB of weights, loaded in %.1f s\n",
              model.model_name.c_str(), options.size, options.size, options.batch,
              options.dtype.c_str(), static_cast<double>(model.weight_bytes) / (1 << 20),
              now() - start);
  for (const std::string& part : options.parts) {
    if (part == "text") measure_text(model, options, peak);
    if (part == "denoiser") measure_denoiser(model, options, peak);
    if (part == "vae") measure_vae(model, options, peak);
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
