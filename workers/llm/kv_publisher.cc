#include "workers/llm/kv_publisher.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "rbee/core/error.h"
#include "server/wire/kv_event_fields.h"

namespace rbee::workers {
namespace {

constexpr const char* kOp = "kv events";
constexpr const char* kLibrary = "libzmq.so.5";  // of Debian's package libzmq5

// Of zmq.h, whose values do not change within libzmq.so.5.
constexpr int kPub = 1, kRouter = 6;
constexpr int kLinger = 17, kSendHighWater = 23;
constexpr int kDontWait = 1, kSendMore = 2, kReceiveMore = 13;

constexpr std::chrono::milliseconds kPause{50};  // until replays are looked for again
constexpr size_t kBatchesAtOnce = 256;
// Parts of a request for past batches: the client's identity, an empty one, the number.
constexpr size_t kReplayParts = 3;
constexpr size_t kMostPart = 256;  // bytes

using Number = std::array<char, 8>;

Number big_endian(uint64_t number) {
  Number out;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<char>(static_cast<uint8_t>(number >> (8 * (out.size() - 1 - i))));
  }
  return out;
}

uint64_t number_of(std::string_view bytes) {
  uint64_t out = 0;
  for (const char byte : bytes) out = out << 8 | static_cast<uint8_t>(byte);
  return out;
}

std::string_view text_of(const Number& number) {
  return {number.data(), number.size()};
}

std::string packed(const engine::KvEventBatch& batch) {
  std::string out;
  nlohmann::json::to_msgpack(server::batch_list(batch), out);
  return out;
}

bool binds(std::string_view endpoint) {
  return endpoint.find('*') != std::string_view::npos ||
         endpoint.find("::") != std::string_view::npos || endpoint.starts_with("ipc://");
}

struct Zmq {
  void* (*ctx_new)();
  int (*ctx_term)(void*);
  void* (*socket)(void*, int);
  int (*close)(void*);
  int (*setsockopt)(void*, int, const void*, size_t);
  int (*getsockopt)(void*, int, void*, size_t*);
  int (*bind)(void*, const char*);
  int (*connect)(void*, const char*);
  int (*send)(void*, const void*, size_t, int);
  int (*recv)(void*, void*, size_t, int);
  int (*error_number)();
  const char* (*error_text)(int);
};

const Zmq& zmq() {
  static const Zmq library = [] {
    // Never closed: its threads may outlive a publisher.
    void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const reason = dlerror();
      fail(Code::unsupported, kOp, "publishing needs ", kLibrary,
           ", which Debian's and Ubuntu's package libzmq5 has: ",
           reason == nullptr ? "it cannot be opened" : reason);
    }
    Zmq out;
    const auto find = [&]<typename Function>(Function*& function, const char* name) {
      function = reinterpret_cast<Function*>(dlsym(handle, name));
      if (function == nullptr) fail(Code::unsupported, kOp, kLibrary, " has no ", name);
    };
    find(out.ctx_new, "zmq_ctx_new");
    find(out.ctx_term, "zmq_ctx_term");
    find(out.socket, "zmq_socket");
    find(out.close, "zmq_close");
    find(out.setsockopt, "zmq_setsockopt");
    find(out.getsockopt, "zmq_getsockopt");
    find(out.bind, "zmq_bind");
    find(out.connect, "zmq_connect");
    find(out.send, "zmq_send");
    find(out.recv, "zmq_recv");
    find(out.error_number, "zmq_errno");
    find(out.error_text, "zmq_strerror");
    return out;
  }();
  return library;
}

}  // namespace

void require_zmq() {
  zmq();
}

// Used by one thread at a time.
class KvPublisher::Sockets {
 public:
  explicit Sockets(const KvEventsConfig& config) : context_(zmq().ctx_new()) {
    try {
      if (context_ == nullptr) fail(Code::io, kOp, "ZeroMQ gives no context");
      publish_ = open(kPub, config.hwm);
      use(publish_, config.endpoint, binds(config.endpoint));
      if (config.replay_endpoint.empty()) return;
      replay_ = open(kRouter, config.hwm);
      use(replay_, config.replay_endpoint, true);
    } catch (...) {
      close();
      throw;
    }
  }
  ~Sockets() { close(); }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  // A subscriber that has too many waiting loses it.
  void publish(std::string_view topic, const engine::KvEventBatch& batch) {
    send(publish_, topic, true);
    send(publish_, text_of(big_endian(batch.sequence)), true);
    send(publish_, packed(batch), false);
  }

