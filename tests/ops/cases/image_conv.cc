// Convolutions of channels-last images: strides, padding on each side, enlarged images, and tensors
// added to the result.
#include "tests/support/dot.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct ImageConvCase {
  int64_t batch = 1, in = 1, out = 1;
  int64_t size[2] = {1, 1}, kernel[2] = {1, 1};
  int64_t stride = 1;
  int64_t before[2] = {0, 0}, after[2] = {0, 0};  // padding
  bool upsample = false;
  bool bias = true, channel_add = false, residual = false;
  Form form = Form::contiguous;  // of x
  DType dtype = DType::f32;
  DType weight = DType::f32;
  bool big = false;

  int64_t seen_size(int axis) const { return size[axis] * (upsample ? 2 : 1); }
  int64_t out_size(int axis) const {
    return (seen_size(axis) + before[axis] + after[axis] - kernel[axis]) / stride + 1;
  }
};

std::string name_of(const ImageConvCase& c) {
  std::string name = cat(c.dtype, ' ', c.batch, 'x', c.size[0], 'x', c.size[1], ' ', c.in, "->",
                         c.out, ' ', c.weight, ' ', c.kernel[0], 'x', c.kernel[1]);
  if (c.stride > 1) name += cat(" s", c.stride);
  name += cat(" p", c.before[0], c.before[1], c.after[0], c.after[1]);
  if (c.upsample) name += " upsample";
  if (c.bias) name += " bias";
  if (c.channel_add) name += " channels";
  if (c.residual) name += " residual";
  if (c.form != Form::contiguous) name += " strided";
  return name;
}

ImageConvArgs build(const ImageConvCase& c, Scene& scene) {
  const Shape y = {c.batch, c.out_size(0), c.out_size(1), c.out};
  ImageConvArgs args{
      .stride = c.stride, .pad_top = c.before[0], .pad_left = c.before[1], .upsample = c.upsample};
  args.x = scene.input({{c.batch, c.size[0], c.size[1], c.in}, c.form}, c.dtype);
  args.weight = scene.input({{c.out, c.kernel[0], c.kernel[1], c.in}}, c.weight);
  if (c.bias) args.bias = scene.input({{c.out}}, c.dtype);
  if (c.channel_add) args.channel_add = scene.input({{c.batch, c.out}}, c.dtype);
  if (c.residual) args.residual = scene.input({y, c.form}, c.dtype);
  args.y = scene.output({y}, c.dtype);
  const int64_t depth = c.kernel[0] * c.kernel[1] * c.in;
  scene.flops = 2.0 * static_cast<double>(args.y.numel() * depth);
  return args;
}

// The pixel under tap (r, s) of output (i, j); -1 in the padding.
int64_t pixel_under(const ImageConvCase& c, int64_t i, int64_t j, int64_t r, int64_t s) {
  const int64_t row = i * c.stride + r - c.before[0];
  const int64_t column = j * c.stride + s - c.before[1];
  const bool inside = row >= 0 && row < c.seen_size(0) && column >= 0 && column < c.seen_size(1);
  if (!inside) return -1;
  const int64_t scale = c.upsample ? 2 : 1;
  return row / scale * c.size[1] + column / scale;
}

// Adds each tap's products to all pixels, tap after tap.
void add_tap(const ImageConvCase& c, const HostArray& x, const HostArray& weight, int64_t tap,
             HostArray& y) {
  const int64_t r = tap / c.kernel[1], s = tap % c.kernel[1];
  const int64_t height = c.out_size(0), width = c.out_size(1);
  const int64_t taps = c.kernel[0] * c.kernel[1];
  for (int64_t p = 0; p < c.batch * height * width; ++p) {
    const int64_t pixel = pixel_under(c, p / width % height, p % width, r, s);
    if (pixel < 0) continue;
    const int64_t from = (p / (height * width) * c.size[0] * c.size[1] + pixel) * c.in;
    for (int64_t o = 0; o < c.out; ++o) {
      y[p * c.out + o] += dot(x, from, weight, (o * taps + tap) * c.in, c.in);
    }
  }
}

