#include "rbee/group/channel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "rbee/core/error.h"
#include "rbee/core/system/shared_memory.h"
#include "rbee/group/place.h"

namespace rbee::group {

// At the beginning of the shared memory; the ring is behind it. Counters only grow.
struct ChannelHeader {
  static constexpr uint32_t kMagic = 0x52424743;  // "RBGC"

  uint32_t magic = kMagic;
  uint32_t readers = 0;
  std::atomic<uint32_t> ended = 0;
  alignas(64) std::atomic<uint64_t> written = 0;   // bytes
  alignas(64) std::atomic<uint32_t> news = 0;      // changes when something was written or ended
  std::atomic<uint32_t> asleep = 0;                // readers that may sleep on it
  alignas(64) std::atomic<uint32_t> progress = 0;  // changes when a reader is done, or at an abort
  std::atomic<uint32_t> writer_asleep = 0;
  struct alignas(64) Reader {
    std::atomic<uint64_t> read = 0;  // bytes
    std::atomic<uint64_t> done = 0;  // messages
  };
  Reader reader[kMostRanks] = {};
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOp = "group";
constexpr size_t kHeaderBytes = (sizeof(ChannelHeader) + 4095) / 4096 * 4096;
constexpr size_t kTotalBytes = kHeaderBytes + kRingBytes;
// A message begins with its bytes, and takes a multiple of this.
constexpr size_t kUnit = 8;
constexpr std::chrono::microseconds kSpin{20};
// A sleeper looks again after this time, so that a lost wake-up costs no more.
constexpr std::chrono::milliseconds kSleep{500};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

size_t space_of(size_t bytes) {
  return kUnit + (bytes + kUnit - 1) / kUnit * kUnit;
}

void copy_in(std::byte* ring, uint64_t at, std::span<const std::byte> from) {
  const size_t begin = at % kRingBytes;
  const size_t first = std::min(from.size(), kRingBytes - begin);
  std::memcpy(ring + begin, from.data(), first);
  std::memcpy(ring, from.data() + first, from.size() - first);
}

void copy_out(const std::byte* ring, uint64_t at, std::span<std::byte> to) {
  const size_t begin = at % kRingBytes;
  const size_t first = std::min(to.size(), kRingBytes - begin);
  std::memcpy(to.data(), ring + begin, first);
  std::memcpy(to.data() + first, ring, to.size() - first);
}

void change(std::atomic<uint32_t>& word, const std::atomic<uint32_t>& sleepers) {
  word.fetch_add(1);
  if (sleepers.load() > 0) wake_all(word);
}

// Spins, then sleeps, until `ready` or the end of a sleep.
template <typename Ready>
void wait_a_while(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers, Ready ready) {
  const auto end = Clock::now() + kSpin;
  while (Clock::now() < end) {
    if (ready()) return;
  }
  sleepers.fetch_add(1);
  const uint32_t seen = word.load();
  if (!ready()) sleep_on(word, seen, kSleep);
  sleepers.fetch_sub(1);
}

}  // namespace

void ChannelSide::end() {
  header_->ended.store(1);
  for (std::atomic<uint32_t>* word : {&header_->news, &header_->progress}) {
    word->fetch_add(1);
    wake_all(*word);
  }
}

bool ChannelSide::ended() const {
  return header_->ended.load() != 0;
}

ChannelWriter::ChannelWriter(int readers, std::chrono::milliseconds limit)
    : memory_(kTotalBytes), readers_(readers), limit_(limit) {
  check(readers >= 1 && readers < kMostRanks, kOp, readers, " readers are outside of 1 to ",
        kMostRanks - 1);
  header_ = new (memory_.data()) ChannelHeader;
  header_->readers = static_cast<uint32_t>(readers);
  ring_ = memory_.data() + kHeaderBytes;
}

int ChannelWriter::behind(uint64_t messages, size_t bytes) const {
  const uint64_t written = header_->written.load();
  for (int i = 0; i < readers_; ++i) {
    const ChannelHeader::Reader& reader = header_->reader[i];
    const bool done = messages_ - std::min(reader.done.load(), messages_) <= messages;
    const bool room = written - std::min(reader.read.load(), written) + bytes <= kRingBytes;
    if (!done || !room) return i;
  }
  return -1;
}

void ChannelWriter::wait(uint64_t messages, size_t bytes) {
  const auto begin = Clock::now();
  int reader = 0;
  while ((reader = behind(messages, bytes)) >= 0) {
    if (ended()) fail(Code::device, kOp, "a rank was lost");
    if (Clock::now() - begin > limit_) {
      fail(Code::device, kOp, "rank ", reader + 1, " has done nothing for ", limit_.count(), " ms");
    }
    wait_a_while(header_->progress, header_->writer_asleep,
                 [&] { return ended() || behind(messages, bytes) < 0; });
  }
  waited_ += std::chrono::duration<double>(Clock::now() - begin).count();
}

void ChannelWriter::write(std::span<const std::byte> message) {
  check(!message.empty() && message.size() <= kMostMessageBytes, kOp, "a message of ",
        message.size(), " bytes is outside of 1 to ", kMostMessageBytes);
  wait(kMostAhead - 1, space_of(message.size()));
  if (ended()) fail(Code::device, kOp, "a rank was lost");
  const uint64_t at = header_->written.load();
  const uint64_t size = message.size();
  copy_in(ring_, at, std::as_bytes(std::span(&size, 1)));
  copy_in(ring_, at + kUnit, message);
  header_->written.store(at + space_of(message.size()));
  ++messages_;
  bytes_ += size;
  change(header_->news, header_->asleep);
}

void ChannelWriter::finish() {
  wait(0, 0);
}

ChannelReader::ChannelReader(int descriptor, int reader)
    : memory_(descriptor, kTotalBytes), reader_(reader) {
  header_ = reinterpret_cast<ChannelHeader*>(memory_.data());
  ring_ = memory_.data() + kHeaderBytes;
  const bool known = header_->magic == ChannelHeader::kMagic && reader >= 0 &&
                     static_cast<uint32_t>(reader) < header_->readers;
  check(known, kOp, "the shared memory is no channel with a reader ", reader);
}

void ChannelReader::done() {
  if (!undone_) return;
  undone_ = false;
  header_->reader[reader_].done.fetch_add(1);
  change(header_->progress, header_->writer_asleep);
}

std::vector<std::byte> ChannelReader::read() {
  done();
  const auto there = [&] { return ended() || header_->written.load() > read_; };
  while (!there()) wait_a_while(header_->news, header_->asleep, there);
  if (ended()) fail(Code::device, kOp, "the group has ended");
  const uint64_t written = header_->written.load();
  uint64_t size = 0;
  copy_out(ring_, read_, std::as_writable_bytes(std::span(&size, 1)));
  if (size == 0 || size > kMostMessageBytes || space_of(size) > written - read_) {
    fail(Code::internal, kOp, "a message of ", size, " bytes, where the ring has ",
         written - read_);
  }
  std::vector<std::byte> out(size);
  copy_out(ring_, read_ + kUnit, out);
  read_ += space_of(size);
  header_->reader[reader_].read.store(read_);
  change(header_->progress, header_->writer_asleep);
  undone_ = true;
  return out;
}

}  // namespace rbee::group
