#include "rbee/models/image/weight_change.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rbee/core/error.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/models/image/rotation_change.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/matmul.h"
#include "rbee/tensor/tensor.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

int64_t columns_of(const TensorEntry& entry) {
  return numel(entry.shape) / std::max<int64_t>(entry.shape[0], 1);
}

Tensor as_matrix(const TensorEntry& entry, Device& device) {
  return from_host<float>(io::read_floats(entry), {entry.shape[0], columns_of(entry)}, device);
}

// A matrix of a layer's weight, whole or made of factors: a b, or with a core t of
// (rank, rank, kernel_h, kernel_w) sum_ij t_ij a_ip b_jq, (p, q, kernel_h, kernel_w).
struct Matrix {
  std::optional<TensorEntry> whole, a, b, core;

  int64_t rows() const {
    if (whole) return whole->shape[0];
    return core ? columns_of(*a) : a->shape[0];
  }
  int64_t columns() const {
    if (whole) return columns_of(*whole);
    return core ? columns_of(*b) * kernel() : columns_of(*b);
  }
  int64_t kernel() const { return columns_of(*core) / core->shape[1]; }

  // Whether the factors fit each other.
  bool consistent() const {
    if (whole) return true;
    const int64_t rank = b->shape[0];
    if (!core) return columns_of(*a) == rank;
    return a->shape[0] == rank && core->shape.rank() >= 2 && core->shape[0] == rank &&
           core->shape[1] == rank;
  }

  Tensor values(Device& device) const {
    if (whole) return as_matrix(*whole, device);
    const Tensor left = as_matrix(*a, device), right = as_matrix(*b, device);
    if (!core) return matmul(left, right);
    const int64_t rank = b->shape[0], pixels = kernel(), out = rows(), in = columns_of(*b);
    const Tensor middle = as_matrix(*core, device);  // (rank, rank * pixels)
    const Tensor first = matmul(contiguous(left.transpose(Axis{0}, Axis{1})), middle);
    const Tensor turned = contiguous(first.reshape({out, rank, pixels}).permute({0, 2, 1}));
    const Tensor second = matmul(turned.reshape({out * pixels, rank}), right);
    return contiguous(second.reshape({out, pixels, in}).permute({0, 2, 1}))
        .reshape({out, in * pixels});
  }
};

[[noreturn]] void fail_fit(const std::string& path, const std::string& what,
                           const std::string& name, const Shape& shape) {
  fail(Code::invalid_argument, path, what, ", which is no change of ", name, " (", shape,
       "): the adapter is for another model");
}

// One matrix for a whole layer; a weight has some of its rows.
class MatrixChange : public WeightChange {
 public:
  MatrixChange(std::string path, std::string tensors, float scale)
      : WeightChange(scale), path_(std::move(path)), tensors_(std::move(tensors)) {}

  std::vector<float> values(std::span<const float>, const Shape& shape, const RowShare& share,
                            Device& device) const override {
    const std::vector<float> all = whole(device);
    const int64_t first = rows() / share.shares * share.first * columns();
    const auto begin = all.begin() + first;
    return {begin, begin + numel(shape)};
  }
  void check_fit(const std::string& name, const Shape& shape,
                 const RowShare& share) const override {
    const bool fits = consistent() && rows() % share.shares == 0 &&
                      rows() / share.shares * share.count == shape[0] &&
                      shape[0] * columns() == numel(shape);
    if (!fits) fail_fit(path_, tensors_, name, shape);
  }

 protected:
  virtual bool consistent() const = 0;  // the tensors fit each other
  virtual std::vector<float> whole(Device& device) const = 0;
  virtual int64_t rows() const = 0;
  virtual int64_t columns() const = 0;

 private:
  std::string path_, tensors_;
};

std::string described(std::initializer_list<const TensorEntry*> entries) {
  std::string out;
  for (const TensorEntry* entry : entries) {
    if (entry == nullptr) continue;
    out += cat(out.empty() ? "" : ", ", entry->name, " is (", entry->shape, ")");
  }
  return out;
}

// LoRA, LoCon and whole differences; LoHa if there are two, which are multiplied.
class ProductChange final : public MatrixChange {
 public:
  ProductChange(std::string path, std::string tensors, float scale, Matrix first,
                std::optional<Matrix> second = {})
      : MatrixChange(std::move(path), std::move(tensors), scale),
        first_(std::move(first)),
        second_(std::move(second)) {}

