// join_text(): joins several text encoders' results for a denoiser, and checks that they fit.

#include "rbee/models/image/image_model.h"
#include "rbee/ops/concat.h"

namespace rbee::models {
namespace {

constexpr const char* kOp = "join_text";

using Encodings = std::span<const TextEncoding>;

Tensor side_by_side(Encodings encodings, Tensor TextEncoding::* part) {
  std::vector<Tensor> parts;
  for (const TextEncoding& encoding : encodings) parts.push_back(encoding.*part);
  return concat(parts, Axis{-1});
}

// With zeros up to `width`.
Tensor widened(const Tensor& x, int64_t width) {
  const auto [batch, tokens, own] = x.dims<3>();
  check(own <= width, kOp, "CLIP's states are ", own, " wide, the denoiser reads ", width);
  if (own == width) return x;
  return concat({x, zeros({batch, tokens, width - own}, x.dtype(), x.device())}, Axis{-1});
}

// Both CLIPs, then T5; zeros for a missing one.
TextStates join_sd3(Encodings encodings, int64_t width) {
  check(encodings.size() == 2 || encodings.size() == 3, kOp, encodings.size(),
        " encodings, wanted two CLIPs' and perhaps T5's");
  const Encodings clips = encodings.first(2);
  const Tensor clip = widened(side_by_side(clips, &TextEncoding::hidden), width);
  const Tensor t5 = encodings.size() == 3
                        ? encodings.back().hidden
                        : zeros({clip.dim(0), kSd3T5Tokens, width}, clip.dtype(), clip.device());
  return {.context = concat({clip, t5}, Axis{1}),
          .pooled = side_by_side(clips, &TextEncoding::pooled)};
}

void check_width(const ImageModel& model, const char* what, int64_t width, int64_t read) {
  check(width == read, model.model_name, what, " have a width of ", width, ", the denoiser reads ",
        read, ": they are of different models");
}

// Of the first encoders, side by side.
int64_t width_of(const ImageModel& model, size_t count, int64_t (TextEncoder::*width)() const) {
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += (*model.text[i].encoder.*width)();
  return sum;
}

// FLUX's read a second latent, too; UNets' read one with a mask, or none.
void check_inputs(const ImageModel& model) {
  const DenoiserInfo& info = model.denoiser->info();
  if (model.join == TextJoin::sd3 || model.join == TextJoin::flux) return;
  if (info.in_channels == info.out_channels || info.mask_channels() == 1) return;
  fail(Code::unsupported, kOp, "the denoiser reads ", info.in_channels, " channels, of which ",
       info.out_channels, " are its latents: models that read another picture, or depth, are not ",
       "implemented, but those of inpainting");
}

}  // namespace

void check_parts_fit(const ImageModel& model) {
  check_inputs(model);
  const DenoiserInfo& wanted = model.denoiser->info();
  const size_t count = model.text.size();
  check_width(model, "the VAE's latents", model.vae->info().latent_channels, wanted.out_channels);
  if (model.join == TextJoin::single || model.join == TextJoin::widths) {
    const int64_t width = width_of(model, count, &TextEncoder::width);
    return check_width(model, "the text encoders' states", width, wanted.context_width);
  }
  const size_t clips = model.join == TextJoin::sd3 ? 2 : 1;
  const int64_t pooled = width_of(model, clips, &TextEncoder::pooled_width);
  check_width(model, "CLIP's pooled states", pooled, wanted.pooled_width);
  if (count == clips) return;
  check_width(model, "T5's states", model.text.back().encoder->width(), wanted.context_width);
}

TextStates join_text(const ImageModel& model, Encodings encodings) {
  check(!encodings.empty(), kOp, "there are no text encodings");
  switch (model.join) {
    case TextJoin::single:
      check(encodings.size() == 1, kOp, encodings.size(), " encodings, wanted one");
      return {.context = encodings.front().hidden, .pooled = encodings.front().pooled};
    case TextJoin::widths:
      return {.context = side_by_side(encodings, &TextEncoding::hidden),
              .pooled = encodings.back().pooled};
    case TextJoin::sd3:
      return join_sd3(encodings, model.denoiser->info().context_width);
    case TextJoin::flux:
      check(encodings.size() == 2, kOp, encodings.size(), " encodings, wanted CLIP's and T5's");
      return {.context = encodings.back().hidden, .pooled = encodings.front().pooled};
  }
  return {};
}

}  // namespace rbee::models
