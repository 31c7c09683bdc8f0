#include "rbee/models/image/upscaler_file.h"

#include <set>

#include "rbee/core/error.h"
#include "rbee/io/diffusers_folder.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

constexpr int64_t kMostBlocks = 256;
constexpr int64_t kMostDoublings = 4;
constexpr int64_t kMostCompactScale = 8;
constexpr int64_t kKernel = 3;

// Prefixes that training scripts write; a mean of the weights over time comes first.
constexpr std::string_view kPrefixes[] = {"", "params_ema.", "params."};

enum class Form : uint8_t { current, published, old };

std::string dense_name(Form form, int64_t block, int64_t dense) {
  switch (form) {
    case Form::current:
      return cat("body.", block, ".rdb", dense + 1);
    case Form::published:
      return cat("RRDB_trunk.", block, ".RDB", dense + 1);
    case Form::old:
      return cat("model.1.sub.", block, ".RDB", dense + 1);
  }
  return {};
}

std::string conv_name(Form form, int64_t block, int64_t dense, int64_t conv) {
  return cat(dense_name(form, block, dense), ".conv", conv + 1, form == Form::old ? ".0" : "");
}

std::string shortcut_name(Form form, int64_t block, int64_t dense) {
  return dense_name(form, block, dense) + ".conv1x1";
}

// The old form numbers the layers of a chain, where a doubling is followed by its convolution and
// activation.
std::string up_name(Form form, int64_t index) {
  if (form == Form::old) return cat("model.", 3 * index + 3);
  return cat(form == Form::current ? "conv_up" : "upconv", index + 1);
}

// The tensors of one file, and those that a network has taken.
class Tensors {
 public:
  explicit Tensors(const std::filesystem::path& path)
      : file_(io::Checkpoint::open(path)), source_(path.string()) {}

  const std::string& source() const { return source_; }
  void set_prefix(std::string_view prefix) { prefix_ = prefix; }
  std::string own_name(const std::string& name) const { return cat(prefix_, name); }
  bool has(const std::string& name) const { return file_.find(own_name(name)) != nullptr; }
  const TensorEntry& require(const std::string& name) const {
    return file_.require(own_name(name));
  }

  // The weight of a convolution.
  const TensorEntry& conv(const std::string& module) const {
    const TensorEntry& entry = require(module + ".weight");
    check(entry.shape.rank() == 4, source_, entry.name, " is ", entry.shape,
          ", wanted the four sizes of a convolution");
    return entry;
  }

  // A convolution with its bias under another name.
  void take_conv(const std::string& name, const std::string& from, int64_t in, int64_t out) {
    take(name + ".weight", from + ".weight", {out, in, kKernel, kKernel});
    take(name + ".bias", from + ".bias", {out});
  }

  void take(const std::string& name, const std::string& from, const Shape& wanted) {
    TensorEntry entry = require(from);
    check(entry.shape == wanted, source_, entry.name, " is ", entry.shape, ", wanted ", wanted);
    const bool known =
        entry.dtype == DType::f32 || entry.dtype == DType::f16 || entry.dtype == DType::bf16;
    if (!known) {
      fail(Code::unsupported, source_, entry.name, " has values of ", entry.dtype,
           ", wanted f32, f16 or bf16");
    }
    taken_names_.insert(entry.name);
    entry.name = name;
    taken_.push_back(std::move(entry));
  }

  // The tensors taken so far; refuses others below the prefix.
  io::Checkpoint finish(const char* network) {
    for (const TensorEntry& entry : file_.tensors()) {
      if (!entry.name.starts_with(prefix_) || taken_names_.contains(entry.name)) continue;
      fail(Code::unsupported, source_, entry.name, " is no tensor of ", network,
           ": another network's");
    }
    return io::Checkpoint::of(std::move(taken_), source_);
  }

 private:
  io::Checkpoint file_;
  std::string source_;
  std::string_view prefix_;
  std::vector<TensorEntry> taken_;
  std::set<std::string, std::less<>> taken_names_;
};

class RrdbReader {
 public:
  RrdbReader(Tensors& tensors, Form form) : tensors_(tensors), form_(form) {}

  UpscalerFile read() {
    read_shape();
    const int64_t width = shape_.width;
    tensors_.take_conv("conv_first", first_name(), shape_.in_channels(), width);
    for (int64_t i = 0; i < shape_.blocks; ++i) take_block(i);
    tensors_.take_conv("conv_body", body_name(), width, width);
    for (int64_t i = 0; i < shape_.doublings; ++i) {
      tensors_.take_conv(cat("conv_up", i + 1), up_name(form_, i), width, width);
    }
    tensors_.take_conv("conv_hr", tail_name("conv_hr", "HRconv", 2), width, width);
    tensors_.take_conv("conv_last", tail_name("conv_last", "conv_last", 4), width, kColours);
    return {shape_, tensors_.finish("an ESRGAN of 1 to 16 times the size")};
  }

 private:
  std::string first_name() const { return form_ == Form::old ? "model.0" : "conv_first"; }

  std::string body_name() const {
    if (form_ == Form::old) return cat("model.1.sub.", shape_.blocks);
    return form_ == Form::current ? "conv_body" : "trunk_conv";
  }

