#include "rbee/models/gemma3/pictures.h"

#include <array>
#include <cmath>

#include "rbee/ops/attention.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/linear.h"
#include "rbee/ops/pool.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "picture tower";
constexpr Limits kSides{1, 1 << 14};

// The roles of both formats, in each one's own words.
struct Names {
  std::string_view patches, positions, layer, final_norm;
  std::string_view attention_norm, query, key, value, output, mlp_norm, up, down;
  std::string_view row_norm, projection, projection_leaf;
};

constexpr Names kGgufNames{.patches = "v.patch_embd",
                           .positions = "v.position_embd",
                           .layer = "v.blk.",
                           .final_norm = "v.post_ln",
                           .attention_norm = "ln1",
                           .query = "attn_q",
                           .key = "attn_k",
                           .value = "attn_v",
                           .output = "attn_out",
                           .mlp_norm = "ln2",
                           .up = "ffn_up",
                           .down = "ffn_down",
                           .row_norm = "mm.soft_emb_norm",
                           .projection = "mm.input_projection",
                           .projection_leaf = "weight"};
constexpr Names kHfNames{.patches = "embeddings.patch_embedding",
                         .positions = "embeddings.position_embedding",
                         .layer = "encoder.layers.",
                         .final_norm = "post_layernorm",
                         .attention_norm = "layer_norm1",
                         .query = "self_attn.q_proj",
                         .key = "self_attn.k_proj",
                         .value = "self_attn.v_proj",
                         .output = "self_attn.out_proj",
                         .mlp_norm = "layer_norm2",
                         .up = "mlp.fc1",
                         .down = "mlp.fc2",
                         .row_norm = "multi_modal_projector.mm_soft_emb_norm",
                         .projection = "multi_modal_projector",
                         .projection_leaf = "mm_input_projection_weight"};

// The places of tower and projector in a Hugging Face checkpoint.
struct Nesting {
  std::string_view tower;
  std::string_view model;  // the start of the projector's names
};
constexpr Nesting kNestings[] = {{"vision_tower.vision_model", ""},
                                 {"model.vision_tower.vision_model", "model"},
                                 {"vision_tower", ""},
                                 {"model.vision_tower", "model"}};

std::string under(std::string_view outer, std::string_view inner) {
  return outer.empty() ? std::string(inner) : cat(outer, ".", inner);
}

// Null where the checkpoint has no projector, without which a tower is of no use.
const Nesting* find_nesting(const io::Checkpoint& checkpoint) {
  for (const Nesting& nesting : kNestings) {
    const std::string projection =
        under(nesting.model, cat(kHfNames.projection, ".", kHfNames.projection_leaf));
    const std::string patches = cat(nesting.tower, ".", kHfNames.patches, ".weight");
    if (checkpoint.find(projection) != nullptr && checkpoint.find(patches) != nullptr) {
      return &nesting;
    }
  }
  return nullptr;
}

bool is_gguf(const io::Checkpoint& checkpoint) {
  return checkpoint.format() == io::Checkpoint::Format::gguf;
}

void check_activation(const ConfigReader& reader) {
  if (reader.is_gguf()) {
    const io::Metadata& metadata = reader.checkpoint().metadata();
    if (metadata.contains("clip.use_gelu") && metadata.require_bool("clip.use_gelu")) return;
    fail(Code::unsupported, kOp, "clip.use_gelu is not true; other activations are not ",
         "implemented");
  }
  const std::string name = reader.text({"", "hidden_act"}, "gelu_pytorch_tanh");
  if (name == "gelu_pytorch_tanh") return;
  fail(Code::unsupported, kOp, reader.describe({"", "hidden_act"}), " is \"", name,
       "\"; gelu_pytorch_tanh is implemented");
}

// Patches that a row is the mean of, along a side.
int64_t read_pooled(const io::Checkpoint& checkpoint, int64_t patches) {
  if (is_gguf(checkpoint)) {
    constexpr std::string_view kKey = "clip.vision.projector.scale_factor";
    constexpr int64_t kUsual = 4;
    const io::Metadata& metadata = checkpoint.metadata();
    const int64_t pooled = metadata.contains(kKey) ? metadata.require_i64(kKey) : kUsual;
    check(pooled >= 1 && patches % pooled == 0, kOp, kKey, " is ", pooled, ", which does not ",
          "divide the ", patches, " patches of a side");
    return pooled;
  }
  const ConfigReader outer(checkpoint);
  constexpr Field kTokens{"", "mm_tokens_per_image"};
  const int64_t tokens = outer.integer(kTokens, 256, {1, int64_t{1} << 20});
  const auto rows = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(tokens))));
  check(rows * rows == tokens && patches % rows == 0, kOp, outer.describe(kTokens), " is ", tokens,
        ", wanted the square of a divisor of ", patches, ", the patches of a side");
  return patches / rows;
}

