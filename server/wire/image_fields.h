#pragma once
// Readers for the shared fields of image requests. Internal to the server.

#include <initializer_list>
#include <span>

#include "rbee/core/cat.h"
#include "server/wire/image_body.h"
#include "server/wire/json_object.h"

namespace rbee::server {

inline constexpr FieldRange<int32_t> kPartials{0, 3};
inline constexpr size_t kMaxControls = 8;

// The bounds of a field in bodies.
FieldRange<int32_t> integer_range(const engine::ImageField::Member& member);
FieldRange<double> number_range(const engine::ImageField::Member& member);

// "" if the field is absent or has none of these values, which it notes.
std::string choice(ObjectReader& reader, const char* name,
                   std::initializer_list<std::string_view> allowed);
std::string choice(ObjectReader& reader, const char* name,
                   std::span<const std::string_view> allowed);

// true and false, or 1 and 0.
std::optional<bool> flag(ObjectReader& reader, const char* name);

// Pixels of a side, within the bounds of a row of the table.
std::optional<int32_t> side(ObjectReader& reader, const char* name,
                            const engine::ImageField& field);

// Reads one field of the settings, by the table's names or by another one.
void read_field(ObjectReader& reader, const engine::ImageField& field, ImageBody& out,
                const char* name = nullptr);

SentImage image(ObjectReader& reader, const char* name, bool required);

// Our own names, and those of AUTOMATIC1111's extension. It uses pictures as they are: no detector
// makes edges or poses from a photograph.
SentControl control(ObjectReader& fields);
// The same, but notes a missing picture.
SentControl control_with_image(ObjectReader& fields);

// Noise that samplers add, and what is added to seeds; also within A1111's override_settings.
void read_noise(ObjectReader& reader, ImageBody& out);

// "hires": a second pass over a larger picture.
void read_hires(ObjectReader& reader, std::vector<FieldError>& errors, ImageBody& out);

// Fields with the same names in all APIs.
void read_common(ObjectReader& reader, std::vector<FieldError>& errors, ImageBody& out);

// Throws InvalidBody if there are errors.
void finish(std::vector<FieldError>& errors);

// Calls `read` with each object of a list; notes other entries. prefix: the reader's own.
template <typename Read>
void each_object(ObjectReader& reader, const char* name, size_t most,
                 std::vector<FieldError>& errors, const Read& read, std::string_view prefix = {}) {
  const nlohmann::json* list = reader.find(name);
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > most) {
    reader.note(name, cat("type(array), max_count(", most, ")"),
                cat("must be an array of at most ", most), list);
    return;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const nlohmann::json& entry = (*list)[i];
    if (!entry.is_object()) {
      reader.note(cat(name, "[", i, "]"), "type(object)", "must be an object", &entry);
      continue;
    }
    ObjectReader fields(entry, cat(prefix, name, "[", i, "]."), errors);
    read(fields);
  }
}

}  // namespace rbee::server
