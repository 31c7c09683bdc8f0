#include "tests/units/engine/fake_image_model.h"

#include <fstream>
#include <iterator>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/ops/elementwise.h"
#include "rbee/text/clip_tokenizer.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {
namespace {

constexpr int64_t kScale = 8;

class FakeConditioning final : public models::Conditioning {
 public:
  explicit FakeConditioning(std::shared_ptr<int> alive) : alive_(std::move(alive)) {}
  std::unique_ptr<models::Conditioning> clone() const override {
    return std::make_unique<FakeConditioning>(*this);
  }
  std::vector<Tensor*> tensors() override { return {}; }

 private:
  std::shared_ptr<int> alive_;
};

std::string read(const std::string& name) {
  std::ifstream file(test::data_folder() + "/models/image/data/tokenizer/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

Device& host() {
  register_backend(cpu::cpu_backend());
  return get_device({DeviceKind::cpu, 0});
}

}  // namespace

models::TextEncoding FakeTextEncoder::operator()(const models::TextInput& input) const {
  std::vector<float> hidden;
  for (const int32_t id : input.ids) hidden.insert(hidden.end(), 2, static_cast<float>(id));
  const auto tokens = static_cast<int64_t>(input.ids.size()) / input.batch;
  return {from_host<float>(hidden, {input.batch, tokens, 2}, host()), {}};
}

std::unique_ptr<models::Conditioning> FakeDenoiser::prepare(const models::TextStates&) const {
  return std::make_unique<FakeConditioning>(alive_);
}

Tensor FakeDenoiser::operator()(const Tensor& x, const Tensor& timesteps,
                                const models::Conditioning&, const models::DenoiserOptions&) const {
  EXPECT_EQ(timesteps.numel(), x.dim(0));
  return output_(x);
}

models::LatentDistribution FakeVae::encode(const Tensor& image, Circular) const {
  const int64_t height = image.dim(1) / kScale;
  const int64_t width = image.dim(2) / kScale;
  const std::vector<float> pixels = image.to_host<float>();
  std::vector<float> latent(static_cast<size_t>(height * width * 4));
  for (int64_t y = 0; y < image.dim(1); ++y) {
    for (int64_t x = 0; x < image.dim(2); ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const auto to = static_cast<size_t>((y / kScale * width + x / kScale) * 4 + c);
        const auto from = static_cast<size_t>((y * image.dim(2) + x) * 3 + c);
        latent[to] += pixels[from] / (kScale * kScale);
      }
    }
  }
  return {from_host<float>(latent, {1, height, width, 4}, image.device()), {}};
}

Tensor FakeVae::decode(const Tensor& latent, const models::Between& between, Circular) const {
  if (between) between();
  const int64_t height = latent.dim(1) * kScale;
  const int64_t width = latent.dim(2) * kScale;
  const std::vector<float> values = latent.to_host<float>();
  std::vector<float> pixels;
  pixels.reserve(static_cast<size_t>(height * width * 3));
  for (int64_t i = 0; i < height * width; ++i) {
    const int64_t at = (i / width / kScale * latent.dim(2) + i % width / kScale) * 4;
    for (int64_t c = 0; c < 3; ++c) pixels.push_back(values[static_cast<size_t>(at + c)]);
  }
  return from_host<float>(pixels, {1, height, width, 3}, latent.device());
}

Tensor half_noise(const Tensor& x) {
  return affine(x, 0.5, 0);
}

ImageSource fake_source(FakeDenoiser::Output output) {
  ImageSource out;
  out.device = &host();
  out.model.device = out.device;
  out.model.model_name = "fake";
  out.model.text.push_back({std::make_unique<FakeTextEncoder>(), {}});
  out.model.denoiser = std::make_unique<FakeDenoiser>(std::move(output));
  out.model.vae = std::make_unique<FakeVae>();
  const std::string vocab = read("vocab.json");
  const std::string merges = read("merges.txt");
  text::ClipTokenizer clip = text::clip_tokenizer({.vocab_json = vocab, .merges = merges});
  out.tokenizers.push_back({std::move(clip.tokenizer), clip.bos, clip.eos, clip.pad});
  fill_model_info(out, "");
  return out;
}

void ImageRecorder::note(const char* event) {
  if (order.empty() || order.back() != event) order.emplace_back(event);
  changed_.notify_all();
}

void ImageRecorder::on_started(const ImageStarted& event) noexcept {
  const std::lock_guard lock(mutex_);
  started = event;
  note("started");
}

void ImageRecorder::on_progress(const ImageProgress& event) noexcept {
  const std::lock_guard lock(mutex_);
  progress.push_back(event);
  note("progress");
}

void ImageRecorder::on_preview(const ImagePreview& event) noexcept {
  const std::lock_guard lock(mutex_);
  previews.push_back(event);
  note("preview");
}

void ImageRecorder::on_image(ImageReady&& event) noexcept {
  const std::lock_guard lock(mutex_);
  images.push_back(std::move(event));
  note("image");
}

void ImageRecorder::on_finished(const ImageFinished& event) noexcept {
  const std::lock_guard lock(mutex_);
  finished = event;
  ended_ = true;
  note("finished");
}

void ImageRecorder::on_failed(const ImageFailed& event) noexcept {
  const std::lock_guard lock(mutex_);
  failures.push_back(event);
  ended_ = true;
  note("failed");
}

bool ImageRecorder::wait() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return ended_; });
}

}  // namespace rbee::engine
