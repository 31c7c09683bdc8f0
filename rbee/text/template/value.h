#pragma once
// The values of a template: those of Python that a template can see. A Value has 16 bytes and does
// not own its object. A Heap owns all objects of one rendering (or the constants of one template)
// and frees them together, so cycles and deep nesting are harmless.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rbee::text::jinja {

class Runtime;
struct Args;

enum class Kind : uint8_t {
  undefined,
  none,
  boolean,
  integer,
  wide,  // an integer beyond 64 bits
  floating,
  text,
  sequence,
  dict,
  space,   // namespace()
  custom,  // functions, methods, macros, loop, cycler
};

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
};

struct Text;
struct Wide;
struct Undefined;
struct Sequence;
struct Dict;
struct Namespace;
struct Custom;

class Value {
 public:
  Value() = default;  // none
  explicit Value(bool value) : kind_(Kind::boolean), integer_(value ? 1 : 0) {}
  explicit Value(int64_t value) : kind_(Kind::integer), integer_(value) {}
  explicit Value(double value) : kind_(Kind::floating), floating_(value) {}
  explicit Value(const Wide* object) : kind_(Kind::wide), wide_(object) {}
  explicit Value(const Text* object) : kind_(Kind::text), text_(object) {}
  explicit Value(const Undefined* object) : kind_(Kind::undefined), undefined_(object) {}
  explicit Value(Sequence* object) : kind_(Kind::sequence), sequence_(object) {}
  explicit Value(const Dict* object) : kind_(Kind::dict), dict_(object) {}
  explicit Value(Namespace* object) : kind_(Kind::space), space_(object) {}
  explicit Value(Custom* object) : kind_(Kind::custom), custom_(object) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  // An int of 64 bits; bool is one of them.
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  // Python's int as a class.
  bool is_int() const { return is_integral() || kind_ == Kind::wide; }
  bool is_number() const { return is_int() || kind_ == Kind::floating; }

  // Call each only for its kind.
  bool boolean() const { return integer_ != 0; }
  int64_t integer() const { return integer_; }
  double floating() const { return floating_; }
  const Wide& wide() const { return *wide_; }
  const Text& text() const { return *text_; }
  const Undefined& undefined() const { return *undefined_; }
  Sequence& sequence() const { return *sequence_; }
  const Dict& dict() const { return *dict_; }
  Namespace& space() const { return *space_; }
  Custom& custom() const { return *custom_; }
  // Any number as a double.
  double number() const;
  // Python's `is`.
  bool same_as(const Value& other) const;

 private:
  Kind kind_ = Kind::none;
  union {
    int64_t integer_ = 0;
    double floating_;
    const Wide* wide_;
    const Text* text_;
    const Undefined* undefined_;
    Sequence* sequence_;
    const Dict* dict_;
    Namespace* space_;
    Custom* custom_;
  };
};

struct Text : Object {
  // `bytes` is valid UTF-8.
  explicit Text(std::string utf8, bool is_safe = false);

  std::string bytes;
  int64_t length;  // code points
  bool safe;       // markup that `escape` does not change
  bool ascii() const { return length == static_cast<int64_t>(bytes.size()); }
};

struct Wide : Object {
  explicit Wide(std::string digits);  // as `decimal`
  std::string decimal;                // perhaps with "-", without leading zeros
  double approximate;                 // the nearest one
};

inline double Value::number() const {
  if (kind_ == Kind::wide) return wide_->approximate;
  return kind_ == Kind::floating ? floating_ : static_cast<double>(integer_);
}

struct Undefined : Object {
  explicit Undefined(std::string why) : message(std::move(why)) {}
  std::string message;
};

enum class Form : uint8_t { list, tuple, generator, range, keys, values, items };

struct Sequence : Object {
  Sequence(Form kind, std::vector<Value> values) : form(kind), items(std::move(values)) {}
  Form form;
  bool consumed = false;  // generators give their items once
  bool is_group = false;  // of groupby: (grouper, list) by name too
  std::vector<Value> items;
  bool has_length() const { return form != Form::generator; }
  bool has_subscript() const {
    return form == Form::list || form == Form::tuple || form == Form::range;
  }
};

struct Range : Sequence {
  Range(int64_t from, int64_t to, int64_t by, std::vector<Value> values)
      : Sequence(Form::range, std::move(values)), start(from), stop(to), step(by) {}
  int64_t start;
  int64_t stop;
  int64_t step;
};

// Total order of hashable values that agrees with Python's == (1 == 1.0 == True).
struct KeyLess {
  bool operator()(const Value& a, const Value& b) const;
};

// Keeps insertion order. Written only while it is built, except inside a Namespace.
struct Dict : Object {
  std::vector<std::pair<Value, Value>> entries;

  // Throws if `key` is not hashable.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, const Value& value);

 private:
  const Value* at(std::optional<size_t> position) const;
  std::optional<size_t> position_of(const Value& key) const;
  std::map<Value, size_t, KeyLess> index_;  // only when large
};

struct Namespace : Object {
  Dict attributes;
};

// A value that is neither data nor a namespace.
struct Custom : Object {
  virtual std::string describe() const = 0;  // its repr
  virtual bool callable() const { return false; }
  virtual Value call(Runtime& runtime, const Args& args);
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  virtual std::optional<int64_t> size() const { return std::nullopt; }
};

// Owns objects and counts their bytes.
class Heap {
 public:
  explicit Heap(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // `payload`: bytes that the object holds beyond its own size.
  template <typename T, typename... Arguments>
  T* make(int64_t payload, Arguments&&... arguments) {
    charge(payload + static_cast<int64_t>(sizeof(T) + sizeof(objects_[0])));
    auto owned = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T* object = owned.get();
    objects_.push_back(std::move(owned));
    return object;
  }
  // Throws if `bytes` more do not fit. Call it before building something large.
  void require(int64_t bytes) const;
  void charge(int64_t bytes);

 private:
  int64_t max_bytes_;
  int64_t used_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

// "str", "int", "NoneType" ..., as Python names the type.
std::string_view type_name(const Value& value);
// Whether `value` can be a key.
bool is_hashable(const Value& value);
// Throws if `value` cannot be a key.
void require_hashable(const Value& value);

}  // namespace rbee::text::jinja
