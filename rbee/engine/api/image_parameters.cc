#include "rbee/engine/api/image_parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "rbee/diffusion/names.h"

namespace rbee::engine {
namespace {

using std::string_view;

constexpr string_view kNegative = "Negative prompt:";
constexpr string_view kSteps = "Steps: ";
constexpr size_t kNone = string_view::npos;

using Fields = std::vector<std::pair<std::string, std::string>>;

// The white space of Python's str.strip().
constexpr string_view kBlanks[] = {" ",
                                   "\t",
                                   "\n",
                                   "\v",
                                   "\f",
                                   "\r",
                                   "\x1C",
                                   "\x1D",
                                   "\x1E",
                                   "\x1F",
                                   "\xC2\x85",
                                   "\xC2\xA0",
                                   "\xE1\x9A\x80",
                                   "\xE2\x80\x80",
                                   "\xE2\x80\x81",
                                   "\xE2\x80\x82",
                                   "\xE2\x80\x83",
                                   "\xE2\x80\x84",
                                   "\xE2\x80\x85",
                                   "\xE2\x80\x86",
                                   "\xE2\x80\x87",
                                   "\xE2\x80\x88",
                                   "\xE2\x80\x89",
                                   "\xE2\x80\x8A",
                                   "\xE2\x80\xA8",
                                   "\xE2\x80\xA9",
                                   "\xE2\x80\xAF",
                                   "\xE2\x81\x9F",
                                   "\xE3\x80\x80"};

string_view trimmed(string_view text) {
  for (bool found = true; found;) {
    found = false;
    for (const string_view blank : kBlanks) {
      const bool before = text.starts_with(blank);
      if (before) text.remove_prefix(blank.size());
      const bool behind = text.ends_with(blank);
      if (behind) text.remove_suffix(blank.size());
      found |= before || behind;
    }
  }
  return text;
}

template <typename T>
bool take_exact(T& field, string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end) return false;
  field = value;
  return true;
}

// True where the value is a number of the field's kind; "20.0" is a whole one.
template <typename T>
bool take(T& field, string_view text) {
  text = trimmed(text);
  if (take_exact(field, text)) return true;
  if constexpr (std::is_integral_v<T>) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    const double most = std::min(kExact, static_cast<double>(std::numeric_limits<T>::max()));
    double number = 0;
    if (!take_exact(number, text) || std::trunc(number) != number) return false;
    if (number < 0 || number > most) return false;
    field = static_cast<T>(number);
    return true;
  }
  return false;
}

template <typename T>
bool take(std::optional<T>& field, string_view text) {
  T value{};
  if (!take(value, text)) return false;
  field = value;
  return true;
}

// A negative number leaves `field` empty: the engine draws a seed.
bool take_seed(std::optional<uint64_t>& field, string_view text) {
  int64_t below = 0;
  return take(field, text) || (take_exact(below, trimmed(text)) && below < 0);
}

// "512x768", also with blanks.
bool take_size(int32_t& width, int32_t& height, string_view value) {
  const size_t cross = value.find('x');
  return cross != kNone && take(width, value.substr(0, cross)) &&
         take(height, value.substr(cross + 1));
}

// One of several names, as the value beside it.
template <typename T>
bool take_name(T& field, string_view value,
               std::initializer_list<std::pair<string_view, T>> names) {
  for (const auto& [name, meaning] : names) {
    if (name != value) continue;
    field = meaning;
    return true;
  }
  return false;
}

bool take_sampler(ImageRequest& request, string_view value) try {
  static_cast<void>(diffusion::parse_sampler(value));
  request.sampler = value;
  return true;
} catch (const Error&) {
  return false;
}

bool take_schedule(ImageRequest& request, string_view value) try {
  static_cast<void>(diffusion::parse_schedule(value));
  request.schedule = value;
  return true;
} catch (const Error&) {
  return false;
}

bool set_noise(ImageRequest& request, string_view key, string_view value) {
  AddedNoise& added = request.added_noise;
  if (key == "Eta" || key == "Eta DDIM") return take(request.eta, value);
  if (key == "ENSD") return take(request.seed_delta, value);
  if (key == "Seed resize from") {
    return take_size(request.seed_width, request.seed_height, value);
  }
  if (key == "Sigma churn") return take(added.churn, value);
  if (key == "Sigma tmin") return take(added.tmin, value);
  if (key == "Sigma tmax") return take(added.tmax, value);
  if (key == "Sigma noise") return take(added.noise, value);
  if (key != "RNG") return false;
  constexpr auto kNvidia = NoiseSource::philox;
  return take_name(request.noise_source, value,
                   {{"CPU", NoiseSource::torch}, {"GPU", kNvidia}, {"NV", kNvidia}});
}

