#include "rbee/group/rank_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "rbee/core/system/sockets.h"
#include "rbee/group/frame.h"
#include "rbee/group/wire.h"

namespace rbee::group {
namespace {

constexpr const char* kOp = "group";
constexpr size_t kMostBytes = 64 * 1024;
constexpr int64_t kMostText = 16 * 1024;
constexpr size_t kMostDescriptors = 8;
// Of a stream: the longest message, and how long a message waits for room.
constexpr uint32_t kMostStreamed = kPartBytes + 64;
constexpr std::chrono::seconds kStreamPatience{10};

enum class Kind : uint8_t { model, hello, welcome, beat, loaded, failed, command, done };

void put(WireWriter& out, const LinkModel& message) {
  out.put_text(message.path);
}
void put(WireWriter& out, const LinkHello& message) {
  out.put(message.identity.protocol);  // first, so that any later version can read it
  out.put(message.rank);
  for (const std::string* text : {&message.identity.build, &message.identity.model,
                                  &message.identity.flags, &message.identity.device}) {
    out.put_text(*text);
  }
  out.put_text(message.machine);
}
void put(WireWriter& out, const LinkWelcome& message) {
  out.put_text(message.memory);
  out.put_text(message.comm_id);
}
void put(WireWriter&, const LinkBeat&) {}
void put(WireWriter& out, const LinkLoaded& message) {
  out.put(message.weight_bytes);
  out.put(message.cache_token_bytes);
  out.put(message.free_bytes);
}
void put(WireWriter& out, const LinkFailed& message) {
  out.put(static_cast<uint8_t>(message.code));
  out.put_text(std::string_view(message.why).substr(0, kMostText));
}
void put(WireWriter& out, const LinkCommand& message) {
  out.put_list(
      std::span(reinterpret_cast<const uint8_t*>(message.frame.data()), message.frame.size()));
}
void put(WireWriter& out, const LinkDone& message) {
  out.put(message.frames);
}

LinkHello take_hello(WireReader& in) {
  LinkHello out;
  out.identity.protocol = in.take<int32_t>("hello.protocol");
  out.rank = in.take<int32_t>("hello.rank");
  out.identity.build = in.take_text("hello.build", kMostText);
  out.identity.model = in.take_text("hello.model", kMostText);
  out.identity.flags = in.take_text("hello.flags", kMostText);
  out.identity.device = in.take_text("hello.device", kMostText);
  out.machine = in.take_text("hello.machine", kMostText);
  return out;
}

LinkCommand take_command(WireReader& in) {
  const std::vector<uint8_t> frame =
      in.take_list<uint8_t>("command.frame", static_cast<int64_t>(kPartBytes) + 1);
  check(!frame.empty(), "group message", "command.frame is empty");
  const auto bytes = std::as_bytes(std::span(frame));
  return {.frame = {bytes.begin(), bytes.end()}};
}

LinkMessage take(Kind kind, WireReader& in) {
  switch (kind) {
    case Kind::model:
      return LinkModel{in.take_text("model.path", kMostText)};
    case Kind::hello:
      return take_hello(in);
    case Kind::welcome:
      return LinkWelcome{.memory = in.take_text("welcome.memory", kMostText),
                         .comm_id = in.take_text("welcome.comm_id", kMostText)};
    case Kind::beat:
      return LinkBeat{};
    case Kind::loaded: {
      const int64_t weights = in.take_within("loaded.weight_bytes", 0, INT64_MAX);
      const int64_t cache = in.take_within("loaded.cache_token_bytes", 0, INT64_MAX);
      return LinkLoaded{weights, cache, in.take_within("loaded.free_bytes", 0, INT64_MAX)};
    }
    case Kind::failed: {
      const auto code = in.take<uint8_t>("failed.code");
      check(code <= static_cast<uint8_t>(Code::internal), "group message", "failed.code ",
            int{code}, " is outside of 0 to ", static_cast<int>(Code::internal));
      return LinkFailed{static_cast<Code>(code), in.take_text("failed.why", kMostText)};
    }
    case Kind::command:
      return take_command(in);
    case Kind::done:
      return LinkDone{in.take<uint64_t>("done.frames")};
  }
  fail(Code::invalid_argument, "group message", "its kind ", static_cast<int>(kind),
       " is outside of 0 to ", static_cast<int>(Kind::done));
}

}  // namespace

std::vector<std::byte> encode_link(const LinkMessage& message) {
  WireWriter out;
  out.put(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& each) { put(out, each); }, message);
  return {out.bytes().begin(), out.bytes().end()};
}

LinkMessage decode_link(std::span<const std::byte> message) {
  WireReader in(message);
  const auto kind = static_cast<Kind>(in.take<uint8_t>("kind"));
  LinkMessage out = take(kind, in);
  in.end();
  return out;
}

