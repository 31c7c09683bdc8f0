#include "rbee/engine/api/image.h"

#include "rbee/core/cat.h"
#include "rbee/diffusion/names.h"
#include "rbee/engine/api/image_fields.h"
#include "rbee/engine/api/image_loras.h"

namespace rbee::engine {
namespace {

constexpr size_t kMaxImageBytes = size_t{64} << 20;
constexpr size_t kMaxLoras = 32;
constexpr size_t kMaxControls = 8;
constexpr int32_t kMaxPreviews = 150;

void check_bytes(std::string_view field, const std::string& bytes, size_t most) {
  check(bytes.size() <= most, field, bytes.size(), " bytes are more than ", most);
}

// NaN is in no range.
void check_number(const ImageField& field, const std::string& name, double value) {
  if (field.zero_is_absent && value == 0) return;
  check(value >= field.low && value <= field.high, name, value, " is outside of ", field.low,
        " to ", field.high);
  if (field.multiple == 1) return;
  const auto whole = static_cast<int32_t>(value);
  const int32_t below = whole / field.multiple * field.multiple;
  check(whole == below, name, whole, " is not a multiple of ", field.multiple, "; the nearest are ",
        below, " and ", below + field.multiple);
}

// By the table's bounds.
void check_fields(const auto& object) {
  for_each_image_field(object, []<typename T>(const ImageField& field, const T& value) {
    const std::string name = cat(field.prefix(), field.name);
    if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, float>) {
      check_number(field, name, value);
    } else if constexpr (std::is_same_v<T, std::optional<float>>) {
      if (value) check_number(field, name, *value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (field.high > 0) check_bytes(name, value, static_cast<size_t>(field.high));
    } else if constexpr (std::is_enum_v<T>) {
      check(static_cast<size_t>(value) < field.choices.size(), name, "it is none of ",
            choices_text(field));
    }
  });
}

// Both sides or none.
void check_seed_size(const ImageRequest& request) {
  const bool wide = request.seed_width != 0, high = request.seed_height != 0;
  const ImageField& missing =
      image_field(high ? &ImageRequest::seed_width : &ImageRequest::seed_height);
  check(wide == high, missing.name, "0 is outside of ", missing.low, " to ", missing.high,
        ", beside the other side");
}

void check_control(const ControlUse& control) {
  check(!control.image.empty(), "control.image", "it is empty");
  check_bytes("control.image", control.image, kMaxImageBytes);
  check_fields(control);
  check(control.finish >= control.start, "control.end", control.finish, " is before the start, ",
        control.start);
}

void check_loras(const std::vector<LoraUse>& loras) {
  check(loras.size() <= kMaxLoras, "loras", loras.size(), " are more than ", kMaxLoras);
  for (const LoraUse& lora : loras) {
    check(!lora.path.empty(), "loras.path", "it is empty");
    check_fields(lora);
  }
}

template <typename Names>
std::vector<NamedChoice> choices(const Names& names) {
  std::vector<NamedChoice> out;
  for (const auto& entry : names) {
    out.push_back({std::string(entry.name), {entry.aliases.begin(), entry.aliases.end()}});
  }
  return out;
}

}  // namespace

void validate(const ImageRequest& request) {
  check_fields(request);
  check_seed_size(request);
  check(request.preview_count >= 0 && request.preview_count <= kMaxPreviews, "preview_count",
        request.preview_count, " is outside of 0 to ", kMaxPreviews);
  check_bytes("init_image", request.init_image, kMaxImageBytes);
  check_bytes("mask_image", request.mask_image, kMaxImageBytes);
  check(request.mask_image.empty() || !request.init_image.empty(), "mask_image",
        "there is no init_image that it masks");
  if (request.hires) check_fields(*request.hires);
  check_loras(prompt_loras(request).loras);
  check(request.controls.size() <= kMaxControls, "control", request.controls.size(),
        " are more than ", kMaxControls);
  for (const ControlUse& control : request.controls) check_control(control);
}

const std::vector<NamedChoice>& sampler_choices() {
  static const std::vector<NamedChoice> kChoices = choices(diffusion::sampler_names());
  return kChoices;
}

const std::vector<NamedChoice>& schedule_choices() {
  static const std::vector<NamedChoice> kChoices = choices(diffusion::schedule_names());
  return kChoices;
}

}  // namespace rbee::engine
