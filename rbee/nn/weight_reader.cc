#include "rbee/nn/weight_reader.h"

#include <algorithm>

#include "rbee/io/integer_matrix.h"
#include "rbee/nn/dequantised.h"
#include "rbee/nn/matrix_scale.h"
#include "rbee/nn/unpack_integers.h"
#include "rbee/ops/elementwise.h"
#include "rbee/quant/f8_rows.h"
#include "rbee/quant/mxfp4_rows.h"

namespace rbee::nn {
namespace {

constexpr const char* kOp = "load";

bool usable(DType dtype) {
  return is_quantized(dtype) || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// Kernels read elements (block types: the block's 16- or 32-bit fields) at their natural alignment,
// which safetensors files do not promise.
bool aligned(const std::byte* data, DType dtype) {
  const size_t alignment = is_quantized(dtype) ? 4 : static_cast<size_t>(info(dtype).block_bytes);
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

// Whether blocks run over the ends of rows, which no kernel reads.
bool cuts_blocks(DType dtype, const Shape& shape) {
  return is_quantized(dtype) && shape.rank() > 0 &&
         shape[shape.rank() - 1] % info(dtype).block_size != 0;
}

// Without the sizes of 1 at the ends.
Shape trimmed(const Shape& shape) {
  int first = 0, end = shape.rank();
  while (end > 1 && shape[end - 1] == 1) --end;
  while (end - first > 1 && shape[first] == 1) ++first;
  return Shape(std::span(shape.data() + first, static_cast<size_t>(end - first)));
}

// The bytes of one of `count` equal parts.
std::span<const std::byte> share_of(const io::TensorEntry& entry, int64_t index, int64_t count) {
  const size_t bytes = entry.data.size() / static_cast<size_t>(count);
  return entry.data.subspan(static_cast<size_t>(index) * bytes, bytes);
}

quant::F8Rows f8_rows(const io::TensorEntry& entry) {
  quant::F8Rows rows{.codes = entry.data,
                     .rows = entry.shape[0],
                     .in = entry.shape[1],
                     .scales = {&entry.scale, 1},
                     .scale_rows = entry.shape[0],
                     .scale_columns = entry.shape[1]};
  if (entry.scales.values != nullptr) {
    rows.scales = *entry.scales.values;
    rows.scale_rows = entry.scales.rows;
    rows.scale_columns = entry.scales.columns;
    rows.first_row = entry.scales.first_row;
  }
  return rows;
}

// Rows of a matrix, in place.
io::TensorEntry rows_of(const io::TensorEntry& matrix, int64_t first, int64_t count) {
  const auto row = static_cast<size_t>(row_bytes(matrix.dtype, matrix.shape[1]));
  io::TensorEntry rows = matrix;
  rows.data =
      matrix.data.subspan(static_cast<size_t>(first) * row, static_cast<size_t>(count) * row);
  rows.shape = Shape{count, matrix.shape[1]};
  rows.scales.first_row += first;
  return rows;
}

io::TensorEntry entry_of_blocks(std::string_view name, DType dtype, const Shape& shape,
                                std::vector<std::byte> made) {
  const auto blocks = std::make_shared<const std::vector<std::byte>>(std::move(made));
  return {.name = std::string(name),
          .dtype = dtype,
          .shape = shape,
          .data = *blocks,
          .file = nullptr,
          .owner = blocks};
}

}  // namespace

void PagesInUse::next(const io::TensorEntry& entry, std::span<const std::byte> bytes) {
  let_go();
  entry_ = &entry;
  bytes_ = bytes;
}

void PagesInUse::let_go() {
  if (entry_ != nullptr && entry_->file) entry_->file->dont_need(bytes_);
  entry_ = nullptr;
}

const io::TensorEntry& WeightReader::find(const std::string& name, const Shape& shape) const {
  const io::TensorEntry* entry = checkpoint_.find(name);
  if (entry == nullptr) {
    fail(Code::not_found, kOp, "tensor ", name, " (", shape, ") is missing from the checkpoint");
  }
  check(trimmed(entry->shape) == trimmed(shape), kOp, "tensor ", name, " is (", entry->shape,
        "), wanted (", shape, ")");
  return *entry;
}

const io::TensorEntry& WeightReader::take(const std::string& name, const Shape& shape) const {
  const io::TensorEntry& entry = find(name, shape);
  const bool may_be_fp8 = options_.plain_fp8 || entry.scales.values != nullptr;
  if (!usable(entry.dtype) && !(may_be_fp8 && io::is_fp8(entry))) {
    fail(Code::unsupported, kOp, "tensor ", name, " is stored as ", entry.dtype,
         "; weights are read as f32, f16, bf16 or a block type");
  }
  const io::TensorEntry* scale = scale_beside(checkpoint_, name);
  if (scale != nullptr && !books_.has_taken(*scale)) {
    fail(Code::unsupported, kOp, "tensor ", name, " is nvfp4 with a scale in ", scale->name,
         ", which is read for matrices and experts of a model's layers alone");
  }
  books_.take(entry);
  return entry;
}

const io::TensorEntry& WeightReader::take_bytes(const std::string& name, const Shape& shape) const {
  const io::TensorEntry& entry = find(name, shape);
  check(entry.dtype == DType::u8, kOp, "tensor ", name, " is stored as ", entry.dtype,
        ", wanted u8");
  books_.take(entry);
  return entry;
}

Tensor WeightReader::place(const io::TensorEntry& entry, const Shape& shape) const {
  Device& device = *options_.device;
  const std::span<const std::byte> bytes = entry.data;
  if (device.host_accessible() && aligned(bytes.data(), entry.dtype)) {
    const std::shared_ptr<const void> file = entry.file;
    return from_memory(bytes, shape, entry.dtype, device, file ? file : entry.owner);
  }
  Tensor x = empty(shape, entry.dtype, device);
  if (!bytes.empty()) {
    device.copy(x.buffer()->data(), bytes.data(), bytes.size(), CopyKind::host_to_device,
                x.stream());
    device.synchronize(x.stream());
  }
  return x;
}

io::TensorEntry WeightReader::readable(io::TensorEntry entry) const {
  if (entry.integers) return unpacked(entry, 0, entry.shape[0], options_.activations);
  if (!io::is_fp8(entry)) return entry;
  return io::widened(entry, options_.activations == DType::f16 ? DType::f16 : DType::bf16);
}

bool WeightReader::becomes_f8_blocks(const io::TensorEntry& entry) const {
  return io::is_fp8(entry) && !entry.is_e5m2 && !options_.widen_fp8 &&
         quant::fits_f8_blocks(f8_rows(entry));
}

io::TensorEntry WeightReader::readable_matrix(io::TensorEntry entry) const {
  if (!becomes_f8_blocks(entry)) return readable(std::move(entry));
  return entry_of_blocks(entry.name, DType::f8_g128, entry.shape, quant::f8_blocks(f8_rows(entry)));
}

int64_t WeightReader::input_block(const std::string& name) const {
  const std::string full = is_one_of_each(name) ? name_of_each(name, 0) : name;
  const io::TensorEntry* entry = checkpoint_.find(full);
  if (entry == nullptr || patched(full) || cuts_blocks(entry->dtype, entry->shape)) return 1;
  const bool f8 = entry->shape.rank() == 2 && becomes_f8_blocks(*entry);
  return info(f8 ? DType::f8_g128 : entry->dtype).block_size;
}

void WeightReader::leave(const std::string& name, const Shape& shape) const {
  if (!is_one_of_each(name)) return books_.take(find(name, shape));
  for (int64_t i = 0; i < shape[0]; ++i) {
    books_.take(find(name_of_each(name, i), Shape{shape[1], shape[2]}));
  }
}

Tensor WeightReader::whole(const std::string& name, const Shape& shape) const {
  const io::TensorEntry& taken = take(name, shape);
  const DType narrow = options_.activations == DType::bf16 ? DType::bf16 : DType::f16;
  const io::TensorEntry entry =
      cuts_blocks(taken.dtype, shape) ? dequantised(taken, narrow) : readable(taken);
  Tensor x = place(entry, shape);
  if (!patched(name)) return x;
  std::vector<float> values = cast(x, DType::f32).to_host<float>();
  options_.patch->apply(name, shape, values);
  const DType type = is_quantized(entry.dtype) ? DType::f16 : entry.dtype;
  return cast(from_host<float>(values, shape, *options_.device), type);
}

Tensor WeightReader::row(const std::string& name, int64_t size) const {
  return place(readable(take(name, Shape{size})), Shape{1, size});
}

PlainMatrix WeightReader::matrix(const std::string& name, RowSlice rows, int64_t in,
                                 const std::optional<group::Range>& inputs) const {
  RB_ASSERT(rows.first >= 0 && rows.first + rows.count <= rows.total);
  const Shape shape{rows.total, in};
  if (patched(name) || cuts_blocks(find(name, shape).dtype, shape)) {
    const Tensor part = whole(name, shape).slice(Axis{0}, rows.first, rows.count);
    return {inputs ? contiguous(part.slice(Axis{1}, inputs->first, inputs->count)) : part, {}};
  }
  const io::TensorEntry& entry = take(name, shape);
  if (entry.integers) {
    if (entry.file) entry.file->will_need(entry.data);
    io::TensorEntry share = unpacked(entry, rows.first, rows.count, options_.activations);
    if (entry.file) entry.file->dont_need(entry.data);
    share = cut_matrix(std::move(share), {.inputs = inputs});
    return {place(share, share.shape), {}};
  }
  io::TensorEntry stored = entry;
  stored.shape = shape;
  stored = rows_of(stored, rows.first, rows.count);
  const std::span<const std::byte> bytes = stored.data;
  if (entry.file) entry.file->will_need(bytes);
  const bool quantize = options_.quantizes(name, stored.dtype, in);
  io::TensorEntry share =
      quantize ? readable(std::move(stored)) : readable_matrix(std::move(stored));
  share = cut_matrix(std::move(share), {.inputs = inputs});
  const auto row = static_cast<size_t>(row_bytes(entry.dtype, in));
  return {place(share, share.shape), [file = entry.file, bytes, row](int64_t done) {
            if (file) file->dont_need(bytes.first(static_cast<size_t>(done) * row));
          }};
}

bool WeightReader::has_order(const std::string& name, const Shape& shape) const {
  const io::TensorEntry& entry = find(name, shape);
  return entry.integers && !entry.integers->inputs_by_group.empty() && !patched(name);
}

Tensor WeightReader::matrix_by_group(const std::string& name, RowSlice rows, int64_t in) const {
  RB_ASSERT(rows.first >= 0 && rows.first + rows.count <= rows.total);
  const io::TensorEntry& entry = find(name, Shape{rows.total, in});
  books_.take(entry);
  if (entry.file) entry.file->will_need(entry.data);
  const io::TensorEntry share = unpacked_by_group(entry, rows.first, rows.count);
  if (entry.file) entry.file->dont_need(entry.data);
  return place(share, share.shape);
}

Tensor WeightReader::order(const std::string& name, const Shape& shape) {
  const std::span<const int32_t> order = find(name, shape).integers->inputs_by_group;
  if (!std::ranges::equal(order, last_order_)) {
    last_order_.assign(order.begin(), order.end());
    last_order_tensor_ =
        from_host<int32_t>(order, {static_cast<int64_t>(order.size())}, *options_.device);
    books_.add_resident(last_order_tensor_.bytes());
  }
  return last_order_tensor_;
}

Tensor WeightReader::expert(const std::string& name, int64_t index, const Shape& shape,
                            const MatrixCut& cut, PagesInUse& pages) const {
  const bool alone = is_one_of_each(name);
  const std::string full = alone ? name_of_each(name, index) : name;
  refuse_patch(full);
  const Shape matrix{shape[1], shape[2]};
  const io::TensorEntry& entry = take(full, alone ? matrix : shape);
  io::TensorEntry one = entry;
  if (!alone) one.data = share_of(entry, index, shape[0]);
  one.shape = matrix;
  if (cut.rows && !one.integers) one = rows_of(one, cut.rows->first, cut.rows->count);
  pages.next(entry, one.data);
  const MatrixCut left{.rows = one.integers ? cut.rows : std::nullopt, .inputs = cut.inputs};
  const io::TensorEntry part = cut_matrix(readable_matrix(std::move(one)), left);
  return place(part, part.shape);
}

Tensor WeightReader::mapped(const io::TensorEntry& entry, const Shape& shape) const {
  const bool whole_blocks = shape[shape.rank() - 1] % info(entry.dtype).block_size == 0;
  if (entry.integers || io::is_fp8(entry) || !usable(entry.dtype) || !whole_blocks) return {};
  const std::shared_ptr<const void> file = entry.file;
  return from_memory(entry.data, shape, entry.dtype, *options_.device, file ? file : entry.owner);
}

Tensor WeightReader::mapped_matrix(const std::string& name, RowSlice rows, int64_t in) const {
  const Shape shape{rows.total, in};
  const io::TensorEntry& entry = find(name, shape);
  if (patched(name) || options_.quantizes(name, entry.dtype, in)) return {};
  const Tensor all = mapped(entry, shape);
  return all.defined() ? all.slice(Axis{0}, rows.first, rows.count) : all;
}

std::vector<Tensor> WeightReader::mapped_experts(const std::string& name,
                                                 const Shape& shape) const {
  const bool alone = is_one_of_each(name);
  const Shape each = alone ? Shape{shape[1], shape[2]} : shape;
  std::vector<Tensor> out;
  for (int64_t index = 0; index < (alone ? shape[0] : 1); ++index) {
    out.push_back(mapped(find(alone ? name_of_each(name, index) : name, each), each));
    if (!out.back().defined() || out.back().dtype() != out.front().dtype()) return {};
  }
  return out;
}

Mxfp4Stack WeightReader::mxfp4_stack(const std::string& name, const Shape& shape, int64_t first,
                                     int64_t step) const {
  constexpr int64_t kGroup = 32, kCodeBytes = 16;
  check(shape[2] % kGroup == 0, kOp, "rows of ", name, " have ", shape[2],
        " inputs, wanted a multiple of ", kGroup);
  const int64_t rows = step * shape[1], groups = shape[2] / kGroup;
  const Shape codes{shape[0], rows, groups, kCodeBytes}, scales{shape[0], rows, groups};
  Mxfp4Stack stack{.codes = &take_bytes(name + "_blocks", codes),
                   .scales = &take_bytes(name + "_scales", scales),
                   .matrix = {shape[1], shape[2]},
                   .experts = shape[0],
                   .rows = rows,
                   .groups = groups,
                   .first = first,
                   .step = step,
                   .cut = {}};
  refuse_patch(stack.codes->name);
  return stack;
}

Tensor WeightReader::mxfp4_expert(const Mxfp4Stack& stack, int64_t index) const {
  std::vector<std::byte> blocks =
      quant::mxfp4_blocks({.codes = share_of(*stack.codes, index, stack.experts),
                           .scales = share_of(*stack.scales, index, stack.experts),
                           .rows = stack.rows,
                           .groups = stack.groups,
                           .first = stack.first,
                           .step = stack.step});
  const io::TensorEntry one = cut_matrix(
      entry_of_blocks(stack.codes->name, DType::mxfp4, stack.matrix, std::move(blocks)), stack.cut);
  return place(one, one.shape);
}

std::vector<float> WeightReader::scales(const std::string& name, int64_t count) const {
  const bool each = is_one_of_each(name);
  std::vector<float> all;
  for (int64_t i = 0; i < (each ? count : 1); ++i) {
    const io::TensorEntry* scale = scale_beside(checkpoint_, each ? name_of_each(name, i) : name);
    if (scale == nullptr) return {};
    books_.take(*scale);
    const std::vector<float> values = scales_in(*scale, each ? 1 : count);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

bool WeightReader::rounds_inputs(const std::string& name) const {
  const io::TensorEntry* entry = checkpoint_.find(name);
  return entry != nullptr && entry->scales.rounds_inputs && !options_.widen_fp8 &&
         options_.activations != DType::f32;
}

bool WeightReader::patched(const std::string& name) const {
  return options_.patch != nullptr && options_.patch->touches(name);
}

void WeightReader::refuse_patch(const std::string& name) const {
  if (!patched(name)) return;
  fail(Code::unsupported, kOp, "tensor ", name, " belongs to an expert; adapters of those are not ",
       "implemented");
}

void WeightReader::let_go(const std::string& name) const {
  const io::TensorEntry* entry = checkpoint_.find(name);
  if (entry != nullptr && entry->file) entry->file->dont_need(entry->data);
}

}  // namespace rbee::nn