std::vector<HostArray> formula(const ImageConvCase& c, const std::vector<HostArray>& in) {
  const int64_t pixels = c.out_size(0) * c.out_size(1);
  HostArray y = host_zeros({c.batch, c.out_size(0), c.out_size(1), c.out});
  size_t next = 2;
  const HostArray* bias = c.bias ? &in[next++] : nullptr;
  const HostArray* channels = c.channel_add ? &in[next++] : nullptr;
  const HostArray* residual = c.residual ? &in[next++] : nullptr;
  for (int64_t i = 0; i < y.numel(); ++i) {
    if (bias != nullptr) y[i] += (*bias)[i % c.out];
    if (channels != nullptr) y[i] += (*channels)[i / (pixels * c.out) * c.out + i % c.out];
    if (residual != nullptr) y[i] += (*residual)[i];
  }
  for (int64_t tap = 0; tap < c.kernel[0] * c.kernel[1]; ++tap) {
    add_tap(c, in[0], in[1], tap, y);
  }
  return {y};
}

// Shapes of every kind, for each pair of types.
std::vector<ImageConvCase> shapes() {
  ImageConvCase same{.kernel = {3, 3}, .before = {1, 1}, .after = {1, 1}};
  const auto with = [](ImageConvCase c, auto change) {
    change(c);
    return c;
  };
  using C = ImageConvCase;
  return {
      {},
      {.batch = 2, .in = 3, .out = 5, .size = {7, 9}, .kernel = {3, 2}, .bias = false},
      {.batch = 3, .in = 37, .out = 17, .size = {5, 7}},  // a matrix product
      {.batch = 2, .in = 64, .out = 70, .size = {6, 11}, .channel_add = true, .residual = true},
      with(same, [](C& c) { c.batch = 2, c.in = 33, c.out = 31, c.size[0] = 9, c.size[1] = 10; }),
      with(same, [](C& c) { c.in = 4, c.out = 32, c.size[0] = 13, c.size[1] = 16; }),
      with(same, [](C& c) { c.in = 48, c.out = 3, c.size[0] = 12, c.size[1] = 5; }),
      with(same,
           [](C& c) {
             c.batch = 2, c.in = 32, c.out = 48, c.size[0] = 8, c.size[1] = 24;
             c.channel_add = c.residual = true;
           }),
      with(same,
           [](C& c) {
             c.batch = 2, c.in = 40, c.out = 16, c.size[0] = 5, c.size[1] = 6;
             c.upsample = c.channel_add = true;
           }),
      with(same,
           [](C& c) {
             c.batch = 2, c.in = 24, c.out = 40, c.size[0] = 11, c.size[1] = 8, c.stride = 2;
           }),
      // Halving as in a VAE's encoder: padded only below and to the right.
      {.batch = 2,
       .in = 16,
       .out = 24,
       .size = {12, 10},
       .kernel = {3, 3},
       .stride = 2,
       .after = {1, 1},
       .residual = true},
      {.in = 7,
       .out = 9,
       .size = {6, 13},
       .kernel = {5, 3},
       .stride = 3,
       .before = {4, 1},
       .after = {2, 5},
       .upsample = true,
       .form = Form::gaps},
      {.batch = 2,
       .in = 12,
       .out = 8,
       .size = {7, 6},
       .kernel = {1, 1},
       .stride = 2,
       .residual = true,
       .form = Form::transposed},
      // A depth above one step, and pixels above one block.
      with(same, [](C& c) { c.in = 160, c.out = 20, c.size[0] = 14, c.size[1] = 15; }),
      // Tiles of 4 x 4 outputs, the last one cut; inputs in several pieces.
      with(same,
           [](C& c) {
             c.batch = 2, c.in = 144, c.out = 40, c.size[0] = 13, c.size[1] = 15;
             c.channel_add = c.residual = true;
           }),
      {.batch = 3,
       .in = 32,
       .out = 35,
       .size = {17, 12},
       .kernel = {3, 3},
       .before = {2, 0},
       .after = {1, 3},
       .residual = true,
       .form = Form::gaps},
      with(same,
           [](C& c) {
             c.in = 48, c.out = 16, c.size[0] = 9, c.size[1] = 8;
             c.upsample = c.residual = true;
             c.form = Form::transposed;
           }),
      // More tiles than any device has multiprocessors; a tile cut at both ends.
      with(same,
           [](C& c) {
             c.in = 8, c.out = 8, c.size[0] = 191, c.size[1] = 190;
             c.residual = true;
           }),
      // Several tiles of outputs, which sum over pixels of two images.
      with(same,
           [](C& c) {
             c.batch = 2, c.in = 24, c.out = 328, c.size[0] = 15, c.size[1] = 14;
             c.channel_add = c.residual = true;
           }),
      // Few outputs and a large depth.
      with(same, [](C& c) { c.in = 512, c.out = 24, c.size[0] = 6, c.size[1] = 5; }),
      with(same,
           [](C& c) {
             c.in = 256, c.out = 14, c.size[0] = 5, c.size[1] = 7;
             c.residual = true;
           }),
      with(same,
           [](C& c) {
             c.batch = 2, c.in = 72, c.out = 136, c.size[0] = 9, c.size[1] = 17;
             c.upsample = c.channel_add = c.residual = true;
           }),
      {.batch = 2,
       .in = 16,
       .out = 32,
       .size = {9, 8},
       .kernel = {5, 5},
       .before = {2, 2},
       .after = {2, 2},
       .upsample = true},
      {.batch = 0, .in = 3, .out = 2, .size = {5, 4}, .kernel = {2, 2}},
      {.in = 8, .out = 4, .size = {2, 2}, .kernel = {2, 2}, .before = {3, 0}, .bias = false},
  };
}

