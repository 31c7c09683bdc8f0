#include <nlohmann/json.hpp>

#include "rbee/core/json_fault.h"
#include "rbee/text/template/failure.h"
#include "rbee/text/template/integers.h"
#include "rbee/text/template/json.h"

namespace rbee::text::jinja {
namespace {

using Json = nlohmann::json;

// Builds values as the parser meets them, so that limits hold before anything large exists.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(Runtime& runtime, std::string_view what) : runtime_(runtime), what_(what) {}

  Value result() const { return result_; }

  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(Value(value)); }
  bool number_integer(int64_t value) override { return add(Value(value)); }
  bool number_unsigned(uint64_t value) override {
    return add(make_integer(runtime_.heap(), cat(value)));
  }
  bool number_float(double value, const std::string& text) override {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    return add(whole ? make_integer(runtime_.heap(), text) : Value(value));
  }
  bool string(std::string& value) override { return add(runtime_.text(std::move(value))); }
  bool binary(Json::binary_t& /*value*/) override { return false; }

  bool start_object(size_t /*size*/) override { return open(runtime_.dict()); }
  bool start_array(size_t /*size*/) override { return open(nullptr); }
  bool key(std::string& name) override {
    open_.back().key = runtime_.text(std::move(name));
    return true;
  }
  bool end_object() override {
    const Dict* dict = open_.back().dict;
    open_.pop_back();
    return add(Value(dict));
  }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return add(runtime_.list(std::move(items)));
  }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    return false;
  }

 private:
  struct Open {
    Dict* dict;  // null: a list
    std::vector<Value> items;
    Value key;
  };

  bool open(Dict* dict) {
    const int limit = runtime_.limits().max_depth;
    if (open_.size() >= static_cast<size_t>(limit)) {
      raise(what_, ": nested more than ", limit, " deep");
    }
    open_.push_back({dict, {}, {}});
    return true;
  }

  bool add(const Value& value) {
    if (open_.empty()) {
      result_ = value;
    } else if (open_.back().dict != nullptr) {
      runtime_.set(*open_.back().dict, open_.back().key, value);
    } else {
      runtime_.heap().require(static_cast<int64_t>(2 * open_.back().items.size() * sizeof(Value)));
      open_.back().items.push_back(value);
    }
    return true;
  }

  Runtime& runtime_;
  std::string_view what_;
  std::vector<Open> open_;
  Value result_;
};

}  // namespace

const Dict& parse_json_object(Runtime& runtime, std::string_view json, std::string_view what) {
  Builder builder(runtime, what);
  if (!Json::sax_parse(json, &builder)) raise(what, ": ", json_fault(json));
  const Value value = builder.result();
  if (!value.is(Kind::dict)) raise(what, " must be a JSON object");
  return value.dict();
}

}  // namespace rbee::text::jinja