Gemma3PictureConfig read_config(const io::Checkpoint& checkpoint, int64_t text_width) {
  const ConfigReader reader(checkpoint, "vision_config");
  if (reader.is_gguf()) {
    constexpr std::string_view kType = "clip.projector_type";
    check(checkpoint.architecture() == "clip", kOp, "the file's architecture is \"",
          checkpoint.architecture(), "\", wanted clip, as mmproj files have it");
    const std::string type(checkpoint.metadata().require_string(kType));
    if (type != "gemma3") {
      fail(Code::unsupported, kOp, kType, " is \"", type, "\"; gemma3 is implemented");
    }
  }
  check_activation(reader);
  Gemma3PictureConfig config;
  constexpr Field kSide{"vision.image_size", "image_size"};
  constexpr Field kPatch{"vision.patch_size", "patch_size"};
  constexpr Field kHeads{"vision.attention.head_count", "num_attention_heads"};
  config.side = reader.integer(kSide, 896, kSides);
  config.patch = reader.integer(kPatch, 14, kSides);
  check(config.side % config.patch == 0, kOp, reader.describe(kPatch), " is ", config.patch,
        ", which does not divide the ", config.side, " pixels of a side");
  config.pooled = read_pooled(checkpoint, config.patches());
  config.width = reader.integer({"vision.embedding_length", "hidden_size"}, 1152);
  config.layers = reader.integer({"vision.block_count", "num_hidden_layers"}, 27, {1, 1024});
  config.heads = reader.integer(kHeads, 16);
  check(config.width % config.heads == 0, kOp, reader.describe(kHeads), " is ", config.heads,
        ", which does not divide the width of ", config.width);
  config.ffn_width = reader.integer({"vision.feed_forward_length", "intermediate_size"}, 4304);
  config.norm_eps = static_cast<float>(reader.number(
      {"vision.attention.layer_norm_epsilon", "layer_norm_eps"}, 1e-6, io::kZeroToOne));
  config.text_width = text_width;
  return config;
}

nn::Linear biased(const nn::WeightScope& scope, int64_t in, int64_t out) {
  return {scope, {.in = in, .out = out, .bias = nn::Bias::required}};
}

}  // namespace

// Layer norm before attention and before the MLP, biases everywhere (Dosovitskiy et al. 2021).
class Gemma3Pictures::Layer {
 public:
  Layer(const nn::WeightScope& scope, const Names& names, const Gemma3PictureConfig& config)
      : heads_(config.heads) {
    const int64_t width = config.width;
    const nn::NormOptions norm{.dim = width, .eps = config.norm_eps};
    attention_norm_ = nn::LayerNorm(scope / names.attention_norm, norm);
    mlp_norm_ = nn::LayerNorm(scope / names.mlp_norm, norm);
    query_ = biased(scope / names.query, width, width);
    key_ = biased(scope / names.key, width, width);
    value_ = biased(scope / names.value, width, width);
    output_ = biased(scope / names.output, width, width);
    up_ = biased(scope / names.up, width, config.ffn_width);
    down_ = biased(scope / names.down, config.ffn_width, width);
  }

  // x: (patches, width)
  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + output_(attend(attention_norm_(x)));
    return h + down_(unary(UnaryOp::gelu, up_(mlp_norm_(h))));
  }

 private:
  Tensor attend(const Tensor& x) const {
    const auto [patches, width] = x.dims<2>();
    const std::array layers{&query_.weights(), &key_.weights(), &value_.weights()};
    const std::vector<Tensor> qkv = linear_many(x, layers);
    const auto heads = [&](const Tensor& rows) {
      return rows.split_last(heads_).unsqueeze(Axis{0}).permute({0, 2, 1, 3});
    };
    const Tensor y = attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {});
    return contiguous(y.permute({0, 2, 1, 3})).reshape({patches, width});
  }

  int64_t heads_;
  nn::LayerNorm attention_norm_, mlp_norm_;
  nn::Linear query_, key_, value_, output_, up_, down_;
};

Gemma3Pictures::~Gemma3Pictures() = default;

