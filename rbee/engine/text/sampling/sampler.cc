#include "rbee/engine/text/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/engine/text/step/next_step.h"
#include "rbee/ops/top_k.h"

namespace rbee::engine {
namespace {

// Relative errors that decisions from top logits allow for: of the row's sum, which a tree adds in
// f32, and of weights, which the whole row's sampler rounds once more.
constexpr double kSumError = 4e-6;
constexpr double kWeightError = 1e-6;

// Draws that ask for more top logits after kDrawnTopLogits did not decide one: a text that was in
// doubt once soon is again. If nothing cuts, the rest of a row rarely has a hundredth of its mass,
// and more top logits would not help.
constexpr int32_t kWideDraws = 32;

// Extra top logits that wanted() asks for under a mask, which may allow only a few of the usual
// number.
constexpr int64_t kMaskedRoom = 192;

// The largest logits that confidence() weighs at temperature 0.
constexpr int64_t kConfidenceRoom = 64;

void check_finite(float largest) {
  if (!std::isfinite(largest)) fail(Code::internal, "sample", "the model gave no finite logit");
}

// In [0, 1) from the top 53 bits, so that every standard library draws the same number.
double unit(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

// Below 1, since a number might round to 1.
float device_number(double number) {
  return std::min(static_cast<float>(number), 1 - 0x1p-24f);
}

}  // namespace

int32_t argmax(std::span<const float> values) {
  int32_t best = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (best < 0 ? !std::isnan(values[i]) : values[i] > values[static_cast<size_t>(best)]) {
      best = static_cast<int32_t>(i);
    }
  }
  return best;
}

TokenSampler::TokenSampler(const SamplingParams& params, uint64_t seed)
    : params_(params), changes_(params), mirostat_(params), random_(seed) {
  for (const SamplerKind kind : params.samplers) {
    if (cuts(kind) || kind == SamplerKind::temperature) chain_.push_back(kind);
  }
  if (mirostat_.on()) chain_ = {SamplerKind::temperature};
}

bool TokenSampler::cuts(SamplerKind kind) const {
  switch (kind) {
    case SamplerKind::top_n_sigma:
      return params_.top_n_sigma > 0;
    case SamplerKind::top_k:
      return params_.top_k > 0;
    case SamplerKind::typical_p:
      return params_.typical_p < 1;
    case SamplerKind::top_p:
      return params_.top_p < 1;
    case SamplerKind::min_p:
      return params_.min_p > 0;
    case SamplerKind::xtc:
      return params_.xtc_probability > 0 && params_.xtc_threshold <= 0.5f;
    case SamplerKind::penalties:
    case SamplerKind::dry:
    case SamplerKind::temperature:
      return false;
  }
  return false;
}

// The place in the chain of the first sampler that cuts a row.
size_t TokenSampler::first_cut(int64_t vocab) const {
  const auto found = std::ranges::find_if(chain_, [&](SamplerKind kind) {
    return kind == SamplerKind::top_k ? params_.top_k < vocab : cuts(kind);
  });
  return static_cast<size_t>(found - chain_.begin());
}

float TokenSampler::scale() const {
  const auto top_p = std::ranges::find(chain_, SamplerKind::top_p);
  const auto temperature = std::find(chain_.begin(), top_p, SamplerKind::temperature);
  return temperature != top_p && params_.temperature > 0 ? 1 / params_.temperature : 1.0f;
}

// Changes that only lower logits keep the likeliest token or replace it. Once they replaced it, ask
// for some top logits each time: that costs less than reading the row, and a text that goes on past
// its end soon wants to end again.
bool TokenSampler::likeliest_will_do() const {
  return params_.temperature <= 0 && !keeps_distribution_ && mask_.all() && !lowered_likeliest_ &&
         changes_.only_lowers();
}

TokenSampler::Wanted TokenSampler::wanted(int64_t vocab) const {
  if (likeliest_will_do()) return {.top_logits = 1};
  Wanted out;
  if (params_.temperature <= 0) {
    out.top_logits = keeps_distribution_ ? kConfidenceRoom : 1;
  } else {
    const size_t cut = first_cut(vocab);
    const auto warm = std::find(chain_.begin(), chain_.begin() + static_cast<ptrdiff_t>(cut),
                                SamplerKind::temperature);
    const bool entropy_first =
        params_.dynatemp_range > 0 && warm != chain_.begin() + static_cast<ptrdiff_t>(cut);
    if (entropy_first) return {};  // all tokens count
    if (cut == chain_.size()) {
      if (!draws_from_all(cut)) return {};
      out = {.top_logits = kDrawnTopLogits, .sum = true};
    } else if (chain_[cut] == SamplerKind::top_k && params_.top_k <= kMaxTopK) {
      out.top_logits = params_.top_k;
    } else if (chain_[cut] == SamplerKind::top_p) {
      out = {.top_logits = cut_room(), .sum = true};
    } else if (chain_[cut] == SamplerKind::min_p) {
      out.top_logits = cut_room();
    } else {
      return {};
    }
  }
  if (!mask_.all()) out.top_logits += kMaskedRoom;
  out.top_logits = std::min({out.top_logits + changes_.expected(), kMaxTopK, vocab});
  return out;
}

// A cut by mass or probability nearly always falls within this many top logits.
int64_t TokenSampler::cut_room() const {
  return wide_draws_ > 0 ? kMaxTopK : kDrawnTopLogits;
}

bool TokenSampler::can_draw_on_device(int64_t vocab) const {
  if (mirostat_.on() || keeps_distribution_ || !mask_.all() || !changes_.only_lowers() ||
      std::ssize(changes_.lasting_bans()) > kDrawBans) {
    return false;
  }
  if (params_.temperature <= 0) return true;
  if (params_.dynatemp_range > 0 || wide_draws_ > 0) return false;
  const size_t cut = first_cut(vocab);
  const bool narrow =
      cut == chain_.size() || chain_[cut] != SamplerKind::top_k || params_.top_k <= kDrawnTopLogits;
  return narrow && std::ssize(chain_) <= kDrawStages &&
         std::ranges::all_of(chain_, [](SamplerKind kind) {
           return kind == SamplerKind::top_k || kind == SamplerKind::top_p ||
                  kind == SamplerKind::min_p || kind == SamplerKind::temperature;
         });
}

void TokenSampler::describe_draws(DeviceDraws& to) const {
  to.banned = changes_.lasting_bans();
  if (params_.temperature <= 0) {
    to.stages.front() = DrawStage::top_k;
    to.amounts.front() = 1;
    return;
  }
  for (size_t i = 0; i < chain_.size(); ++i) {
    const auto put = [&](DrawStage stage, float amount) {
      to.stages[i] = stage;
      to.amounts[i] = amount;
    };
    switch (chain_[i]) {
      case SamplerKind::top_k:
        put(DrawStage::top_k, static_cast<float>(params_.top_k));
        break;
      case SamplerKind::top_p:
        put(DrawStage::top_p, params_.top_p);
        break;
      case SamplerKind::min_p:
        put(DrawStage::min_p, params_.min_p);
        break;
      default:
        put(DrawStage::temperature, params_.temperature);
        break;
    }
  }
  std::mt19937_64 random = random_;
  std::optional<double> next = next_;
  for (float& number : to.numbers) {
    const double exact = next ? *std::exchange(next, std::nullopt) : unit(random);
    number = device_number(exact);
  }
}

int32_t TokenSampler::sample(std::span<float> logits, std::span<const int32_t> history,
                             const DraftToken* draft) {
  std::vector<std::pair<int32_t, float>> banned;  // at this step, with their logits
  for (size_t i = 0; !mask_.all() && i < logits.size(); ++i) {
    if (!mask_.has(static_cast<int32_t>(i))) logits[i] = -INFINITY;
  }
  for (const LogitChanges::Change& change : changes_.prepare(history)) {
    if (static_cast<size_t>(change.id) >= logits.size()) continue;
    float& logit = logits[static_cast<size_t>(change.id)];
    const float before = std::exchange(logit, changes_.apply(logit, change));
    if (logit == -INFINITY && before > -INFINITY) banned.emplace_back(change.id, before);
  }
  int32_t likeliest = argmax(logits);
  // If bans leave nothing that the mask allows, they do not count: the grammar wins.
  if (likeliest >= 0 && logits[static_cast<size_t>(likeliest)] == -INFINITY) {
    for (const auto& [id, logit] : banned) logits[static_cast<size_t>(id)] = logit;
    likeliest = argmax(logits);
  }
  check_finite(likeliest < 0 ? std::nanf("") : logits[static_cast<size_t>(likeliest)]);
  if (params_.temperature <= 0) {
    candidates_.take_top_k(logits, size_t{kConfidenceRoom});
    return likeliest;
  }
  const bool top_k_first = !chain_.empty() && chain_.front() == SamplerKind::top_k &&
                           static_cast<size_t>(params_.top_k) < logits.size();
  if (top_k_first) {
    candidates_.take_top_k(logits, static_cast<size_t>(params_.top_k));
  } else {
    candidates_.take_all(logits);
  }
  run(top_k_first ? 1 : 0);
  return draw(std::ssize(logits), draft);
}

std::optional<int32_t> TokenSampler::sample(const TopLogits& top_logits,
                                            std::span<const int32_t> history,
                                            const DraftToken* draft) {
  if (top_logits.values.empty()) return std::nullopt;
  if (const std::optional<int32_t> likeliest = likeliest_unchanged(top_logits, history)) {
    return likeliest;
  }
  const Changed changed = change_top_logits(top_logits, history);
  if (changed.certain == 0) {
    lowered_likeliest_ |= top_logits.values.size() == 1;
    return std::nullopt;
  }
  check_finite(candidates_.list().front().logit);
  if (params_.temperature <= 0) return candidates_.list().front().id;
  wide_draws_ = std::max(wide_draws_ - 1, 0);
  return draw_from(top_logits, changed, draft);
}

// At temperature 0, if only the likeliest tokens can have become less likely.
std::optional<int32_t> TokenSampler::likeliest_unchanged(const TopLogits& top_logits,
                                                         std::span<const int32_t> history) {
  if (params_.temperature > 0 || keeps_distribution_ || !mask_.all() || !changes_.only_lowers()) {
    return std::nullopt;
  }
  const std::vector<LogitChanges::Change>& changes = changes_.prepare(history);
  for (size_t i = 0; i < top_logits.ids.size() && std::isfinite(top_logits.values[i]); ++i) {
    const auto change = std::ranges::find(changes, top_logits.ids[i], &LogitChanges::Change::id);
    if (change == changes.end()) return top_logits.ids[i];
    if (change->bias > -INFINITY) break;
  }
  return std::nullopt;
}

std::optional<int32_t> TokenSampler::draw_from(const TopLogits& top_logits, const Changed& changed,
                                               const DraftToken* draft) {
  const size_t cut = first_cut(top_logits.vocab);
  if (!take_top_logits(cut, changed)) return std::nullopt;
  if (cut == chain_.size()) {
    const bool follows = draft != nullptr && !draft->among.empty();  // needs every probability
    if (follows || !draws_from_all(cut)) return std::nullopt;
    const std::optional<int32_t> top_logit = draw_top_logit(changed.mass);
    return top_logit ? top_logit : take_drawn(top_logits);
  }
  if (!cut_top_logits(cut, changed)) {
    wide_draws_ = kWideDraws;
    return std::nullopt;
  }
  run(cut + 1);
  return draw(top_logits.vocab, draft);
}

// The likeliest tokens decide a draw from all allowed ones, except for mirostat.
bool TokenSampler::draws_from_all(size_t cut) const {
  return cut == chain_.size() && !mirostat_.on() && !keeps_distribution_;
}

void TokenSampler::follow(const TokenSampler& other) {
  changes_ = other.changes_;
  mirostat_ = other.mirostat_;
}

std::vector<TokenProbability> TokenSampler::drawn_among() const {
  std::vector<TokenProbability> out;
  if (params_.temperature <= 0) return out;
  out.reserve(candidates_.size());
  double sum = 0;
  for (const Candidate& c : candidates_.list()) sum += c.probability;
  for (const Candidate& c : candidates_.list()) {
    out.push_back({c.id, static_cast<float>(c.probability / sum)});
  }
  if (!std::ranges::is_sorted(out, {}, &TokenProbability::id)) {
    std::ranges::sort(out, {}, &TokenProbability::id);
  }
  return out;
}

float TokenSampler::confidence() {
  const double sum = candidates_.weigh();
  return static_cast<float>(1 / sum);
}

void TokenSampler::run(size_t from) {
  for (size_t i = from; i < chain_.size(); ++i) {
    switch (chain_[i]) {
      case SamplerKind::top_n_sigma:
        candidates_.cut_top_n_sigma(params_.top_n_sigma);
        break;
      case SamplerKind::top_k:
        if (static_cast<size_t>(params_.top_k) < candidates_.size()) {
          candidates_.cut_top_k(static_cast<size_t>(params_.top_k));
        }
        break;
      case SamplerKind::typical_p:
        candidates_.cut_typical_p(params_.typical_p);
        break;
      case SamplerKind::top_p:
        candidates_.cut_top_p(params_.top_p);
        break;
      case SamplerKind::min_p:
        candidates_.cut_min_p(params_.min_p);
        break;
      case SamplerKind::xtc:
        if (uniform() < params_.xtc_probability) candidates_.cut_xtc(params_.xtc_threshold);
        break;
      case SamplerKind::temperature:
        candidates_.divide(temperature());
        break;
      case SamplerKind::penalties:
      case SamplerKind::dry:
        break;
    }
  }
}

// By the entropy of what is left, if the request wants that.
float TokenSampler::temperature() {
  if (params_.dynatemp_range <= 0 || candidates_.size() < 2) return params_.temperature;
  const float low = std::max(params_.temperature - params_.dynatemp_range, 0.0f);
  const float high = params_.temperature + params_.dynatemp_range;
  const double share = candidates_.entropy() / std::log(static_cast<double>(candidates_.size()));
  const double power = std::pow(share, double{params_.dynatemp_exponent});
  // Temperature 0 as a limit: only the likeliest token is left.
  return std::max(low + (high - low) * static_cast<float>(power), 1e-6f);
}

double TokenSampler::peek() {
  if (!next_) next_ = unit(random_);
  return *next_;
}

double TokenSampler::uniform() {
  const double out = peek();
  next_.reset();
  return out;
}

int32_t TokenSampler::draw(int64_t vocab, const DraftToken* draft) {
  if (mirostat_.on()) mirostat_.cut(candidates_, vocab);
  const double first = uniform();
  const Candidate drawn = draft == nullptr || draft->among.empty()
                              ? candidates_.draw(first)
                              : candidates_.draw(*draft, first, uniform());
  if (mirostat_.on()) mirostat_.learn(drawn);
  return drawn.id;
}

// Bounds on the allowed mass of the row before changes, in weights relative to the first top logit.
// The candidates are the allowed top logits.
TokenSampler::MassBounds TokenSampler::bound_mass(const TopLogits& top_logits) const {
  const double sum = top_logits.sum, error = kSumError * sum;
  if (mask_.all()) return {.low = sum - error, .high = sum + error};
  const auto weight = [&](float logit) {
    return std::exp((double{logit} - double{top_logits.values.front()}) * double{scale()});
  };
  double seen = 0, allowed = 0;
  for (const float value : top_logits.values) seen += weight(value);
  for (const Candidate& c : candidates_.list()) allowed += weight(c.logit);
  const auto unseen = static_cast<double>(mask_.count - std::ssize(candidates_.list()));
  const double rest =
      std::min(std::max(sum + error - seen, 0.0), unseen * weight(top_logits.values.back()));
  return {.low = allowed * (1 - kSumError), .high = allowed * (1 + kSumError) + rest};
}

// The allowed top logits become candidates, likeliest first.
TokenSampler::Changed TokenSampler::change_top_logits(const TopLogits& top_logits,
                                                      std::span<const int32_t> history) {
  std::vector<Candidate>& list = candidates_.take_sorted();
  for (size_t i = 0; i < top_logits.values.size(); ++i) {
    if (mask_.has(top_logits.ids[i])) list.push_back({top_logits.values[i], top_logits.ids[i], 0});
  }
  const bool complete = std::ssize(top_logits.values) == top_logits.vocab ||
                        (!mask_.all() && std::ssize(list) == mask_.count);
  const MassBounds before = bound_mass(top_logits);
  const float first = top_logits.values.front(), last = top_logits.values.back();
  const auto weight = [&, scale = double{scale()}](float logit) {
    return std::exp((double{logit} - double{first}) * scale);
  };
  const std::vector<LogitChanges::Change>& changes = changes_.prepare(history);
  std::vector<char> seen(changes.size(), 0);
  double removed = 0, added = 0;  // relative to the first top logit
  for (Candidate& c : list) {
    const auto change = std::ranges::lower_bound(changes, c.id, {}, &LogitChanges::Change::id);
    if (change == changes.end() || change->id != c.id) continue;
    seen[static_cast<size_t>(change - changes.begin())] = 1;
    removed += weight(c.logit);
    c.logit = changes_.apply(c.logit, *change);
    added += weight(c.logit);
  }
  std::erase_if(list, [](const Candidate& c) { return c.logit == -INFINITY; });
  std::sort(list.begin(), list.end(), likelier);
  // Tokens outside the top logits are no likelier than the last of them, before and after
  // changes.
  float raised = -INFINITY;
  double unseen_removed = 0, unseen_added = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (seen[i] != 0 || changes[i].id >= top_logits.vocab) continue;
    const float most = changes_.apply(last, changes[i]);
    unseen_removed += weight(last);
    if (most <= last) continue;
    raised = std::max(raised, most);
    unseen_added += weight(most);
  }
  const Candidate least{last, top_logits.ids.back(), 0};
  const auto end = std::ranges::find_if(list, [&](const Candidate& c) {
    return !complete && (likelier(least, c) || (raised > last && c.logit <= raised));
  });
  const double error = kSumError * (removed + added);
  const double factor = list.empty() ? 1 : 1 / weight(list.front().logit);
  return {.complete = complete,
          .certain = static_cast<size_t>(end - list.begin()),
          .mass = {.low = (before.low - removed + added - error - unseen_removed) * factor,
                   .high = (before.high - removed + added + error + unseen_added) * factor}};
}

