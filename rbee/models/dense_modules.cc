#include "rbee/models/dense_modules.h"

#include <utility>

#include "rbee/nn/linear.h"
#include "rbee/ops/elementwise.h"

namespace rbee::models {
namespace {

struct DenseLayer {
  nn::Linear linear;
  bool tanh = false;

  // x: (texts, in) f32   result: (texts, out) f32
  Tensor operator()(const Tensor& x) const {
    const Tensor y = linear(x);
    return tanh ? unary(UnaryOp::tanh, y) : y;
  }
};

class DenseEmbedding final : public EmbeddingModel {
 public:
  explicit DenseEmbedding(std::unique_ptr<EmbeddingModel> model) : model_(std::move(model)) {}

  // checkpoint: with the module's tensors
  void add(const DenseModule& module, const io::Checkpoint& checkpoint,
           const LoadOptions& options) {
    const nn::WeightScope scope(checkpoint, {.device = options.device,
                                             .own_names = true,
                                             .pack = options.pack_weights,
                                             .activations = DType::f32});
    const nn::LinearShape shape{.in = module.in,
                                .out = module.out,
                                .bias = module.bias ? nn::Bias::required : nn::Bias::none};
    layers_.push_back({nn::Linear(scope / module.tensor, shape), module.tanh});
    dimensions_ = module.out;
    weight_bytes_ += scope.figures().resident_bytes;
    parameters_ += scope.figures().parameters;
  }

  const ModelConfig& config() const override { return model_->config(); }
  int64_t max_tokens() const override { return model_->max_tokens(); }
  int64_t dimensions() const override {
    return layers_.empty() ? model_->dimensions() : dimensions_;
  }
  Tensor embed(const TextBatch& texts, Pooling pooling) override {
    Tensor x = model_->embed(texts, pooling);
    for (const DenseLayer& layer : layers_) x = layer(x);
    return x;
  }
  bool ranks() const override { return model_->ranks(); }
  Tensor rank(const TextBatch& pairs) override { return model_->rank(pairs); }
  bool doubles_separator() const override { return model_->doubles_separator(); }
  DType activations() const override { return model_->activations(); }
  int64_t weight_bytes() const override { return model_->weight_bytes() + weight_bytes_; }
  int64_t parameters() const override { return model_->parameters() + parameters_; }
  std::string quantization() const override { return model_->quantization(); }

 private:
  std::unique_ptr<EmbeddingModel> model_;
  std::vector<DenseLayer> layers_;
  int64_t dimensions_ = 0;  // of the last layer's results
  int64_t weight_bytes_ = 0, parameters_ = 0;
};

}  // namespace

std::unique_ptr<EmbeddingModel> with_dense_modules(std::unique_ptr<EmbeddingModel> model,
                                                   std::span<const DenseModule> modules,
                                                   const io::Checkpoint& checkpoint,
                                                   const std::filesystem::path& folder,
                                                   const LoadOptions& options) {
  if (modules.empty()) return model;
  auto out = std::make_unique<DenseEmbedding>(std::move(model));
  for (const DenseModule& module : modules) {
    check(module.in == out->dimensions(), module.folder.empty() ? module.tensor : module.folder,
          "in_features is ", module.in, ", but what comes before it has ", out->dimensions());
    if (module.folder.empty()) {
      out->add(module, checkpoint, options);
    } else {
      const auto file = folder / module.folder / "model.safetensors";
      out->add(module, io::Checkpoint::open(file), options);
    }
  }
  return out;
}

}  // namespace rbee::models