  // For a plain product, computes only the wanted rows.
  std::vector<float> values(std::span<const float> weight, const Shape& shape,
                            const RowShare& share, Device& device) const override {
    if (second_ || first_.whole || first_.core || share.shares == 1) {
      return MatrixChange::values(weight, shape, share, device);
    }
    Matrix part = first_;
    part.a = rows_of(*first_.a, share, first_.a->name);
    return part.values(device).to_host<float>();
  }

 protected:
  bool consistent() const override {
    if (!first_.consistent()) return false;
    if (!second_) return true;
    return second_->consistent() && second_->rows() == first_.rows() &&
           second_->columns() == first_.columns();
  }
  std::vector<float> whole(Device& device) const override {
    const Tensor one = first_.values(device);
    return (second_ ? one * second_->values(device) : one).to_host<float>();
  }
  int64_t rows() const override { return first_.rows(); }
  int64_t columns() const override { return first_.columns(); }

 private:
  Matrix first_;
  std::optional<Matrix> second_;
};

// The Kronecker product of a small matrix and one of the kernel's size.
class KroneckerChange final : public MatrixChange {
 public:
  KroneckerChange(std::string path, std::string tensors, float scale, Matrix outer, Matrix inner)
      : MatrixChange(std::move(path), std::move(tensors), scale),
        outer_(std::move(outer)),
        inner_(std::move(inner)) {}

 protected:
  bool consistent() const override { return outer_.consistent() && inner_.consistent(); }
  std::vector<float> whole(Device& device) const override {
    const std::vector<float> outer = outer_.values(device).to_host<float>();
    const std::vector<float> inner = inner_.values(device).to_host<float>();
    const auto across = static_cast<size_t>(outer_.columns());
    const auto row = static_cast<size_t>(inner_.columns());
    std::vector<float> out;
    out.reserve(outer.size() * inner.size());
    for (size_t i = 0; i < outer.size(); i += across) {
      for (size_t k = 0; k < inner.size(); k += row) {
        for (size_t j = 0; j < across; ++j) {
          for (size_t n = 0; n < row; ++n) out.push_back(outer[i + j] * inner[k + n]);
        }
      }
    }
    return out;
  }
  int64_t rows() const override { return outer_.rows() * inner_.rows(); }
  int64_t columns() const override { return outer_.columns() * inner_.columns(); }

 private:
  Matrix outer_, inner_;
};

class ScalingChange final : public WeightChange {
 public:
  ScalingChange(std::string path, const TensorEntry& factors, bool on_input)
      : WeightChange(1), path_(std::move(path)), factors_(factors), on_input_(on_input) {}

  std::vector<float> values(std::span<const float> weight, const Shape& shape, const RowShare&,
                            Device&) const override {
    const std::vector<float> factors = io::read_floats(factors_);
    const auto row = static_cast<size_t>(numel(shape) / shape[0]);
    const size_t pixels = row / static_cast<size_t>(shape[1]);
    std::vector<float> out(weight.begin(), weight.end());
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] *= factors[on_input_ ? i % row / pixels : i / row];
    }
    return out;
  }
  void check_fit(const std::string& name, const Shape& shape,
                 const RowShare& share) const override {
    const bool matrix = shape.rank() >= 2 && share.shares == 1;
    if (matrix && numel(factors_.shape) == shape[on_input_ ? 1 : 0]) return;
    fail_fit(path_, described({&factors_}), name, shape);
  }

 private:
  std::string path_;
  TensorEntry factors_;
  bool on_input_;
};

// DoRA: the changed weight with rows, or for LyCORIS also columns, of learned lengths.
class DecomposedChange final : public WeightChange {
 public:
  DecomposedChange(std::string path, std::shared_ptr<const WeightChange> change,
                   const TensorEntry& lengths, bool of_columns)
      : WeightChange(1),
        path_(std::move(path)),
        change_(std::move(change)),
        lengths_(lengths),
        of_columns_(of_columns) {}

