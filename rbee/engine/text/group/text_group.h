#pragma once
// The leader's side of a language model that several ranks hold.

#include <cstdint>
#include <memory>

#include "rbee/engine/text/step/step_listener.h"
#include "rbee/group/leader.h"

namespace rbee::engine {

class TextGroup final : public StepListener {
 public:
  // memory: what the collective operations of this rank use; kept as long as this.
  TextGroup(std::unique_ptr<group::GroupLeader> leader, std::shared_ptr<void> memory);

  group::GroupLeader& leader() { return *leader_; }
  // Waits until the other ranks have loaded. Throws as GroupLeader::wait_until_loaded().
  void wait_until_loaded();
  // Sums over the other ranks, once they have loaded.
  const group::LinkLoaded& others() const { return others_; }
  const group::GroupLeader& leader() const { return *leader_; }

  void on_open(const OpenCommand& command) override;
  void on_step(const StepCommand& command) override;
  void on_rows(const RowsCommand& command) override;
  void on_lora(const LoraCommand& command) override;
  void on_copies(const CopyCommand& command) override;
  [[noreturn]] void on_failure(const std::exception& error) override;

 private:
  const std::shared_ptr<void> memory_;
  const std::unique_ptr<group::GroupLeader> leader_;
  group::LinkLoaded others_;
};

}  // namespace rbee::engine
