#include "server/wire/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <variant>

#include "rbee/core/cat.h"
#include "server/wire/json_object.h"
#include "server/wire/other_names.h"

namespace rbee::server {
namespace {

using nlohmann::json;

using engine::kMaxBias;
using engine::kMaxBiases;
using engine::kMaxWordBytes;
using engine::SamplingParams;

// A list of texts, each 1 to kMaxWordBytes long.
std::optional<std::vector<std::string>> read_texts(ObjectReader& reader, const char* field,
                                                   size_t most) {
  const json* value = reader.find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) {
    reader.note(field, "type(array)", "must be an array of strings", value);
    return std::nullopt;
  }
  if (value->size() > most) {
    reader.note(field, cat("max_count(", most, ")"), cat("holds more than ", most, " texts"),
                value);
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < value->size(); ++i) {
    const json& entry = (*value)[i];
    const std::string name = cat(field, "[", i, "]");
    if (!entry.is_string()) {
      reader.note(name, "type(string)", "must be a string", &entry);
      continue;
    }
    out.push_back(entry.get<std::string>());
    if (out.back().empty()) reader.note(name, "non_empty", "is empty", &entry);
    if (out.back().size() > kMaxWordBytes) {
      reader.note(name, cat("max_length(", kMaxWordBytes, ")"),
                  cat("is longer than ", kMaxWordBytes, " bytes"), &entry);
    }
  }
  return out;
}

bool is_token(const json& value) {
  return value.is_number_integer() && value >= 0 && value <= INT32_MAX;
}

// A number, or false: never.
std::optional<float> read_bias(const json& value, const std::string& name, ObjectReader& reader) {
  if (value.is_boolean() && !value.get<bool>()) return -INFINITY;
  if (value.is_number() && std::abs(value.get<double>()) <= kMaxBias) {
    return static_cast<float>(value.get<double>());
  }
  reader.note(name, "range(-100..=100)", "must be a number from -100 to 100, or false", &value);
  return std::nullopt;
}

// OpenAI's form: {"id": bias, ...}.
void read_bias_map(const json& map, ObjectReader& reader, SamplingParams& params) {
  for (const auto& [key, value] : map.items()) {
    const std::string name = cat("logit_bias.", key.substr(0, kMaxWordBytes));
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      reader.note(name, "type(token)", "must be named by a token's id", &value);
      continue;
    }
    if (const auto bias = read_bias(value, name, reader)) {
      params.logit_bias.push_back({.id = id, .text = {}, .bias = *bias});
    }
  }
}

// llama-server's: [[id or text, bias], ...].
void read_bias_list(const json& list, ObjectReader& reader, SamplingParams& params) {
  for (size_t i = 0; i < list.size(); ++i) {
    const json& entry = list[i];
    const std::string name = cat("logit_bias[", i, "]");
    const bool pair = entry.is_array() && entry.size() == 2;
    const bool text =
        pair && entry[0].is_string() && !entry[0].get_ref<const std::string&>().empty();
    if (!pair || !(text || is_token(entry[0]))) {
      reader.note(name, "type(array)", "must be [token id or text, bias]", &entry);
      continue;
    }
    if (const auto bias = read_bias(entry[1], name, reader)) {
      params.logit_bias.push_back({.id = text ? -1 : entry[0].get<int32_t>(),
                                   .text = text ? entry[0].get<std::string>() : "",
                                   .bias = *bias});
    }
  }
}

void read_logit_bias(ObjectReader& reader, SamplingParams& params) {
  const json* value = reader.find("logit_bias");
  if (value == nullptr) return;
  if (!value->is_object() && !value->is_array()) {
    return reader.note("logit_bias", "type(object)",
                       "must be an object of biases by token id, or an array of pairs", value);
  }
  if (value->size() > kMaxBiases) {
    return reader.note("logit_bias", cat("max_count(", kMaxBiases, ")"),
                       cat("holds more than ", kMaxBiases, " tokens"), value);
  }
  value->is_object() ? read_bias_map(*value, reader, params)
                     : read_bias_list(*value, reader, params);
}

