#include "server/http/transport.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::server {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(tcp::socket socket) : socket_(std::move(socket)) {}

  void open(Opened done) override { done({}); }
  void read_some(asio::mutable_buffer to, Moved done) override {
    socket_.async_read_some(to, std::move(done));
  }
  void write(asio::const_buffer from, Moved done) override {
    asio::async_write(socket_, from, std::move(done));
  }
  void finish(Opened done) override {
    error_code error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    done(error);
  }
  bool reads_after_finish() const override { return true; }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }
  tcp::socket& socket() override { return socket_; }

 private:
  tcp::socket socket_;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(tcp::socket socket, std::shared_ptr<ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

  void open(Opened done) override {
    stream_.async_handshake(ssl::stream_base::server, std::move(done));
  }
  void read_some(asio::mutable_buffer to, Moved done) override {
    stream_.async_read_some(to, std::move(done));
  }
  void write(asio::const_buffer from, Moved done) override {
    asio::async_write(stream_, from, std::move(done));
  }
  void finish(Opened done) override { stream_.async_shutdown(std::move(done)); }
  bool reads_after_finish() const override { return false; }
  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }
  tcp::socket& socket() override { return stream_.next_layer(); }

 private:
  const std::shared_ptr<ssl::context> context_;  // may be replaced for later connections
  ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(tcp::socket socket,
                                          const std::shared_ptr<ssl::context>& tls) {
  if (!tls) return std::make_unique<PlainTransport>(std::move(socket));
  return std::make_unique<TlsTransport>(std::move(socket), tls);
}

namespace {

// Clients refuse one outside its time, and say less about it.
void warn_of_dates(const ssl::context& context, const std::string& file) {
  const X509* certificate =
      SSL_CTX_get0_certificate(const_cast<ssl::context&>(context).native_handle());
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    log(LogLevel::warn, "the certificate has expired", {{"file", file}});
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    log(LogLevel::warn, "the certificate is not valid yet", {{"file", file}});
  }
}

}  // namespace

std::shared_ptr<ssl::context> tls_context(const std::string& certificate, const std::string& key) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  // A client could make the server compute without end (RFC 5246 section 7.4.1.1).
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION);
  error_code error;
  context->use_certificate_chain_file(certificate, error);
  check(!error, "tls", certificate, " is no certificate in PEM form: ", error.message());
  // A key with a password would ask for it on a terminal.
  context->set_password_callback([](size_t, ssl::context::password_purpose) { return ""; }, error);
  context->use_private_key_file(key, ssl::context::pem, error);
  check(!error, "tls", key, " is no private key of ", certificate, ": ", error.message());
  warn_of_dates(*context, certificate);
  return context;
}

}  // namespace rbee::server
