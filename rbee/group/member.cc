#include "rbee/group/member.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "rbee/core/system/sockets.h"
#include "rbee/group/frame.h"
#include "rbee/group/memory_door.h"

namespace rbee::group {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOp = "group";
constexpr std::chrono::milliseconds kLook{250};

}  // namespace

GroupMember::GroupMember(GroupMemberOptions options) : options_(std::move(options)) {
  check(options_.met || options_.place.link >= 0, kOp, "this process has no link to a leader");
  link_ = options_.met ? std::move(*options_.met) : RankLink(Descriptor(options_.place.link));
  leader_ = WatchedProcess(link_.peer());
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
    if (!message || std::holds_alternative<LinkBeat>(*message)) continue;
    const auto* const failed = std::get_if<LinkFailed>(&*message);
    if (failed != nullptr) throw Error(failed->code, kOp, failed->why);
    return std::move(*message);
  }
}

// A leader that is silent may be stopped, and would keep its memory and its port for ever. Returns
// what happened.
std::string GroupMember::end_leader() const {
  leader_.kill();
  return cat("the leader has not answered for ", options_.times.silence.count(), " ms");
}

std::string GroupMember::model() {
  const LinkMessage message = next_message();
  const auto* const model = std::get_if<LinkModel>(&message);
  check(model != nullptr, kOp, "the leader's first message names no model");
  return model->path;
}

void GroupMember::join(const Identity& identity) {
  link_.send(LinkHello{.rank = rank(), .identity = identity, .machine = this_machine()});
  const LinkMessage message = next_message();
  const auto* const welcome = std::get_if<LinkWelcome>(&message);
  check(welcome != nullptr, kOp, "the leader has not agreed");
  comm_id_ = welcome->comm_id;
  if (!welcome->memory.empty()) {
    FromDoor from = fetch_memory(welcome->memory, options_.times.silence);
    shared_ = std::move(from.descriptors);
    leader_ = std::move(from.leader);
  }
  if (options_.place.link >= 0) {
    check(!shared_.empty(), kOp, "the leader has given no channel");
    channel_ = std::make_unique<ChannelReader>(shared_.front().get(), rank() - 1);
    shared_.erase(shared_.begin());
  }
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

// False: it was the last one.
bool GroupMember::take(LinkMessage message) {
  auto* const command = std::get_if<LinkCommand>(&message);
  if (command == nullptr) return true;
  const bool last = static_cast<FrameKind>(command->frame.front()) == FrameKind::end;
  const std::scoped_lock lock(frames_mutex_);
  frames_.push_back(std::move(command->frame));
  frame_came_.notify_all();
  return !last;
}

void GroupMember::stop_waiting() {
  if (channel_) channel_->end();
  const std::scoped_lock lock(frames_mutex_);
  ended_ = true;
  frame_came_.notify_all();
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
      while (there) {
        std::optional<LinkMessage> message = link_.receive();
        if (!message) break;
        heard = now;
        if (!take(std::move(*message))) return;  // the leader's end is no loss then
      }
    } catch (const Error& error) {
      why = error.code() == Code::device ? "the leader has ended" : error.what();
    }
    if (now - heard <= options_.times.silence) continue;
    why = end_leader();
  }
  if (stop.stop_requested() || why.empty()) return;
  stop_waiting();
  options_.on_lost(why);
}

std::vector<std::byte> GroupMember::next_frame() {
  if (channel_) return channel_->read();
  if (taken_ > 0) link_.send(LinkDone{taken_});
  std::unique_lock lock(frames_mutex_);
  frame_came_.wait(lock, [&] { return ended_ || !frames_.empty(); });
  if (frames_.empty()) fail(Code::device, kOp, "the group has ended");
  std::vector<std::byte> out = std::move(frames_.front());
  frames_.pop_front();
  ++taken_;
  return out;
}

std::optional<std::vector<std::byte>> GroupMember::command() {
  std::vector<std::byte> out;
  while (true) {
    const std::vector<std::byte> frame = next_frame();
    const auto kind = static_cast<FrameKind>(frame.front());
    if (kind == FrameKind::end) {
      if (channel_) channel_->done();
      watch_.request_stop();  // the leader's end is no loss then
      return std::nullopt;
    }
    out.insert(out.end(), frame.begin() + 1, frame.end());
    if (kind == FrameKind::command) return out;
    check(kind == FrameKind::part, kOp, "a frame of kind ", static_cast<int>(kind));
  }
}

}  // namespace rbee::group