// Makes candidates_ the front of the whole row as it reaches the chain's first cut, or the draw.
// False if the top logits do not decide what that is.
bool TokenSampler::take_top_logits(size_t cut, const Changed& changed) {
  candidates_.cut_top_k(changed.certain);
  for (size_t i = 0; i < cut; ++i) {
    if (chain_[i] != SamplerKind::temperature) continue;
    if (params_.dynatemp_range > 0) return false;
    candidates_.divide(params_.temperature);
  }
  return true;
}

// The token that candidates_.draw() gives for the whole row.
std::optional<int32_t> TokenSampler::draw_top_logit(const MassBounds& mass) {
  candidates_.weigh();
  const double least = peek() * mass.low * (1 - kWeightError);
  const double most = peek() * mass.high * (1 + kWeightError);
  double cumulative = 0;
  const std::span<const Candidate> list(candidates_.list());
  for (const Candidate& c : list.first(std::min<size_t>(list.size(), kDrawFront))) {
    cumulative += c.probability;
    if (most < cumulative) {
      uniform();
      return c.id;
    }
    if (cumulative > least) return std::nullopt;
  }
  return std::nullopt;
}

// The device has the whole row, the same changes and the same number.
std::optional<int32_t> TokenSampler::take_drawn(const TopLogits& top_logits) {
  if (!top_logits.drawn || !mask_.all() || !changes_.are_lasting_bans() ||
      top_logits.drawn->number != device_number(peek())) {
    return std::nullopt;
  }
  uniform();
  return top_logits.drawn->id;
}

