#include "server/wire/image_fields.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "server/wire/other_names.h"

namespace rbee::server {
namespace {

using nlohmann::json;

using engine::ImageField;

constexpr size_t kMaxLoras = 16;

// true and false as A1111, 1 and 0, or axes.
std::string tiling(ObjectReader& reader, const ImageField& field) {
  const json* value = reader.find(field.name.data());
  if (value != nullptr && !value->is_string()) {
    const std::optional<bool> both = flag(reader, field.name.data());
    return both ? (*both ? "both" : "none") : "";
  }
  return choice(reader, field.name.data(), field.choices);
}

// Reads a field of the table by its value's type. True: it was given and has a value.
class FieldReader {
 public:
  // name: the one to read in place of the table's; null: these.
  FieldReader(ObjectReader& reader, const ImageField& field, const char* name)
      : reader_(reader), field_(field), name_(name) {
    if (name != nullptr) return;
    std::vector<const char*> names = {field.name.data()};
    for (const std::string_view alias : field.aliases) {
      if (!alias.empty()) names.push_back(alias.data());
    }
    name_ = given_name(reader, names);
    if (!field.repeated.empty()) last_ = field.repeated.data();
  }

  // That the value has, or would have.
  const char* name() const { return name_; }

  bool read(int32_t& value) {
    const auto sent = field_.multiple > 1 ? side(reader_, name_, field_)
                                          : reader_.integer(name_, integer_range(field_.member));
    return take(sent ? std::optional(std::max(*sent, 0)) : sent, value);
  }
  bool read(float& value) {
    return take(reader_.number(name_, number_range(field_.member)), value);
  }
  bool read(std::optional<float>& value) {
    return take(reader_.number(name_, number_range(field_.member)), value);
  }
  bool read(std::optional<uint64_t>& value) { return take(reader_.seed(name_), value); }
  bool read(bool& value) { return take(reader_.boolean(name_), value); }
  bool read(std::string& value) {
    value = reader_.text(name_).value_or("");
    std::string last = last_ != nullptr ? reader_.text(last_).value_or("") : "";
    if (value.empty() && !last.empty()) {
      value = std::move(last);
      name_ = last_;
    }
    return !value.empty();
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  bool read(Enum& value) {
    std::string name;
    if constexpr (std::is_same_v<Enum, engine::Tiling>) {
      name = tiling(reader_, field_);
    } else {
      name = choice(reader_, name_, field_.choices);
    }
    if (name.empty()) return false;
    value = static_cast<Enum>(std::ranges::find(field_.choices, name) - field_.choices.begin());
    return true;
  }

 private:
  static bool take(const auto& sent, auto& value) {
    if (!sent) return false;
    value = *sent;
    return true;
  }

  ObjectReader& reader_;
  const ImageField& field_;
  const char* name_;
  const char* last_ = nullptr;  // read too, for when that one is empty
};

// The fields of a second pass, or of an entry of a list.
template <typename Object>
Object read_object(ObjectReader& reader) {
  Object out;
  engine::for_each_image_field(out, [&](const ImageField& field, auto& value) {
    FieldReader(reader, field, nullptr).read(value);
  });
  return out;
}

engine::LoraUse lora(ObjectReader& fields) {
  const char* path = given_name(fields, {"path", "name"});
  std::optional<std::string> text = fields.text(path);
  if (fields.find(path) == nullptr) fields.note("path", "required", "is missing", nullptr);
  auto out = read_object<engine::LoraUse>(fields);
  out.path = std::move(text).value_or("");
  return out;
}

// A1111 writes -1 and 0 where there is none.
void check_seed_size(ObjectReader& reader, const ImageBody& out) {
  const engine::ImageRequest& settings = out.settings;
  const auto check = [&](const char* name, int32_t value, const char* other) {
    if (value == 0) return;
    const json* sent = reader.find(other);
    if (sent == nullptr || !sent->is_number() || *sent <= 0) {
      reader.note(other, "required", cat("must be given with ", name), sent);
    }
    const ImageField& field = engine::image_field(&engine::ImageRequest::seed_width);
    if (value >= field.low) return;
    reader.note(name, cat("range(", field.low, "..=", field.high, ")"),
                cat("must be at least ", field.low), reader.find(name));
  };
  check("seed_resize_from_w", settings.seed_width, "seed_resize_from_h");
  check("seed_resize_from_h", settings.seed_height, "seed_resize_from_w");
}

void require_image(ObjectReader& reader, const char* name) {
  if (reader.find(name) != nullptr) return;
  reader.note(name, "required", "is missing: a PNG, JPEG, WebP, GIF or BMP file as base64",
              nullptr);
}

// AUTOMATIC1111's extension also takes {"image": ..., "mask": ...}.
SentImage control_image(ObjectReader& fields, const char* name) {
  const json* sent = fields.find(name);
  if (sent == nullptr || !sent->is_object()) return image(fields, name, false);
  const json picture = sent->value("image", json()), mask = sent->value("mask", json());
  if (!mask.is_null() && mask != "") {
    fields.note(cat(name, ".mask"), "null", "must be null: a ControlNet sees its whole picture",
                &mask);
  }
  if (!picture.is_string() || picture == "") {
    fields.note(cat(name, ".image"), "type(string), non_empty", "must be a base64 picture",
                &picture);
    return {};
  }
  return {.data = picture.get<std::string>()};
}

}  // namespace

FieldRange<int32_t> integer_range(const ImageField::Member& member) {
  const ImageField& field = engine::image_field(member);
  return {static_cast<int32_t>(field.sent_low < 0 ? field.sent_low : field.low),
          static_cast<int32_t>(field.high)};
}

FieldRange<double> number_range(const ImageField::Member& member) {
  const ImageField& field = engine::image_field(member);
  return {field.low, field.high};
}

std::string choice(ObjectReader& reader, const char* name,
                   std::initializer_list<std::string_view> allowed) {
  return choice(reader, name, std::span(allowed.begin(), allowed.size()));
}

std::string choice(ObjectReader& reader, const char* name,
                   std::span<const std::string_view> allowed) {
  std::optional<std::string> value = reader.text(name);
  if (!value || std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) {
    return std::move(value).value_or("");
  }
  std::string list;
  for (const std::string_view entry : allowed) list += cat(list.empty() ? "" : ", ", entry);
  reader.note(name, cat("one_of(", list, ")"), cat("must be one of ", list), reader.find(name));
  return "";
}

std::optional<bool> flag(ObjectReader& reader, const char* name) {
  const json* value = reader.find(name);
  if (value == nullptr || value->is_boolean()) return reader.boolean(name);
  const std::optional<int32_t> number = reader.integer(name, {0, 1});
  return number ? std::optional<bool>(*number == 1) : std::nullopt;
}

std::optional<int32_t> side(ObjectReader& reader, const char* name, const ImageField& field) {
  const std::optional<int32_t> value = reader.integer(name, integer_range(field.member));
  if (value && *value % field.multiple != 0) {
    const int32_t below = *value / field.multiple * field.multiple;
    reader.note(name, cat("multiple_of(", field.multiple, ")"),
                cat("must be a multiple of ", field.multiple, "; the nearest are ", below, " and ",
                    below + field.multiple),
                reader.find(name));
  }
  return value;
}

void read_field(ObjectReader& reader, const ImageField& field, ImageBody& out, const char* name) {
  engine::with_image_field(field, out.settings, [&](const ImageField&, auto& value) {
    FieldReader one(reader, field, name);
    if (!one.read(value)) return;
    out.given.add(field);
    out.names.set(field, reader.full_name(one.name()));
  });
}

SentImage image(ObjectReader& reader, const char* name, bool required) {
  std::optional<std::string> text = reader.text(name);
  if (text && text->empty()) reader.note(name, "non_empty", "is empty", reader.find(name));
  if (required) require_image(reader, name);
  return {.data = std::move(text).value_or("")};
}

SentControl control(ObjectReader& fields) {
  SentControl out;
  out.use = read_object<engine::ControlUse>(fields);
  std::string& name = out.use.name;
  name = fields.text("model").value_or("");
  // A1111 adds a hash: "canny [d14c016b]".
  if (name.ends_with(']') && name.find(" [") != std::string::npos) name.resize(name.rfind(" ["));
  if (name == "None") name.clear();
  out.image = control_image(fields, given_name(fields, {"image", "input_image"}));
  if (out.use.finish < out.use.start) {
    fields.note("end", "start <= end", "must not be before the start", fields.find("end"));
  }
  const std::string module = fields.text("module").value_or("none");
  if (module != "none" && module != "None") {
    fields.note("module", "one_of(none)",
                "must be none: send the picture that the network reads, such as edges or a pose",
                fields.find("module"));
  }
  return out;
}

SentControl control_with_image(ObjectReader& fields) {
  if (fields.find("input_image") == nullptr) require_image(fields, "image");
  return control(fields);
}

void read_noise(ObjectReader& reader, ImageBody& out) {
  using Added = engine::AddedNoise;
  for (const ImageField::Member member :
       {ImageField::Member(&engine::ImageRequest::seed_delta), ImageField::Member(&Added::churn),
        ImageField::Member(&Added::tmin), ImageField::Member(&Added::tmax),
        ImageField::Member(&Added::noise)}) {
    read_field(reader, engine::image_field(member), out);
  }
}

void read_hires(ObjectReader& reader, std::vector<FieldError>& errors, ImageBody& out) {
  const json* value = reader.find("hires");
  if (value == nullptr) return;
  if (!value->is_object()) {
    reader.note("hires", "type(object)", "must be an object", value);
    return;
  }
  ObjectReader fields(*value, "hires.", errors);
  out.settings.hires = read_object<engine::HiresFix>(fields);
}

void read_common(ObjectReader& reader, std::vector<FieldError>& errors, ImageBody& out) {
  if (reader.find("prompt") == nullptr) reader.note("prompt", "required", "is missing", nullptr);
  for (const ImageField& field : engine::image_fields()) {
    if (field.everywhere) read_field(reader, field, out);
  }
  check_seed_size(reader, out);
  each_object(reader, given_name(reader, {"loras", "lora"}), kMaxLoras, errors,
              [&](ObjectReader& fields) { out.settings.loras.push_back(lora(fields)); });
  each_object(reader, "control", kMaxControls, errors,
              [&](ObjectReader& fields) { out.controls.push_back(control_with_image(fields)); });
}

void finish(std::vector<FieldError>& errors) {
  if (!errors.empty()) throw InvalidBody(std::move(errors));
}

}  // namespace rbee::server