  std::vector<float> values(std::span<const float> weight, const Shape& shape,
                            const RowShare& share, Device& device) const override {
    std::vector<float> out = change_->values(weight, shape, share, device);
    for (size_t i = 0; i < out.size(); ++i) out[i] = weight[i] + change_->scale() * out[i];
    const std::vector<float> lengths = io::read_floats(lengths_);
    const size_t first =
        lengths.size() / static_cast<size_t>(share.shares) * static_cast<size_t>(share.first);
    const auto row = static_cast<size_t>(numel(shape) / shape[0]);
    const size_t pixels = row / static_cast<size_t>(shape[1]);
    const auto line = [&](size_t i) { return of_columns_ ? i % row / pixels : i / row; };
    std::vector<double> squares(static_cast<size_t>(shape[of_columns_ ? 1 : 0]));
    for (size_t i = 0; i < out.size(); ++i) squares[line(i)] += double{out[i]} * out[i];
    for (size_t i = 0; i < out.size(); ++i) {
      constexpr double kLeast = std::numeric_limits<float>::epsilon();
      const double length = std::sqrt(squares[line(i)]) + kLeast;
      out[i] = static_cast<float>(out[i] * (lengths[first + line(i)] / length)) - weight[i];
    }
    return out;
  }
  void check_fit(const std::string& name, const Shape& shape,
                 const RowShare& share) const override {
    change_->check_fit(name, shape, share);
    if (shape.rank() < 2) fail_fit(path_, described({&lengths_}), name, shape);
    const int64_t wanted = of_columns_ ? shape[1] : shape[0] / share.count * share.shares;
    if (numel(lengths_.shape) == wanted && (share.shares == 1 || !of_columns_)) return;
    fail_fit(path_, described({&lengths_}), name, shape);
  }

 private:
  std::string path_;
  std::shared_ptr<const WeightChange> change_;
  TensorEntry lengths_;
  bool of_columns_;
};

// GLoRA: W A + B of a layer's own weight W, A and B each a product of two matrices. Older
// files of LyCORIS have the factors of both the other way round.
class GeneralChange final : public WeightChange {
 public:
  struct Factors {
    TensorEntry a1, a2, b1, b2;

    bool are_old() const {
      const int64_t rank = a1.shape[0];
      return columns_of(a2) == rank && b1.shape[0] == rank && columns_of(b2) == rank;
    }
    bool are_new() const {
      const int64_t rank = a2.shape[0];
      return columns_of(a1) == rank && columns_of(b1) == rank && b2.shape[0] == rank;
    }
    // In a square layer both readings fit, and the rank is the shorter side.
    int64_t rank() const {
      if (are_old() && are_new()) return std::min(a1.shape[0], a2.shape[0]);
      return are_new() ? a2.shape[0] : a1.shape[0];
    }
  };

  GeneralChange(std::string path, const Factors& factors, float scale)
      : WeightChange(scale), path_(std::move(path)), factors_(factors) {}

  std::vector<float> values(std::span<const float> weight, const Shape& shape,
                            const RowShare& share, Device& device) const override {
    const Factors& f = factors_;
    const int64_t out = shape[0], in = numel(shape) / out;
    const Tensor own =
        from_host<float>(std::vector<float>(weight.begin(), weight.end()), {out, in}, device);
    if (is_old(shape)) {
      const Tensor added =
          matmul(as_matrix(rows_of(f.b2, share, f.b2.name), device), as_matrix(f.b1, device));
      return (added + through(own, f.a2, f.a1, device)).to_host<float>();
    }
    const int64_t channels = shape[1], pixels = in / channels;
    const Tensor by_pixel = contiguous(own.reshape({out, channels, pixels}).permute({0, 2, 1}));
    const Tensor changed = through(by_pixel.reshape({out * pixels, channels}), f.a1, f.a2, device);
    const Tensor back = contiguous(changed.reshape({out, pixels, channels}).permute({0, 2, 1}));
    const Tensor added =
        matmul(as_matrix(rows_of(f.b1, share, f.b1.name), device), as_matrix(f.b2, device));
    return (added + back.reshape({out, in})).to_host<float>();
  }

  void check_fit(const std::string& name, const Shape& shape,
                 const RowShare& share) const override {
    const Factors& f = factors_;
    const auto fail_here = [&] {
      fail_fit(path_, described({&f.a1, &f.a2, &f.b1, &f.b2}), name, shape);
    };
    if (shape.rank() < 2 || !(f.are_old() || f.are_new())) fail_here();
    const bool old = is_old(shape);
    const TensorEntry &left = old ? f.b2 : f.b1, &right = old ? f.b1 : f.b2;
    const TensorEntry &first = old ? f.a2 : f.a1, &second = old ? f.a1 : f.a2;
    const int64_t in = numel(shape) / shape[0], inner = old ? in : shape[1];
    const bool fits = left.shape[0] % share.shares == 0 &&
                      left.shape[0] / share.shares * share.count == shape[0] &&
                      columns_of(right) == in && first.shape[0] == inner &&
                      columns_of(second) == inner;
    if (!fits) fail_here();
  }