  // Answers who asks for past batches.
  void replay(const engine::KvEventLog& log) {
    if (replay_ == nullptr) return;
    while (const std::optional<std::vector<std::string>> asked = receive()) {
      if (asked->size() != kReplayParts) continue;
      const std::string& client = asked->front();
      for (uint64_t next = number_of(asked->back());;) {
        const auto batches = log.from(next, kBatchesAtOnce);
        for (const auto& batch : batches) answer(client, batch->sequence, packed(*batch));
        if (batches.empty()) break;
        next = batches.back()->sequence + 1;
      }
      answer(client, UINT64_MAX, "");  // the end: -1
    }
  }

 private:
  static void* checked(void* socket) {
    if (socket == nullptr) fail(Code::io, kOp, zmq().error_text(zmq().error_number()));
    return socket;
  }
  void* open(int type, int32_t high_water) {
    void* const socket = checked(zmq().socket(context_, type));
    const int linger = 0, most = high_water;
    zmq().setsockopt(socket, kLinger, &linger, sizeof linger);
    zmq().setsockopt(socket, kSendHighWater, &most, sizeof most);
    return socket;
  }
  static void use(void* socket, const std::string& endpoint, bool bind) {
    const int status =
        bind ? zmq().bind(socket, endpoint.c_str()) : zmq().connect(socket, endpoint.c_str());
    if (status == 0) return;
    fail(Code::io, kOp, "the endpoint ", endpoint, " cannot be ", bind ? "bound" : "connected",
         ": ", zmq().error_text(zmq().error_number()));
  }
  static void send(void* socket, std::string_view part, bool more) {
    zmq().send(socket, part.data(), part.size(), kDontWait | (more ? kSendMore : 0));
  }
  void answer(std::string_view client, uint64_t sequence, std::string_view payload) {
    send(replay_, client, true);
    send(replay_, "", true);
    send(replay_, text_of(big_endian(sequence)), true);
    send(replay_, payload, false);
  }
  // The parts of the next message; nothing if none is there.
  std::optional<std::vector<std::string>> receive() {
    std::vector<std::string> parts;
    for (int more = 1; more != 0;) {
      std::array<char, kMostPart> part;
      const int bytes = zmq().recv(replay_, part.data(), part.size(), kDontWait);
      if (bytes < 0) return std::nullopt;
      parts.emplace_back(part.data(), std::min(static_cast<size_t>(bytes), part.size()));
      size_t size = sizeof more;
      if (zmq().getsockopt(replay_, kReceiveMore, &more, &size) != 0) return std::nullopt;
    }
    return parts;
  }
  void close() {
    if (replay_ != nullptr) zmq().close(replay_);
    if (publish_ != nullptr) zmq().close(publish_);
    if (context_ != nullptr) zmq().ctx_term(context_);
  }

  void* context_ = nullptr;
  void* publish_ = nullptr;
  void* replay_ = nullptr;
};

KvPublisher::KvPublisher(const KvEventsConfig& config,
                         std::shared_ptr<const engine::KvEventLog> log)
    : topic_(config.topic),
      log_(std::move(log)),
      sockets_(std::make_unique<Sockets>(config)),
      thread_([this] { run(); }) {}

KvPublisher::~KvPublisher() {
  stopping_ = true;
  thread_.join();
}

void KvPublisher::run() {
  for (uint64_t next = 0; !stopping_;) {
    log_->wait(next, kPause);
    for (const auto& batch : log_->from(next, kBatchesAtOnce)) {
      sockets_->publish(topic_, *batch);
      next = batch->sequence + 1;
    }
    sockets_->replay(*log_);
    // A closed log ends all waits at once.
    if (log_->closed() && next >= log_->end()) return;
  }
}

}  // namespace rbee::workers
