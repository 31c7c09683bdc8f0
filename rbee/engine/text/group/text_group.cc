#include "rbee/engine/text/group/text_group.h"

#include <chrono>
#include <string>
#include <utility>

#include "rbee/core/log.h"

namespace rbee::engine {
namespace {

constexpr std::chrono::milliseconds kLook{250};  // between two looks at the devices
// Of a wait for the device, which itself waits for the others without a limit.
constexpr int64_t kWaitMs = 120'000;

int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

TextGroup::TextGroup(std::unique_ptr<group::GroupLeader> leader, std::shared_ptr<void> memory,
                     std::shared_ptr<GroupComm> comm)
    : memory_(std::move(memory)), comm_(std::move(comm)), leader_(std::move(leader)) {
  if (comm_) watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void TextGroup::wait_until_loaded() {
  ranks_ = leader_->wait_until_loaded();
  int number = 0;
  for (const group::LinkLoaded& rank : ranks_) {
    log(LogLevel::info, "a rank has loaded its part",
        {{"rank", cat(++number)},
         {"weight_bytes", cat(rank.weight_bytes)},
         {"cache_token_bytes", cat(rank.cache_token_bytes)}});
    others_.weight_bytes += rank.weight_bytes;
    others_.cache_token_bytes += rank.cache_token_bytes;
  }
}

void TextGroup::tell(const GroupCommand& command) {
  leader_->command(encode_command(command));
}

void TextGroup::on_wait() {
  waits_ = now_ms();
}

void TextGroup::on_results() {
  waits_ = 0;
  leader_->check_alive();
}

void TextGroup::on_failure(const std::exception& error) {
  leader_->end(cat("the leader cannot go on: ", error.what()));
  leader_->check_alive();  // throws what came first
  fail(Code::internal, "group", error.what());
}

void TextGroup::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    std::string why = comm_->fault();
    const int64_t since = waits_;
    if (why.empty() && since != 0 && now_ms() - since > kWaitMs) {
      why = cat("the leader's device has not answered for ", kWaitMs, " ms");
    }
    if (!why.empty()) return leader_->end(why);
    looks_.wait_for(lock, stop, kLook, [] { return false; });
  }
}

}  // namespace rbee::engine
