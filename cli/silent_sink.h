#pragma once
// Waits for the end of an answer and drops its text.

#include <future>

#include "rbee/core/error.h"
#include "rbee/engine/api/text.h"

namespace rbee::tools {

class SilentSink final : public engine::EventSink {
 public:
  void on_started(const engine::Started&) noexcept override {}
  void on_token(const engine::TokenText&) noexcept override {}
  void on_finished(const engine::Finished& finished) noexcept override { end_.set_value(finished); }
  void on_failed(const engine::Failed& failed) noexcept override {
    end_.set_exception(std::make_exception_ptr(Error(failed.code, "request", failed.message)));
  }

  // Call it once. Throws the request's Error if it failed.
  engine::Finished wait() { return end_.get_future().get(); }

 private:
  std::promise<engine::Finished> end_;
};

}  // namespace rbee::tools
