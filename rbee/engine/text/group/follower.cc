#include "rbee/engine/text/group/follower.h"

#include <optional>
#include <variant>

#include "rbee/engine/text/group/group_command.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/models/lora_adapter.h"

namespace rbee::engine {
namespace {

class Follower {
 public:
  Follower(const models::LanguageModel& model, Device& device) : model_(model), device_(device) {}

  void operator()(const OpenCommand& command) {
    stepper_.reset();  // its cache makes room
    stepper_.emplace(model_, device_,
                     StepperOptions{.cache_tokens = command.cache_tokens,
                                    .block_size = command.block_size,
                                    .kv_dtype = command.kv_dtype,
                                    .host_blocks = command.host_blocks});
  }
  void operator()(const LoraCommand& command) {
    models::LoraAdapter(command.path, model_).put(command.slot);
  }
  void operator()(const ForgetCommand&) {
    if (stepper_) stepper_->forget_captured();
  }
  template <typename Command>
  void operator()(const Command& command) {
    check(stepper_.has_value(), "group", "a command came before a cache was opened");
    stepper_->repeat(command);
  }

 private:
  const models::LanguageModel& model_;
  Device& device_;
  std::optional<Stepper> stepper_;
};

}  // namespace

void follow(const models::LanguageModel& model, Device& device, group::GroupMember& member) {
  Follower follower(model, device);
  while (const std::optional<std::vector<std::byte>> message = member.command()) {
    std::visit(follower, decode_command(*message));
  }
}

}  // namespace rbee::engine