void read_samplers(ObjectReader& reader, size_t most, SamplingParams& params) {
  const json* value = reader.find("samplers");
  const std::optional<std::vector<std::string>> names = read_texts(reader, "samplers", most);
  if (!names) return;
  params.samplers.clear();
  bool cut = false;
  for (size_t i = 0; i < names->size(); ++i) {
    const std::string field = cat("samplers[", i, "]");
    const std::optional<engine::SamplerKind> kind = engine::parse_sampler((*names)[i]);
    if (!kind) {
      reader.note(field, cat("one_of(", engine::kSamplerNames, ")"), "is not the name of a sampler",
                  value);
      continue;
    }
    const bool changes = kind == engine::SamplerKind::penalties || kind == engine::SamplerKind::dry;
    if (changes && cut) {
      reader.note(field, "order", "must come before the samplers that cut", value);
    } else if (std::ranges::count(params.samplers, *kind) > 0) {
      reader.note(field, "unique", "is named twice", value);
    }
    cut |= !changes;
    params.samplers.push_back(*kind);
  }
}

// Reads the fields of the table, each by its member's type.
class FieldReader {
 public:
  FieldReader(ObjectReader& reader, GenerateRequest& request)
      : reader_(reader), request_(request) {}

  void read(const engine::SamplingField& field, const engine::ApiField& named) {
    field_ = &field;
    named_ = named;
    std::visit([this](auto member) { read(member); }, field.member);
  }

 private:
  void read(float SamplingParams::* member) {
    const FieldRange<double> range{*named_.low, *named_.high, field_->above_low};
    std::optional<float> value = reader_.number(named_.name.data(), range);
    const char* alias = field_->alias.data();
    if (alias != nullptr && named_.name == field_->name) {  // else the API has its own name
      const std::optional<float> other = reader_.number(alias, range);
      if (!value) value = other;
      (void)given_name(reader_, {named_.name.data(), alias});
    }
    if (value) request_.set(member, *value);
  }
  void read(int32_t SamplingParams::* member) {
    const FieldRange<int32_t> range{static_cast<int32_t>(*named_.low),
                                    static_cast<int32_t>(*named_.high)};
    if (const auto value = reader_.integer(named_.name.data(), range)) {
      request_.set(member, *value);
    }
  }
  void read(bool SamplingParams::* member) {
    if (const auto value = reader_.boolean(named_.name.data())) request_.set(member, *value);
  }
  void read(std::optional<uint64_t> SamplingParams::* member) {
    const auto value = reader_.seed(named_.name.data());
    if (value) request_.set(member, value);
  }
  void read(std::vector<std::string> SamplingParams::* member) {
    const auto most = static_cast<size_t>(*named_.high);
    if (auto value = read_texts(reader_, named_.name.data(), most)) {
      request_.set(member, std::move(*value));
    }
  }
  void read(std::vector<engine::LogitBias> SamplingParams::*) {
    read_logit_bias(reader_, request_.sampling);
  }
  void read(std::vector<engine::SamplerKind> SamplingParams::*) {
    read_samplers(reader_, static_cast<size_t>(*named_.high), request_.sampling);
  }

  ObjectReader& reader_;
  GenerateRequest& request_;
  const engine::SamplingField* field_ = nullptr;
  engine::ApiField named_;
};

}  // namespace

void read_sampling(ObjectReader& reader, GenerateRequest& request, engine::SamplingApi api) {
  FieldReader fields(reader, request);
  for (const engine::SamplingField& field : engine::sampling_fields()) {
    const engine::ApiField named = field.in(api);
    if (!named.name.empty()) fields.read(field, named);
  }
  if (request.sampling.top_k == -1) request.sampling.top_k = 0;  // vLLM's value for off
}

}  // namespace rbee::server
