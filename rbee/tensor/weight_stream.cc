#include "rbee/tensor/weight_stream.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "rbee/core/log.h"
#include "rbee/tensor/host_buffer.h"

namespace rbee {
namespace {

constexpr size_t kPieceBytes = size_t{4} << 20;  // of one copy to the device
constexpr unsigned kMostCopiers = 4;             // a thread reads less than a bus takes

unsigned copier_count() {
  return std::clamp(std::thread::hardware_concurrency() / 4, 1U, kMostCopiers);
}

View plain_view(const Shape& shape, DType dtype) {
  View out{.dtype = dtype, .rank = static_cast<int8_t>(shape.rank())};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    out.sizes[i] = shape[i];
    out.strides[i] = step;
    step *= shape[i];
  }
  return out;
}

}  // namespace

struct WeightStream::Weight {
  std::vector<Tensor> parts;
  View view;  // without its address
  size_t bytes = 0;
};

// What start() makes. A weight is copied in pieces, which copiers take one by one.
struct WeightStream::Copying {
  struct Slot {
    std::shared_ptr<Buffer> buffer;
    void* used = nullptr;  // an event: the work that read the weight before
    bool was_used = false;
    std::array<void*, kMostCopiers> ready{};  // events: what each copier copied last
    std::array<bool, kMostCopiers> copied{};  // whether it copied any of this weight
  };
  struct Job {
    size_t index, slot;
    size_t part = 0, at = 0;  // of the next piece
    size_t done_bytes = 0;    // of pieces that are handed out
    size_t under_way = 0;     // pieces that copiers have
  };
  struct Piece {
    std::shared_ptr<Job> job;
    std::byte* to;
    const std::byte* from;
    size_t bytes;
  };
  struct Copier {
    Stream stream;
    std::array<HostBuffer, 2> halves;
    size_t half = 0;
  };

  Copying(Device& on, std::span<const Weight> all) : device(on), weights(all) {}
  ~Copying();
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;

  void take_memory(size_t slot_bytes);
  void run(size_t number);
  void copy(size_t number, const Piece& piece);
  std::optional<Piece> next_piece();
  void begin_at(size_t index, std::unique_lock<std::mutex>& lock);
  size_t take(size_t index);
  void give_back(size_t slot) noexcept;
  bool whole(const Job& job) const {
    return job.done_bytes == weights[job.index].bytes && job.under_way == 0;
  }

  Device& device;
  const std::span<const Weight> weights;
  std::mutex turns;
  std::array<Slot, kSlots> slots;
  std::vector<std::unique_ptr<Copier>> copiers;

  std::mutex mutex;  // guards what follows, and the slots' marks
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> jobs;  // in the order of use
  std::deque<size_t> free_slots;
  size_t next = 0;  // the weight of the next job
  std::exception_ptr failure;
  bool stop = false;
  std::vector<std::thread> threads;
};

void WeightStream::Copying::take_memory(size_t slot_bytes) {
  for (size_t i = 0; i < kSlots; ++i) {
    slots[i].buffer = std::make_shared<Buffer>(device, slot_bytes);
    slots[i].used = device.create_event();
    for (unsigned c = 0; c < copier_count(); ++c) slots[i].ready[c] = device.create_event();
    free_slots.push_back(i);
  }
  for (unsigned c = 0; c < copier_count(); ++c) {
    auto& copier = *copiers.emplace_back(std::make_unique<Copier>());
    copier.stream = device.create_stream();
    for (HostBuffer& half : copier.halves) half.reserve(device, kPieceBytes);
  }
}

