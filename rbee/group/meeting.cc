#include "rbee/group/meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "rbee/core/log.h"
#include "rbee/group/handshake.h"
#include "rbee/group/network.h"
#include "rbee/group/place.h"

namespace rbee::group {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOp = "group";
constexpr std::chrono::milliseconds kLook{250};
constexpr std::chrono::seconds kMissingTold{10};
// For a connection to show that it knows the secret.
constexpr std::chrono::seconds kProofTime{10};
constexpr size_t kMostStrangers = 64;
constexpr std::chrono::milliseconds kTryAgain{500};
constexpr std::chrono::seconds kConnectTime{5};

std::string shown(const MeetingPlace& place) {
  return cat(place.address, ", port ", place.port);
}

void check_secret(const MeetingPlace& place, const NetAddress& address) {
  check(address.loopback() || !place.secret.empty() || place.insecure, kOp, "the leader's address ",
        shown(place),
        " is not loopback, and there is no secret: set RBEE_GROUP_SECRET or "
        "--group-secret-file on all ranks, or --group-insecure on a network of your own");
}

// Waits for the name to be known, as of a container that has just started.
std::vector<NetAddress> resolve_until(const MeetingPlace& place, Clock::time_point end) {
  while (true) {
    std::vector<NetAddress> out = resolve(place.address, place.port);
    if (!out.empty()) return out;
    if (Clock::now() > end)
      fail(Code::device, kOp, "no address of \"", place.address, "\" is known");
    std::this_thread::sleep_for(kTryAgain);
  }
}

Descriptor listen_at(const MeetingPlace& place, Clock::time_point end) {
  const NetAddress address = resolve_until(place, end).front();
  check_secret(place, address);
  const bool named = is_number(place.address) || place.address == "localhost";
  check(named || !address.loopback(), kOp, "the leader's name \"", place.address, "\" is ",
        address.text(), " here, which other machines cannot reach: give its address as a number");
  return listen_on(address);
}

// A connection that has not said which rank it is.
struct Stranger {
  Descriptor socket;
  std::string from;
  Nonce nonce;
  Clock::time_point heard = Clock::now();
  std::vector<std::byte> answer = {};
  std::optional<RankLink> link = {};  // once it has shown that it knows the secret

  int descriptor() const { return link ? link->descriptor() : socket.get(); }
};

class Meeting {
 public:
  Meeting(const MeetingPlace& place, const MeetingTerms& terms)
      : place_(place), terms_(terms), there_(static_cast<size_t>(terms.ranks - 1)) {
    listener_ = listen_at(place, begin_ + terms.times.start);
  }

  std::vector<RankThatCame> gather() {
    try {
      while (!missing().empty()) look();
    } catch (const Error& error) {
      tell_all(LinkFailed{error.code(), std::string(error.message())});
      throw;
    }
    std::vector<RankThatCame> out;
    for (auto& each : there_) out.push_back(std::move(*each));
    return out;
  }

 private:
  std::string missing() const {
    std::string out;
    for (size_t i = 0; i < there_.size(); ++i) {
      if (!there_[i]) out += cat(out.empty() ? "" : ", ", i + 1);
    }
    return out;
  }

  void tell_all(const LinkMessage& message) {
    for (const Stranger& each : strangers_) {
      if (each.link) each.link->send(message);
    }
    for (const auto& each : there_) {
      if (each) each->link.send(message);
    }
  }

  void look() {
    std::vector<pollfd> all{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Stranger& each : strangers_) all.push_back({each.descriptor(), POLLIN, 0});
    for (const auto& each : there_) {
      if (each) all.push_back({each->link.descriptor(), POLLIN, 0});
    }
    poll(all.data(), all.size(), static_cast<int>(kLook.count()));
    accept_all();
    std::erase_if(strangers_, [&](Stranger& each) { return !stays(each); });
    // Not among the strangers' errors: a difference ends the group.
    for (const int rank : std::exchange(came_, {})) {
      terms_.check_hello(there_[static_cast<size_t>(rank - 1)]->hello);
    }
    for (auto& each : there_) {
      if (each) hear(*each);
    }
    keep_time();
  }

  void accept_all() {
    std::string from;
    for (Descriptor socket = accept_from(listener_.get(), from); socket.get() >= 0;
         socket = accept_from(listener_.get(), from)) {
      Stranger next{.socket = std::move(socket), .from = from, .nonce = new_nonce()};
      if (!write_all(next.socket.get(), encode_challenge({.leader = next.nonce}))) continue;
      // The one that has said nothing for longest makes room, but none that knows the secret.
      if (strangers_.size() >= kMostStrangers) {
        const auto silent =
            std::ranges::find_if(strangers_, [](const Stranger& each) { return !each.link; });
        if (silent == strangers_.end()) continue;
        strangers_.erase(silent);
      }
      strangers_.push_back(std::move(next));
    }
  }

  // False: the connection ends, or it is a rank's now.
  bool stays(Stranger& each) {
    try {
      if (!each.link) read_answer(each);
      if (each.link && take_hello(each)) return false;
    } catch (const Error& error) {
      log(LogLevel::warn, "a connection is no rank of this group",
          {{"from", each.from}, {"why", error.what()}});
      return false;
    }
    const auto patience = each.link ? Clock::duration(terms_.times.silence) : kProofTime;
    if (Clock::now() - each.heard <= patience) return true;
    log(LogLevel::warn, "a connection has not said which rank it is", {{"from", each.from}});
    return false;
  }

