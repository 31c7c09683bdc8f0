#include "rbee/group/rank_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "rbee/group/wire.h"

namespace rbee::group {
namespace {

constexpr const char* kOp = "group";
constexpr size_t kMostBytes = 64 * 1024;
constexpr int64_t kMostText = 16 * 1024;
constexpr size_t kMostDescriptors = 8;

enum class Kind : uint8_t { model, hello, welcome, beat, loaded, failed };

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
}
void put(WireWriter&, const LinkWelcome&) {}
void put(WireWriter&, const LinkBeat&) {}
void put(WireWriter& out, const LinkLoaded& message) {
  out.put(message.weight_bytes);
  out.put(message.cache_token_bytes);
}
void put(WireWriter& out, const LinkFailed& message) {
  out.put(static_cast<uint8_t>(message.code));
  out.put_text(std::string_view(message.why).substr(0, kMostText));
}

LinkHello take_hello(WireReader& in) {
  LinkHello out;
  out.identity.protocol = in.take<int32_t>("hello.protocol");
  out.rank = in.take<int32_t>("hello.rank");
  out.identity.build = in.take_text("hello.build", kMostText);
  out.identity.model = in.take_text("hello.model", kMostText);
  out.identity.flags = in.take_text("hello.flags", kMostText);
  out.identity.device = in.take_text("hello.device", kMostText);
  return out;
}

LinkMessage take(Kind kind, WireReader& in) {
  switch (kind) {
    case Kind::model:
      return LinkModel{in.take_text("model.path", kMostText)};
    case Kind::hello:
      return take_hello(in);
    case Kind::welcome:
      return LinkWelcome{};
    case Kind::beat:
      return LinkBeat{};
    case Kind::loaded: {
      const int64_t weights = in.take_within("loaded.weight_bytes", 0, INT64_MAX);
      return LinkLoaded{weights, in.take_within("loaded.cache_token_bytes", 0, INT64_MAX)};
    }
    case Kind::failed: {
      const auto code = in.take<uint8_t>("failed.code");
      check(code <= static_cast<uint8_t>(Code::internal), "group message", "failed.code ",
            int{code}, " is outside of 0 to ", static_cast<int>(Code::internal));
      return LinkFailed{static_cast<Code>(code), in.take_text("failed.why", kMostText)};
    }
  }
  fail(Code::invalid_argument, "group message", "its kind ", static_cast<int>(kind),
       " is outside of 0 to ", static_cast<int>(Kind::failed));
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
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail(Code::io, kOp, "socketpair: ", std::strerror(errno));
  }
  return {RankLink(Descriptor(ends[0])), RankLink(Descriptor(ends[1]))};
}

bool RankLink::send(const LinkMessage& message, std::span<const int> descriptors) const {
  std::vector<std::byte> bytes = encode_link(message);
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
  return sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

std::optional<LinkMessage> RankLink::receive(std::vector<Descriptor>* to) const {
  std::vector<std::byte> bytes(kMostBytes);
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
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
  pollfd wanted{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, static_cast<int>(patience.count())) > 0;
}

int RankLink::peer() const {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  const bool known = getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  return known ? credentials.pid : 0;
}

}  // namespace rbee::group
