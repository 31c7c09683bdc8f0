#include "rbee/group/leader.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "rbee/core/log.h"
#include "rbee/core/system/sockets.h"
#include "rbee/group/frame.h"
#include "rbee/group/place.h"

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

}  // namespace

GroupLeader::GroupLeader(GroupLeaderOptions options) : options_(std::move(options)) {
  check(options_.ranks >= 2 && options_.ranks <= kMostRanks, kOp, options_.ranks,
        " ranks are outside of 2 to ", kMostRanks);
  if (options_.meeting) {
    meet();
  } else {
    channel_.emplace(options_.ranks - 1, options_.times.command);
    start_ranks();
  }
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  for (int rank = 1; rank < options_.ranks && !options_.meeting; ++rank) agree(rank);
  welcome();
}

void GroupLeader::welcome() {
  std::vector<int> descriptors;
  if (channel_) {
    descriptors.push_back(channel_->descriptor());
    descriptors.insert(descriptors.end(), options_.shared.begin(), options_.shared.end());
  }
  const std::string machine = this_machine();
  for (const Rank& other : others_) {
    const bool here = door_ && other.hello->machine == machine;
    other.link.send(LinkWelcome{.memory = here ? door_->name() : "", .comm_id = options_.comm_id},
                    descriptors);
  }
}

GroupLeader::~GroupLeader() {
  // First, since ranks that have ended as told are not lost.
  watch_.request_stop();
  watch_.join();
  if (lost_) return;
  try {
    if (channel_) {
      channel_->set_limit(kEndTime);
      channel_->write(as_frame(FrameKind::end));
    } else {
      for (const Rank& other : others_) other.link.send(LinkCommand{as_frame(FrameKind::end)});
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // Then they are killed.
  }
  wait_for_ends();
}

void GroupLeader::wait_for_ends() {
  const auto end = Clock::now() + kEndTime;
  for (Rank& other : others_) {
    const auto left = [&] {
      return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()),
                      std::chrono::milliseconds(0));
    };
    if (other.process) {
      other.process->wait(left());
      continue;
    }
    // What it still says is read, or the system would throw away what it has not read itself.
    try {
      while (other.link.wait(left())) {
        while (other.link.receive()) {
        }
      }
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // It has ended.
    }
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

void GroupLeader::meet() {
  if (!options_.shared.empty()) door_.emplace(options_.shared);
  std::vector<RankThatCame> all = meet_ranks(
      *options_.meeting, {.ranks = options_.ranks,
                          .model = options_.model,
                          .times = options_.times,
                          .check_hello = [this](const LinkHello& hello) { check_hello(hello); }});
  for (RankThatCame& each : all) {
    others_.push_back({.process = {},
                       .link = std::move(each.link),
                       .heard = Clock::now(),
                       .hello = std::move(each.hello)});
  }
}

void GroupLeader::check_hello(const LinkHello& hello) const {
  const Identity &own = options_.identity, &other = hello.identity;
  check_same(hello.rank, "protocol", cat(own.protocol), cat(other.protocol));
  check_same(hello.rank, "build", own.build, other.build);
  check_same(hello.rank, "device", own.device, other.device);
  check_same(hello.rank, "model", own.model, other.model);
  check_same(hello.rank, "flags", own.flags, other.flags);
  if (!options_.meeting || !options_.one_machine) return;
  const std::string machine = this_machine();
  if (hello.machine == machine) return;
  fail(Code::unsupported, kOp, "rank ", hello.rank, " is on another machine (", hello.machine,
       ") than the leader (", machine,
       "), and ranks on CPUs talk through shared memory: start all "
       "on one machine and in one network");
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
  check_same(rank, "number", cat(rank), cat(other.hello->rank));
  check_hello(*other.hello);
}

void GroupLeader::watch(const std::stop_token& stop) {
  std::vector<pollfd> links;
  for (const Rank& other : others_) {
    links.push_back({.fd = other.link.descriptor(), .events = POLLIN, .revents = 0});
  }
  if (door_) links.push_back({.fd = door_->descriptor(), .events = POLLIN, .revents = 0});
  auto last_look = Clock::now(), next_beat = last_look;
  while (!stop.stop_requested() && !lost_) {
    poll(links.data(), links.size(), static_cast<int>(kLook.count()));
    for (int rank = 1; rank < options_.ranks && !lost_; ++rank) {
      if (links[static_cast<size_t>(rank - 1)].revents != 0) hear(rank);
    }
    if (door_ && links.back().revents != 0) {
      WatchedProcess process = door_->answer();
      const std::scoped_lock lock(mutex_);
      if (!process.none()) met_.push_back(std::move(process));
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
    const bool starts = !other.hello && !other.process->stopped();
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
  if (const auto* done = std::get_if<LinkDone>(&message)) other.done = done->frames;
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
    lose(rank, ended ? end_of(other) : std::string(error.what()));
  }
}

// How a rank has ended, for a message.
std::string GroupLeader::end_of(Rank& rank) const {
  const std::optional<int> status =
      rank.process ? rank.process->wait(std::chrono::seconds(1)) : std::nullopt;
  if (!status) return "it closed its link";
  return *status > 128 ? cat("it ended by signal ", *status - 128)
                       : cat("it ended with status ", *status);
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
  if (channel_) channel_->end();
  // Those that wait for the lost one too, and one that is stopped, which no other signal ends.
  for (const Rank& other : others_) {
    if (other.process) other.process->kill();
    if (!other.process) other.link.close();
  }
  kill_met();
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

void GroupLeader::kill_met() {
  const std::scoped_lock lock(mutex_);
  for (const WatchedProcess& process : met_) process.kill();
}

void GroupLeader::command(std::span<const std::byte> message) {
  try {
    while (message.size() > kPartBytes) {
      give(as_frame(FrameKind::part, message.first(kPartBytes)));
      message = message.subspan(kPartBytes);
    }
    give(as_frame(FrameKind::command, message));
  } catch (const Error& error) {
    end(error.what());
    const std::scoped_lock lock(mutex_);
    fail(Code::device, kOp, why_);
  }
}

void GroupLeader::give(std::span<const std::byte> frame) {
  if (!channel_) return give_over_links(frame);
  channel_->write(frame);
  const std::scoped_lock lock(mutex_);
  figures_ = {.commands = channel_->messages(),
              .bytes = channel_->bytes(),
              .waited_seconds = channel_->waited_seconds()};
}

void GroupLeader::give_over_links(std::span<const std::byte> frame) {
  wait_for_done();
  const LinkCommand command{.frame = {frame.begin(), frame.end()}};
  for (size_t i = 0; i < others_.size(); ++i) {
    check(others_[i].link.send(command), kOp, "rank ", i + 1, " does not take its commands");
  }
  const std::scoped_lock lock(mutex_);
  ++figures_.commands;
  figures_.bytes += frame.size();
}

// Until no rank has kMostAhead frames before it.
void GroupLeader::wait_for_done() {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  const auto behind = [&] {
    return std::ranges::find_if(
        others_, [&](const Rank& other) { return figures_.commands >= other.done + kMostAhead; });
  };
  const bool came = changed_.wait_for(lock, options_.times.command,
                                      [&] { return lost_ || behind() == others_.end(); });
  fail_if_lost();
  if (!came) {
    fail(Code::device, kOp, "rank ", behind() - others_.begin() + 1, " has done nothing for ",
         options_.times.command.count(), " ms");
  }
  figures_.waited_seconds += std::chrono::duration<double>(Clock::now() - begin).count();
}

GroupFigures GroupLeader::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

}  // namespace rbee::group
