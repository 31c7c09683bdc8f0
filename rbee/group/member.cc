#include "rbee/group/member.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "rbee/group/frame.h"

namespace rbee::group {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOp = "group";
constexpr std::chrono::milliseconds kLook{250};

Descriptor process_of(int id) {
  return Descriptor(id > 0 ? static_cast<int>(syscall(SYS_pidfd_open, id, 0)) : -1);
}

}  // namespace

GroupMember::GroupMember(GroupMemberOptions options) : options_(std::move(options)) {
  check(options_.place.link >= 0, kOp, "this process was not started by a leader");
  link_ = RankLink(Descriptor(options_.place.link));
  leader_ = process_of(link_.peer());
  beat_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    do {
      link_.send(LinkBeat{});
    } while (
        !beats_.wait_for(lock, stop, options_.times.beat, [&] { return stop.stop_requested(); }));
  });
}

GroupMember::~GroupMember() = default;

// Before watch_ reads the link. The leader's beats say that it is still there.
LinkMessage GroupMember::next_message() {
  auto heard = Clock::now(), last_look = heard;
  while (true) {
    const bool there = link_.wait(kLook);
    const auto now = Clock::now();
    if (now - std::exchange(last_look, now) > options_.times.silence / 2) heard = now;
    if (there) heard = now;
    if (now - heard > options_.times.silence) fail(Code::device, kOp, end_leader());
    if (!there) continue;
    std::optional<LinkMessage> message = link_.receive(&shared_);
    if (message && !std::holds_alternative<LinkBeat>(*message)) return std::move(*message);
  }
}

// A leader that is silent may be stopped, and would keep its memory and its port for ever. Returns
// what happened.
std::string GroupMember::end_leader() const {
  if (leader_.get() >= 0) syscall(SYS_pidfd_send_signal, leader_.get(), SIGKILL, nullptr, 0);
  return cat("the leader has not answered for ", options_.times.silence.count(), " ms");
}

std::string GroupMember::model() {
  const LinkMessage message = next_message();
  const auto* const model = std::get_if<LinkModel>(&message);
  check(model != nullptr, kOp, "the leader's first message names no model");
  return model->path;
}

void GroupMember::join(const Identity& identity) {
  link_.send(LinkHello{.rank = rank(), .identity = identity});
  const LinkMessage message = next_message();
  check(std::holds_alternative<LinkWelcome>(message) && !shared_.empty(), kOp,
        "the leader has not agreed");
  channel_ = std::make_unique<ChannelReader>(shared_.front().get(), rank() - 1);
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void GroupMember::watch(const std::stop_token& stop) {
  auto heard = Clock::now(), last_look = heard;
  std::string why;
  while (!stop.stop_requested() && why.empty()) {
    const bool there = link_.wait(kLook);
    const auto now = Clock::now();
    // After a pause of this process itself, the leader gets its time again.
    if (now - std::exchange(last_look, now) > options_.times.silence / 2) heard = now;
    try {
      if (there && link_.receive()) heard = now;
    } catch (const Error& error) {
      why = error.code() == Code::device ? "the leader has ended" : error.what();
    }
    if (now - heard <= options_.times.silence) continue;
    why = end_leader();
  }
  if (stop.stop_requested() || why.empty()) return;
  channel_->end();
  options_.on_lost(why);
}

std::optional<std::vector<std::byte>> GroupMember::command() {
  std::vector<std::byte> out;
  while (true) {
    const std::vector<std::byte> frame = channel_->read();
    const auto kind = static_cast<FrameKind>(frame.front());
    if (kind == FrameKind::end) {
      channel_->done();
      watch_.request_stop();  // the leader's end is no loss then
      return std::nullopt;
    }
    out.insert(out.end(), frame.begin() + 1, frame.end());
    if (kind == FrameKind::command) return out;
    check(kind == FrameKind::part, kOp, "a frame of kind ", static_cast<int>(kind));
  }
}

}  // namespace rbee::group