  std::string tail_name(const char* current, const char* published, int64_t number) const {
    if (form_ == Form::old) return cat("model.", 3 * shape_.doublings + number);
    return form_ == Form::current ? current : published;
  }

  bool has(const std::string& module) const { return tensors_.has(module + ".weight"); }

  void read_shape() {
    const std::string& source = tensors_.source();
    const TensorEntry& first = tensors_.conv(first_name());
    const TensorEntry& dense = tensors_.conv(conv_name(form_, 0, 0, 0));
    shape_.width = first.shape[0];
    shape_.growth = dense.shape[0];
    shape_.unshuffle = first.shape[1] == 48 ? 4 : first.shape[1] == 12 ? 2 : 1;
    check(shape_.width > 0 && shape_.growth > 0, source, first.name, " and ", dense.name, " have ",
          shape_.width, " and ", shape_.growth, " channels");
    shape_.shortcuts = has(shortcut_name(form_, 0, 0));
    shape_.blocks = 0;
    while (has(conv_name(form_, shape_.blocks, 0, 0))) ++shape_.blocks;
    check(shape_.blocks <= kMostBlocks, source, shape_.blocks, " blocks are more than ",
          kMostBlocks);
    shape_.doublings = 0;
    while (shape_.doublings < kMostDoublings && has(up_name(form_, shape_.doublings))) {
      ++shape_.doublings;
    }
    const bool whole = shape_.unshuffle <= int64_t{1} << shape_.doublings;
    check(whole, source, first.name, " reads squares of ", shape_.unshuffle,
          " pixels a side, and no ", tensors_.own_name(up_name(form_, shape_.doublings)),
          ".weight enlarges the picture again");
  }

  void take_block(int64_t block) {
    for (int64_t dense = 0; dense < kDenseBlocks; ++dense) {
      for (int64_t k = 0; k < kDenseConvs; ++k) {
        tensors_.take_conv(upscaler_conv(block, dense, k), conv_name(form_, block, dense, k),
                           shape_.width + k * shape_.growth,
                           k + 1 < kDenseConvs ? shape_.growth : shape_.width);
      }
      if (!shape_.shortcuts) continue;
      tensors_.take(upscaler_shortcut(block, dense) + ".weight",
                    shortcut_name(form_, block, dense) + ".weight",
                    {shape_.growth, shape_.width, 1, 1});
    }
  }

  Tensors& tensors_;
  Form form_;
  RrdbShape shape_;
};

std::string layer(int64_t number) {
  return cat("body.", number);
}

// Slopes follow every convolution but the last.
UpscalerFile read_compact(Tensors& tensors) {
  const std::string& source = tensors.source();
  CompactShape shape;
  shape.width = tensors.conv(layer(0)).shape[0];
  shape.convs = 0;
  const auto goes_on = [&](int64_t convs) { return tensors.has(layer(2 * convs + 3) + ".weight"); };
  while (shape.convs <= kMostBlocks && goes_on(shape.convs)) ++shape.convs;
  check(shape.convs <= kMostBlocks, source, "more than ", kMostBlocks, " convolutions");
  const std::string end = layer(2 * shape.convs + 2);
  const TensorEntry& last = tensors.conv(end);
  const int64_t pixels = last.shape[0] / kColours;
  shape.scale = 1;
  while (shape.scale < kMostCompactScale && shape.scale * shape.scale < pixels) ++shape.scale;
  const int64_t wanted = kColours * shape.scale * shape.scale;
  check(last.shape[0] == wanted, source, last.name, " has ", last.shape[0],
        " channels, wanted 3 for each pixel of a square of 1 to ", kMostCompactScale,
        " pixels a side");
  for (int64_t i = 0; i <= shape.convs; ++i) {
    tensors.take_conv(layer(2 * i), layer(2 * i), i == 0 ? kColours : shape.width, shape.width);
    const std::string slopes = layer(2 * i + 1) + ".weight";
    tensors.take(slopes, slopes, {shape.width});
  }
  tensors.take_conv(end, end, shape.width, wanted);
  return {shape, tensors.finish("SRVGGNetCompact")};
}

}  // namespace

std::string upscaler_conv(int64_t block, int64_t dense, int64_t conv) {
  return conv_name(Form::current, block, dense, conv);
}

std::string upscaler_shortcut(int64_t block, int64_t dense) {
  return shortcut_name(Form::current, block, dense);
}

UpscalerFile read_upscaler_file(const std::filesystem::path& path) {
  io::refuse_pickle(path);
  Tensors tensors(path);
  for (const std::string_view prefix : kPrefixes) {
    tensors.set_prefix(prefix);
    for (const Form form : {Form::current, Form::published, Form::old}) {
      if (tensors.has(conv_name(form, 0, 0, 0) + ".weight"))
        return RrdbReader(tensors, form).read();
    }
    if (tensors.has(layer(0) + ".weight") && tensors.has(layer(1) + ".weight")) {
      return read_compact(tensors);
    }
  }
  fail(Code::unsupported, path.string(),
       "is no ESRGAN: it has no body.0.rdb1.conv1.weight, RRDB_trunk.0.RDB1.conv1.weight, "
       "model.1.sub.0.RDB1.conv1.0.weight or body.1.weight (of SRVGGNetCompact with PReLU); other "
       "networks are not implemented");
}

}  // namespace rbee::models
