#pragma once
// One table of a request's sampling fields: their names in every API, ranges and meanings. Defaults
// are those of SamplingParams. The body parsers, validate(), the command line's options and
// docs/reference/fields.md come from it; tests compare the OpenAPI documents and the page with it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rbee/engine/api/sampling.h"

namespace rbee::engine {

// An API with its own names or ranges. OpenAI's chats, completions and Responses, the routes of
// llama-server and text-generation-inference, and the worker's own jobs all use openai.
enum class SamplingApi : uint8_t { openai, anthropic, cohere, ollama };

// The field in such an API.
struct ApiField {
  std::string_view name = {};                 // empty: the API does not have it
  std::optional<double> low = {}, high = {};  // absent: the field's own bounds
};

struct SamplingField {
  using P = SamplingParams;
  using Member = std::variant<float P::*, int32_t P::*, bool P::*, std::optional<uint64_t> P::*,
                              std::vector<std::string> P::*, std::vector<LogitBias> P::*,
                              std::vector<SamplerKind> P::*>;

  std::string_view name;  // with dashes, an option of `rbee run`
  Member member;
  double low = 0, high = 0;     // of a number, both included; of a list, `high` is its most entries
  std::string_view words;       // what it does
  bool above_low = false;       // `low` itself is out of range
  std::string_view alias = {};  // llama-server's name, also accepted
  ApiField anthropic = {}, cohere = {}, ollama = {};

  // The field in this API, with its bounds set; name is empty if the API does not have it.
  ApiField in(SamplingApi api) const;
};

std::span<const SamplingField> sampling_fields();

// A set of the table's fields, by member.
class SamplingFieldSet {
 public:
  void add(const SamplingField::Member& member) { bits_ |= bit(member); }
  bool has(const SamplingField::Member& member) const { return (bits_ & bit(member)) != 0; }

 private:
  static uint64_t bit(const SamplingField::Member& member);
  uint64_t bits_ = 0;
};

}  // namespace rbee::engine
