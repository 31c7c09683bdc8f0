#include "server/llm/live_response.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

constexpr size_t kMostReaders = 8;  // at once

}  // namespace

std::string LiveResponse::object() const {
  const std::lock_guard lock(mutex_);
  return object_;
}

void LiveResponse::set_object(std::string json) {
  const std::lock_guard lock(mutex_);
  object_ = std::move(json);
}

bool LiveResponse::settle() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(settled_, true);
}

void LiveResponse::push(std::string_view name, std::string_view payload) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  std::string event = cat("event: ", name, "\ndata: ", payload, end_of_event(StreamForm::events));
  for (const auto& reader : readers_) reader->push_text(event);
  if (overflowed_) return;
  bytes_ += event.size();
  overflowed_ = bytes_ > most_bytes_;
  if (!overflowed_) return events_.push_back(std::move(event));
  events_ = {};
  bytes_ = 0;
}

void LiveResponse::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (const auto& reader : std::exchange(readers_, {})) reader->close();
}

bool LiveResponse::readable() const {
  const std::lock_guard lock(mutex_);
  return most_bytes_ > 0 && !overflowed_;
}

std::shared_ptr<EventQueue> LiveResponse::read(int64_t after) {
  const std::lock_guard lock(mutex_);
  if (most_bytes_ == 0 || overflowed_ || readers_.size() >= kMostReaders) return nullptr;
  // Whoever leaves is forgotten; the response goes on.
  const auto place = std::make_shared<const EventQueue*>(nullptr);
  auto out = std::make_shared<EventQueue>([weak = weak_from_this(), place] {
    if (const auto live = weak.lock()) live->forget(*place);
  });
  *place = out.get();
  const auto first = static_cast<size_t>(std::max<int64_t>(after + 1, 0));
  for (size_t i = first; i < events_.size(); ++i) out->push_text(events_[i]);
  ended_ ? out->close() : readers_.push_back(out);
  return out;
}

void LiveResponse::forget(const EventQueue* reader) {
  const std::lock_guard lock(mutex_);
  std::erase_if(readers_, [&](const auto& one) { return one.get() == reader; });
}

size_t LiveResponse::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace rbee::server
