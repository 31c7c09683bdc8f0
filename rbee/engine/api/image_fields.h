#pragma once
// One table of a picture request's fields: their names in every API, ranges and meanings. Defaults
// are those of ImageRequest and the structs in it. The body parsers, validate(), the options of
// `rbee imagine` and docs/reference/picture-fields.md come from it; tests compare the OpenAPI
// document and the page with it.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

struct ImageField {
  using R = ImageRequest;
  using Member =
      std::variant<int32_t R::*, float R::*, bool R::*, std::string R::*, std::optional<float> R::*,
                   std::optional<uint64_t> R::*, PromptRule R::*, NoiseSource R::*, MaskFill R::*,
                   StrengthRule R::*, Tiling R::*, float Variation::*,
                   std::optional<uint64_t> Variation::*, float AddedNoise::*,
                   io::ImageFormat io::Encoding::*, int32_t io::Encoding::*, int32_t HiresFix::*,
                   float HiresFix::*, std::string HiresFix::*, float LoraUse::*,
                   std::optional<float> LoraUse::*, float ControlUse::*>;

  std::string_view name;  // within "hires", and an entry of "loras" and "control", for these
  Member member;
  // Of a number, both included; of a text, `high` is its most bytes, 0: no bound of its own.
  double low = 0, high = 0;
  std::string_view words;        // what it does
  std::string_view option = {};  // of `rbee imagine`; empty: none, or one with its own reader
  bool zero_is_absent = false;   // 0 in the engine means that it is not given
  double sent_low = 0;           // if below 0: bodies may also send this, and it means 0
  int32_t multiple = 1;          // a number must be one of it
  std::span<const std::string_view> choices = {};  // names of an enum's values, in their order
  std::array<std::string_view, 2> aliases = {};    // names that all these APIs also accept
  // A further name, read only if the others are absent: some clients always send the default under
  // it.
  std::string_view repeated = {};
  // False: not all APIs read these names; OpenAI's has `openai` instead, if it has the field.
  bool everywhere = true;
  std::string_view openai = {};
  std::string_view a1111 = {};           // AUTOMATIC1111's own name, beside those
  std::string_view a1111_error = {};     // what its routes call it in messages, if not `a1111`
  std::string_view other_defaults = {};  // of operations and APIs that have another

  // Before its name in messages: "hires.", "loras.", "control.", or nothing.
  std::string_view prefix() const;
  // In messages of AUTOMATIC1111's routes; empty: prefix and name.
  std::string_view a1111_name() const;
};

std::span<const ImageField> image_fields();
// The row of a member. There must be one.
const ImageField& image_field(const ImageField::Member& member);
// The names of an enum's values, for messages: "none, x, y, both".
std::string choices_text(const ImageField& field);

// The part of an Object (an ImageRequest, or a HiresFix, LoraUse or ControlUse) that has members of
// Part; null if such are not in it. A second pass and the entries of lists are objects of their
// own.
template <typename Part, typename Object>
auto* image_part(Object& object) {
  using Plain = std::remove_const_t<Object>;
  using Result = std::conditional_t<std::is_const_v<Object>, const Part, Part>;
  if constexpr (std::is_same_v<Part, Plain>) {
    return &object;
  } else if constexpr (!std::is_same_v<Plain, ImageRequest>) {
    return static_cast<Result*>(nullptr);
  } else if constexpr (std::is_same_v<Part, Variation>) {
    return &object.variation;
  } else if constexpr (std::is_same_v<Part, AddedNoise>) {
    return &object.added_noise;
  } else if constexpr (std::is_same_v<Part, io::Encoding>) {
    return &object.encoding;
  } else {
    return static_cast<Result*>(nullptr);
  }
}

// Calls use(field, value) for the field's value in the object, if it is a field of such.
template <typename Object, typename Use>
void with_image_field(const ImageField& field, Object& object, Use&& use) {
  std::visit(
      [&]<typename T, typename Part>(T Part::* member) {
        if (auto* part = image_part<Part>(object)) use(field, part->*member);
      },
      field.member);
}
// For all fields of the object, in the table's order.
template <typename Object, typename Use>
void for_each_image_field(Object& object, Use&& use) {
  for (const ImageField& field : image_fields()) with_image_field(field, object, use);
}

// A set of the table's fields, by member.
class ImageFieldSet {
 public:
  void add(const ImageField& field) { bits_ |= bit(field); }
  bool has(const ImageField::Member& member) const {
    return (bits_ & bit(image_field(member))) != 0;
  }

 private:
  static uint64_t bit(const ImageField& field) {
    return uint64_t{1} << (&field - image_fields().data());
  }
  uint64_t bits_ = 0;
};

}  // namespace rbee::engine
