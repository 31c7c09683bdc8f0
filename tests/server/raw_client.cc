#include "tests/server/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "rbee/core/cat.h"

namespace rbee::testing {
namespace {

constexpr int kPatienceMs = 60'000;

bool readable(int socket, int timeout_ms) {
  pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
  return poll(&wait, 1, timeout_ms) > 0;
}

}  // namespace

RawClient::RawClient(uint16_t port, int receive_buffer, const char* address) {
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  if (socket_ < 0) throw std::runtime_error(cat("no socket: ", std::strerror(errno)));
  if (receive_buffer > 0) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  sockaddr_in end{};
  end.sin_family = AF_INET;
  inet_pton(AF_INET, address, &end.sin_addr);
  const bool bound = bind(socket_, reinterpret_cast<sockaddr*>(&end), sizeof end) == 0;
  end.sin_port = htons(port);
  end.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!bound || connect(socket_, reinterpret_cast<sockaddr*>(&end), sizeof end) != 0) {
    const std::string why = std::strerror(errno);
    ::close(socket_);
    throw std::runtime_error(cat("cannot connect: ", why));
  }
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void RawClient::half_close() {
  shutdown(socket_, SHUT_WR);
}

void RawClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool RawClient::fill() {
  char buffer[16384];
  if (!readable(socket_, kPatienceMs)) return false;
  const ssize_t count = recv(socket_, buffer, sizeof buffer, 0);
  if (count <= 0) return false;
  input_.append(buffer, static_cast<size_t>(count));
  return true;
}

std::string RawClient::read_until(std::string_view mark) {
  size_t found = input_.find(mark);
  while (found == std::string::npos) {
    const size_t from = input_.size() - std::min(input_.size(), mark.size());
    if (!fill()) return std::exchange(input_, {});
    found = input_.find(mark, from);
  }
  std::string text = input_.substr(0, found + mark.size());
  input_.erase(0, found + mark.size());
  return text;
}

RawResponse RawClient::read_head() {
  RawResponse response;
  const std::string head = read_until("\r\n\r\n");
  if (!head.ends_with("\r\n\r\n")) return response;
  response.status = std::stoi(head.substr(9, 3));
  size_t line = head.find("\r\n") + 2;
  while (line + 2 < head.size()) {
    const size_t end = head.find("\r\n", line);
    const size_t colon = head.find(": ", line);
    std::string name = head.substr(line, colon - line);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    std::string& value = response.headers[name];
    value += cat(value.empty() ? "" : ", ", head.substr(colon + 2, end - colon - 2));
    line = end + 2;
  }
  return response;
}

std::string RawClient::read_chunks() {
  std::string body;
  while (true) {
    const std::string line = read_until("\r\n");
    if (line.empty()) return body + "<cut short>";
    const size_t size = std::stoul(line, nullptr, 16);
    while (input_.size() < size + 2) {
      if (!fill()) return body + "<cut short>";
    }
    body += input_.substr(0, size);
    input_.erase(0, size + 2);
    if (size == 0) return body;
  }
}

RawResponse RawClient::read_response(bool has_body) {
  RawResponse response = read_head();
  constexpr int kNoContent = 204;  // no body and no length (RFC 9110, section 15.3.5)
  if (response.status == 0 || response.status == kNoContent || !has_body) return response;
  if (response.headers.contains("transfer-encoding")) {
    response.body = read_chunks();
  } else if (response.headers.contains("content-length")) {
    const size_t size = std::stoul(response.headers["content-length"]);
    while (input_.size() < size && fill()) {
    }
    response.body = input_.substr(0, size);
    input_.erase(0, size);
  } else {
    while (fill()) {
    }
    response.body = std::exchange(input_, {});
  }
  return response;
}

bool RawClient::wait_closed(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  char buffer[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !readable(socket_, static_cast<int>(left.count()))) return false;
    if (recv(socket_, buffer, sizeof buffer, 0) <= 0) return true;
  }
}

std::string request(std::string_view method, std::string_view path, std::string_view body,
                    std::string_view extra_headers) {
  std::string text = cat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n", extra_headers);
  if (!body.empty()) {
    text += cat("Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n");
  }
  return cat(text, "\r\n", body);
}

RawResponse ask(uint16_t port, std::string_view bytes, const char* address) {
  RawClient client(port, 0, address);
  client.send(bytes);
  return client.read_response();
}

}  // namespace rbee::testing
