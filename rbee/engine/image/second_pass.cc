#include "rbee/engine/image/second_pass.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace rbee::engine {
namespace {

using std::string_view;

// As AUTOMATIC1111 calls them; its "None" resizes by Lanczos too.
constexpr std::array<string_view, 8> kNames = {"Latent",           "Latent (antialiased)",
                                               "Latent (bicubic)", "Latent (bicubic antialiased)",
                                               "Latent (nearest)", "Latent (nearest-exact)",
                                               "Lanczos",          "Nearest"};
constexpr string_view kNone = "None";

bool is_same(string_view a, string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

string_view name(UpscalerKind upscaler) {
  return kNames[static_cast<size_t>(upscaler)];
}

UpscalerKind parse_upscaler(string_view text, std::span<const UpscalerInfo> networks) {
  const auto is_named = [&](const UpscalerInfo& network) { return network.name == text; };
  if (std::ranges::any_of(networks, is_named)) return UpscalerKind::network;
  if (text.empty()) return UpscalerKind::latent;
  if (is_same(text, kNone)) return UpscalerKind::lanczos;
  const auto found = std::ranges::find_if(kNames, [&](auto entry) { return is_same(entry, text); });
  if (found != kNames.end()) return static_cast<UpscalerKind>(found - kNames.begin());
  std::string known;
  for (const string_view entry : kNames) known += cat(known.empty() ? "" : ", ", entry);
  for (const UpscalerInfo& network : networks) known += cat(", ", network.name);
  fail(Code::invalid_argument, "hires.upscaler", "\"", text, "\" is not one of ", known);
}

Size second_size(const HiresFix& hires, const Size& first, int32_t step) {
  const auto whole_steps = [step](double side) {
    return static_cast<int32_t>(std::lround(side / step)) * step;
  };
  const double width = first.width, height = first.height;
  if (hires.width > 0 && hires.height > 0) return {hires.width, hires.height};
  if (hires.width > 0) return {hires.width, whole_steps(hires.width * height / width)};
  if (hires.height > 0) return {whole_steps(hires.height * width / height), hires.height};
  const double scale = hires.scale;
  return {whole_steps(width * scale), whole_steps(height * scale)};
}

Cover cover(const Size& from, const Size& to) {
  const double factor = std::max(static_cast<double>(to.width) / from.width,
                                 static_cast<double>(to.height) / from.height);
  const auto side = [&](int32_t pixels, int32_t least) {
    return std::max(least, static_cast<int32_t>(std::lround(pixels * factor)));
  };
  const Size whole{side(from.width, to.width), side(from.height, to.height)};
  return {whole,
          {.left = (whole.width - to.width) / 2,
           .top = (whole.height - to.height) / 2,
           .width = to.width,
           .height = to.height}};
}

io::Pixels covered(io::Pixels picture, const Size& to, io::Resampler how) {
  const auto [whole, part] = cover({picture.width, picture.height}, to);
  if (picture.width == to.width && picture.height == to.height) return picture;
  // The whole of a narrow picture may have a thousand times the pixels of the part.
  const io::ResizedPart wanted{whole.width, whole.height, part.left,
                               part.top,    part.width,   part.height};
  return how == io::Resampler::nearest ? io::nearest_part(picture, wanted)
                                       : io::resized_part(picture, wanted);
}

}  // namespace rbee::engine
