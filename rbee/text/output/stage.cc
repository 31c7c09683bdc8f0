#include "rbee/text/output/stage.h"

#include <algorithm>

#include "rbee/text/output/loose_calls.h"
#include "rbee/text/output/scan.h"

namespace rbee::text {
namespace {

class PlainStage final : public Stage {
 public:
  bool read(std::string_view& text, bool, Output& out) override {
    out.content(text);
    text = {};
    return false;
  }
};

}  // namespace

Output::Output() = default;
Output::~Output() = default;

void Output::find_calls(std::vector<OutputFunction> functions, bool one) {
  loose_ = std::make_unique<LooseCalls>(std::move(functions), one);
}

void Output::content(std::string_view text) {
  loose_ ? loose_->push(text, *this) : plain(text);
}

void Output::finish() {
  if (loose_) loose_->finish(*this);
}

// A model that knows the marks of its form means no call without them.
void Output::begin_call(std::string_view name) {
  if (loose_ && !loose_->calling()) {
    loose_->finish(*this);
    loose_.reset();
  }
  deltas_.push_back(
      {.kind = OutputDelta::Kind::call_begin, .text = std::string(name), .call = calls_++});
}

void Output::add(OutputDelta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const int32_t call = kind == OutputDelta::Kind::call_arguments ? calls_ - 1 : -1;
  if (!deltas_.empty() && deltas_.back().kind == kind && deltas_.back().call == call) {
    deltas_.back().text += text;
  } else {
    deltas_.push_back({.kind = kind, .text = std::string(text), .call = call});
  }
}

std::optional<size_t> emit_until(std::string_view& text, std::span<const std::string_view> markers,
                                 bool last, void (Output::*emit)(std::string_view), Output& out) {
  const FoundMarker found = find_first(text, markers);
  if (found.at != std::string_view::npos) {
    const std::string_view before = text.substr(0, found.at);
    (out.*emit)(before.substr(0, before.size() - trailing_space(before)));
    text.remove_prefix(found.at + markers[found.which].size());
    return found.which;
  }
  size_t ready = text.size();
  if (!last) {
    ready -= open_tail(text, markers);
    ready -= trailing_space(text.substr(0, ready));
  }
  (out.*emit)(text.substr(0, ready));
  text.remove_prefix(ready);
  return std::nullopt;
}

std::unique_ptr<Stage> plain_stage() {
  return std::make_unique<PlainStage>();
}

}  // namespace rbee::text
