#include "rbee/nn/weight_scope.h"

#include <algorithm>
#include <unordered_set>

#include "rbee/core/log.h"
#include "rbee/io/integer_matrix.h"
#include "rbee/nn/dequantised.h"
#include "rbee/nn/lora.h"
#include "rbee/nn/matrix_scale.h"
#include "rbee/nn/unpack_integers.h"
#include "rbee/nn/weight_stash.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/experts.h"
#include "rbee/ops/image.h"
#include "rbee/ops/linear.h"
#include "rbee/quant/f8_rows.h"
#include "rbee/quant/mxfp4_rows.h"
#include "rbee/quant/quant.h"

namespace rbee::nn {
namespace {

constexpr const char* kOp = "load";

// Where a Hugging Face checkpoint keeps the model: alone, inside a multimodal one, without the
// "model." around its layers (decoders for embeddings), or below a head (encoders that classify).
enum class Nesting : uint8_t { plain, outer, inner, bare, bert, roberta };
constexpr Nesting kNestings[] = {Nesting::plain, Nesting::outer, Nesting::inner,
                                 Nesting::bare,  Nesting::bert,  Nesting::roberta};

std::string nest(Nesting nesting, std::string name) {
  constexpr std::string_view kModel = "model.";
  if (nesting == Nesting::outer) return cat("language_model.", name);
  if (nesting == Nesting::bert) return cat("bert.", name);
  if (nesting == Nesting::roberta) return cat("roberta.", name);
  if (nesting == Nesting::plain || !name.starts_with(kModel)) return name;
  const std::string_view inner = std::string_view(name).substr(kModel.size());
  return nesting == Nesting::inner ? cat("model.language_model.", inner) : std::string(inner);
}

// `pattern` with its '*' replaced by the layer's number.
std::string numbered(std::string_view pattern, int64_t layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return cat(pattern.substr(0, star), layer, pattern.substr(star + 1));
}

bool usable(DType dtype) {
  return is_quantized(dtype) || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// Kernels read elements (block types: the block's 16- or 32-bit fields) at their natural alignment,
// which safetensors files do not promise.
bool aligned(const std::byte* data, DType dtype) {
  const size_t alignment = is_quantized(dtype) ? 4 : static_cast<size_t>(info(dtype).block_bytes);
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

Tensor place(const io::TensorEntry& entry, std::span<const std::byte> bytes, const Shape& shape,
             Device& device) {
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

}  // namespace

struct WeightScope::Books {
  const io::Checkpoint* checkpoint;
  WeightOptions options;
  Nesting nesting = Nesting::plain;
  std::unordered_set<const io::TensorEntry*> taken;
  WeightFigures figures;
  std::vector<LoraTarget> lora_targets;
  std::vector<int32_t> last_order;  // of inputs, that a matrix was taken with
  Tensor last_order_tensor;
  int64_t done = 0;   // bytes
  int64_t total = 0;  // bytes

  bool gguf() const { return checkpoint->format() == io::Checkpoint::Format::gguf; }

  // Finds the tensor's name in this checkpoint; empty when the format has no such tensor.
  std::string translate(std::string_view role, int64_t layer) const {
    if (gguf() || options.own_names) return numbered(role, layer);
    const auto row = std::ranges::find(options.names, role, &TensorName::gguf);
    if (row == options.names.end() || row->hf.empty()) return {};
    return nest(nesting, numbered(row->hf, layer));
  }

  void find_nesting() {
    if (gguf() || options.names.empty()) return;
    const std::string probe = cat(options.names.front().hf, ".weight");
    for (const Nesting candidate : kNestings) {
      if (checkpoint->find(nest(candidate, probe)) != nullptr) {
        nesting = candidate;
        return;
      }
    }
  }

  void enter(const io::TensorEntry& entry) {
    if (!taken.insert(&entry).second) return;
    const auto bytes = static_cast<int64_t>(entry.data.size());
    figures.parameters += numel(entry.shape);
    const bool ordered = entry.integers && !entry.integers->inputs_by_group.empty();
    const DType type = ordered ? entry.integers->grouped_type : entry.dtype;
    figures.bytes_by_type[static_cast<size_t>(type)] += bytes;
    done += bytes;
    if (options.progress) options.progress(done, total);
  }

  bool may_stay_unused(std::string_view name) const {
    // For inputs in 4 bits, which no kernel has.
    if (gguf() && name.ends_with(".input_scale")) return true;
    const auto has = [&](auto part) { return name.find(part) != std::string_view::npos; };
    return std::ranges::any_of(options.ignored, has);
  }
};

DType WeightFigures::most_common() const {
  const auto largest = std::ranges::max_element(bytes_by_type);
  return static_cast<DType>(largest - bytes_by_type.begin());
}

WeightScope::WeightScope(const io::Checkpoint& checkpoint, const WeightOptions& options)
    : books_(std::make_shared<Books>()) {
  check(options.device != nullptr, kOp, "no device is given");
  if (options.stash != nullptr) options.stash->rewind();
  books_->checkpoint = &checkpoint;
  books_->options = options;
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    books_->total += static_cast<int64_t>(entry.data.size());
  }
  books_->find_nesting();
}

WeightScope::WeightScope(std::shared_ptr<Books> books, std::string path, int64_t layer)
    : books_(std::move(books)), path_(std::move(path)), layer_(layer) {}

WeightScope WeightScope::operator/(std::string_view part) const {
  return {books_, path_.empty() ? std::string(part) : cat(path_, ".", part), layer_};
}

WeightScope WeightScope::layer(int64_t index) const {
  return {books_, "blk.*", index};
}

std::string WeightScope::name(std::string_view leaf) const {
  const std::string translated = books_->translate(path_, layer_);
  return cat(translated.empty() ? numbered(path_, layer_) : translated, ".", leaf);
}

std::string WeightScope::role() const {
  return numbered(path_, layer_);
}

std::string WeightScope::hf_name() const {
  const auto row = std::ranges::find(books_->options.names, path_, &TensorName::gguf);
  return row == books_->options.names.end() ? std::string() : numbered(row->hf, layer_);
}

std::vector<LoraTarget>& WeightScope::lora_targets() const {
  return books_->lora_targets;
}

bool WeightScope::has(std::string_view leaf) const {
  return !books_->translate(path_, layer_).empty() &&
         books_->checkpoint->find(name(leaf)) != nullptr;
}

bool WeightScope::wants_output() const {
  return books_->options.output;
}

bool WeightScope::is_gguf() const {
  return books_->gguf();
}

Device& WeightScope::device() const {
  return *books_->options.device;
}

DType WeightScope::activations() const {
  return books_->options.activations;
}

const WeightFigures& WeightScope::figures() const {
  return books_->figures;
}

const io::TensorEntry& WeightScope::take(std::string_view leaf, const Shape& wanted) const {
  return take_named(name(leaf), wanted);
}

const io::TensorEntry& WeightScope::find_shaped(const std::string& full,
                                                const Shape& wanted) const {
  const io::TensorEntry* entry = books_->checkpoint->find(full);
  if (entry == nullptr) {
    fail(Code::not_found, kOp, "tensor ", full, " (", wanted, ") is missing from the checkpoint");
  }
  check(trimmed(entry->shape) == trimmed(wanted), kOp, "tensor ", full, " is (", entry->shape,
        "), wanted (", wanted, ")");
  return *entry;
}

const io::TensorEntry& WeightScope::take_bytes(const std::string& full, const Shape& wanted) const {
  const io::TensorEntry& entry = find_shaped(full, wanted);
  check(entry.dtype == DType::u8, kOp, "tensor ", full, " is stored as ", entry.dtype,
        ", wanted u8");
  books_->enter(entry);
  return entry;
}

const io::TensorEntry& WeightScope::take_named(const std::string& full, const Shape& wanted) const {
  const io::TensorEntry* entry = &find_shaped(full, wanted);
  const bool may_be_fp8 = books_->options.plain_fp8 || entry->scales.values != nullptr;
  if (!usable(entry->dtype) && !(may_be_fp8 && io::is_fp8(*entry))) {
    fail(Code::unsupported, kOp, "tensor ", full, " is stored as ", entry->dtype,
         "; weights are read as f32, f16, bf16 or a block type");
  }
  const io::TensorEntry* scale = scale_beside(*books_->checkpoint, full);
  if (scale != nullptr && !books_->taken.contains(scale)) {
    fail(Code::unsupported, kOp, "tensor ", full, " is nvfp4 with a scale in ", scale->name,
         ", which is read for matrices and experts of a model's layers alone");
  }
  books_->enter(*entry);
  return *entry;
}

// Kernels read no plain floats of one byte: they become what layers compute in, where that has 16
// bits. Packed integers become their entry's type.
io::TensorEntry WeightScope::readable(io::TensorEntry entry) const {
  if (entry.integers) return unpacked(entry, 0, entry.shape[0], activations());
  if (!io::is_fp8(entry)) return entry;
  return io::widened(entry, activations() == DType::f16 ? DType::f16 : DType::bf16);
}

// For products, whose kernels read them in groups that share a scale.
io::TensorEntry WeightScope::readable_matrix(io::TensorEntry entry) const {
  if (!io::is_fp8(entry) || entry.is_e5m2 || books_->options.widen_fp8) {
    return readable(std::move(entry));
  }
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
  if (!quant::fits_f8_blocks(rows)) return readable(std::move(entry));
  const auto blocks = std::make_shared<const std::vector<std::byte>>(quant::f8_blocks(rows));
  return {.name = entry.name,
          .dtype = DType::f8_g128,
          .shape = entry.shape,
          .data = *blocks,
          .file = nullptr,
          .owner = blocks};
}

bool WeightScope::rounds_inputs(std::string_view leaf) const {
  const io::TensorEntry* entry = books_->checkpoint->find(name(leaf));
  return entry != nullptr && entry->scales.rounds_inputs && !books_->options.widen_fp8 &&
         activations() != DType::f32;
}

float WeightScope::matrix_scale(std::string_view leaf) const {
  const io::TensorEntry* scale = scale_beside(*books_->checkpoint, name(leaf));
  if (scale == nullptr) return 1;
  books_->enter(*scale);
  return scales_in(*scale, 1).front();
}

std::vector<float> WeightScope::expert_scales(std::string_view leaf, int64_t experts) const {
  const io::TensorEntry* scale = scale_beside(*books_->checkpoint, name(leaf));
  if (scale == nullptr) return {};
  books_->enter(*scale);
  return scales_in(*scale, experts);
}

bool WeightScope::patched(std::string_view leaf) const {
  const WeightPatch* patch = books_->options.patch;
  return patch != nullptr && patch->touches(name(leaf));
}

Tensor WeightScope::stored(std::string_view leaf, const Shape& shape) const {
  const io::TensorEntry& taken = take(leaf, shape);
  const DType narrow = activations() == DType::bf16 ? DType::bf16 : DType::f16;
  const io::TensorEntry entry =
      cuts_blocks(taken.dtype, shape) ? dequantised(taken, narrow) : readable(taken);
  Tensor x = place(entry, entry.data, shape, device());
  if (!patched(leaf)) return x;
  std::vector<float> values = cast(x, DType::f32).to_host<float>();
  books_->options.patch->apply(name(leaf), shape, values);
  const DType type = is_quantized(entry.dtype) ? DType::f16 : entry.dtype;
  return cast(from_host<float>(values, shape, device()), type);
}

template <typename Make>
Tensor WeightScope::remembered(const Make& make) const {
  WeightStash* stash = books_->options.stash;
  if (stash == nullptr) return make();
  if (stash->filled()) return stash->next();
  const Tensor made = make();
  stash->add(made);
  return made;
}

void WeightScope::moved(const Tensor& from, const Tensor& to) const {
  if (books_->options.stash != nullptr) books_->options.stash->replace(from, to);
}

Tensor WeightScope::vector(std::string_view leaf, int64_t size, float offset) const {
  if (offset == 0) return array(leaf, Shape{size});
  return remembered([&] {
    const Tensor x = cast(stored(leaf, Shape{size}), DType::f32);
    const Tensor own = cast(affine(x, 1.0, offset), activations());
    books_->figures.resident_bytes += own.bytes();
    return own;
  });
}

Tensor WeightScope::array(std::string_view leaf, const Shape& shape) const {
  return remembered([&] {
    const Tensor x = cast(stored(leaf, shape), activations());
    // A tensor of that type already is copied out, so that small ones do not pin pages of the file.
    Tensor own = empty(shape, x.dtype(), device());
    copy_(own, x);
    books_->figures.resident_bytes += own.bytes();
    return own;
  });
}

Tensor WeightScope::stack(std::string_view leaf, const Shape& shape) const {
  const std::string pattern = name(leaf);
  const size_t mark = pattern.find('#');
  if (mark == std::string::npos) return array(leaf, shape);
  return remembered([&] {
    Tensor own = empty(shape, activations(), device());
    for (int64_t i = 0; i < shape[0]; ++i) {
      const std::string full = cat(pattern.substr(0, mark), i, pattern.substr(mark + 1));
      const io::TensorEntry entry = readable(take_named(full, Shape{shape[1]}));
      const Tensor row = place(entry, entry.data, Shape{1, shape[1]}, device());
      Tensor to = own.slice(Axis{0}, i, 1);
      copy_(to, cast(row, activations()));
    }
    books_->figures.resident_bytes += own.bytes();
    return own;
  });
}

Tensor WeightScope::conv(std::string_view leaf, const Shape& shape) const {
  return remembered([&] {
    const Tensor packed = pack_conv(leaf, stored(leaf, shape));
    if (!patched(leaf)) {
      const io::TensorEntry& entry = take(leaf, shape);
      if (entry.file) entry.file->dont_need(entry.data);
    }
    books_->figures.resident_bytes += static_cast<int64_t>(packed.buffer()->bytes());
    return packed;
  });
}

Tensor WeightScope::pack_conv(std::string_view leaf, const Tensor& plain) const {
  if (quantizes(leaf, plain.dtype(), plain.dim(1))) {
    return pack_channels_last(quantized(contiguous(plain.permute({0, 2, 3, 1}))));
  }
  // CPUs widen 16-bit weights as they go: half the memory, and less to read. What meets
  // activations of bf16 is bf16 itself, for instructions that take nothing else.
  const bool kept = device().host_accessible() && activations() != DType::bf16 &&
                    (plain.dtype() == DType::f16 || plain.dtype() == DType::bf16);
  return pack_conv_weight(kept ? plain : cast(plain, activations()));
}

std::vector<float> WeightScope::values(std::string_view leaf, int64_t size) const {
  return cast(stored(leaf, Shape{size}), DType::f32).to_host<float>();
}

Tensor WeightScope::table(std::string_view leaf, const Shape& shape) const {
  return remembered([&] {
    Tensor x = stored(leaf, shape);
    books_->figures.resident_bytes += x.bytes();
    return x;
  });
}

Tensor WeightScope::matrix(std::string_view leaf, RowSlice rows, int64_t in) const {
  return remembered([&] {
    RB_ASSERT(rows.first >= 0 && rows.first + rows.count <= rows.total);
    const Shape shape{rows.total, in};
    if (patched(leaf) || cuts_blocks(find_shaped(name(leaf), shape).dtype, shape)) {
      const Tensor whole = stored(leaf, shape);
      const Tensor plain = whole.slice(Axis{0}, rows.first, rows.count);
      return pack(as_multiplied(leaf, plain), {});
    }
    const io::TensorEntry& entry = take(leaf, shape);
    if (entry.integers) return integer_matrix(leaf, entry, rows);
    const auto row = static_cast<size_t>(row_bytes(entry.dtype, in));
    const std::span<const std::byte> bytes = entry.data.subspan(
        static_cast<size_t>(rows.first) * row, static_cast<size_t>(rows.count) * row);
    if (entry.file) entry.file->will_need(bytes);
    io::TensorEntry share = entry;
    share.data = bytes;
    share.shape = Shape{rows.count, in};
    share.scales.first_row = rows.first;
    const bool quantize = quantizes(leaf, share.dtype, in);
    share = quantize ? readable(std::move(share)) : readable_matrix(std::move(share));
    const Tensor plain = place(share, share.data, Shape{rows.count, in}, device());
    const auto let_go = [&](int64_t done) {
      if (entry.file) entry.file->dont_need(bytes.first(static_cast<size_t>(done) * row));
    };
    if (!quantize && !narrows(plain.dtype())) return pack(plain, let_go);
    const Tensor packed = pack(as_multiplied(leaf, plain), {});
    let_go(rows.count);
    return packed;
  });
}

Tensor WeightScope::integer_matrix(std::string_view leaf, const io::TensorEntry& entry,
                                   RowSlice rows) const {
  if (entry.file) entry.file->will_need(entry.data);
  const io::TensorEntry share = unpacked(entry, rows.first, rows.count, activations());
  if (entry.file) entry.file->dont_need(entry.data);
  const Tensor plain = place(share, share.data, share.shape, device());
  return pack(as_multiplied(leaf, plain), {});
}

OrderedMatrix WeightScope::ordered_matrix(std::string_view leaf, RowSlice rows, int64_t in) const {
  const io::TensorEntry& entry = find_shaped(name(leaf), Shape{rows.total, in});
  const bool ordered = entry.integers && !entry.integers->inputs_by_group.empty();
  if (!ordered || patched(leaf)) return {matrix(leaf, rows, in), {}};
  RB_ASSERT(rows.first >= 0 && rows.first + rows.count <= rows.total);
  const Tensor weight = remembered([&] {
    books_->enter(entry);
    if (entry.file) entry.file->will_need(entry.data);
    const io::TensorEntry share = unpacked_by_group(entry, rows.first, rows.count);
    if (entry.file) entry.file->dont_need(entry.data);
    return pack(place(share, share.data, share.shape, device()), {});
  });
  return {weight, shared_order(entry.integers->inputs_by_group)};
}

Tensor WeightScope::shared_order(std::span<const int32_t> order) const {
  if (!std::ranges::equal(order, books_->last_order)) {
    books_->last_order.assign(order.begin(), order.end());
    books_->last_order_tensor =
        from_host<int32_t>(order, {static_cast<int64_t>(order.size())}, device());
    books_->figures.resident_bytes += books_->last_order_tensor.bytes();
  }
  return books_->last_order_tensor;
}

Tensor WeightScope::experts(std::string_view leaf, const Shape& shape) const {
  const std::string pattern = name(leaf);
  const size_t mark = pattern.find('#');
  const auto layout = books_->options.pack ? ExpertLayout::packed : ExpertLayout::plain;
  std::span<const std::byte> read;  // of the expert before, which is not needed any more
  const io::TensorEntry* from = nullptr;
  const auto let_go = [&] {
    if (from != nullptr && from->file) from->file->dont_need(read);
  };
  return remembered([&] {
    const Tensor stack = pack_experts(
        shape[0],
        [&](int64_t expert) {
          let_go();
          const bool alone = mark != std::string::npos;
          const std::string full =
              alone ? cat(pattern.substr(0, mark), expert, pattern.substr(mark + 1)) : pattern;
          refuse_patch(full);
          const Shape matrix{shape[1], shape[2]};
          from = &take_named(full, alone ? matrix : shape);
          io::TensorEntry one = *from;
          if (!alone) {
            const size_t bytes = one.data.size() / static_cast<size_t>(shape[0]);
            one.data = one.data.subspan(static_cast<size_t>(expert) * bytes, bytes);
          }
          read = one.data;
          one.shape = matrix;
          one = readable_matrix(std::move(one));
          return place(one, one.data, matrix, device());
        },
        layout);
    let_go();
    books_->figures.resident_bytes += static_cast<int64_t>(stack.buffer()->bytes());
    return stack;
  });
}

Tensor WeightScope::mxfp4_experts(std::string_view leaf, const Shape& shape, int64_t first,
                                  int64_t step) const {
  constexpr int64_t kGroup = 32, kCodeBytes = 16;
  const std::string full = name(leaf);
  check(shape[2] % kGroup == 0, kOp, "rows of ", full, " have ", shape[2],
        " inputs, wanted a multiple of ", kGroup);
  const int64_t rows = step * shape[1], groups = shape[2] / kGroup;
  const io::TensorEntry& codes = take_bytes(full + "_blocks", {shape[0], rows, groups, kCodeBytes});
  const io::TensorEntry& scales = take_bytes(full + "_scales", {shape[0], rows, groups});
  refuse_patch(codes.name);
  const auto share = [&](const io::TensorEntry& entry, int64_t expert) {
    const size_t bytes = entry.data.size() / static_cast<size_t>(shape[0]);
    return entry.data.subspan(static_cast<size_t>(expert) * bytes, bytes);
  };
  return remembered([&] {
    const Tensor stack = pack_experts(
        shape[0],
        [&](int64_t expert) {
          const auto blocks = std::make_shared<const std::vector<std::byte>>(
              quant::mxfp4_blocks({.codes = share(codes, expert),
                                   .scales = share(scales, expert),
                                   .rows = rows,
                                   .groups = groups,
                                   .first = first,
                                   .step = step}));
          const io::TensorEntry one{.name = codes.name, .dtype = DType::mxfp4, .owner = blocks};
          return place(one, *blocks, Shape{shape[1], shape[2]}, device());
        },
        books_->options.pack ? ExpertLayout::packed : ExpertLayout::plain);
    books_->figures.resident_bytes += static_cast<int64_t>(stack.buffer()->bytes());
    return stack;
  });
}

void WeightScope::refuse_patch(const std::string& full) const {
  const WeightPatch* patch = books_->options.patch;
  if (patch == nullptr || !patch->touches(full)) return;
  fail(Code::unsupported, kOp, "tensor ", full, " belongs to an expert; adapters of those are not ",
       "implemented");
}

bool WeightScope::quantizes(std::string_view leaf, DType stored, int64_t in) const {
  const auto may = books_->options.may_quantize;
  const bool fits = !is_quantized(stored) && in % info(DType::q8_0).block_size == 0;
  return may != nullptr && fits && may(name(leaf));
}

bool WeightScope::narrows(DType stored) const {
  return books_->options.narrow_matrices && activations() == DType::bf16 &&
         (stored == DType::f32 || stored == DType::f16);
}

Tensor WeightScope::as_multiplied(std::string_view leaf, const Tensor& plain) const {
  if (quantizes(leaf, plain.dtype(), plain.dim(1))) return quantized(plain);
  return narrows(plain.dtype()) ? cast(plain, DType::bf16) : plain;
}

Tensor WeightScope::pack(const Tensor& plain,
                         const std::function<void(int64_t rows)>& on_packed) const {
  const Tensor packed = books_->options.pack ? pack_weight(plain, on_packed) : plain;
  books_->figures.resident_bytes +=
      packed.packing() != 0 ? static_cast<int64_t>(packed.buffer()->bytes()) : plain.bytes();
  return packed;
}

void WeightScope::finish() const {
  if (books_->options.progress) books_->options.progress(books_->total, books_->total);
  const WeightStash* stash = books_->options.stash;
  if (stash != nullptr && stash->filled()) return;
  int64_t unused = 0;
  std::string names;
  for (const io::TensorEntry& entry : books_->checkpoint->tensors()) {
    if (books_->taken.contains(&entry) || books_->may_stay_unused(entry.name)) continue;
    constexpr int64_t kNamed = 8;
    if (++unused <= kNamed) names += cat(names.empty() ? "" : ", ", entry.name);
  }
  if (unused == 0) return;
  log(LogLevel::warn, "the model does not use some tensors of the checkpoint",
      {{"count", cat(unused)}, {"first", names}});
}

}  // namespace rbee::nn
