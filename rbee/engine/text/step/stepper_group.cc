// The part of Stepper for a model that several ranks hold: the leader tells its steps and copies,
// the others repeat them.

#include <algorithm>
#include <exception>

#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {
namespace {

constexpr const char* kOp = "group";

// Bytes of the copies beside a step: a few milliseconds of a processor, or of the bus to a GPU.
constexpr int64_t kCopiedBytes = int64_t{8} << 20;
constexpr int64_t kCopiedBytesOfGpu = int64_t{64} << 20;

void check_within(std::string_view what, std::span<const int32_t> list, int64_t least,
                  int64_t most) {
  for (const int32_t value : list) {
    check(value >= least && value <= most, kOp, what, " ", value, " is outside of ", least, " to ",
          most);
  }
}

}  // namespace

void Stepper::as_told(const std::function<void()>& action) {
  if (listener_ == nullptr) return action();
  try {
    action();
  } catch (const std::exception& error) {
    listener_->on_failure(error);
  }
}

void Stepper::await(const std::function<void()>& wait) {
  if (listener_ != nullptr) listener_->on_wait();
  wait();
  if (listener_ != nullptr) listener_->on_results();
}

StepCommand Stepper::as_command(const Indices& indices, const TopLogitsWanted& wanted,
                                int64_t rows) {
  return {.tokens = indices.tokens,
          .sequences = indices.sequences,
          .table_width = indices.table_width,
          .rows = indices.rows,
          .single_queries = indices.single_queries,
          .lora_each = indices.lora_each,
          .key_ends = indices.key_ends,
          .values = indices.values,
          .top_logits = wanted.count,
          .vocab = wanted.vocab,
          .scales = {wanted.scales.begin(), wanted.scales.end()},
          .top_rows = rows,
          .captured = indices.captured};
}

void Stepper::lead(const Indices& indices, const TopLogitsWanted& wanted) {
  listener_->on_step(as_command(indices, wanted, indices.rows));
  as_told([&] { run_once(indices, wanted); });
}

// A step that cannot be prepared is the leader's matter: the others have not heard of it.
void Stepper::lead_captured(const Indices& indices, const TopLogitsWanted& wanted, int64_t rows) {
  const CapturedWork work{
      .next_token = next_token_of(indices, wanted), .wanted = wanted, .rows = rows};
  bool told = false;
  try {
    replay(indices, work, [&](NextStep* next, bool has_capture) {
      std::vector<int32_t> draws;
      if (next != nullptr) draws = next->draw_words(wanted);
      if (listener_ == nullptr) return draws;
      StepCommand command = as_command(indices, wanted, rows);
      command.has_capture = has_capture;
      command.next_token = work.next_token;
      command.draws = draws;
      listener_->on_step(command);
      told = true;
      return draws;
    });
  } catch (const std::exception& error) {
    if (!told) throw;
    listener_->on_failure(error);
  }
}

void Stepper::check_integers(const StepCommand& command) const {
  const std::span<const int32_t> values(command.values);
  size_t at = 0;
  const auto take = [&](int64_t count) {
    at += static_cast<size_t>(count);
    return values.subspan(at - static_cast<size_t>(count), static_cast<size_t>(count));
  };
  const int64_t slots = pool_->total() * pool_->block_size();
  const models::ModelConfig& config = model_.config();
  check_within("a token", take(command.tokens), 0, config.vocab_size - 1);
  check_within("a position", take(command.tokens), 0, INT32_MAX);
  check_within("a slot", take(command.tokens), -1, slots - 1);
  const std::span<const int32_t> starts = take(command.sequences + 1);
  check_within("a sequence's start", starts, 0, command.tokens);
  check(std::ranges::is_sorted(starts), kOp, "the sequences' starts do not grow");
  check_within("a sequence's length", take(command.sequences), 1,
               command.table_width * pool_->block_size());
  check_within("a block", take(command.sequences * command.table_width), 0, pool_->total() - 1);
  check_within("a row", take(command.rows), 0, command.tokens - 1);
  check(command.vocab <= config.vocab_size, kOp, "vocab ", command.vocab, " is above ",
        config.vocab_size);
}