Gemma3Pictures::Gemma3Pictures(const io::Checkpoint& checkpoint, const LoadOptions& options,
                               int64_t text_width)
    : config_(read_config(checkpoint, text_width)), activations_(options.activations) {
  const bool gguf = is_gguf(checkpoint);
  Names names = gguf ? kGgufNames : kHfNames;
  const nn::WeightScope all(checkpoint, {.device = options.device,
                                         .own_names = true,
                                         .pack = options.pack_weights,
                                         .activations = options.activations});
  const Nesting* nesting = gguf ? nullptr : find_nesting(checkpoint);
  const nn::WeightScope tower = nesting == nullptr ? all : all / nesting->tower;
  const bool inner = nesting != nullptr && !nesting->model.empty();
  const nn::WeightScope model = inner ? all / nesting->model : all;
  const int64_t width = config_.width, patches = config_.patches() * config_.patches();
  patches_ = nn::Conv2d(tower / names.patches, {.in = 3, .out = width, .kernel = config_.patch});
  positions_ = (tower / names.positions).array("weight", {patches, width});
  // Early files have the names of the MLP's matrices the other way round.
  const io::TensorEntry* up = gguf ? checkpoint.find("v.blk.0.ffn_up.weight") : nullptr;
  const bool swapped = up != nullptr && up->shape.rank() == 2 && up->shape[0] == width &&
                       up->shape[1] == config_.ffn_width && width != config_.ffn_width;
  if (swapped) std::swap(names.up, names.down);
  for (int64_t i = 0; i < config_.layers; ++i) {
    layers_.emplace_back(tower / cat(names.layer, i), names, config_);
  }
  const nn::NormOptions norm{.dim = width, .eps = config_.norm_eps};
  final_norm_ = nn::LayerNorm(tower / names.final_norm, norm);
  // As of the text's norms, Hugging Face stores weight - 1.
  row_norm_ =
      nn::RmsNorm(model / names.row_norm,
                  {.dim = width, .eps = config_.norm_eps, .weight_offset = gguf ? 0.0f : 1.0f});
  const Tensor projection =
      (model / names.projection).array(names.projection_leaf, {width, text_width});
  projection_ = contiguous(projection.permute({1, 0}));
  if (options.pack_weights) projection_ = pack_weight(projection_);
  if (gguf) all.finish();
  figures_ = all.figures();
}

Tensor Gemma3Pictures::embed(const Tensor& picture) const {
  const int64_t side = config_.side;
  check(picture.shape() == Shape{side, side, 3} && picture.dtype() == DType::f32, kOp,
        "the picture is ", picture, ", wanted f32 of (", Shape{side, side, 3}, ")");
  const Tensor pixels = cast(picture, activations_).unsqueeze(Axis{0});
  const Tensor embedded = patches_(pixels, {.stride = config_.patch});
  const int64_t patches = config_.patches() * config_.patches();
  return embedded.reshape({patches, config_.width}) + positions_;
}

Tensor Gemma3Pictures::states(const Tensor& picture) const {
  Tensor x = embed(picture);
  for (const Layer& layer : layers_) x = layer(x);
  return final_norm_(x);
}

Tensor Gemma3Pictures::stage(int64_t index, const Tensor& x) const {
  RB_ASSERT(index >= 0 && index < stages());
  const Tensor states = layers_[static_cast<size_t>(index)](index == 0 ? embed(x) : x);
  return index + 1 < stages() ? states : project(final_norm_(states));
}

double Gemma3Pictures::multiplications() const {
  const auto patches = static_cast<double>(config_.patches() * config_.patches());
  const auto width = static_cast<double>(config_.width);
  const auto ffn_width = static_cast<double>(config_.ffn_width);
  const double linear = 4 * width * width + 2 * width * ffn_width;
  return static_cast<double>(config_.layers) * patches * (linear + 2 * patches * width);
}

Tensor Gemma3Pictures::project(const Tensor& states) const {
  const int64_t patches = config_.patches(), pooled = config_.pooled;
  const Tensor grid = states.reshape({1, patches, patches, config_.width}).permute({0, 3, 1, 2});
  const Tensor means =
      pool2d(PoolOp::avg, grid,
             {.kernel_h = pooled, .kernel_w = pooled, .stride_h = pooled, .stride_w = pooled});
  const Tensor rows = contiguous(means.permute({0, 2, 3, 1})).reshape({tokens(), config_.width});
  return linear(row_norm_(rows), projection_);
}

std::unique_ptr<const PictureEncoder> load_gemma3_pictures(const io::Checkpoint& checkpoint,
                                                           const LoadOptions& options,
                                                           int64_t text_width) {
  if (!options.output) return nullptr;  // for states of texts
  if (options.pictures != nullptr) {
    return std::make_unique<Gemma3Pictures>(*options.pictures, options, text_width);
  }
  if (is_gguf(checkpoint) || find_nesting(checkpoint) == nullptr) return nullptr;
  return std::make_unique<Gemma3Pictures>(checkpoint, options, text_width);
}

}  // namespace rbee::models
