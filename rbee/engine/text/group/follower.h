#pragma once
// Ranks 1 and above of a group that holds a language model: a model, a cache and a Stepper, which
// do what the leader's do. Requests, tokens and texts are the leader's alone.

#include "backends/api/device.h"
#include "rbee/group/member.h"
#include "rbee/models/language_model.h"

namespace rbee::engine {

// Follows the commands until the group ends. Throws what a step throws: this rank cannot go on.
void follow(const models::LanguageModel& model, Device& device, group::GroupMember& member);

}  // namespace rbee::engine
