#include "tests/server/tls_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace rbee::testing {
namespace {

constexpr int kPatienceMs = 60'000;

}  // namespace

int connect_to(uint16_t port) {
  const int result = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(result, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(result);
    throw std::runtime_error("cannot connect");
  }
  return result;
}

void close_socket(int socket, bool reset) {
  const linger at_once{.l_onoff = reset ? 1 : 0, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
}

void skip_bytes_until(int socket, size_t count, std::string_view mark) {
  std::string text(count, '\0');
  size_t have = 0;
  while (have < count && !std::string_view(text).substr(0, have).ends_with(mark)) {
    pollfd readable{.fd = socket, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, kPatienceMs) <= 0) return;
    const ssize_t got = recv(socket, text.data() + have, count - have, 0);
    if (got <= 0) return;
    have += static_cast<size_t>(got);
  }
}

TlsClient::TlsClient(uint16_t port, size_t budget)
    : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
      ssl_(SSL_new(context_.get()), SSL_free),
      in_(BIO_new(BIO_s_mem())),
      out_(BIO_new(BIO_s_mem())),
      socket_(connect_to(port)),
      budget_(budget) {
  SSL_set_bio(ssl_.get(), in_, out_);
  SSL_set_connect_state(ssl_.get());
}

TlsClient::~TlsClient() {
  close(false);
}

void TlsClient::close(bool reset) {
  if (socket_ >= 0) close_socket(socket_, reset);
  socket_ = -1;
}

// Sends TLS's output; false once the budget is spent.
bool TlsClient::flush() {
  std::array<char, 4096> buffer;
  while (true) {
    const int made = BIO_read(out_, buffer.data(), static_cast<int>(buffer.size()));
    if (made <= 0) return socket_ >= 0;
    const size_t count = std::min(static_cast<size_t>(made), budget_);
    const ssize_t sent = ::send(socket_, buffer.data(), count, MSG_NOSIGNAL);
    if (sent < 0) return false;
    sent_ += count;
    budget_ -= count;
    if (count < static_cast<size_t>(made)) return false;
  }
}

bool TlsClient::fill() {
  if (wanted_ == 0) return false;
  std::array<char, 4096> buffer;
  pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, kPatienceMs) <= 0) return false;
  const ssize_t got = recv(socket_, buffer.data(), std::min(buffer.size(), wanted_), 0);
  if (got <= 0) return false;
  received_ += static_cast<size_t>(got);
  wanted_ -= static_cast<size_t>(got);
  BIO_write(in_, buffer.data(), static_cast<int>(got));
  return true;
}

bool TlsClient::handshake() {
  while (true) {
    const int done = SSL_do_handshake(ssl_.get());
    if (!flush()) return false;
    if (done == 1) return true;
    if (SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ || !fill()) return false;
  }
}

bool TlsClient::send(std::string_view text) {
  return SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())) > 0 && flush();
}

std::string TlsClient::read_until(std::string_view mark) {
  std::array<char, 4096> buffer;
  while (text_.find(mark) == std::string::npos) {
    const int got = SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (got > 0) {
      text_.append(buffer.data(), static_cast<size_t>(got));
    } else if (SSL_get_error(ssl_.get(), got) != SSL_ERROR_WANT_READ || !fill()) {
      break;
    }
  }
  return text_;
}

void TlsClient::read_bytes_until(size_t count, std::string_view mark) {
  wanted_ = count;
  read_until(mark);
}

}  // namespace rbee::testing