 private:
  bool is_old(const Shape& shape) const {
    if (!factors_.are_old() || !factors_.are_new()) return factors_.are_old();
    return factors_.a2.shape[0] == shape[0] && shape[0] == shape[1];
  }
  static Tensor through(const Tensor& x, const TensorEntry& first, const TensorEntry& second,
                        Device& device) {
    return matmul(matmul(x, as_matrix(first, device)), as_matrix(second, device));
  }

  std::string path_;
  Factors factors_;
};

// Reads the tensors of one layer; a nullopt or null result means that parts are missing.
class LayerReader {
 public:
  LayerReader(const std::string& path, const AdapterLayer& layer) : path_(path), layer_(layer) {}

  std::shared_ptr<const WeightChange> lora() const {
    const auto *up = layer_.find("up"), *down = layer_.find("down"), *mid = layer_.find("mid");
    if (up == nullptr || down == nullptr) return nullptr;
    check(up->shape.rank() >= 2 && down->shape.rank() >= 2 && numel(up->shape) > 0 &&
              numel(down->shape) > 0,
          path_, down->name, " is (", down->shape, "), ", up->name, " (", up->shape,
          "), which have no rank");
    Matrix matrix{.whole = {}, .a = *up, .b = *down, .core = {}};
    if (mid != nullptr) {
      matrix.a = transposed(*up);
      matrix.core = *mid;
    }
    return product(matrix, {}, described({up, down, mid}), down->shape[0]);
  }

  std::shared_ptr<const WeightChange> loha() const {
    auto first = matrix("", "hada_w1_a", "hada_w1_b", "hada_t1");
    auto second = matrix("", "hada_w2_a", "hada_w2_b", "hada_t2");
    if (!first || !second) return nullptr;
    const std::string tensors = described({&*first->a, &*first->b, &*second->a, &*second->b});
    return product(*first, second, tensors, first->b->shape[0]);
  }

  std::shared_ptr<const WeightChange> lokr() const {
    auto outer = matrix("lokr_w1", "lokr_w1_a", "lokr_w1_b", "lokr_t1");
    auto inner = matrix("lokr_w2", "lokr_w2_a", "lokr_w2_b", "lokr_t2");
    if (!outer || !inner) return nullptr;
    // For whole matrices alpha has no meaning in LyCORIS, a factor has in PEFT.
    const auto& factor = inner->whole ? *outer : *inner;
    const float scale = factor.whole ? layer_.factor.value_or(1) : scale_of(factor.b->shape[0]);
    std::string tensors;
    for (const auto& [role, entry] : layer_.tensors) {
      tensors += cat(tensors.empty() ? "" : ", ", described({entry}));
    }
    return std::make_shared<KroneckerChange>(path_, tensors, scale, *outer, *inner);
  }

  std::shared_ptr<const WeightChange> glora() const {
    const auto *a1 = layer_.find("a1"), *a2 = layer_.find("a2");
    const auto *b1 = layer_.find("b1"), *b2 = layer_.find("b2");
    for (const TensorEntry* entry : {a1, a2, b1, b2}) {
      if (entry == nullptr) return nullptr;
      check(entry->shape.rank() >= 2 && numel(entry->shape) > 0, path_, entry->name,
            " is no matrix");
    }
    const GeneralChange::Factors factors{*a1, *a2, *b1, *b2};
    return std::make_shared<GeneralChange>(path_, factors, scale_of(factors.rank()));
  }

  std::shared_ptr<const WeightChange> rotation() const {
    const auto *blocks = layer_.find("oft_blocks"), *rescale = layer_.find("rescale");
    if (blocks == nullptr) return nullptr;
    for (const auto& [role, entry] : layer_.tensors) {
      if (role == "oft_blocks" || role == "rescale" || role == "dora_scale") continue;
      fail(Code::unsupported, path_, blocks->name, " and ", entry->name, " change one layer");
    }
    Rotation out{.blocks = *blocks, .constraint = layer_.alpha.value_or(0)};
    if (rescale != nullptr) out.rescale = *rescale;
    return rotation_change(path_, out);
  }

  std::shared_ptr<const WeightChange> difference(std::string_view role, float scale = 1) const {
    const TensorEntry* diff = layer_.find(role);
    if (diff == nullptr || diff->shape.rank() == 0) return nullptr;
    return std::make_shared<ProductChange>(path_, described({diff}), scale,
                                           Matrix{.whole = *diff, .a = {}, .b = {}, .core = {}});
  }

