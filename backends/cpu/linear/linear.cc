#include "backends/cpu/linear/linear.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/linear/inputs.h"
#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/linear/pack.h"
#include "backends/cpu/thread_pool.h"
#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

// Inputs of a panel that are unpacked at a time: the panel's piece stays in the first-level cache
// while the rows of x pass by. A multiple of every record.
constexpr int64_t kChunk = 1024;
constexpr int64_t kSplitChunk = 512;  // two bf16 numbers for each weight
constexpr int64_t kPairChunk = 512;   // two panels of bytes
constexpr int64_t kF32Chunk = 384;    // two panels of floats, about
// The part of x in f32 that stays in the second-level cache while panels stream by.
constexpr int64_t kF32BlockBytes = 192 * 1024;
constexpr int64_t kMaxRowBlock = 192;
// Panels that take turns with each piece of x where whole rows of it do not stay in the cache.
constexpr int64_t kTurns = 8;
// A thread takes at least this much of a packed weight at a time.
constexpr int64_t kBytesPerTask = 16 * 1024;
// Tasks of a thread at least, where panels are multiplied several at a time.
constexpr int64_t kTasksPerThread = 8;

int64_t panels_of(const View& weight) {
  return (weight.size(0) + kPanelRows - 1) / kPanelRows;
}

// How the product is cut into tasks.
struct Blocking {
  int64_t rows;    // of x, evenly shared out
  int64_t panels;  // of one weight at most
};

int64_t chunk_of(InputForm form, bool paired) {
  if (form == InputForm::split) return kSplitChunk;
  if (form == InputForm::f32) return kF32Chunk;
  return form == InputForm::quantized && paired ? kPairChunk : kChunk;
}

int64_t row_bytes(int64_t in, const WantedForms& forms) {
  return in * (forms.split ? 2 * kSplitParts : forms.f32 ? 4 : 2);
}

Blocking blocking_of(int64_t rows, int64_t in, int64_t panels, const WantedForms& forms,
                     const LinearIsa& isa) {
  if (rows == 1) return {.rows = 1, .panels = 1};
  const int64_t cached = forms.f32 ? kF32BlockBytes : isa.block_bytes;
  const int64_t unit = isa.row_unit;
  const bool whole = std::min(rows, kMaxRowBlock) * row_bytes(in, forms) <= cached;
  const InputForm form = forms.split  ? InputForm::split
                         : forms.f32  ? InputForm::f32
                         : forms.bf16 ? InputForm::bf16
                                      : InputForm::quantized;
  const int64_t piece = row_bytes(std::min(in, chunk_of(form, true)), forms);
  const int64_t most =
      std::clamp<int64_t>(cached / std::max<int64_t>(piece, 1), unit, kMaxRowBlock);
  const int64_t blocks = (rows + most - 1) / most;
  const int64_t even = (rows + blocks - 1) / blocks;
  // Few panels are better shared out one by one.
  const int64_t share = blocks * panels / (kTasksPerThread * ThreadPool::shared().threads());
  return {.rows = (even + unit - 1) / unit * unit,
          .panels = share == 0 ? 1 : std::clamp<int64_t>(share / 2 * 2, 2, whole ? 2 : kTurns)};
}

struct Job {
  const LinearPart* part;
  const LinearIsa* isa;
  const PanelKernels* kernels;
  InputForm form;  // of x
  int64_t panel_bytes;
};

InputForm form_of(const PanelKernels& kernels, int64_t rows) {
  return rows == 1 && kernels.row != nullptr ? kernels.row_input : kernels.input;
}

// Columns [column, column + count) of a row of y.
struct Piece {
  int64_t row, column, count;
};

void store_row(const Job& job, const float* from, const Piece& piece) {
  const View& y = job.part->y;
  const int64_t to = (piece.row * y.size(1) + piece.column) * info(y.dtype).block_bytes;
  job.isa->rows->narrow(y.dtype, from, piece.count, y.as<std::byte>() + to);
}

float bias_at(const View& bias, int64_t i) {
  if (bias.dtype == DType::f16) return to_float(bias.as<f16>()[i]);
  if (bias.dtype == DType::bf16) return to_float(bias.as<bf16>()[i]);
  return bias.as<float>()[i];
}

// Neighbouring panels of a weight.
struct PanelRange {
  int64_t first;
  int64_t count;
};

// Whether a block of `rows` rows goes through the kernel for one row, panel by panel.
bool takes_one_row(const Job& job, int64_t rows, const PanelRange& panels) {
  return rows == 1 && panels.count == 1 && job.kernels->row != nullptr &&
         job.form == job.kernels->row_input;
}

