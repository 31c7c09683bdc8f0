#pragma once
// A device whose replayed captures evaluate the model again, and the work queued after it.

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "backends/api/kernel_table.h"
#include "tests/units/engine/far_device.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {

// Remembers the last batch it evaluated.
class RecallingModel final : public models::LanguageModel {
 public:
  struct Call {
    models::ForwardBatch batch;
    nn::KvCache* cache = nullptr;
    Tensor logits;
    std::vector<std::function<void()>> behind;  // work queued after it
  };

  explicit RecallingModel(std::unique_ptr<models::LanguageModel> model)
      : model_(std::move(model)) {}
  const models::ModelConfig& config() const override { return model_->config(); }
  Tensor forward(const models::ForwardBatch& batch, nn::KvCache& cache) const override {
    ++forwards;
    const Shape logits{batch.logit_rows.dim(0), config().vocab_size};
    last = {batch,
            &cache,
            capture ? empty(logits, DType::f32, batch.ids.device()) : model_->forward(batch, cache),
            {}};
    return last.logits;
  }
  Tensor states(const models::ForwardBatch& batch, nn::KvCache& cache) const override {
    return model_->states(batch, cache);
  }
  // Reads the batch's memory as it is now; writes the result where it was written before.
  void again(const Call& call) const {
    const Tensor logits = model_->forward(call.batch, *call.cache);
    std::memcpy(call.logits.view().data, logits.view().data,
                static_cast<size_t>(logits.numel()) * sizeof(float));
    for (const auto& work : call.behind) work();
  }
  models::HostLayers host_layers() const override { return model_->host_layers(); }
  int64_t cpu_moe_layers() const override { return model_->cpu_moe_layers(); }
  Tensor run_host_layers(const models::ForwardBatch& batch, nn::KvCache& cache) const override {
    host_tokens += batch.ids.dim(0);
    return model_->run_host_layers(batch, cache);
  }
  std::span<const nn::LoraTarget> lora_targets() const override { return model_->lora_targets(); }
  DType activations() const override { return model_->activations(); }
  int64_t weight_bytes() const override { return model_->weight_bytes(); }
  int64_t parameters() const override { return model_->parameters(); }
  std::string quantization() const override { return model_->quantization(); }

  mutable bool capture = false;  // nothing is evaluated
  mutable Call last;
  mutable int forwards = 0;
  mutable int64_t host_tokens = 0;  // whose first layers the CPU computed

 private:
  std::unique_ptr<models::LanguageModel> model_;
};

class RecallingDevice final : public FarDevice {
 public:
  RecallingDevice() : table_(FarDevice::kernels()) {
    table_.top_k = {&kTopK, 1};
    table_.draw = {&kDraw, 1};
    table_.next_step = {&kNextStep, 1};
  }

  const RecallingModel* model = nullptr;
  int replays = 0;
  int uploads = 0;  // copies to the device

  const KernelTable& kernels() const override { return table_; }
  void copy(void* to, const void* from, size_t bytes, CopyKind kind, Stream& stream) override {
    uploads += kind == CopyKind::host_to_device ? 1 : 0;
    FarDevice::copy(to, from, bytes, kind, stream);
  }
  bool supports_capture() const override { return true; }
  void begin_capture(Stream&) override { model->capture = true; }
  void* end_capture(Stream&) override {
    model->capture = false;
    return new RecallingModel::Call(model->last);
  }
  void launch_capture(void* captured, Stream&) override {
    ++replays;
    model->again(*static_cast<RecallingModel::Call*>(captured));
  }
  void destroy_capture(void* captured) noexcept override {
    delete static_cast<RecallingModel::Call*>(captured);
  }

 private:
  template <typename Args, Slot<Args> KernelTable::* kSlot>
  static void run(const Args& args, Stream& stream) {
    const auto& device = static_cast<const RecallingDevice&>(*stream.device);
    const auto work = [slot = device.FarDevice::kernels().*kSlot, args, &stream] {
      for (const Impl<Args>& impl : slot) {
        if (refusal(impl, args, stream) == nullptr) return impl.run(args, stream);
      }
    };
    const RecallingModel* model = device.model;
    if (model == nullptr || !model->capture) work();
    if (model != nullptr) model->last.behind.emplace_back(work);
  }
  inline static const Impl<TopKArgs> kTopK{"recalled", never_refuse,
                                           run<TopKArgs, &KernelTable::top_k>};
  inline static const Impl<DrawArgs> kDraw{"recalled", never_refuse,
                                           run<DrawArgs, &KernelTable::draw>};
  inline static const Impl<NextStepArgs> kNextStep{"recalled", never_refuse,
                                                   run<NextStepArgs, &KernelTable::next_step>};

  KernelTable table_;
};

inline TextModel recalling_model(int64_t context, RecallingDevice& device,
                                 const std::string& family = "smollm",
                                 int64_t gpu_layers = models::kAllLayers,
                                 int64_t cpu_moe_layers = 0) {
  TextModel out = tiny_model(context, device, family, gpu_layers, cpu_moe_layers);
  auto model = std::make_unique<RecallingModel>(std::move(out.model));
  device.model = model.get();
  out.model = std::move(model);
  return out;
}

}  // namespace rbee::engine
