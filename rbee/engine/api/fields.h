#pragma once
// The fields of a request that choose tokens, as one table: their names in every API, ranges and
// meanings. Defaults are those of SamplingParams. The parsers of bodies, validate(), the options of
// the command line and docs/reference/fields.md are made of it; tests compare the OpenAPI documents
// and the page with it.

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

// An API that has names or ranges of its own. OpenAI's chats, completions and Responses, the routes
// of llama-server and text-generation-inference, and the worker's own jobs take the same fields.
enum class SamplingApi : uint8_t { openai, anthropic, cohere };

// A field in such an API.
struct ApiField {
  std::string_view name = {};                 // empty: the API does not have it
  std::optional<double> low = {}, high = {};  // absent: the field's own
};

struct SamplingField {
  using P = SamplingParams;
  using Member = std::variant<float P::*, int32_t P::*, bool P::*, std::optional<uint64_t> P::*,
                              std::vector<std::string> P::*, std::vector<LogitBias> P::*,
                              std::vector<SamplerKind> P::*>;

  std::string_view name;  // with dashes, an option of `rbee run`
  Member member;
  double low = 0, high = 0;     // of a number, both included; of a list `high` is its most entries
  std::string_view words;       // what it does
  bool above_low = false;       // `low` itself is out of range
  std::string_view alias = {};  // llama-server's name, which is taken as well
  ApiField anthropic = {}, cohere = {};

  // name is empty where the API has no such field; its bounds are set.
  ApiField in(SamplingApi api) const;
};

std::span<const SamplingField> sampling_fields();

// Fields of the table by their members.
class SamplingFieldSet {
 public:
  void add(const SamplingField::Member& member) { bits_ |= bit(member); }
  bool has(const SamplingField::Member& member) const { return (bits_ & bit(member)) != 0; }

 private:
  static uint64_t bit(const SamplingField::Member& member);
  uint64_t bits_ = 0;
};

}  // namespace rbee::engine