// Products of panels with row `row` of x. Nothing is allocated or looked up for each: a panel of a
// small model takes a third of a microsecond.
void multiply_row(const Job& job, const Inputs& inputs, const PanelRange& panels, int64_t row) {
  const LinearPart& part = *job.part;
  const int64_t in = packed_inputs(part.weight.dtype, part.weight.size(1));
  const bool f32 = part.y.dtype == DType::f32;
  PanelProduct product{.x = part_of(inputs.form(job.form), row, 0), .in = in};
  product.packed = part.weight.as<std::byte>() + panels.first * job.panel_bytes;
  Piece piece{.row = row, .column = panels.first * kPanelRows, .count = kPanelRows};
  for (int64_t i = 0; i < panels.count; ++i) {
    piece.count = std::min<int64_t>(kPanelRows, part.y.size(1) - piece.column);
    const bool direct = f32 && piece.count == kPanelRows;
    float sums[kPanelRows];
    product.y = direct ? part.y.as<float>() + row * part.y.size(1) + piece.column : sums;
    job.kernels->row(product);
    for (int64_t c = 0; part.bias && c < piece.count; ++c) {
      product.y[c] += bias_at(part.bias, piece.column + c);
    }
    if (!direct) store_row(job, sums, piece);
    product.packed += job.panel_bytes;
    piece.column += kPanelRows;
  }
}

// Product of some panels with a block of rows.
class PanelTask {
 public:
  PanelTask(const Job& job, const Inputs& inputs, const PanelRange& panels, int64_t row,
            int64_t rows)
      : job_(job), x_(inputs.form(job.form)), row_(row), rows_(rows), panels_(panels.count) {
    const View& y = job.part->y;
    column_ = panels.first * kPanelRows;
    columns_ = std::min(width(), y.size(1) - column_);
    direct_ = y.dtype == DType::f32 && columns_ == width();
    packed_ = job.part->weight.as<std::byte>() + panels.first * job.panel_bytes;
  }

  void run(Scratch& scratch) {
    const int64_t in = packed_inputs(job_.part->weight.dtype, job_.part->weight.size(1));
    Carver counter(nullptr);
    carve(counter, in);
    Carver carver(scratch.reserve(counter.used()));
    carve(carver, in);
    if (direct_) {
      const View& y = job_.part->y;
      tile_ = y.as<float>() + row_ * y.size(1) + column_;
      tile_stride_ = y.size(1);
    }
    run_rows(in);
    if (job_.part->bias) add_bias();
    if (!direct_) store();
  }

 private:
  void carve(Carver& carver, int64_t in) {
    const int64_t chunk = std::min(in, this->chunk()), side_by_side = paired() ? 2 : 1;
    const int64_t width = side_by_side * kPanelRows;
    tile_ = carver.take<float>(rows_ * this->width());
    tile_stride_ = this->width();
    if (job_.kernels->unpack == nullptr) return;
    if (job_.kernels->input == InputForm::bf16) {
      panel_.bf16 = carver.take<uint16_t>(chunk * width);
      return;
    }
    if (job_.kernels->input == InputForm::split) {
      panel_.bf16 =
          carver.take<uint16_t>(2 * ((chunk + kGroup - 1) / kGroup) * kGroup * kPanelRows);
      return;
    }
    if (job_.kernels->input == InputForm::f32) {
      panel_.f32 = carver.take<float>(chunk * width);
      return;
    }
    panel_.q = carver.take<uint8_t>(chunk * width);
    panel_.scale = carver.take<float>(chunk * side_by_side);  // 16 for each 16 inputs at most
    panel_.offset = carver.take<float>(chunk * side_by_side);
  }

  bool paired() const { return panels_ > 1 && job_.kernels->pair != nullptr; }

  int64_t chunk() const { return chunk_of(job_.kernels->input, paired()); }

  int64_t width() const { return panels_ * kPanelRows; }

  void run_rows(int64_t in) {
    for (int64_t k = 0; k < in; k += chunk()) {
      const int64_t count = std::min(chunk(), in - k);
      for (int64_t panel = 0; panel < panels_;) {
        const PanelProduct product = product_of(panel, k, count);
        unpack(product);
        ++panel;
        if (!paired() || panel == panels_) {
          job_.kernels->rows(product);
          continue;
        }
        PanelProduct next = product_of(panel, k, count);
        next.panel = next_panel(std::min(in, chunk()));
        unpack(next);
        job_.kernels->pair(product, next);
        ++panel;
      }
    }
  }

  PanelProduct product_of(int64_t panel, int64_t k, int64_t count) const {
    return {.x = part_of(x_, row_, k),
            .rows = rows_,
            .in = count,
            .packed = packed_ + panel * job_.panel_bytes + panel_bytes(job_.part->weight.dtype, k),
            .panel = panel_,
            .y = tile_ + panel * kPanelRows,
            .y_stride = tile_stride_,
            .accumulate = k > 0};
  }

