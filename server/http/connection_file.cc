// The part of a connection that puts a body into a file.

#include <boost/asio/post.hpp>
#include <utility>

#include "server/http/body_file.h"
#include "server/http/http_connection.h"

namespace rbee::server {
namespace {

constexpr size_t kPiece = size_t{256} << 10;  // bytes that are written at once

}  // namespace

// Whether bytes wait that should be written before more are read.
bool HttpConnection::file_piece(bool last) {
  if (!file_) return false;
  const size_t size = parser_->get().body().bytes.size();
  return last ? size > 0 : size >= kPiece;
}

// Reads on when the piece is written: a body comes no faster than its disk.
void HttpConnection::write_piece() {
  disarm();
  context_.writers->submit([weak = weak_from_this(), file = file_,
                            executor = transport_->socket().get_executor(),
                            bytes = std::exchange(parser_->get().body().bytes, {})]() mutable {
    std::optional<Response> refusal = file->write(bytes);
    file.reset();
    boost::asio::post(executor, [weak, refusal = std::move(refusal)] {
      if (const auto self = weak.lock()) self->on_piece(refusal);
    });
  });
}

void HttpConnection::on_piece(const std::optional<Response>& refusal) {
  if (state_ != State::body) return;
  if (refusal) return reject(*refusal);
  read_body();
}

// Where it may wait for the disk, which may have much to free.
void HttpConnection::drop_file() {
  if (file_) context_.writers->submit([file = std::move(file_)]() mutable { file.reset(); });
}

}  // namespace rbee::server
