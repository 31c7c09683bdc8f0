#include "tests/support/scene.h"

#include <algorithm>
#include <cmath>

#include "backends/shared/kv_page.h"
#include "tests/support/kv_pages.h"
#include "tests/support/random_values.h"

namespace rbee::harness {
namespace {

// A large number in every float type, so that an unwritten element fails.
constexpr std::byte kPattern{0x5a};
constexpr int64_t kGap = 3;  // extra columns of Form::gaps

Shape stored_shape(const Layout& layout) {
  Shape shape = layout.shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if ((layout.broadcast >> i & 1) != 0) shape[i] = 1;
  }
  const int last = shape.rank() - 1;
  switch (layout.form) {
    case Form::contiguous:
    case Form::pages:
      break;
    case Form::gaps:
      shape[last] += kGap;
      break;
    case Form::transposed:
      std::swap(shape[last], shape[last - 1]);
      break;
    case Form::step2:
      shape.push_back(2);
      break;
  }
  return shape;
}

Tensor view_of(const Tensor& stored, const Layout& layout) {
  Tensor view = stored;
  switch (layout.form) {
    case Form::contiguous:
      break;
    case Form::gaps:
      view = stored.slice(Axis{-1}, 1, stored.dim(-1) - kGap);
      break;
    case Form::transposed:
      view = stored.transpose(Axis{-1}, Axis{-2});
      break;
    case Form::step2:
      view = stored.slice(Axis{-1}, 1, 1).squeeze(Axis{-1});
      break;
    case Form::pages: {
      View pages = stored.view();
      pages.packing = shared::kPagePacking;
      view = Tensor::from_buffer(stored.buffer(), pages);
      break;
    }
  }
  return layout.broadcast != 0 ? view.broadcast_to(layout.shape) : view;
}

size_t bytes_of(const Shape& shape, DType dtype) {
  if (!is_quantized(dtype)) return static_cast<size_t>(row_bytes(dtype, numel(shape)));
  const int64_t row = shape[shape.rank() - 1];
  const int64_t rows = row == 0 ? 0 : numel(shape) / row;
  return static_cast<size_t>(rows * row_bytes(dtype, row));
}

// Bytes of the distinct elements in a view.
double touched_bytes(const View& view) {
  const DTypeInfo& type = info(view.dtype);
  double elements = 1;
  for (int i = 0; i < view.rank; ++i) {
    elements *= static_cast<double>(view.strides[i] == 0 && view.sizes[i] > 0 ? 1 : view.sizes[i]);
  }
  return elements / type.block_size * type.block_bytes;
}

const char* name(Form form) {
  constexpr const char* kNames[] = {"", " gaps", " transposed", " step2", " pages"};
  return kNames[static_cast<int>(form)];
}

}  // namespace

void append_to(std::string& out, const Layout& layout) {
  out += cat('(', layout.shape, ')', name(layout.form));
  if (layout.broadcast == 0) return;
  out += " broadcast";
  for (int i = 0; i < layout.shape.rank(); ++i) {
    if ((layout.broadcast >> i & 1) != 0) out += cat(' ', i);
  }
}

HostArray host_zeros(const Shape& shape) {
  return {.shape = shape, .values = std::vector<double>(static_cast<size_t>(numel(shape)))};
}

std::vector<std::byte> Scene::random_bytes(const Layout& layout, DType dtype,
                                           const Values& values) {
  std::vector<std::byte> out(bytes_of(stored_shape(layout), dtype));
  fill_random(out, dtype, values, state_);
  if (layout.form == Form::pages) to_pages(out, layout.shape);
  return out;
}

Scene::Operand Scene::make(const Layout& layout, DType dtype,
                           const std::vector<std::byte>& initial) {
  Tensor stored = empty(stored_shape(layout), dtype, *device_);
  Stream& stream = stored.stream();
  if (!initial.empty()) {
    device_->copy(stored.view().data, initial.data(), initial.size(), CopyKind::host_to_device,
                  stream);
    device_->synchronize(stream);
  }
  return {stored, view_of(stored, layout)};
}

void Scene::keep_values(const Tensor& view) {
  inputs_.push_back(read_values(view));
  if (is_integer(view.dtype())) return;
  for (const double x : inputs_.back().values) {
    if (std::isfinite(x)) largest_ = std::max(largest_, std::fabs(x));
  }
}

View Scene::add_input(Tensor view) {
  bytes += touched_bytes(view.view());
  keep_values(view);
  tensors_.push_back(std::move(view));
  return tensors_.back().view();
}

View Scene::input(const Layout& layout, DType dtype, const Values& values) {
  return add_input(make(layout, dtype, random_bytes(layout, dtype, values)).view);
}

View Scene::output(const Layout& layout, DType dtype) {
  std::vector<std::byte> initial(bytes_of(stored_shape(layout), dtype), kPattern);
  const Operand made = make(layout, dtype, initial);
  bytes += touched_bytes(made.view.view());
  outputs_.push_back({made.stored, made.view, std::move(initial)});
  return made.view.view();
}

View Scene::in_out(const Layout& layout, DType dtype, const Values& values) {
  std::vector<std::byte> initial = random_bytes(layout, dtype, values);
  const Operand made = make(layout, dtype, initial);
  bytes += 2 * touched_bytes(made.view.view());
  keep_values(made.view);
  outputs_.push_back({made.stored, made.view, std::move(initial)});
  return made.view.view();
}

void Scene::reset() {
  for (const Output& output : outputs_) {
    if (output.initial.empty()) continue;
    Stream& stream = output.stored.stream();
    device_->copy(output.stored.view().data, output.initial.data(), output.initial.size(),
                  CopyKind::host_to_device, stream);
    device_->synchronize(stream);
  }
}

std::vector<std::byte> read_bytes(const Tensor& x) {
  std::vector<std::byte> out(static_cast<size_t>(x.bytes()));
  if (out.empty()) return out;
  Stream& stream = x.stream();
  x.device().copy(out.data(), x.view().data, out.size(), CopyKind::device_to_host, stream);
  x.device().synchronize(stream);
  return out;
}

std::set<DType> Scene::dtypes() const {
  std::set<DType> out;
  for (const Tensor& tensor : tensors_) out.insert(tensor.dtype());
  for (const Output& output : outputs_) out.insert(output.view.dtype());
  return out;
}

HostArray read_values(const Tensor& x) {
  HostArray out = host_zeros(x.shape());
  if (out.values.empty()) return out;
  const Buffer& buffer = *x.buffer();
  std::vector<std::byte> bytes(buffer.bytes());
  Stream& stream = x.stream();
  x.device().copy(bytes.data(), buffer.data(), bytes.size(), CopyKind::device_to_host, stream);
  x.device().synchronize(stream);
  const View& view = x.view();
  const std::byte* first = bytes.data() + (static_cast<std::byte*>(view.data) - buffer.data());
  if (view.packing == shared::kPagePacking) {
    for (size_t i = 0; i < out.values.size(); ++i) {
      out.values[i] = page_element(first, view, static_cast<int64_t>(i));
    }
    return out;
  }
  std::vector<int64_t> places(out.values.size());
  int64_t index[kMaxRank] = {};
  for (int64_t& at : places) {
    for (int i = 0; i < view.rank; ++i) at += index[i] * view.strides[i];
    for (int i = view.rank - 1; i >= 0 && ++index[i] == view.sizes[i]; --i) index[i] = 0;
  }
  elements(first, view.dtype, places, out.values);
  return out;
}

}  // namespace rbee::harness
