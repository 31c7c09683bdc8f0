#include "server/http/mailbox.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

constexpr size_t kMostWhole = size_t{64} * 1024;  // bytes of an event that is sent in one piece

void abandon_what_comes(const Response& response) {
  if (response.events) response.events->abandon();
  if (response.later) response.later->abandon();
}

}  // namespace

std::optional<StreamForm> stream_form(std::string_view content_type) {
  if (content_type.starts_with(kEventStreamType)) return StreamForm::events;
  if (content_type.starts_with(kLineStreamType)) return StreamForm::lines;
  return std::nullopt;
}

std::string_view end_of_event(StreamForm form) {
  return form == StreamForm::lines ? "\n" : "\n\n";
}

void Mailbox::attach(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void Mailbox::detach() {
  attach(nullptr);
}

void Mailbox::abandon() {
  std::function<void()> on_abandon;
  {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    abandoned_ = true;
    on_abandon = std::exchange(on_abandon_, nullptr);
  }
  if (on_abandon) on_abandon();
}

void Mailbox::wake_locked() {
  if (starved_ && wake_) wake_();
  starved_ = false;
}

void EventQueue::push_data(std::string_view payload) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  const std::string_view head = form_ == StreamForm::events ? "data: " : "";
  pending_.push_back(cat(head, payload, end_of_event(form_)));
  wake_locked();
}

void EventQueue::push_event(std::string_view name, std::string payload) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  const std::string_view end = end_of_event(form_);
  if (payload.size() > kMostWhole) {
    pending_.push_back(cat("event: ", name, "\ndata: "));
    pending_.push_back(std::move(payload));
    pending_.emplace_back(end);
  } else {
    pending_.push_back(cat("event: ", name, "\ndata: ", payload, end));
  }
  wake_locked();
}

void EventQueue::push_text(std::string_view events) {
  const std::lock_guard lock(mutex_);
  if (closed_ || events.empty()) return;
  pending_.emplace_back(events);
  wake_locked();
}

void EventQueue::fail() {
  const std::lock_guard lock(mutex_);
  closed_ = failed_ = true;
  wake_locked();
}

void EventQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  wake_locked();
}

size_t EventQueue::waiting_bytes() {
  const std::lock_guard lock(mutex_);
  size_t out = 0;
  for (const std::string& text : pending_) out += text.size();
  return out - taken_;
}

EventQueue::Piece EventQueue::take(size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  Piece piece;
  while (!pending_.empty()) {
    const std::string& first = pending_.front();
    const size_t rest = first.size() - taken_;
    const bool large = first.size() > kMostWhole;
    if (!piece.text.empty() && (large || piece.text.size() + rest > max_bytes)) break;
    const size_t count = large ? std::min(rest, std::max<size_t>(max_bytes, 1)) : rest;
    piece.text.append(first, taken_, count);
    taken_ += count;
    if (count < rest) break;
    pending_.pop_front();
    taken_ = 0;
  }
  piece.last = closed_ && pending_.empty();
  piece.broken = piece.last && failed_;
  starved_ = piece.text.empty() && !piece.last;
  return piece;
}

void DelayedResponse::abandon() {
  Mailbox::abandon();
  if (const std::optional<Response> response = take()) abandon_what_comes(*response);
}

void DelayedResponse::set(Response response) {
  {
    const std::lock_guard lock(mutex_);
    if (!abandoned_) {
      response_ = std::move(response);
      return wake_locked();
    }
  }
  abandon_what_comes(response);
}

std::optional<Response> DelayedResponse::take() {
  const std::lock_guard lock(mutex_);
  starved_ = !response_.has_value();
  return std::exchange(response_, std::nullopt);
}

}  // namespace rbee::server
