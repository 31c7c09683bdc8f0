#include "server/http/transport.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <filesystem>

#include "rbee/core/certificates.h"
#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "server/http/client.h"

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
  bool half_closes() const override { return true; }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }
  tcp::socket& socket() override { return socket_; }
  std::string explain(const error_code& error) const override { return error.message(); }

 private:
  tcp::socket socket_;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(tcp::socket socket, std::shared_ptr<ssl::context> context,
               ssl::stream_base::handshake_type side)
      : context_(std::move(context)), stream_(std::move(socket), *context_), side_(side) {}

  // Clients call it before open().
  void expect(const std::string& host);

  void open(Opened done) override { stream_.async_handshake(side_, std::move(done)); }
  void read_some(asio::mutable_buffer to, Moved done) override {
    stream_.async_read_some(to, std::move(done));
  }
  void write(asio::const_buffer from, Moved done) override {
    asio::async_write(stream_, from, std::move(done));
  }
  void finish(Opened done) override { stream_.async_shutdown(std::move(done)); }
  bool half_closes() const override { return false; }
  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }
  tcp::socket& socket() override { return stream_.next_layer(); }
  std::string explain(const error_code& error) const override;

 private:
  const std::shared_ptr<ssl::context> context_;  // may be replaced for later connections
  // Mutable: OpenSSL's getters take only handles that they might change.
  mutable ssl::stream<tcp::socket> stream_;
  const ssl::stream_base::handshake_type side_;
};

// A client does not send an IP address as a server name (RFC 6066 section 3).
void TlsTransport::expect(const std::string& host) {
  SSL* const tls = stream_.native_handle();
  SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  error_code no_address;
  asio::ip::make_address(host, no_address);
  const bool done = no_address
                        ? SSL_set1_host(tls, host.c_str()) == 1 &&
                              SSL_set_tlsext_host_name(tls, host.c_str()) == 1
                        : X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host.c_str()) == 1;
  check(done, "tls", "no certificate can be for the host '", host, "'");
}

std::string TlsTransport::explain(const error_code& error) const {
  const long verdict = SSL_get_verify_result(stream_.native_handle());
  if (verdict == X509_V_OK) return error.message();
  return cat(error.message(), ": ", X509_verify_cert_error_string(verdict));
}

}  // namespace

std::unique_ptr<Transport> make_transport(tcp::socket socket,
                                          const std::shared_ptr<ssl::context>& tls) {
  if (!tls) return std::make_unique<PlainTransport>(std::move(socket));
  return std::make_unique<TlsTransport>(std::move(socket), tls, ssl::stream_base::server);
}

std::unique_ptr<Transport> make_client_transport(tcp::socket socket,
                                                 const std::shared_ptr<ssl::context>& tls,
                                                 const std::string& host) {
  if (!tls) return std::make_unique<PlainTransport>(std::move(socket));
  auto out = std::make_unique<TlsTransport>(std::move(socket), tls, ssl::stream_base::client);
  out->expect(host);
  return out;
}

// Clients refuse a certificate outside its validity with a less clear message.
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

namespace {

// Refuses FIFOs, on which OpenSSL would wait for a writer. problem: begins like OpenSSL's errors.
void check_file(const std::string& file, const std::string& problem) {
  try {
    const InputFile opened(file);
  } catch (const Error& error) {
    fail(Code::invalid_argument, "tls", problem, error.what());
  }
}

void use_certificate(ssl::context& context, const std::string& certificate,
                     const std::string& key) {
  error_code error;
  const std::string no_certificate = cat(certificate, " is no certificate in PEM form: ");
  check_file(certificate, no_certificate);
  context.use_certificate_chain_file(certificate, error);
  check(!error, "tls", no_certificate, error.message());
  // For a key with a password, OpenSSL would ask on the terminal.
  context.set_password_callback([](size_t, ssl::context::password_purpose) { return ""; }, error);
  const std::string no_key = cat(key, " is no private key of ", certificate, ": ");
  check_file(key, no_key);
  context.use_private_key_file(key, ssl::context::pem, error);
  check(!error, "tls", no_key, error.message());
}

// An OpenSSL that was built elsewhere does not know this system's place.
void trust_system(ssl::context& context, error_code& error) {
  std::error_code ignored;
  const bool known = std::getenv(X509_get_default_cert_file_env()) != nullptr ||
                     std::getenv(X509_get_default_cert_dir_env()) != nullptr ||
                     std::filesystem::exists(X509_get_default_cert_dir(), ignored);
  const std::string file = known ? "" : certificate_file();
  if (file.empty()) {
    context.set_default_verify_paths(error);
  } else {
    context.load_verify_file(file, error);
  }
}

}  // namespace

std::shared_ptr<ssl::context> tls_context(const std::string& certificate, const std::string& key) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  // With renegotiation, a client could make the server compute forever (RFC 5246 section 7.4.1.1).
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION);
  use_certificate(*context, certificate, key);
  warn_of_dates(*context, certificate);
  return context;
}

std::shared_ptr<ssl::context> tls_client_context(const ClientTls& files) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_verify_mode(ssl::verify_peer);
  error_code error;
  if (files.authorities.empty()) {
    trust_system(*context, error);
    check(!error, "tls", "the system's certificates cannot be read: ", error.message());
  } else {
    const std::string none = cat(files.authorities, " holds no certificate in PEM form: ");
    check_file(files.authorities, none);
    context->load_verify_file(files.authorities, error);
    check(!error, "tls", none, error.message());
  }
  if (!files.certificate.empty()) use_certificate(*context, files.certificate, files.key);
  return context;
}

}  // namespace rbee::server