  // Buffer for the second of two unpacked panels, `chunk` inputs of each.
  UnpackedPanel next_panel(int64_t chunk) const {
    UnpackedPanel next = panel_;
    if (next.bf16 != nullptr) next.bf16 += chunk * kPanelRows;
    if (next.f32 != nullptr) next.f32 += chunk * kPanelRows;
    if (next.q == nullptr) return next;
    next.q += chunk * kPanelRows;
    next.scale += chunk;
    next.offset += chunk;
    return next;
  }

  void unpack(const PanelProduct& product) {
    if (job_.kernels->unpack == nullptr) return;
    job_.kernels->unpack(product.packed, product.in, product.panel);
  }

  // Last, as with one row of x: sums do not depend on how many rows there are.
  void add_bias() {
    for (int64_t first = 0; first < columns_; first += kPanelRows) {
      const int64_t count = std::min<int64_t>(kPanelRows, columns_ - first);
      float values[kPanelRows];
      for (int64_t c = 0; c < count; ++c) {
        values[c] = bias_at(job_.part->bias, column_ + first + c);
      }
      float* to = tile_ + first;
      for (int64_t r = 0; r < rows_; ++r, to += tile_stride_) {
        for (int64_t c = 0; c < count; ++c) to[c] += values[c];
      }
    }
  }

  void store() {
    for (int64_t r = 0; r < rows_; ++r) {
      store_row(job_, tile_ + r * tile_stride_, {row_ + r, column_, columns_});
    }
  }

  const Job& job_;
  const InputRows& x_;
  int64_t row_, rows_;
  int64_t panels_;
  int64_t column_ = 0, columns_ = 0;
  bool direct_ = false;  // the kernels write to y itself
  const std::byte* packed_ = nullptr;
  UnpackedPanel panel_;
  float* tile_ = nullptr;
  int64_t tile_stride_ = 0;
};

thread_local Scratch input_scratch;
thread_local Scratch panel_scratch;

// Panels of a task: several where its kernels gain by it, or x does not stay in the cache.
int64_t panels_of_task(const PanelKernels& kernels, const Blocking& blocking) {
  return kernels.pair == nullptr && blocking.panels == 2 ? 1 : blocking.panels;
}

// Tasks of a part for one block of rows.
int64_t tasks_of(const LinearPart& part, const LinearIsa& isa, const Blocking& blocking) {
  const int64_t panels = panels_of_task(*isa.kernels[part.weight.dtype], blocking);
  return (panels_of(part.weight) + panels - 1) / panels;
}

// Task `index` of the sequence of all parts' tasks.
struct Place {
  Job job;
  PanelRange panels;
};
Place locate(const LinearArgs& args, const LinearIsa& isa, const Blocking& blocking,
             int64_t index) {
  const LinearPart* part = args.parts.data();
  int64_t tasks = tasks_of(*part, isa, blocking);
  for (; index >= tasks; tasks = tasks_of(*part, isa, blocking)) {
    index -= tasks;
    ++part;
  }
  const View& weight = part->weight;
  const PanelKernels* kernels = isa.kernels[weight.dtype];
  const int64_t count = panels_of_task(*kernels, blocking);
  const int64_t first = index * count;
  return {.job = {.part = part,
                  .isa = &isa,
                  .kernels = kernels,
                  .form = form_of(*kernels, args.x.size(0)),
                  .panel_bytes = panel_bytes(weight.dtype, weight.size(1))},
          .panels = {.first = first, .count = std::min(count, panels_of(weight) - first)}};
}

WantedForms forms_of(const LinearArgs& args, const LinearIsa& isa) {
  WantedForms wanted;
  for (const LinearPart& part : args.parts) {
    const InputForm form = form_of(*isa.kernels[part.weight.dtype], args.x.size(0));
    wanted.quantized |= form == InputForm::quantized;
    wanted.f32 |= form == InputForm::f32;
    wanted.bf16 |= form == InputForm::bf16;
    wanted.split |= form == InputForm::split;
  }
  return wanted;
}

