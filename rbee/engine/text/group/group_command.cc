#include "rbee/engine/text/group/group_command.h"

#include "rbee/group/wire.h"

namespace rbee::engine {
namespace {

constexpr const char* kOp = "group message";
constexpr int64_t kMost = int64_t{1} << 24;  // of anything that a step counts
constexpr int64_t kMostPath = 4096;

enum class Kind : uint8_t { open, step, rows, lora, copies, async_step, again, forget };

void put(group::WireWriter& out, const OpenCommand& command) {
  out.put(command.cache_tokens);
  out.put(command.block_size);
  out.put(static_cast<int32_t>(command.kv_dtype ? static_cast<int>(*command.kv_dtype) : -1));
  out.put(command.host_blocks);
}

void put(group::WireWriter& out, const StepCommand& command) {
  for (const int64_t number : {command.tokens, command.sequences, command.table_width, command.rows,
                               command.single_queries, command.lora_each, command.top_logits,
                               command.vocab, command.top_rows, command.next_token}) {
    out.put(number);
  }
  for (const bool flag : {command.key_ends, command.captured, command.has_capture}) {
    out.put(static_cast<uint8_t>(flag));
  }
  out.put_list(std::span<const int32_t>(command.values));
  out.put_list(std::span<const float>(command.scales));
  out.put_list(std::span<const int32_t>(command.draws));
}

void put(group::WireWriter& out, const RowsCommand& command) {
  out.put(command.first);
  out.put(command.count);
}

void put(group::WireWriter& out, const LoraCommand& command) {
  out.put(command.slot);
  out.put_text(command.path);
}

void put(group::WireWriter&, const AsyncStepCommand&) {}
void put(group::WireWriter&, const ForgetCommand&) {}

void put(group::WireWriter& out, const CopyCommand& command) {
  out.put(static_cast<uint8_t>(command.beside));
  out.put_list(std::span<const int32_t>(command.values));
}

void put(group::WireWriter& out, const AgainCommand& command) {
  out.put(command.turn);
  out.put_list(std::span<const int32_t>(command.values));
}

OpenCommand take_open(group::WireReader& in) {
  OpenCommand out;
  out.cache_tokens = in.take_within("open.cache_tokens", 1, INT32_MAX);
  out.block_size = in.take_within("open.block_size", 1, INT32_MAX);
  const auto dtype = in.take<int32_t>("open.kv_dtype");
  check(dtype >= -1 && dtype < kDTypeCount, kOp, "open.kv_dtype ", dtype, " is outside of -1 to ",
        kDTypeCount - 1);
  if (dtype >= 0) out.kv_dtype = static_cast<DType>(dtype);
  out.host_blocks = in.take_within("open.host_blocks", 0, INT32_MAX);
  return out;
}

// Integers of a step's list; the numbers are below kMost, and so is each product that fits a list.
int64_t count_values(const StepCommand& step) {
  const int64_t table = step.sequences * step.table_width;
  const int64_t adapters = 2 * step.tokens * step.lora_each;
  return 3 * step.tokens + 2 * step.sequences + 1 + table + step.rows + adapters +
         (step.key_ends ? step.tokens : 0);
}

StepCommand take_step(group::WireReader& in) {
  StepCommand out;
  out.tokens = in.take_within("step.tokens", 1, kMost);
  out.sequences = in.take_within("step.sequences", 1, out.tokens);
  out.table_width = in.take_within("step.table_width", 1, kMost);
  out.rows = in.take_within("step.rows", 0, out.tokens);
  out.single_queries = in.take_within("step.single_queries", 0, out.sequences);
  out.lora_each = in.take_within("step.lora_each", 0, kMost);
  out.top_logits = in.take_within("step.top_logits", 0, kMost);
  out.vocab = in.take_within("step.vocab", 0, INT32_MAX);
  out.top_rows = in.take_within("step.top_rows", 0, out.rows);
  out.next_token = in.take_within("step.next_token", 0, 2);
  out.key_ends = in.take<uint8_t>("step.key_ends") != 0;
  out.captured = in.take<uint8_t>("step.captured") != 0;
  out.has_capture = in.take<uint8_t>("step.has_capture") != 0;
  out.values = in.take_list<int32_t>("step.values", kMost);
  out.scales = in.take_list<float>("step.scales", kMost);
  out.draws = in.take_list<int32_t>("step.draws", kMost);
  const int64_t count = count_values(out);
  check(std::ssize(out.values) == count, kOp, "step.values has ", out.values.size(),
        " integers, not ", count);
  check(out.scales.empty() || std::ssize(out.scales) == out.top_rows, kOp, "step.scales has ",
        out.scales.size(), " numbers for ", out.top_rows, " rows");
  check(out.captured || out.top_rows == out.rows, kOp, "step.top_rows is ", out.top_rows,
        ", not the ", out.rows, " rows of a step that is not captured");
  // Captured steps are keyed by the tokens of each sequence, and have a row for each.
  check(!out.captured || (out.tokens % out.sequences == 0 && out.rows == out.tokens), kOp,
        "a captured step of ", out.tokens, " tokens has ", out.sequences, " sequences and ",
        out.rows, " rows");
  check(out.top_logits <= out.vocab, kOp, "step.top_logits ", out.top_logits, " is above vocab ",
        out.vocab);
  return out;
}

RowsCommand take_rows(group::WireReader& in) {
  const int64_t first = in.take_within("rows.first", 0, kMost);
  return {.first = first, .count = in.take_within("rows.count", 1, kMost)};
}

LoraCommand take_lora(group::WireReader& in) {
  LoraCommand out;
  out.slot = in.take<int32_t>("lora.slot");
  check(out.slot >= 1, kOp, "lora.slot ", out.slot, " is below 1");
  out.path = in.take_text("lora.path", kMostPath);
  return out;
}

CopyCommand take_copies(group::WireReader& in) {
  CopyCommand out;
  out.beside = in.take<uint8_t>("copies.beside") != 0;
  out.values = in.take_list<int32_t>("copies.values", kMost);
  check(out.values.size() % 3 == 0, kOp, "copies.values has ", out.values.size(),
        " integers, not three for each copy");
  return out;
}

AgainCommand take_again(group::WireReader& in) {
  AgainCommand out;
  out.turn = in.take<int32_t>("again.turn");
  check(out.turn >= 0 && out.turn < kMost, kOp, "again.turn ", out.turn, " is outside of 0 to ",
        kMost - 1);
  out.values = in.take_list<int32_t>("again.values", kMost);
  return out;
}

GroupCommand take(Kind kind, group::WireReader& in) {
  switch (kind) {
    case Kind::open:
      return take_open(in);
    case Kind::step:
      return take_step(in);
    case Kind::rows:
      return take_rows(in);
    case Kind::lora:
      return take_lora(in);
    case Kind::copies:
      return take_copies(in);
    case Kind::async_step:
      return AsyncStepCommand{};
    case Kind::again:
      return take_again(in);
    case Kind::forget:
      return ForgetCommand{};
  }
  fail(Code::invalid_argument, kOp, "its kind ", static_cast<int>(kind), " is outside of 0 to ",
       static_cast<int>(Kind::forget));
}

}  // namespace

std::vector<std::byte> encode_command(const GroupCommand& command) {
  group::WireWriter out;
  out.put(static_cast<uint8_t>(command.index()));
  std::visit([&](const auto& each) { put(out, each); }, command);
  return {out.bytes().begin(), out.bytes().end()};
}

GroupCommand decode_command(std::span<const std::byte> message) {
  group::WireReader in(message);
  const auto kind = static_cast<Kind>(in.take<uint8_t>("kind"));
  GroupCommand out = take(kind, in);
  in.end();
  return out;
}

}  // namespace rbee::engine