  std::shared_ptr<const WeightChange> bias() const {
    const TensorEntry *down = layer_.find("down"), *up_bias = layer_.find("up_bias");
    if (up_bias == nullptr) return difference("diff_b");
    check(layer_.find("diff_b") == nullptr, path_, up_bias->name, " is a second change of a bias");
    if (down == nullptr || down->shape.rank() < 2 || down->shape[0] < 1) return nullptr;
    return difference("up_bias", scale_of(down->shape[0]));
  }

  std::shared_ptr<const WeightChange> scaling() const {
    const auto *factors = layer_.find("scale"), *on_input = layer_.find("on_input");
    if (factors == nullptr || on_input == nullptr) return nullptr;
    check(numel(on_input->shape) == 1, path_, on_input->name, " is (", on_input->shape,
          "), not one number");
    const bool inputs = io::read_floats(*on_input).front() != 0;
    return std::make_shared<ScalingChange>(path_, *factors, inputs);
  }

  // The same without learned lengths. Those of columns are (1, columns, ...).
  std::shared_ptr<const WeightChange> decomposed(std::shared_ptr<const WeightChange> change) const {
    const auto *lengths = layer_.find("dora_scale"), *of_rows = layer_.find("magnitude");
    if (lengths == nullptr && of_rows == nullptr) return change;
    const bool columns = lengths != nullptr && lengths->shape.rank() > 1 && lengths->shape[0] == 1;
    return std::make_shared<DecomposedChange>(path_, std::move(change),
                                              lengths != nullptr ? *lengths : *of_rows, columns);
  }

 private:
  float scale_of(int64_t rank) const {
    const auto divisor = static_cast<float>(rank);
    return layer_.factor.value_or(layer_.alpha.value_or(divisor) / divisor);
  }

  std::shared_ptr<const WeightChange> product(const Matrix& first, std::optional<Matrix> second,
                                              const std::string& tensors, int64_t rank) const {
    return std::make_shared<ProductChange>(path_, tensors, scale_of(rank), first,
                                           std::move(second));
  }

  std::optional<Matrix> matrix(std::string_view whole, std::string_view a, std::string_view b,
                               std::string_view core) const {
    const auto *all = layer_.find(whole), *left = layer_.find(a), *right = layer_.find(b);
    const bool made = left != nullptr && right != nullptr;
    for (const TensorEntry* entry : {all, left, right}) {
      check(entry == nullptr || (entry->shape.rank() >= 2 && numel(entry->shape) > 0), path_,
            entry == nullptr ? "" : entry->name, " is no matrix");
    }
    if (all != nullptr) return Matrix{.whole = *all, .a = {}, .b = {}, .core = {}};
    if (!made) return std::nullopt;
    Matrix out{.whole = {}, .a = *left, .b = *right, .core = {}};
    if (const TensorEntry* middle = layer_.find(core)) out.core = *middle;
    return out;
  }

  // (rows, columns) of floats transposed, in a copy.
  static TensorEntry transposed(const TensorEntry& entry) {
    const std::vector<float> values = io::read_floats(entry);
    const auto rows = static_cast<size_t>(entry.shape[0]);
    const size_t columns = values.size() / rows;
    auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(float));
    auto* out = reinterpret_cast<float*>(bytes->data());
    for (size_t i = 0; i < values.size(); ++i) out[i % columns * rows + i / columns] = values[i];
    TensorEntry turned = entry;
    turned.dtype = DType::f32;
    turned.is_e5m2 = false;
    return with_bytes(turned, entry.name,
                      Shape{static_cast<int64_t>(columns), static_cast<int64_t>(rows)}, bytes);
  }

  const std::string& path_;
  const AdapterLayer& layer_;
};

}  // namespace

const TensorEntry* AdapterLayer::find(std::string_view role) const {
  const auto found = tensors.find(role);
  return found == tensors.end() ? nullptr : found->second;
}

std::shared_ptr<const WeightChange> read_change(const std::string& path,
                                                const AdapterLayer& layer) {
  const LayerReader reader(path, layer);
  for (const auto read : {&LayerReader::rotation, &LayerReader::lora, &LayerReader::loha,
                          &LayerReader::lokr, &LayerReader::glora}) {
    if (auto change = (reader.*read)()) return reader.decomposed(std::move(change));
  }
  if (auto change = reader.difference("diff")) return change;
  return reader.scaling();
}

std::shared_ptr<const WeightChange> read_bias_change(const std::string& path,
                                                     const AdapterLayer& layer) {
  return LayerReader(path, layer).bias();
}

}  // namespace rbee::models
