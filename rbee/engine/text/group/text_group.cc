#include "rbee/engine/text/group/text_group.h"

#include <utility>

#include "rbee/engine/text/group/group_command.h"

namespace rbee::engine {

TextGroup::TextGroup(std::unique_ptr<group::GroupLeader> leader, std::shared_ptr<void> memory)
    : memory_(std::move(memory)), leader_(std::move(leader)) {}

void TextGroup::wait_until_loaded() {
  for (const group::LinkLoaded& rank : leader_->wait_until_loaded()) {
    others_.weight_bytes += rank.weight_bytes;
    others_.cache_token_bytes += rank.cache_token_bytes;
  }
}

void TextGroup::on_open(const OpenCommand& command) {
  leader_->command(encode_command(command));
}

void TextGroup::on_step(const StepCommand& command) {
  leader_->command(encode_command(command));
}

void TextGroup::on_rows(const RowsCommand& command) {
  leader_->command(encode_command(command));
}

void TextGroup::on_lora(const LoraCommand& command) {
  leader_->command(encode_command(command));
}

void TextGroup::on_copies(const CopyCommand& command) {
  leader_->command(encode_command(command));
}

void TextGroup::on_failure(const std::exception& error) {
  leader_->end(cat("the leader cannot go on: ", error.what()));
  leader_->check_alive();  // throws what came first
  fail(Code::internal, "group", error.what());
}

}  // namespace rbee::engine