void Stepper::repeat(const StepCommand& command) {
  check_integers(command);
  // Nobody has waited for the last step, whose uploads read the host's memory.
  if (under_way_) device_.synchronize(device_.default_stream());
  logits_ = {};  // their memory may serve this step
  whole_rows_ = {};
  top_logits_ = {};
  shown_.reset();
  const Indices indices{.tokens = command.tokens,
                        .sequences = command.sequences,
                        .table_width = command.table_width,
                        .rows = command.rows,
                        .single_queries = command.single_queries,
                        .lora_each = command.lora_each,
                        .key_ends = command.key_ends,
                        .captured = command.captured,
                        .values = command.values};
  const TopLogitsWanted wanted{
      .count = command.top_logits, .vocab = command.vocab, .scales = command.scales};
  if (!command.captured) return run_once(indices, wanted);
  under_way_ = true;
  check(command.next_token == 0 || advances(indices), kOp, "a step of ", command.tokens,
        " tokens for ", command.sequences, " sequences finds no next tokens");
  const std::array key{indices.sequences, indices.tokens / indices.sequences, indices.table_width,
                       indices.lora_each, command.next_token};
  if (!command.has_capture) captured_.erase(key);  // the leader has dropped its own
  replay(indices, {.next_token = command.next_token, .wanted = wanted, .rows = command.top_rows},
         [&](const NextStep* next, bool has_capture) {
           check(has_capture == command.has_capture, kOp,
                 "a step is to be replayed that was not captured");
           const int64_t words = next != nullptr ? next->draw_word_count() : 0;
           check(std::ssize(command.draws) == words, kOp, "step.draws has ", command.draws.size(),
                 " words, not ", words);
           return command.draws;
         });
}

void Stepper::repeat(const AsyncStepCommand&) {
  check(shown_.has_value(), kOp, "no step is there to go on from");
  replay_async_step();
}

void Stepper::repeat(const AgainCommand& command) {
  check(shown_.has_value(), kOp, "no step is there to be run again");
  check(command.values.size() == shown_->indices.values.size(), kOp, "again.values has ",
        command.values.size(), " integers, not ", shown_->indices.values.size());
  StepCommand whole = as_command(shown_->indices, {}, 0);
  whole.values = command.values;
  check_integers(whole);
  replay_again(command.values, command.turn);
}

void Stepper::repeat(const RowsCommand& command) {
  const int64_t rows = logits_.defined() ? logits_.dim(0) : 0;
  check(command.first + command.count <= rows, kOp, "rows ", command.first, " to ",
        command.first + command.count, " are outside of the last step's ", rows);
  to_host(logits_.slice(Axis{0}, command.first, command.count));
}

void Stepper::copy_blocks(std::span<const BlockCopy> copies, bool beside) {
  const auto act = [&] { beside ? host_blocks_->copy_beside(copies) : host_blocks_->copy(copies); };
  if (listener_ == nullptr) return act();
  CopyCommand command{.beside = beside, .values = {}};
  for (const BlockCopy& copy : copies) {
    command.values.insert(command.values.end(), {copy.block, copy.slot, copy.to_host ? 1 : 0});
  }
  listener_->on_copies(command);
  try {
    act();
  } catch (const std::exception& error) {
    listener_->on_failure(error);
  }
}

void Stepper::repeat(const CopyCommand& command) {
  check(host_blocks_.has_value(), kOp, "copies came to a rank without a host cache");
  const std::span<const int32_t> values(command.values);
  std::vector<BlockCopy> copies;
  for (size_t at = 0; at + 3 <= values.size(); at += 3) {
    check_within("a block", values.subspan(at, 1), 0, pool_->total() - 1);
    check_within("a slot", values.subspan(at + 1, 1), 0, host_blocks_->slots() - 1);
    copies.push_back({.block = values[at], .slot = values[at + 1], .to_host = values[at + 2] != 0});
  }
  copy_blocks(copies, command.beside);
}

void Stepper::copy_some() {
  if (!pool_->copies_wait()) return;
  const int64_t bytes = device_.host_accessible() ? kCopiedBytes : kCopiedBytesOfGpu;
  pool_->copy_some(static_cast<size_t>(std::max<int64_t>(bytes / host_blocks_->block_bytes(), 1)));
}

std::span<float> Stepper::rows_to_host(int64_t first, int64_t count) {
  if (listener_ == nullptr || count == 0) return to_host(logits_.slice(Axis{0}, first, count));
  listener_->on_rows({.first = first, .count = count});
  std::span<float> rows;
  as_told([&] { await([&] { rows = to_host(logits_.slice(Axis{0}, first, count)); }); });
  return rows;
}

}  // namespace rbee::engine