bool set_mask(ImageRequest& request, string_view key, string_view value) {
  if (key == "Mask blur") return take(request.mask_blur, value);
  if (key == "Masked area padding") return take(request.mask_padding, value);
  if (key == "Mask mode") {
    return take_name(request.mask_invert, value,
                     {{"Inpaint masked", false}, {"Inpaint not masked", true}});
  }
  if (key == "Inpaint area") {
    return take_name(request.mask_only, value, {{"Only masked", true}, {"Whole picture", false}});
  }
  if (key != "Masked content") return false;
  return take_name(request.mask_fill, value,
                   {{"original", MaskFill::original},
                    {"fill", MaskFill::surroundings},
                    {"latent noise", MaskFill::noise},
                    {"latent nothing", MaskFill::nothing}});
}

bool set_hires(ImageRequest& request, string_view key, string_view value) {
  HiresFix hires = request.hires.value_or(HiresFix{});
  const auto set = [&] {
    if (key == "Hires upscale") return take(hires.scale, value);
    if (key == "Hires resize") return take_size(hires.width, hires.height, value);
    if (key == kHiresStrength) return take(hires.strength, value);
    if (key == "Hires steps") return take(hires.steps, value);
    if (key != "Hires upscaler") return false;
    hires.upscaler = value;
    return true;
  };
  if (!set()) return false;
  request.hires = hires;
  return true;
}

bool set_field(ImageRequest& request, string_view key, string_view value) {
  if (key == "Steps") return take(request.steps, value);
  if (key == "Sampler") return take_sampler(request, value);
  if (key == "Schedule type") return take_schedule(request, value);
  // Forge's second one is of models that were trained with guidance, which have no other here.
  if (key == "CFG scale" || key == "Distilled CFG Scale") {
    return take(request.guidance_scale, value);
  }
  if (key == "CFG Rescale") return take(request.guidance_rescale, value);
  if (key == "Seed") return take_seed(request.seed, value);
  if (key == "Variation seed") return take_seed(request.variation.seed, value);
  if (key == "Variation seed strength") return take(request.variation.strength, value);
  if (key == "Size") return take_size(request.width, request.height, value);
  if (key == "Clip skip") return take(request.clip_skip, value);
  if (key == "Denoising strength") return take(request.strength, value);
  if (key == "Strength rule") {
    return take_name(
        request.strength_rule, value,
        {{"Part", StrengthRule::part}, {"A1111", StrengthRule::a1111}, {"All", StrengthRule::all}});
  }
  if (key == "Emphasis") {
    if (take_name(request.emphasis, value,
                  {{"No norm", Emphasis::no_norm}, {"Ignore", Emphasis::ignore}})) {
      return true;
    }
    return take_name(request.prompt_rule, value,
                     {{"None", PromptRule::none},
                      {"Comfy", PromptRule::comfy},
                      {"Original", PromptRule::a1111}});
  }
  if (key == "Tiling") {
    return take_name(
        request.tiling, value,
        {{"True", Tiling::both}, {"False", Tiling::none}, {"X", Tiling::x}, {"Y", Tiling::y}});
  }
  return set_noise(request, key, value) || set_mask(request, key, value) ||
         set_hires(request, key, value);
}

bool is_valid(const ImageRequest& request) try {
  validate(request);
  return true;
} catch (const Error&) {
  return false;
}

// Which files and programs made the picture.
bool is_about_files(string_view key) {
  constexpr string_view kKeys[] = {"Model",     "Model hash", "VAE",    "VAE hash", "Lora hashes",
                                   "TI hashes", "TI",         "Hashes", "Version",  "User"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

bool is_word(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
  return letter || (c >= '0' && c <= '9') || c == '_';
}

bool is_key(char c) {
  return is_word(c) || c == ' ' || c == '-' || c == '/';
}

// The end of a quoted value that begins at `at`, where a comma or nothing follows; else kNone.
size_t quoted_end(string_view line, size_t at) {
  for (size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      const bool ends = i + 1 == line.size() || line[i + 1] == ',';
      return ends && i > at + 1 ? i + 1 : kNone;
    }
  }
  return kNone;
}

// The output of quoted() of image/settings.cc, or of AUTOMATIC1111's json.dumps().
std::string unquoted(string_view text) {
  text = text.substr(1, text.size() - 2);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) ++i;
    const char c = text[i];
    out += !escape ? c : (c == 'n' ? '\n' : (c == 't' ? '\t' : c));
  }
  return out;
}