  void read_answer(Stranger& each) {
    std::array<std::byte, Answer::kBytes> bytes;
    const ssize_t size =
        recv(each.socket.get(), bytes.data(), Answer::kBytes - each.answer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    check(size > 0, kOp, "it has ended");
    each.answer.insert(each.answer.end(), bytes.begin(), bytes.begin() + size);
    if (each.answer.size() < Answer::kBytes) return;
    const Answer answer = decode_answer(each.answer);
    const auto proof_of = [&](Prover who) {
      return prove(place_.secret, who, each.nonce, answer.rank);
    };
    const bool knows = same_proof(answer.proof, proof_of(Prover::rank));
    const Confirmation told{.proof = knows ? proof_of(Prover::leader) : Proof{}};
    write_all(each.socket.get(), told.proof);
    check(knows, kOp, "it does not know the group's secret");
    each.link = RankLink::of_stream(std::move(each.socket));
    each.heard = Clock::now();
    each.link->send(LinkModel{terms_.model});
  }

  // True: it is a rank now.
  bool take_hello(Stranger& each) {
    while (std::optional<LinkMessage> message = each.link->receive()) {
      each.heard = Clock::now();
      if (const auto* const failed = std::get_if<LinkFailed>(&*message)) {
        fail(failed->code, kOp, failed->why);
      }
      const auto* const hello = std::get_if<LinkHello>(&*message);
      if (hello == nullptr) continue;
      const auto refuse = [&](const auto&... why) {
        each.link->send(LinkFailed{Code::invalid_argument, cat(why...)});
        fail(Code::invalid_argument, kOp, why...);
      };
      if (hello->rank < 1 || hello->rank >= terms_.ranks) {
        refuse("rank ", hello->rank, " is outside of 1 to ", terms_.ranks - 1);
      }
      std::optional<RankThatCame>& seat = there_[static_cast<size_t>(hello->rank - 1)];
      if (seat) refuse("rank ", hello->rank, " is there already");
      seat = {.link = std::move(*each.link), .hello = *hello};
      came_.push_back(hello->rank);
      return true;
    }
    return false;
  }

  static void hear(const RankThatCame& rank) {
    try {
      while (const auto message = rank.link.receive()) {
        const auto* const failed = std::get_if<LinkFailed>(&*message);
        if (failed != nullptr) throw Error(failed->code, kOp, failed->why);
      }
    } catch (const Error& error) {
      fail(error.code(), kOp, "rank ", rank.hello.rank, " is lost: ", error.message());
    }
  }

  void keep_time() {
    const auto now = Clock::now();
    if (now >= next_beat_) {
      next_beat_ = now + terms_.times.beat;
      tell_all(LinkBeat{});
    }
    if (missing().empty()) return;
    if (now - begin_ > terms_.times.start) {
      fail(Code::device, kOp, "ranks have not come to ", shown(place_), " within ",
           terms_.times.start.count(), " ms: ", missing());
    }
    if (now < next_told_) return;
    next_told_ = now + kMissingTold;
    log(LogLevel::warn, "ranks have not come yet",
        {{"missing", missing()}, {"address", place_.address}, {"port", cat(place_.port)}});
  }

  const MeetingPlace& place_;
  const MeetingTerms& terms_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_beat_ = begin_, next_told_ = begin_ + kMissingTold;
  Descriptor listener_;
  std::vector<int> came_;                           // ranks whose hello is not checked yet
  std::vector<Stranger> strangers_;                 // oldest first
  std::vector<std::optional<RankThatCame>> there_;  // rank r at r - 1
};

// Shows the leader that this rank knows the secret. Nothing: what is there is no leader, or it went
// away.
std::optional<RankLink> greet(Descriptor socket, const MeetingPlace& place) {
  std::array<std::byte, Challenge::kBytes> bytes;
  if (!read_all(socket.get(), bytes, kProofTime)) return std::nullopt;
  Nonce leader;
  try {
    leader = decode_challenge(bytes).leader;
  } catch (const Error&) {
    return std::nullopt;
  }
  const Nonce own = new_nonce();
  const Answer answer{.rank = own, .proof = prove(place.secret, Prover::rank, leader, own)};
  if (!write_all(socket.get(), encode_answer(answer))) return std::nullopt;
  Confirmation told;
  if (!read_all(socket.get(), told.proof, kProofTime)) return std::nullopt;
  check(!told.refuses(), kOp, "the leader at ", shown(place), " has another secret");
  check(same_proof(told.proof, prove(place.secret, Prover::leader, leader, own)), kOp,
        "who listens at ", shown(place), " does not know the group's secret");
  return RankLink::of_stream(std::move(socket));
}

}  // namespace

std::vector<RankThatCame> meet_ranks(const MeetingPlace& place, const MeetingTerms& terms) {
  return Meeting(place, terms).gather();
}

RankLink meet_leader(const MeetingPlace& place, const GroupTimes& times) {
  const auto begin = Clock::now();
  auto next_told = begin + kMissingTold;
  const char* state = "nobody answers";
  while (true) {
    for (const NetAddress& address : resolve_until(place, begin + times.start)) {
      check_secret(place, address);
      Descriptor socket = connect_to(address, kConnectTime);
      if (socket.get() < 0) continue;
      if (std::optional<RankLink> link = greet(std::move(socket), place)) return std::move(*link);
      state = "what answers is no leader of a group";
    }
    const auto now = Clock::now();
    if (now - begin > times.start) {
      fail(Code::device, kOp, "no leader at ", shown(place), " within ", times.start.count(),
           " ms: ", state);
    }
    if (now >= next_told) {
      next_told = now + kMissingTold;
      log(LogLevel::warn, "the leader is not there yet",
          {{"address", place.address}, {"port", cat(place.port)}, {"state", state}});
    }
    std::this_thread::sleep_for(kTryAgain);
  }
}

}  // namespace rbee::group
