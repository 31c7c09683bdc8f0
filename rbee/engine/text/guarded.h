#pragma once
// Errors of one request's work, which must not end the engine's thread.

#include <new>

#include "rbee/core/error.h"

namespace rbee::engine {

// Runs the work and passes what it throws to `failed`, as an Error.
template <typename Failed, typename Work>
void guarded(Failed failed, Work work) {
  try {
    work();
  } catch (const Error& error) {
    failed(error);
  } catch (const std::bad_alloc&) {
    failed(Error(Code::out_of_memory, "engine", "the host has no memory left"));
  } catch (const std::exception& error) {
    failed(Error(Code::internal, "engine", error.what()));
  }
}

}  // namespace rbee::engine