WeightStream::Copying::~Copying() {
  {
    const std::scoped_lock lock(mutex);
    stop = true;
    changed.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  try {
    for (const auto& copier : copiers) device.synchronize(copier->stream);
    // The slots' memory goes back on the default stream.
    for (Slot& slot : slots) {
      if (slot.was_used) device.wait_event(slot.used, device.default_stream());
    }
  } catch (const Error& error) {
    log(LogLevel::warn, error.what(), {});
  }
  for (const auto& copier : copiers) {
    if (copier->stream.device != nullptr) device.destroy_stream(copier->stream);
  }
  for (const Slot& slot : slots) {
    if (slot.used != nullptr) device.destroy_event(slot.used);
    for (void* event : slot.ready) {
      if (event != nullptr) device.destroy_event(event);
    }
  }
}

// Begins a job where there is room for one. Needs the lock.
std::optional<WeightStream::Copying::Piece> WeightStream::Copying::next_piece() {
  const auto open = [&](const auto& job) { return job->done_bytes < weights[job->index].bytes; };
  auto found = std::ranges::find_if(jobs, open);
  if (found == jobs.end()) {
    if (free_slots.empty() || next == weights.size()) return std::nullopt;
    slots[free_slots.front()].copied.fill(false);
    jobs.push_back(std::make_shared<Job>(Job{.index = next++, .slot = free_slots.front()}));
    free_slots.pop_front();
    found = std::prev(jobs.end());
  }
  Job& job = **found;
  const Tensor& part = weights[job.index].parts[job.part];
  const auto part_bytes = static_cast<size_t>(part.bytes());
  Piece piece{.job = *found,
              .to = slots[job.slot].buffer->data() + job.done_bytes,
              .from = static_cast<const std::byte*>(part.view().data) + job.at,
              .bytes = std::min(kPieceBytes, part_bytes - job.at)};
  job.at += piece.bytes;
  if (job.at == part_bytes) ++job.part, job.at = 0;
  job.done_bytes += piece.bytes;
  ++job.under_way;
  return piece;
}

void WeightStream::Copying::run(size_t number) {
  std::unique_lock lock(mutex);
  while (true) {
    std::optional<Piece> piece;
    changed.wait(lock, [&] { return stop || (!failure && (piece = next_piece())); });
    if (stop) return;
    lock.unlock();
    std::exception_ptr failed;
    try {
      copy(number, *piece);
    } catch (...) {  // whatever it is, whoever waits for the weight gets it
      failed = std::current_exception();
    }
    lock.lock();
    if (failed) failure = failed;
    slots[piece->job->slot].copied[number] = true;
    --piece->job->under_way;
    changed.notify_all();
  }
}

void WeightStream::Copying::copy(size_t number, const Piece& piece) {
  Copier& copier = *copiers[number];
  const Slot& slot = slots[piece.job->slot];
  copier.half ^= 1U;
  auto* const half = copier.halves[copier.half].as<std::byte>();
  std::memcpy(half, piece.from, piece.bytes);
  // The other half's copy; the one of this half ended before that one was queued.
  device.synchronize(copier.stream);
  if (slot.was_used) device.wait_event(slot.used, copier.stream);
  device.copy(piece.to, half, piece.bytes, CopyKind::host_to_device, copier.stream);
  device.record_event(slot.ready[number], copier.stream);
}

// Drops the weights on their way.
void WeightStream::Copying::begin_at(size_t index, std::unique_lock<std::mutex>& lock) {
  next = weights.size();  // no new jobs
  const std::deque<std::shared_ptr<Job>> dropped = std::exchange(jobs, {});
  for (const std::shared_ptr<Job>& job : dropped) {
    changed.wait(lock, [&] { return job->under_way == 0; });
    free_slots.push_back(job->slot);
  }
  next = index;
  changed.notify_all();
}

size_t WeightStream::Copying::take(size_t index) {
  std::unique_lock lock(mutex);
  const size_t coming = jobs.empty() ? next : jobs.front()->index;
  if (coming != index || failure) {
    failure = nullptr;
    begin_at(index, lock);
  }
  changed.wait(lock, [&] { return failure || (!jobs.empty() && whole(*jobs.front())); });
  if (failure) {
    const std::exception_ptr thrown = failure;
    begin_at(weights.size(), lock);
    std::rethrow_exception(thrown);
  }
  const size_t slot = jobs.front()->slot;
  jobs.pop_front();
  return slot;
}

void WeightStream::Copying::give_back(size_t number) noexcept {
  Slot& slot = slots[number];
  try {
    const Tensor whole = Tensor::from_buffer(slot.buffer, plain_view({1}, DType::u8));
    device.record_event(slot.used, whole.stream());
  } catch (const Error& error) {
    log(LogLevel::warn, error.what(), {});  // the device is lost: the next call says so
  }
  const std::scoped_lock lock(mutex);
  slot.was_used = true;
  free_slots.push_back(number);
  changed.notify_all();
}

WeightStream::WeightStream(Device& device) : device_(device) {}

WeightStream::~WeightStream() = default;

size_t WeightStream::add(std::vector<Tensor> parts, const Shape& shape, DType dtype) {
  RB_ASSERT(!started());
  Weight weight{.parts = {}, .view = plain_view(shape, dtype)};
  for (Tensor& part : parts) {
    weight.bytes += static_cast<size_t>(part.bytes());
    if (part.bytes() > 0) weight.parts.push_back(std::move(part));
  }
  const int64_t wanted = weight.view.numel() / info(dtype).block_size * info(dtype).block_bytes;
  check(weight.bytes == static_cast<size_t>(wanted) && wanted > 0, "weight_stream", "the parts of ",
        dtype, " ", shape, " have ", weight.bytes, " bytes, wanted ", wanted);
  weights_.push_back(std::move(weight));
  return weights_.size() - 1;
}

int64_t WeightStream::bytes() const {
  int64_t out = 0;
  for (const Weight& weight : weights_) out += static_cast<int64_t>(weight.bytes);
  return out;
}

int64_t WeightStream::device_bytes() const {
  size_t most = 0;
  for (const Weight& weight : weights_) most = std::max(most, weight.bytes);
  return static_cast<int64_t>(most * kSlots);
}

void WeightStream::start() {
  RB_ASSERT(!started());
  if (weights_.empty()) return;
  auto copying = std::make_unique<Copying>(device_, weights_);
  copying->next = weights_.size();  // until one is taken
  copying->take_memory(static_cast<size_t>(device_bytes()) / kSlots);
  for (size_t c = 0; c < copying->copiers.size(); ++c) {
    copying->threads.emplace_back([all = copying.get(), c] { all->run(c); });
  }
  copying_ = std::move(copying);
}

bool WeightStream::started() const {
  return copying_ != nullptr;
}

WeightStream::Turn::Turn(WeightStream& stream) : stream_(stream) {
  RB_ASSERT(stream.started());
  stream.copying_->turns.lock();
}

WeightStream::Turn::~Turn() {
  give_back();
  stream_.copying_->turns.unlock();
}

Tensor WeightStream::Turn::take(size_t index) {
  RB_ASSERT(slots_.size() < kSlots && index < stream_.weights_.size());
  Copying& copying = *stream_.copying_;
  const size_t number = copying.take(index);
  slots_.push_back(number);
  const Copying::Slot& slot = copying.slots[number];
  View view = stream_.weights_[index].view;
  view.data = slot.buffer->data();
  Tensor out = Tensor::from_buffer(slot.buffer, view);
  for (size_t c = 0; c < copying.copiers.size(); ++c) {
    if (slot.copied[c]) stream_.device_.wait_event(slot.ready[c], out.stream());
  }
  return out;
}

void WeightStream::Turn::give_back() noexcept {
  for (const size_t slot : slots_) stream_.copying_->give_back(slot);
  slots_.clear();
}

}  // namespace rbee
