#include "rbee/group/leader.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "rbee/core/log.h"
#include "rbee/group/frame.h"

namespace rbee::group {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOp = "group";
constexpr std::chrono::milliseconds kEndTime{3'000};  // for ranks to end by themselves
constexpr std::chrono::milliseconds kLook{250};       // between two looks at all ranks
constexpr std::chrono::seconds kMissingTold{10};      // between two messages that a rank is missing

void check_same(int rank, const char* what, std::string_view own, std::string_view other) {
  check(own == other, kOp, "rank ", rank, " differs from the leader in its ", what, ": \"", other,
        "\", not \"", own, "\"");
}

void check_identity(int rank, const Identity& own, const LinkHello& hello) {
  const Identity& other = hello.identity;
  check_same(rank, "protocol", cat(own.protocol), cat(other.protocol));
  check_same(rank, "number", cat(rank), cat(hello.rank));
  check_same(rank, "build", own.build, other.build);
  check_same(rank, "device", own.device, other.device);
  check_same(rank, "model", own.model, other.model);
  check_same(rank, "flags", own.flags, other.flags);
}

// How a process has ended, for a message.
std::string end_of(RankProcess& process) {
  const std::optional<int> status = process.wait(std::chrono::seconds(1));
  if (!status) return "it closed its link";
  return *status > 128 ? cat("it ended by signal ", *status - 128)
                       : cat("it ended with status ", *status);
}

}  // namespace

GroupLeader::GroupLeader(GroupLeaderOptions options)
    : options_(std::move(options)), channel_(options_.ranks - 1, options_.times.command) {
  start_ranks();
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  for (int rank = 1; rank < options_.ranks; ++rank) agree(rank);
  std::vector<int> descriptors{channel_.descriptor()};
  descriptors.insert(descriptors.end(), options_.shared.begin(), options_.shared.end());
  for (const Rank& other : others_) other.link.send(LinkWelcome{}, descriptors);
}

GroupLeader::~GroupLeader() {
  // First, since ranks that have ended as told are not lost.
  watch_.request_stop();
  watch_.join();
  try {
    channel_.set_limit(kEndTime);
    if (!lost_) channel_.write(as_frame(FrameKind::end));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // Then they are killed.
  }
  const auto end = Clock::now() + kEndTime;
  for (Rank& other : others_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (!lost_) other.process.wait(std::max(left, std::chrono::milliseconds(0)));
  }
}

void GroupLeader::start_ranks() {
  for (int rank = 1; rank < options_.ranks; ++rank) {
    auto [own, other] = RankLink::pair();
    RankProcess process(options_.program, options_.arguments, rank, options_.ranks,
                        std::move(other));
    own.send(LinkModel{options_.model});
    others_.push_back(
        {.process = std::move(process), .link = std::move(own), .heard = Clock::now()});
  }
}

// Waits for the rank's hello.
void GroupLeader::agree(int rank) {
  const auto begin = Clock::now();
  const Rank& other = others_[static_cast<size_t>(rank - 1)];
  std::unique_lock lock(mutex_);
  const auto told = [&] { return failure_ || lost_ || other.hello; };
  while (!changed_.wait_for(lock, kMissingTold, told)) {
    if (Clock::now() - begin > options_.times.start) {
      fail(Code::device, kOp, "rank ", rank, " has not said what it is for ",
           options_.times.start.count(), " ms");
    }
    log(LogLevel::warn, "a rank has not answered yet", {{"rank", cat(rank)}});
  }
  fail_if_lost();
  check_identity(rank, options_.identity, *other.hello);
}

void GroupLeader::watch(const std::stop_token& stop) {
  std::vector<pollfd> links;
  for (const Rank& other : others_) {
    links.push_back({.fd = other.link.descriptor(), .events = POLLIN, .revents = 0});
  }
  auto last_look = Clock::now(), next_beat = last_look;
  while (!stop.stop_requested() && !lost_) {
    poll(links.data(), links.size(), static_cast<int>(kLook.count()));
    for (int rank = 1; rank < options_.ranks && !lost_; ++rank) {
      if (links[static_cast<size_t>(rank - 1)].revents != 0) hear(rank);
    }
    const auto now = Clock::now();
    note_silence(now - std::exchange(last_look, now));
    if (now < next_beat) continue;
    next_beat = now + options_.times.beat;
    for (const Rank& other : others_) other.link.send(LinkBeat{});
  }
}

// pause: since the last look. If this process itself did not run for long, as when all were frozen,
// the others get their time again.
void GroupLeader::note_silence(Clock::duration pause) {
  const auto now = Clock::now();
  for (int rank = 1; rank < options_.ranks && !lost_; ++rank) {
    Rank& other = others_[static_cast<size_t>(rank - 1)];
    const bool starts = !other.hello && !other.process.stopped();
    if (starts || pause > options_.times.silence / 2) other.heard = now;
    if (now - other.heard > options_.times.silence) {
      lose(rank, cat("it has not answered for ", options_.times.silence.count(), " ms"));
    }
  }
}

void GroupLeader::take(int rank, const LinkMessage& message) {
  Rank& other = others_[static_cast<size_t>(rank - 1)];
  const auto* const failed = std::get_if<LinkFailed>(&message);
  if (failed != nullptr && other.loaded) return lose(rank, failed->why);
  const std::scoped_lock lock(mutex_);
  if (const auto* hello = std::get_if<LinkHello>(&message)) other.hello = *hello;
  if (const auto* loaded = std::get_if<LinkLoaded>(&message)) other.loaded = *loaded;
  if (failed != nullptr && !failure_) {
    failure_.emplace(failed->code, kOp, cat("rank ", rank, ": ", failed->why));
  }
  changed_.notify_all();
}

void GroupLeader::hear(int rank) {
  Rank& other = others_[static_cast<size_t>(rank - 1)];
  try {
    while (const std::optional<LinkMessage> message = other.link.receive()) {
      other.heard = Clock::now();
      take(rank, *message);
    }
  } catch (const Error& error) {
    const bool ended = error.code() == Code::device;
    lose(rank, ended ? end_of(other.process) : std::string(error.what()));
  }
}

void GroupLeader::lose(int rank, const std::string& why) {
  end(cat("rank ", rank, " is lost: ", why));
}

void GroupLeader::end(const std::string& why) {
  bool told = false;
  {
    const std::scoped_lock lock(mutex_);
    if (lost_) return;
    why_ = why;
    lost_ = true;
    told = failure_.has_value();  // whoever loads gets it
    changed_.notify_all();
  }
  channel_.end();
  // Those that wait for the lost one too, and one that is stopped, which no other signal ends.
  for (const Rank& other : others_) other.process.kill();
  if (told) return;
  log(LogLevel::error, "the group has ended", {{"why", why}});
  if (options_.on_lost) options_.on_lost(why);
}

void GroupLeader::fail_if_lost() const {
  if (failure_) throw Error(*failure_);
  if (lost_) fail(Code::device, kOp, why_);
}

void GroupLeader::check_alive() const {
  const std::scoped_lock lock(mutex_);
  fail_if_lost();
}

std::vector<LinkLoaded> GroupLeader::wait_until_loaded() {
  std::unique_lock lock(mutex_);
  std::vector<LinkLoaded> out;
  for (const Rank& other : others_) {
    const auto told = [&] { return failure_ || lost_ || other.loaded; };
    if (!changed_.wait_for(lock, options_.times.start, told)) {
      fail(Code::device, kOp, "rank ", out.size() + 1, " has not loaded its part ",
           options_.times.start.count(), " ms after the leader");
    }
    fail_if_lost();
    out.push_back(*other.loaded);
  }
  return out;
}

void GroupLeader::command(std::span<const std::byte> message) {
  try {
    while (message.size() > kPartBytes) {
      channel_.write(as_frame(FrameKind::part, message.first(kPartBytes)));
      message = message.subspan(kPartBytes);
    }
    channel_.write(as_frame(FrameKind::command, message));
  } catch (const Error& error) {
    end(error.what());
    const std::scoped_lock lock(mutex_);
    fail(Code::device, kOp, why_);
  }
  const std::scoped_lock lock(mutex_);
  figures_ = {.commands = channel_.messages(),
              .bytes = channel_.bytes(),
              .waited_seconds = channel_.waited_seconds()};
}

GroupFigures GroupLeader::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

}  // namespace rbee::group