std::pair<RankLink, RankLink> RankLink::pair() {
  std::array<int, 2> ends{};
  if (!open_socket_pair(SOCK_SEQPACKET, ends)) {
    fail(Code::io, kOp, "socketpair: ", std::strerror(errno));
  }
  return {RankLink(Descriptor(ends[0])), RankLink(Descriptor(ends[1]))};
}

struct RankLink::Stream {
  std::mutex sending;
  std::vector<std::byte> arrived;  // of messages that are not received yet
};

void RankLink::StreamEnd::operator()(Stream* stream) const {
  delete stream;
}

RankLink RankLink::of_stream(Descriptor socket) {
  RankLink out(std::move(socket));
  out.stream_.reset(new Stream);
  return out;
}

namespace {

// The first message's bytes behind its length; nothing: not all of it is there.
std::optional<size_t> first_message(const std::vector<std::byte>& arrived) {
  uint32_t size = 0;
  if (arrived.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, arrived.data(), sizeof size);
  check(size >= 1 && size <= kMostStreamed, "group message", "its length ", size,
        " is outside of 1 to ", kMostStreamed);
  if (arrived.size() - sizeof size < size) return std::nullopt;
  return size;
}

}  // namespace

bool RankLink::send_on_stream(std::span<const std::byte> message, bool may_drop) const {
  const auto size = static_cast<uint32_t>(message.size());
  std::vector<std::byte> bytes(sizeof size + message.size());
  std::memcpy(bytes.data(), &size, sizeof size);
  std::memcpy(bytes.data() + sizeof size, message.data(), message.size());
  std::unique_lock lock(stream_->sending, std::defer_lock);
  // Whoever sends now gives a sign of life.
  if (may_drop && !lock.try_lock()) return false;
  if (!lock.owns_lock()) lock.lock();
  const auto end = std::chrono::steady_clock::now() + kStreamPatience;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now =
        ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT | kNoSignal);
    if (now > 0) sent += static_cast<size_t>(now);
    if (now >= 0 || errno == EINTR) continue;
    const bool full = errno == EAGAIN;
    if (full && may_drop && sent == 0) return false;
    if (!full || std::chrono::steady_clock::now() > end) {
      close();  // half a message may be there
      return false;
    }
    pollfd room{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    poll(&room, 1, 250);
  }
  return true;
}

std::optional<LinkMessage> RankLink::receive_from_stream() const {
  std::vector<std::byte>& arrived = stream_->arrived;
  while (true) {
    if (const std::optional<size_t> size = first_message(arrived)) {
      const std::span message = std::span(arrived).subspan(sizeof(uint32_t), *size);
      LinkMessage out = decode_link(message);
      arrived.erase(arrived.begin(),
                    arrived.begin() + static_cast<ptrdiff_t>(sizeof(uint32_t) + *size));
      return out;
    }
    const size_t before = arrived.size();
    arrived.resize(before + kMostBytes);
    const ssize_t size = recv(socket_.get(), arrived.data() + before, kMostBytes, MSG_DONTWAIT);
    const int error = errno;
    arrived.resize(before + static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (size < 0 && (error == EAGAIN || error == EINTR)) return std::nullopt;
    if (size <= 0) fail(Code::device, kOp, "the other side has ended");
  }
}

bool RankLink::send(const LinkMessage& message, std::span<const int> descriptors) const {
  std::vector<std::byte> bytes = encode_link(message);
  if (stream_) return send_on_stream(bytes, std::holds_alternative<LinkBeat>(message));
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    check(descriptors.size() <= kMostDescriptors, kOp, descriptors.size(),
          " descriptors are more than ", kMostDescriptors);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(first), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(socket_.get(), &header, MSG_DONTWAIT | kNoSignal) >= 0;
}

std::optional<LinkMessage> RankLink::receive(std::vector<Descriptor>* to) const {
  if (stream_) return receive_from_stream();
  std::vector<std::byte> bytes(kMostBytes);
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const auto take_one = [&] {
    return recvmsg(socket_.get(), &header, MSG_DONTWAIT | kReceiveCloseOnExec);
  };
  ssize_t size = take_one();
  // The system tells, once, that the other side ended with messages unread: before those that it
  // had sent itself, the reason of its end among them.
  if (size < 0 && errno == ECONNRESET) size = take_one();
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (size <= 0) fail(Code::device, kOp, "the other side has ended");
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
      Descriptor received(number);
      if (to != nullptr) to->push_back(std::move(received));
    }
  }
  return decode_link(std::span(bytes).first(static_cast<size_t>(size)));
}

bool RankLink::wait(std::chrono::milliseconds patience) const {
  if (stream_ && first_message(stream_->arrived)) return true;
  pollfd wanted{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, static_cast<int>(patience.count())) > 0;
}

int RankLink::peer() const {
  const std::optional<SocketPeer> peer = socket_peer(socket_.get());
  return peer ? peer->process : 0;
}

void RankLink::close() const {
  shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace rbee::group
