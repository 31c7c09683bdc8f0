#pragma once
// The leader's side of a language model that several ranks hold.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/api/group_comm.h"
#include "rbee/engine/text/group/group_command.h"
#include "rbee/group/leader.h"

namespace rbee::engine {

class TextGroup final : public StepListener {
 public:
  // memory: what the collective operations of this rank use; kept as long as this. comm: of ranks
  // on devices, which is watched: if it has a fault or never answers, the group ends.
  TextGroup(std::unique_ptr<group::GroupLeader> leader, std::shared_ptr<void> memory,
            std::shared_ptr<GroupComm> comm = nullptr);

  group::GroupLeader& leader() { return *leader_; }
  // Waits until the other ranks have loaded. Throws as GroupLeader::wait_until_loaded().
  void wait_until_loaded();
  // What they have said then, and sums over them.
  const std::vector<group::LinkLoaded>& ranks() const { return ranks_; }
  const group::LinkLoaded& others() const { return others_; }
  const group::GroupLeader& leader() const { return *leader_; }

  void on_open(const OpenCommand& command) override { tell(command); }
  void on_step(const StepCommand& command) override { tell(command); }
  void on_rows(const RowsCommand& command) override { tell(command); }
  void on_lora(const LoraCommand& command) override { tell(command); }
  void on_copies(const CopyCommand& command) override { tell(command); }
  void on_async_step(const AsyncStepCommand& command) override { tell(command); }
  void on_again(const AgainCommand& command) override { tell(command); }
  void on_forget(const ForgetCommand& command) override { tell(command); }
  void on_wait() override;
  void on_results() override;
  [[noreturn]] void on_failure(const std::exception& error) override;

 private:
  void tell(const GroupCommand& command);
  void watch(const std::stop_token& stop);

  const std::shared_ptr<void> memory_;
  const std::shared_ptr<GroupComm> comm_;
  const std::unique_ptr<group::GroupLeader> leader_;
  std::vector<group::LinkLoaded> ranks_;
  group::LinkLoaded others_;
  std::atomic<int64_t> waits_ = 0;  // since this ms; 0: does not wait
  std::mutex mutex_;                // of looks_
  std::condition_variable_any looks_;
  std::jthread watch_;  // last: its end comes first
};

}  // namespace rbee::engine
