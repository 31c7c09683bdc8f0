// "%s" % arguments, as Python's str does it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "rbee/text/template/failure.h"
#include "rbee/text/template/format_field.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/operators.h"
#include "rbee/text/template/unicode.h"

namespace rbee::text::jinja {
namespace {

double number_of(const Value& value, char type) {
  if (value.is(Kind::undefined)) raise_undefined(value);
  if (!value.is_number()) raise('%', type, " format: a number is required, not ", type_name(value));
  return value.number();
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, std::string_view format, const Value& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments) {}

  std::string run() {
    runtime_.step_bytes(format_.size());
    while (at_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', at_), format_.size());
      out_ += format_.substr(at_, percent - at_);
      at_ = percent;
      if (at_ < format_.size()) conversion();
      runtime_.heap().require(static_cast<int64_t>(out_.size()));
    }
    const bool is_tuple = this->is_tuple();
    const size_t given = is_tuple ? arguments_.sequence().items.size() : 1;
    const bool may_ignore = arguments_.is(Kind::dict) || arguments_.is(Kind::undefined) ||
                            (arguments_.is(Kind::sequence) && !is_tuple);
    if (!keyed_ && used_ < given && !may_ignore) {
      raise("not all arguments converted during string formatting");
    }
    return std::move(out_);
  }

 private:
  bool is_tuple() const {
    return arguments_.is(Kind::sequence) && arguments_.sequence().form == Form::tuple;
  }

  Value next_argument() {
    const bool tuple = is_tuple();
    if (used_ >= (tuple ? arguments_.sequence().items.size() : 1)) {
      raise("not enough arguments for format string");
    }
    ++used_;
    return tuple ? arguments_.sequence().items[used_ - 1] : arguments_;
  }

  char peek() {
    if (at_ >= format_.size()) raise("incomplete format");
    return format_[at_];
  }

  // (key) in front of the flags.
  std::optional<Value> key() {
    if (peek() != '(') return std::nullopt;
    size_t end = ++at_;
    for (int depth = 1; end < format_.size(); ++end) {
      depth += format_[end] == '(' ? 1 : format_[end] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end >= format_.size()) raise("incomplete format key");
    if (!arguments_.is(Kind::dict)) raise("format requires a mapping");
    const std::string_view name = format_.substr(at_, end - at_);
    const Value* found = arguments_.dict().find(name);
    if (found == nullptr) raise("the format's key '", name, "' is missing");
    at_ = end + 1;
    keyed_ = true;
    return *found;
  }

  int64_t count() {
    if (peek() != '*') return parse_count(format_, at_);
    ++at_;
    const Value value = next_argument();
    if (!value.is_integral()) raise("* wants int");
    const bool fits = value.integer() >= -INT32_MAX && value.integer() <= INT32_MAX;
    if (!fits) raise("a width or precision in a format is too large");
    return value.integer();
  }

  void flags(Field& field) {
    bool zero = false;
    for (;; ++at_) {
      const char c = peek();
      if (c == '-') {
        field.align = '<';
      } else if (c == '0') {
        zero = true;
      } else if (c == '+' || (c == ' ' && field.sign != '+')) {
        field.sign = c;
      } else if (c == '#') {
        field.alternate = true;
      } else if (c != ' ') {
        break;
      }
    }
    zero_ = zero && field.align != '<';
  }

  void conversion() {
    runtime_.step();
    ++at_;
    if (peek() == '%') {
      out_ += '%';
      ++at_;
      return;
    }
    const std::optional<Value> keyed = key();
    Field field;
    flags(field);
    field.width = count();
    if (field.width < 0) {
      field.align = '<';
      field.width = -field.width;
    }
    if (peek() == '.') {
      ++at_;
      field.precision = static_cast<int>(std::max<int64_t>(0, count()));
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    field.type = peek();
    ++at_;
    if (field.type == '%') {
      out_ += '%';
      return;
    }
    convert(keyed ? *keyed : next_argument(), field);
  }

  void convert(const Value& value, Field& field) {
    switch (field.type) {
      case 's':
      case 'r':
      case 'a':
        return text(value, field);
      case 'c':
        return character(value, field);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(value, field);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        zero_pad(field);
        const double number = number_of(value, field.type);
        return append_float(runtime_, out_, number, field);
      }
      default:
        raise("unsupported format character '", field.type, "'");
    }
  }

  void zero_pad(Field& field) const {
    if (!zero_) return;
    field.fill = "0";
    field.align = '=';
  }

  void text(const Value& value, Field& field) {
    std::string body;
    if (field.type == 's') {
      append_text(runtime_, body, value);
    } else {
      append_repr(runtime_, body, value);
    }
    if (field.align == '\0') field.align = '>';
    append_string(runtime_, out_, body, field);
  }

  void character(const Value& value, Field& field) {
    std::string body;
    if (value.is(Kind::text) && value.text().length == 1) {
      body = value.text().bytes;
    } else if (value.is_integral() && value.integer() >= 0 && value.integer() <= 0x10ffff &&
               (value.integer() < 0xd800 || value.integer() > 0xdfff)) {
      append_utf8(body, static_cast<char32_t>(value.integer()));
    } else {
      raise("%c requires int or char");
    }
    if (field.align == '\0') field.align = '>';
    field.precision = -1;
    append_string(runtime_, out_, body, field);
  }

  void integer(const Value& value, Field& field) {
    const bool decimal = field.type == 'd' || field.type == 'i' || field.type == 'u';
    const double number = number_of(value, field.type);
    if (value.is(Kind::floating) && !decimal) {
      raise('%', field.type, " format: an integer is required, not float");
    }
    const Value whole = value.is_int() ? value : make_integer(runtime_.heap(), number);
    const int precision = std::exchange(field.precision, -1);
    if (precision > 0) {  // at least that many digits
      Field digits = field;
      digits.fill = "0";
      digits.align = '=';
      digits.width = int64_t{precision} + (whole.number() < 0 || field.sign != '-' ? 1 : 0);
      std::string body;
      append_integer(runtime_, body, whole, digits);
      if (field.align == '\0') field.align = zero_ ? '=' : '>';
      if (zero_) field.fill = "0";
      const size_t sign = !body.empty() && (body[0] == '-' || body[0] == '+') ? 1 : 0;
      return append_padded(runtime_, out_, body, field, '>', sign);
    }
    zero_pad(field);
    append_integer(runtime_, out_, whole, field);
  }

  Runtime& runtime_;
  std::string_view format_;
  Value arguments_;
  std::string out_;
  size_t at_ = 0;
  size_t used_ = 0;
  bool keyed_ = false;
  bool zero_ = false;
};

}  // namespace

Value percent_format(Runtime& runtime, const Value& format, const Value& arguments) {
  return runtime.text(PercentFormatter(runtime, format.text().bytes, arguments).run(),
                      format.text().safe);
}

}  // namespace rbee::text::jinja