// "Steps: 20, Sampler: Euler a, ...": what stands between is passed over. A key of a second time
// has its last value.
Fields fields_of(string_view line) {
  Fields out;
  std::map<string_view, size_t> known;
  for (size_t from = 0, colon; (colon = line.find(':', from)) != kNone;) {
    size_t key = colon;
    while (key > from && is_key(line[key - 1])) --key;
    while (key < colon && !is_word(line[key])) ++key;
    if (colon - key < 2) {
      from = colon + 1;
      continue;
    }
    const size_t at = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    const size_t quote = at < line.size() && line[at] == '"' ? quoted_end(line, at) : kNone;
    const size_t end = quote != kNone ? quote : std::min(line.find(',', at), line.size());
    const string_view value = line.substr(at, end - at);
    const auto [place, fresh] = known.emplace(line.substr(key, colon - key), out.size());
    if (fresh) out.emplace_back(place->first, "");
    out[place->second].second = quote != kNone ? unquoted(value) : std::string(value);
    from = std::min(end + 1, line.size());
  }
  return out;
}

struct Infotext {
  std::string prompt, negative_prompt;
  std::string line;  // of the settings; empty: none
};

// The line of the settings is the last one with three fields, as in A1111, or the last one
// that begins with the steps. Other programs write further lines after it.
size_t settings_at(string_view text) {
  constexpr size_t kLeast = 3;
  const size_t last = text.rfind('\n') + 1;  // npos + 1 is 0
  if (text.substr(last).starts_with(kSteps) || fields_of(text.substr(last)).size() >= kLeast) {
    return last;
  }
  for (size_t at = text.rfind(kSteps); at != kNone && at > 0; at = text.rfind(kSteps, at - 1)) {
    const string_view line = text.substr(at, text.find('\n', at) - at);
    if (text[at - 1] == '\n' && fields_of(line).size() >= kLeast) return at;
  }
  return kNone;
}

// As parse_generation_parameters() of AUTOMATIC1111: each line loses the blanks around it and the
// label, and so do lines of the negative prompt that have the label again.
Infotext split(string_view text) {
  text = trimmed(text);
  const size_t at = settings_at(text);
  Infotext out;
  string_view prompts = text;
  if (at != kNone) {
    out.line = trimmed(text.substr(at, text.find('\n', at) - at));
    prompts = text.substr(0, at);
  }
  std::string* to = &out.prompt;
  for (size_t from = 0, end = 0; from < prompts.size(); from = end + 1) {
    end = std::min(prompts.find('\n', from), prompts.size());
    string_view line = trimmed(prompts.substr(from, end - from));
    if (line.starts_with(kNegative)) {
      to = &out.negative_prompt;
      line = trimmed(line.substr(kNegative.size()));
    }
    if (!to->empty()) *to += '\n';
    *to += line;
  }
  return out;
}

}  // namespace

ImageRequest parse_parameters(string_view text, std::vector<std::string>* unused) {
  ImageRequest out;
  out.noise_source = NoiseSource::philox;
  out.strength_rule = StrengthRule::a1111;
  Infotext parts = split(text);
  // Here a generator on the CPU comes with diffusers' rule; AUTOMATIC1111 has no other than its.
  const bool own = parts.line.ends_with("Version: rbee.cpp");
  if (own && parts.line.find("RNG: CPU") != std::string::npos) {
    out.strength_rule = StrengthRule::part;
  }
  bool named = false;
  for (const auto& [key, value] : fields_of(parts.line)) {
    ImageRequest with = out;
    if (set_field(with, key, value) && is_valid(with)) {
      out = std::move(with);
      named = named || key == kHiresStrength;
    } else if (unused != nullptr && !is_about_files(key)) {
      unused->push_back(cat(key, ": ", value));
    }
  }
  // AUTOMATIC1111's one key is a second pass's where there is one.
  if (out.hires && !named) out.hires->strength = out.strength;
  out.prompt = std::move(parts.prompt);
  out.negative_prompt = std::move(parts.negative_prompt);
  return out;
}

std::vector<std::pair<std::string, std::string>> infotext_fields(string_view text) {
  const Infotext parts = split(text);
  Fields out = {{"Prompt", parts.prompt}, {"Negative prompt", parts.negative_prompt}};
  for (auto& [key, value] : fields_of(parts.line)) {
    if (key == "Prompt" || key == "Negative prompt") continue;  // the texts above win
    const size_t cross = value.find('x');
    constexpr string_view kDigits = "0123456789";
    const bool size = cross != std::string::npos && cross > 0 && cross + 1 < value.size() &&
                      value.find_first_not_of(kDigits) == cross &&
                      value.find_first_not_of(kDigits, cross + 1) == std::string::npos;
    if (!size) {
      out.emplace_back(std::move(key), std::move(value));
      continue;
    }
    out.emplace_back(cat(key, "-1"), value.substr(0, cross));
    out.emplace_back(cat(key, "-2"), value.substr(cross + 1));
  }
  return out;
}

}  // namespace rbee::engine
