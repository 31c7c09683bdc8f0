#pragma once
// The commands of a group as bytes.

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "rbee/engine/text/step/step_listener.h"

namespace rbee::engine {

using GroupCommand = std::variant<OpenCommand, StepCommand, RowsCommand, LoraCommand, CopyCommand,
                                  AsyncStepCommand, AgainCommand, ForgetCommand>;

std::vector<std::byte> encode_command(const GroupCommand& command);
// Throws invalid_argument naming the field, also if the length of a step's list does not match its
// numbers.
GroupCommand decode_command(std::span<const std::byte> message);

}  // namespace rbee::engine
