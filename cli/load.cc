#include "cli/load.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"

namespace rbee::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr size_t kReadBytes = 16384;
constexpr size_t kShownBytes = 200;  // of a server's refusal

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

// The text of a streamed chunk, in either API.
std::string text_of(const json& event) {
  const json choices = event.value("choices", json::array());
  if (!choices.is_array() || choices.empty() || !choices[0].is_object()) return {};
  const json& choice = choices[0];
  const json& found = choice.contains("delta") ? choice.at("delta").value("content", json())
                                               : choice.value("text", json());
  return found.is_string() ? found.get<std::string>() : std::string();
}

// Parses server-sent events from input that is cut anywhere.
class EventReader {
 public:
  EventReader(LoadAnswer& answer, Clock::time_point due) : answer_(answer), due_(due) {}

  void read(std::string_view bytes) {
    rest_ += bytes;
    size_t begin = 0;
    for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      line(std::string_view(rest_).substr(begin, end - begin));
    }
    rest_.erase(0, begin);
  }

 private:
  void line(std::string_view text) {
    constexpr std::string_view kData = "data:";
    if (!text.starts_with(kData)) return;
    const json event = json::parse(text.substr(kData.size()), nullptr, false);
    if (!event.is_object()) return;  // [DONE]
    if (event.contains("error")) answer_.error = event.at("error").dump();
    if (!text_of(event).empty()) piece();
    const json usage = event.value("usage", json());
    if (!usage.is_object()) return;
    answer_.prompt_tokens = usage.value("prompt_tokens", int64_t{0});
    answer_.output_tokens = usage.value("completion_tokens", int64_t{0});
  }

  void piece() {
    const double now = seconds_since(due_);
    if (pieces_++ == 0) {
      answer_.first_s = now;
    } else {
      answer_.gaps_s.push_back(now - last_);
    }
    last_ = now;
  }

  LoadAnswer& answer_;
  const Clock::time_point due_;
  std::string rest_;
  int64_t pieces_ = 0;
  double last_ = 0;
};

class Load {
 public:
  Load(const LoadTarget& target, std::span<const LoadRequest> requests)
      : target_(target), requests_(requests), answers_(requests.size()) {}

  std::vector<LoadAnswer> run() {
    tcp::resolver resolver(io_);
    error_code error;
    endpoints_ = resolver.resolve(target_.url.host, cat(target_.url.port), error);
    if (error) fail(Code::io, "load", target_.url.host, ": ", error.message());
    start_ = Clock::now();
    asio::co_spawn(io_, begin_all(), asio::detached);
    io_.run();
    return std::move(answers_);
  }

 private:
  asio::awaitable<void> begin_all() {
    asio::steady_timer timer(io_);
    for (size_t i = 0; i < requests_.size(); ++i) {
      timer.expires_at(start_ + seconds(requests_[i].at));
      co_await timer.async_wait(asio::use_awaitable);
      while (target_.concurrency > 0 && under_way_ >= target_.concurrency) {
        error_code ignored;
        ended_.expires_at(Clock::time_point::max());
        co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      }
      ++under_way_;
      asio::co_spawn(io_, one(i), asio::detached);
    }
  }

  asio::awaitable<void> one(size_t i) {
    LoadAnswer& answer = answers_[i];
    answer.due_s = requests_[i].at;
    const Clock::time_point due = start_ + seconds(requests_[i].at);
    try {
      co_await ask(requests_[i].body, answer, due);
    } catch (const std::exception& error) {
      answer.error = error.what();
    }
    answer.end_s = seconds_since(due);
    --under_way_;
    ended_.cancel();
  }

  asio::awaitable<void> ask(const std::string& body, LoadAnswer& answer, Clock::time_point due) {
    beast::tcp_stream stream(io_);
    stream.expires_after(seconds(target_.timeout_s));
    co_await stream.async_connect(endpoints_, asio::use_awaitable);
    stream.socket().set_option(tcp::no_delay(true));
    http::request<http::string_body> request(http::verb::post, target_.url.path + target_.path, 11);
    request.set(http::field::host, target_.url.host);
    request.set(http::field::content_type, "application/json");
    request.set(http::field::connection, "close");
    if (!target_.api_key.empty()) {
      request.set(http::field::authorization, "Bearer " + target_.api_key);
    }
    request.body() = body;
    request.prepare_payload();
    co_await http::async_write(stream, request, asio::use_awaitable);
    co_await read(stream, answer, due);
  }

  static asio::awaitable<void> read(beast::tcp_stream& stream, LoadAnswer& answer,
                                    Clock::time_point due) {
    beast::flat_buffer buffer;
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
    const unsigned status = parser.get().result_int();
    EventReader events(answer, due);
    std::string refusal;
    std::vector<char> part(kReadBytes);
    while (!parser.is_done()) {
      parser.get().body().data = part.data();
      parser.get().body().size = part.size();
      error_code error;
      co_await http::async_read_some(stream, buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
      if (error && error != http::error::need_buffer) throw boost::system::system_error(error);
      const std::string_view bytes(part.data(), part.size() - parser.get().body().size);
      if (status == 200) {
        events.read(bytes);
      } else {
        refusal += bytes;
      }
    }
    if (status != 200) answer.error = cat("status ", status, ": ", refusal.substr(0, kShownBytes));
  }

  const LoadTarget& target_;
  const std::span<const LoadRequest> requests_;
  std::vector<LoadAnswer> answers_;
  asio::io_context io_{1};
  asio::steady_timer ended_{io_};  // cancelled when a request ends
  tcp::resolver::results_type endpoints_;
  Clock::time_point start_;
  int under_way_ = 0;
};

}  // namespace

std::vector<LoadAnswer> send_load(const LoadTarget& target, std::span<const LoadRequest> requests) {
  return Load(target, requests).run();
}

}  // namespace rbee::tools