// Makes candidates_ what is left of the whole row after the chain's first cut. False if the top
// logits do not decide what that is.
bool TokenSampler::cut_top_logits(size_t cut, const Changed& changed) {
  const std::vector<Candidate>& list = candidates_.list();
  switch (chain_[cut]) {
    case SamplerKind::top_k:
      if (static_cast<size_t>(params_.top_k) > list.size() && !changed.complete) return false;
      candidates_.cut_top_k(static_cast<size_t>(params_.top_k));
      return true;
    case SamplerKind::top_p:
      return cut_top_logits_top_p(changed.mass);
    case SamplerKind::min_p:
      if (!changed.complete &&
          list.back().logit >= Candidates::least_logit(list.front().logit, params_.min_p)) {
        return false;
      }
      candidates_.cut_min_p(params_.min_p);
      return true;
    default:
      return false;
  }
}

bool TokenSampler::cut_top_logits_top_p(const MassBounds& mass) {
  candidates_.weigh();
  const std::vector<Candidate>& list = candidates_.list();
  double sum = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    sum += list[i].probability;
    if (sum >= params_.top_p * mass.high * (1 + kWeightError)) {
      candidates_.cut_top_k(i + 1);
      return true;
    }
    if (!(sum < params_.top_p * mass.low * (1 - kWeightError))) return false;
  }
  return false;
}

}  // namespace rbee::engine
