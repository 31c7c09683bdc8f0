// What ranks of a group say to each other: messages of their links, commands, and how they meet.
// What is read must survive writing and reading again.

#include <cstdint>
#include <stdexcept>

#include "rbee/core/error.h"
#include "rbee/engine/text/group/group_command.h"
#include "rbee/group/handshake.h"
#include "rbee/group/rank_link.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rbee;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto is_same = [](std::span<const std::byte> one, std::span<const std::byte> other) {
    return std::ranges::equal(one, other);
  };
  try {
    const auto once = group::encode_link(group::decode_link(bytes));
    if (!is_same(group::encode_link(group::decode_link(once)), once)) {
      throw std::logic_error("another message");
    }
  } catch (const Error&) {
  }
  try {
    const auto once = engine::encode_command(engine::decode_command(bytes));
    if (!is_same(engine::encode_command(engine::decode_command(once)), once)) {
      throw std::logic_error("another command");
    }
  } catch (const Error&) {
  }
  try {
    const auto answer = group::encode_answer(group::decode_answer(bytes));
    if (!is_same(answer, bytes)) throw std::logic_error("another answer");
  } catch (const Error&) {
  }
  try {
    const auto challenge = group::encode_challenge(group::decode_challenge(bytes));
    if (!is_same(challenge, bytes)) throw std::logic_error("another challenge");
  } catch (const Error&) {
  }
  return 0;
}