// Block types round x as well; matrix instructions take operands of one 16-bit type.
Family family_of(const ImageConvCase& c) {
  if (is_quantized(c.weight)) return Family::quant_product;
  const bool may_round = c.weight != c.dtype && c.weight != DType::f32 && c.weight != DType::f64;
  return may_round ? Family::rounded_product : Family::product;
}

OpTable table() {
  OpTable out("image_conv");
  const auto add = [&](const ImageConvCase& c) {
    out.add<ImageConvArgs>(&KernelTable::image_conv,
                           {.name = name_of(c),
                            .family = family_of(c),
                            .build = [c](Scene& scene) { return build(c, scene); },
                            .formula = [c](const auto& inputs) { return formula(c, inputs); },
                            .big = c.big});
  };
  struct Types {
    DType x, weight;
  };
  for (ImageConvCase c : shapes()) {
    for (const Types types : {Types{DType::f32, DType::f32}, Types{DType::f32, DType::f16},
                              Types{DType::f32, DType::bf16}, Types{DType::f16, DType::f16},
                              Types{DType::bf16, DType::bf16}, Types{DType::f16, DType::f32},
                              Types{DType::f64, DType::f64}}) {
      c.dtype = types.x;
      c.weight = types.weight;
      add(c);
    }
    c.weight = DType::q8_0;
    if (c.in % info(c.weight).block_size != 0) continue;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      c.dtype = dtype;
      add(c);
    }
  }
  // Depths that tiles share: their parts are joined with all that is added; also for enlarged
  // images.
  for (const DType dtype : {DType::f16, DType::bf16}) {
    add({.batch = 2,
         .in = 256,
         .out = 320,
         .size = {8, 8},
         .kernel = {3, 3},
         .before = {1, 1},
         .after = {1, 1},
         .channel_add = true,
         .residual = true,
         .dtype = dtype,
         .weight = dtype});
    add({.batch = 2,
         .in = 256,
         .out = 40,
         .size = {5, 6},
         .kernel = {3, 3},
         .before = {1, 1},
         .after = {1, 1},
         .upsample = true,
         .residual = true,
         .dtype = dtype,
         .weight = dtype});
  }
  // More tiles than are transformed at once.
  ImageConvCase blocks{
      .in = 512, .out = 16, .size = {48, 60}, .kernel = {3, 3}, .before = {1, 1}, .after = {1, 1}};
  add(blocks);
  for (const int64_t channels : {320, 640}) {
    blocks.in = blocks.out = channels;
    blocks.size[0] = blocks.size[1] = 10240 / channels;
    blocks.weight = DType::f16;
    blocks.big = true;
    add(blocks);
  }
  for (const DType dtype : {DType::f32, DType::f16}) {
    add({.in = 64,
         .out = 64,
         .size = {64, 64},
         .kernel = {3, 3},
         .before = {1, 1},
         .after = {1, 1},
         .dtype = dtype,
         .weight = dtype,
         .big = true});
    add({.in = 320,
         .out = 320,
         .size = {16, 16},
         .kernel = {3, 3},
         .before = {1, 1},
         .after = {1, 1},
         .channel_add = true,
         .dtype = dtype,
         .weight = dtype,
         .big = true});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
