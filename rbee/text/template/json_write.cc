// The filter tojson as transformers defines it: Python's json.dumps.

#include <algorithm>
#include <cmath>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/natives.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

class Writer {
 public:
  explicit Writer(Runtime& runtime) : runtime_(runtime) {}

  bool ascii = false;
  bool sorted = false;
  bool indented = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";

  std::string run(const Value& value) {
    write(value);
    return std::move(out_);
  }

 private:
  void write(const Value& value) {
    const Depth depth(runtime_);
    runtime_.step();
    switch (value.kind()) {
      case Kind::text:
        quoted(value.text().bytes);
        break;
      case Kind::dict:
        object(value.dict());
        break;
      case Kind::sequence:
        array(value);
        break;
      default:
        out_ += scalar(value);
        break;
    }
    runtime_.heap().require(static_cast<int64_t>(out_.size()));
  }

  static std::string scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::none:
        return "null";
      case Kind::boolean:
        return value.boolean() ? "true" : "false";
      case Kind::integer:
      case Kind::wide:
        return decimal_of(value);
      case Kind::floating:
        if (std::isnan(value.floating())) return "NaN";
        if (std::isinf(value.floating())) return value.floating() < 0 ? "-Infinity" : "Infinity";
        return float_repr(value.floating());
      default:
        raise("object of type ", type_name(value), " is not JSON serializable");
    }
  }

  void quoted(std::string_view text) {
    runtime_.step_bytes(text.size());
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const size_t start = i;
      const char32_t c = next_code_point(text, i);
      constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b";
      constexpr std::string_view kLetters = "\"\\nrtfb";
      const size_t special = c < 0x80 ? kSpecial.find(static_cast<char>(c)) : kSpecial.npos;
      if (special != kSpecial.npos) {
        out_ += '\\';
        out_ += kLetters[special];
      } else if (c < 0x20 || (ascii && c > 0x7e)) {
        escaped(c);
      } else {
        out_ += text.substr(start, i - start);
      }
    }
    out_ += '"';
  }

  // \uXXXX, two of them beyond the basic plane.
  void escaped(char32_t c) {
    if (c > 0xffff) {
      escaped(0xd800 + ((c - 0x10000) >> 10));
      return escaped(0xdc00 + ((c - 0x10000) & 0x3ff));
    }
    constexpr std::string_view kHex = "0123456789abcdef";
    out_ += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out_ += kHex[c >> shift & 0xf];
  }

  void line() {
    if (!indented) return;
    out_ += '\n';
    runtime_.step_bytes(level_ * indent.size());
    runtime_.heap().require(static_cast<int64_t>(out_.size() + level_ * indent.size()));
    for (size_t i = 0; i < level_; ++i) out_ += indent;
  }

  void separator(bool first) {
    if (!first) out_ += item_separator;
    line();
  }

  void array(const Value& value) {
    const Form form = value.sequence().form;
    if (form != Form::list && form != Form::tuple) {
      raise("object of type ", type_name(value), " is not JSON serializable");
    }
    const std::vector<Value>& items = value.sequence().items;
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      separator(i == 0);
      write(items[i]);
    }
    --level_;
    if (!items.empty()) line();
    out_ += ']';
  }

  void object(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (sorted) {
      std::stable_sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) {
        return less(runtime_, a->first, b->first);
      });
    }
    out_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      separator(i == 0);
      const Value& key = entries[i]->first;
      quoted(key.is(Kind::text) ? key.text().bytes : scalar(key));
      out_ += key_separator;
      write(entries[i]->second);
    }
    --level_;
    if (!entries.empty()) line();
    out_ += '}';
  }

  Runtime& runtime_;
  std::string out_;
  size_t level_ = 0;
};

void set_indent(Runtime& runtime, Writer& writer, const Value& indent) {
  writer.indented = true;
  writer.item_separator = ",";
  if (indent.is(Kind::text)) {
    writer.indent = indent.text().bytes;
    return;
  }
  if (!indent.is_integral()) raise("tojson(): indent must be an integer or a string");
  const int64_t width = std::max<int64_t>(0, indent.integer());
  runtime.heap().require(width);
  writer.indent.assign(static_cast<size_t>(width), ' ');
}

void set_separators(Runtime& runtime, Writer& writer, const Value& separators) {
  const std::vector<Value> pair = items_of(runtime, separators);
  if (pair.size() != 2 || !pair[0].is(Kind::text) || !pair[1].is(Kind::text)) {
    raise("tojson(): separators must be two strings");
  }
  writer.item_separator = pair[0].text().bytes;
  writer.key_separator = pair[1].text().bytes;
}

}  // namespace

Value filter_tojson(Runtime& runtime, const Value& self, const Args& args) {
  const Bound given("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  Writer writer(runtime);
  writer.ascii = given.flag(0, false);
  writer.sorted = given.flag(3, false);
  if (!given.is_none(1)) set_indent(runtime, writer, *given[1]);
  if (!given.is_none(2)) set_separators(runtime, writer, *given[2]);
  return runtime.text(writer.run(self));
}

}  // namespace rbee::text::jinja