void run_packed(const LinearArgs& args, const LinearIsa& isa) {
  const int64_t rows = args.x.size(0), in = args.x.size(1);
  int64_t panels = 0, bytes = 0;
  for (const LinearPart& part : args.parts) {
    panels += panels_of(part.weight);
    bytes += panels_of(part.weight) * panel_bytes(part.weight.dtype, in);
  }
  if (rows == 0 || panels == 0) return;
  const WantedForms wanted = forms_of(args, isa);
  const Inputs inputs = prepare_inputs(args.x, wanted, isa, input_scratch);
  const Blocking blocking = blocking_of(rows, in, panels, wanted, isa);
  const int64_t blocks = (rows + blocking.rows - 1) / blocking.rows;
  const int64_t grain = rows == 1 ? std::max<int64_t>(1, kBytesPerTask * panels / bytes) : 1;
  int64_t tasks = 0;
  for (const LinearPart& part : args.parts) tasks += tasks_of(part, isa, blocking);
  ThreadPool::shared().parallel_shares(blocks * tasks, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      Place place = locate(args, isa, blocking, i % tasks);
      const int64_t row = i / tasks * blocking.rows;
      const int64_t count = std::min(blocking.rows, rows - row);
      if (!takes_one_row(place.job, count, place.panels)) {
        PanelTask(place.job, inputs, place.panels, row, count).run(panel_scratch);
        continue;
      }
      const int64_t rest = panels_of(place.job.part->weight) - place.panels.first;
      place.panels.count = std::min(end - i, rest);
      multiply_row(place.job, inputs, place.panels, row);
      i += place.panels.count - 1;
    }
  });
}

const char* refuse(const LinearArgs& args, Isa isa) {
  for (const LinearPart& part : args.parts) {
    if (part.weight.packing != kPanelPacking) return "reads packed weights only";
  }
  return missing_isa(isa);
}

#ifdef __x86_64__
// For fewer rows of x it does not pay to unpack weights to bf16.
constexpr int64_t kLeastTileRows = 16;

const char* refuse_amx(const LinearArgs& args) {
  if (args.x.size(0) < kLeastTileRows) return "takes 16 rows or more";
  const bool any = std::ranges::any_of(args.parts, [](const LinearPart& part) {
    return part.weight.dtype != DType::f32 && part.weight.dtype != DType::f8_g128;
  });
  if (!any) return "takes f16, bf16 and ggml's block types";
  return refuse(args, Isa::amx);
}
#endif

const LinearIsa& best_isa() {
#ifdef __x86_64__
  switch (cpu_isa()) {
    case Isa::amx:
      return linear_amx;
    case Isa::avx512bf16:
      return linear_avx512bf16;
    case Isa::avx512:
      return linear_avx512;
    case Isa::avxvnni:
      return linear_avxvnni;
    case Isa::avx2:
      return linear_avx2;
    default:
      break;
  }
#elif defined(__aarch64__)
  switch (cpu_isa()) {
    case Isa::i8mm:
      return linear_i8mm;
    case Isa::dotprod:
      return linear_dotprod;
    case Isa::neon:
      return linear_neon;
    default:
      break;
  }
#endif
  return linear_portable;
}

}  // namespace

PackingPlan plan_packing(const View& weight) {
  if (weight.numel() == 0 || best_isa().kernels[weight.dtype] == nullptr) return {};
  return {.packing = kPanelPacking,
          .bytes = panels_of(weight) * panel_bytes(weight.dtype, weight.size(1)),
          .unit_rows = kPanelRows};
}

const Impl<PackWeightArgs> panels_pack_weight{.name = "panels",
                                              .refuse = &never_refuse<PackWeightArgs>,
                                              .run = [](const PackWeightArgs& args, Stream&) {
                                                pack_panels(args.weight,
                                                            args.packed.as<std::byte>());
                                              }};

const Impl<LinearArgs> portable_linear{
    .name = "portable",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::portable); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_portable); }};

#ifdef __x86_64__
const Impl<LinearArgs> avx2_linear{
    .name = "avx2",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::avx2); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_avx2); }};
const Impl<LinearArgs> avxvnni_linear{
    .name = "avxvnni",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::avxvnni); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_avxvnni); }};
const Impl<LinearArgs> avx512_linear{
    .name = "avx512",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::avx512); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_avx512); }};
const Impl<LinearArgs> avx512bf16_linear{
    .name = "avx512bf16",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::avx512bf16); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_avx512bf16); }};
const Impl<LinearArgs> amx_linear{
    .name = "amx", .refuse = &refuse_amx, .run = [](const LinearArgs& args, Stream&) {
      run_packed(args, linear_amx);
    }};
#endif

#ifdef __aarch64__
const Impl<LinearArgs> neon_linear{
    .name = "neon",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::neon); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_neon); }};
const Impl<LinearArgs> dotprod_linear{
    .name = "dotprod",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::dotprod); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_dotprod); }};
const Impl<LinearArgs> i8mm_linear{
    .name = "i8mm",
    .refuse = [](const LinearArgs& args) { return refuse(args, Isa::i8mm); },
    .run = [](const LinearArgs& args, Stream&) { run_packed(args, linear_i8mm); }};
#endif

}  // namespace rbee::cpu
