#include "rbee/models/image/upscaler_file.h"

#include <algorithm>
#include <optional>
#include <set>

#include "rbee/core/error.h"
#include "rbee/io/diffusers_folder.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

constexpr int64_t kMostBlocks = 256;
constexpr int64_t kMostDoublings = 2;

enum class Form : uint8_t { current, published, old };

std::string dense_name(Form form, int64_t block, int64_t dense, int64_t conv) {
  switch (form) {
    case Form::current:
      return cat("body.", block, ".rdb", dense + 1, ".conv", conv + 1);
    case Form::published:
      return cat("RRDB_trunk.", block, ".RDB", dense + 1, ".conv", conv + 1);
    case Form::old:
      return cat("model.1.sub.", block, ".RDB", dense + 1, ".conv", conv + 1, ".0");
  }
  return {};
}

// The old form numbers the layers of a chain, where a doubling is followed by its convolution and
// activation.
std::string up_name(Form form, int64_t index) {
  if (form == Form::old) return cat("model.", 3 * index + 3);
  return cat(form == Form::current ? "conv_up" : "upconv", index + 1);
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : file_(io::Checkpoint::open(path)), source_(path.string()), form_(find_form()) {}

  UpscalerFile read() {
    read_shape();
    const int64_t width = shape_.width;
    take("conv_first", first_name(), shape_.in_channels(), width);
    for (int64_t i = 0; i < shape_.blocks; ++i) take_block(i);
    take("conv_body", body_name(), width, width);
    for (int64_t i = 0; i < shape_.doublings; ++i) {
      take(cat("conv_up", i + 1), up_name(form_, i), width, width);
    }
    take("conv_hr", tail_name("conv_hr", "HRconv", 2), width, width);
    take("conv_last", tail_name("conv_last", "conv_last", 4), width, kColours);
    refuse_others();
    return {shape_, io::Checkpoint::of(std::move(tensors_), source_)};
  }

 private:
  Form find_form() const {
    for (const Form form : {Form::current, Form::published, Form::old}) {
      if (file_.find(dense_name(form, 0, 0, 0) + ".weight") != nullptr) return form;
    }
    fail(Code::unsupported, source_,
         "is no ESRGAN: it has no body.0.rdb1.conv1.weight, RRDB_trunk.0.RDB1.conv1.weight or "
         "model.1.sub.0.RDB1.conv1.0.weight; other networks are not implemented");
  }

  std::string first_name() const { return form_ == Form::old ? "model.0" : "conv_first"; }

  std::string body_name() const {
    if (form_ == Form::old) return cat("model.1.sub.", shape_.blocks);
    return form_ == Form::current ? "conv_body" : "trunk_conv";
  }

  std::string tail_name(const char* current, const char* published, int64_t number) const {
    if (form_ == Form::old) return cat("model.", 3 * shape_.doublings + number);
    return form_ == Form::current ? current : published;
  }

  bool has(const std::string& module) const { return file_.find(module + ".weight") != nullptr; }

  const TensorEntry& weight(const std::string& module) const {
    const TensorEntry& entry = file_.require(module + ".weight");
    check(entry.shape.rank() == 4, source_, entry.name, " is ", entry.shape,
          ", wanted the four sizes of a convolution");
    return entry;
  }

  void read_shape() {
    const TensorEntry& first = weight(first_name());
    shape_.width = first.shape[0];
    shape_.growth = weight(dense_name(form_, 0, 0, 0)).shape[0];
    shape_.unshuffle = first.shape[1] == 48 ? 4 : first.shape[1] == 12 ? 2 : 1;
    check(shape_.width > 0 && shape_.growth > 0, source_, first.name, " and ",
          dense_name(form_, 0, 0, 0), ".weight have ", shape_.width, " and ", shape_.growth,
          " channels");
    shape_.blocks = 0;
    while (has(dense_name(form_, shape_.blocks, 0, 0))) ++shape_.blocks;
    check(shape_.blocks <= kMostBlocks, source_, shape_.blocks, " blocks are more than ",
          kMostBlocks);
    shape_.doublings = 0;
    while (shape_.doublings < kMostDoublings && has(up_name(form_, shape_.doublings))) {
      ++shape_.doublings;
    }
    const bool whole = shape_.unshuffle <= int64_t{1} << shape_.doublings;
    check(whole, source_, first.name, " reads squares of ", shape_.unshuffle,
          " pixels a side, and no ", up_name(form_, shape_.doublings),
          ".weight enlarges the picture again");
  }

  void take_block(int64_t block) {
    for (int64_t dense = 0; dense < kDenseBlocks; ++dense) {
      for (int64_t k = 0; k < kDenseConvs; ++k) {
        take(upscaler_conv(block, dense, k), dense_name(form_, block, dense, k),
             shape_.width + k * shape_.growth, k + 1 < kDenseConvs ? shape_.growth : shape_.width);
      }
    }
  }

  // A convolution of 3 x 3 under another name.
  void take(const std::string& name, const std::string& from, int64_t in, int64_t out) {
    constexpr int64_t kKernel = 3;
    take_one(name + ".weight", from + ".weight", {out, in, kKernel, kKernel});
    take_one(name + ".bias", from + ".bias", {out});
  }

  void take_one(const std::string& name, const std::string& from, const Shape& wanted) {
    TensorEntry entry = file_.require(from);
    check(entry.shape == wanted, source_, from, " is ", entry.shape, ", wanted ", wanted);
    const bool known =
        entry.dtype == DType::f32 || entry.dtype == DType::f16 || entry.dtype == DType::bf16;
    if (!known) {
      fail(Code::unsupported, source_, from, " has values of ", entry.dtype,
           ", wanted f32, f16 or bf16");
    }
    taken_.insert(from);
    entry.name = name;
    tensors_.push_back(std::move(entry));
  }

  void refuse_others() const {
    for (const TensorEntry& entry : file_.tensors()) {
      if (taken_.contains(entry.name)) continue;
      fail(Code::unsupported, source_, entry.name,
           " is no tensor of an ESRGAN of 1, 2 or 4 times the size: another network's");
    }
  }

  io::Checkpoint file_;
  std::string source_;
  Form form_;
  UpscalerShape shape_;
  std::vector<TensorEntry> tensors_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace

std::string upscaler_conv(int64_t block, int64_t dense, int64_t conv) {
  return dense_name(Form::current, block, dense, conv);
}

UpscalerFile read_upscaler_file(const std::filesystem::path& path) {
  io::refuse_pickle(path);
  return Reader(path).read();
}

}  // namespace rbee::models
