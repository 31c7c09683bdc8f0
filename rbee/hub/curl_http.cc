#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "rbee/core/certificates.h"
#include "rbee/core/error.h"
#include "rbee/core/system/sockets.h"
#include "rbee/hub/http.h"
#include "rbee/hub/hub_json.h"
#include "rbee/hub/url.h"

namespace rbee::hub {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kStallSeconds = 30;   // without a byte, after which a request fails
constexpr long kWholeSeconds = 120;  // of a request without a sink
constexpr size_t kMaxHeaders = size_t{256} << 10;

struct Transfer {
  const HttpRequest& request;
  HttpResponse response;
  size_t header_bytes = 0;
  bool headers_passed = false;
  bool ended = false;    // by the sink or on_headers
  bool refused = false;  // the address
  bool too_large = false;
};

bool may_connect(const HttpRequest& request, std::string_view host) {
  const AddressKind kind = address_kind(host);
  return kind == AddressKind::open || (kind == AddressKind::loopback && request.loopback_allowed);
}

// A proxy resolves names, and its own address may well be a private one.
bool uses_proxy(const std::string& scheme) {
  const auto set = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value != nullptr && *value != '\0';
  };
  return set(scheme + "_proxy") || (scheme == "https" && set("HTTPS_PROXY")) || set("all_proxy") ||
         set("ALL_PROXY");
}

size_t on_header(char* data, size_t, size_t size, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size);
  if ((transfer.header_bytes += size) > kMaxHeaders) return 0;
  if (line.starts_with("HTTP/")) {  // also after "100 Continue" and a proxy's own answer
    transfer.response.headers.clear();
    return size;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front()))) {
    value.remove_prefix(1);
  }
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back()))) {
    value.remove_suffix(1);
  }
  transfer.response.headers[name] = value;
  return size;
}

size_t on_body(Transfer& transfer, CURL* curl, std::string_view bytes) {
  if (!transfer.headers_passed) {
    transfer.headers_passed = true;
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
    if (transfer.request.on_headers && !transfer.request.on_headers(transfer.response)) {
      transfer.ended = true;
      return 0;
    }
  }
  const int status = transfer.response.status;
  if (transfer.request.sink) {
    // Of another answer the status and the headers say enough; its body could be endless.
    const bool wanted = status == 200 || status == 206;
    if (wanted && transfer.request.sink(bytes)) return bytes.size();
    transfer.ended = true;
    return 0;
  }
  if (transfer.response.body.size() + bytes.size() > kMaxJson) {
    transfer.too_large = true;
    return 0;
  }
  transfer.response.body += bytes;
  return bytes.size();
}

curl_socket_t open_socket(void* user, curlsocktype, curl_sockaddr* address) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->family == AF_INET) {
    bytes = &reinterpret_cast<sockaddr_in*>(&address->addr)->sin_addr;
  } else if (address->family == AF_INET6) {
    bytes = &reinterpret_cast<sockaddr_in6*>(&address->addr)->sin6_addr;
  }
  const bool known =
      bytes != nullptr && inet_ntop(address->family, bytes, text.data(), text.size()) != nullptr;
  if (!known || !may_connect(transfer.request, text.data())) {
    transfer.refused = true;
    return CURL_SOCKET_BAD;
  }
  return open_socket(address->family, address->socktype, address->protocol, SocketWaits::yes);
}

struct Context {
  Transfer& transfer;
  CURL* curl;
};

size_t write_body(char* data, size_t, size_t size, void* user) {
  const Context& context = *static_cast<Context*>(user);
  return on_body(context.transfer, context.curl, std::string_view(data, size));
}

// Another result than 0 ends the request.
int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  if (transfer.request.going_on()) return 0;
  transfer.ended = true;
  return 1;
}

struct HeaderList {
  curl_slist* first = nullptr;
  ~HeaderList() { curl_slist_free_all(first); }
  void add(const std::string& line) { first = curl_slist_append(first, line.c_str()); }
};

}  // namespace

const std::string& HttpResponse::header(const std::string& name) const {
  static const std::string none;
  const auto found = headers.find(name);
  return found == headers.end() ? none : found->second;
}

class HttpClient::Impl {
 public:
  Impl() {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    curl_ = curl_easy_init();
    if (started != CURLE_OK || curl_ == nullptr) fail(Code::io, "hub", "libcurl does not start");
  }
  ~Impl() { curl_easy_cleanup(curl_); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  HttpResponse send(const HttpRequest& request) {
    const Origin origin = origin_of(request.url);
    Transfer transfer{.request = request, .response = {}};
    Context context{transfer, curl_};
    // The handle keeps its connections.
    curl_easy_reset(curl_);
    HeaderList headers;
    set_request(request, headers);
    set(CURLOPT_HEADERFUNCTION, on_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, write_body);
    set(CURLOPT_WRITEDATA, &context);
    if (request.going_on) {
      set(CURLOPT_NOPROGRESS, 0L);
      set(CURLOPT_XFERINFOFUNCTION, on_progress);
      set(CURLOPT_XFERINFODATA, &transfer);
    }
    if (request.guarded) {
      if (!may_connect(request, origin.host)) refuse(origin.host);
      if (!uses_proxy(origin.scheme)) {
        set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
        set(CURLOPT_OPENSOCKETDATA, &transfer);
      }
    }
    std::array<char, CURL_ERROR_SIZE> words{};
    set(CURLOPT_ERRORBUFFER, words.data());
    const CURLcode code = curl_easy_perform(curl_);
    long status = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
    curl_easy_setopt(curl_, CURLOPT_ERRORBUFFER, nullptr);
    if (code == CURLE_OK || transfer.ended) return std::move(transfer.response);
    if (transfer.refused) refuse(origin.host);
    const std::string reason = words[0] != '\0' ? words.data() : curl_easy_strerror(code);
    fail(Code::io, "hub", origin.host, ": ",
         transfer.too_large ? "the answer is too large" : reason);
  }

 private:
  template <typename T>
  void set(CURLoption option, T value) {
    curl_easy_setopt(curl_, option, value);
  }

  [[noreturn]] static void refuse(const std::string& host) {
    fail(Code::unsupported, "hub", "a redirect leads to ", host,
         ", an address of a private network; it is not followed");
  }

  void set_request(const HttpRequest& request, HeaderList& headers) {
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    if (!request.sink) set(CURLOPT_TIMEOUT, kWholeSeconds);
    set(CURLOPT_USERAGENT, "rbee");
    // A libcurl that was built elsewhere does not know this system's place.
    const std::string authorities = certificate_file();
    if (!authorities.empty()) set(CURLOPT_CAINFO, authorities.c_str());
    if (request.head) set(CURLOPT_NOBODY, 1L);
    // Sizes and ranges are those of the file itself.
    headers.add("Accept-Encoding: identity");
    if (!request.token.empty()) headers.add("Authorization: Bearer " + request.token);
    if (request.begin >= 0) {
      std::string range = cat("Range: bytes=", request.begin, "-");
      if (request.end >= 0) range += cat(request.end - 1);
      headers.add(range);
    }
    set(CURLOPT_HTTPHEADER, headers.first);
  }

  CURL* curl_ = nullptr;
};

HttpClient::HttpClient() : impl_(std::make_unique<Impl>()) {}
HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const HttpRequest& request) {
  return impl_->send(request);
}

}  // namespace rbee::hub
