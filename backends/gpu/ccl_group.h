#pragma once
// A communicator of NCCL or RCCL: one rank's way to the others, each with its own device.

#include <memory>
#include <string>
#include <string_view>

#include "backends/api/group_comm.h"
#include "backends/gpu/ccl_library.h"

namespace rbee::gpu {

class GpuDevice;

class CclGroup final : public GroupComm {
 public:
  // Waits until all ranks have come. `library` and `device` outlive the object. Throws unsupported
  // if the library cannot be used, invalid_argument for values that are none of a group, and device
  // with the library's words.
  CclGroup(CclLibrary& library, GpuDevice& device, const GroupEntry& entry);
  // Waits for the device's work. Captures of the communicator's operations must be gone.
  ~CclGroup() override;
  CclGroup(const CclGroup&) = delete;
  CclGroup& operator=(const CclGroup&) = delete;

  GroupView view() override;
  // The library's abort waits until captures are destroyed, so it runs on a thread of its own.
  void end(std::string_view why) noexcept override;
  std::string fault() override;

  // Queues call(functions, communicator), one of the library's operations, on the stream's device;
  // legal during capture. Throws device if the group has ended, and as CclLibrary::check().
  template <typename Call>
  void queue(const char* name, const Call& call) {
    const Use use(*this);
    check(call(library_.functions(), use.comm()), name);
  }

 private:
  // The communicator, shared with the thread that aborts it.
  struct State;
  // Holds it for one call of the thread that queues.
  class Use {
   public:
    explicit Use(CclGroup& group);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    CclComm comm() const;

   private:
    State& state_;
  };
  void check(int status, const char* name) const;

  CclLibrary& library_;
  GpuDevice& device_;
  const int rank_, ranks_;
  const std::shared_ptr<State> state_;
};

// The id that the ranks of a new group need, as bytes. Throws as CclLibrary::unique_id().
std::string make_group_id(const CclLibrary& library);

}  // namespace rbee::gpu
