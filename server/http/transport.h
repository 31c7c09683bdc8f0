#pragma once
// A connection's bytes, plain or through TLS, of a server or a client. Internal to server/http: all
// calls and callbacks are on the thread that runs the connection.

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}

namespace rbee::server {

struct ClientTls;

class Transport {
 public:
  using Opened = std::function<void(const boost::system::error_code&)>;
  using Moved = std::function<void(const boost::system::error_code&, size_t bytes)>;

  virtual ~Transport() = default;
  // Call it first: does TLS's handshake.
  virtual void open(Opened done) = 0;
  virtual void read_some(boost::asio::mutable_buffer to, Moved done) = 0;
  virtual void write(boost::asio::const_buffer from, Moved done) = 0;
  // Tells the other side that nothing follows. Plain: calls `done` at once, and reading can go on.
  // TLS: calls `done` when the other side has done the same; nothing more is read.
  virtual void finish(Opened done) = 0;
  // Whether each side may end its sending and read on.
  virtual bool half_closes() const = 0;
  virtual void close() = 0;
  virtual boost::asio::ip::tcp::socket& socket() = 0;
  // An error of this connection in words; with TLS also why the peer's certificate is invalid.
  virtual std::string explain(const boost::system::error_code& error) const = 0;
};

// tls: from tls_context(); null = plain.
std::unique_ptr<Transport> make_transport(boost::asio::ip::tcp::socket socket,
                                          const std::shared_ptr<boost::asio::ssl::context>& tls);

// For a client; connect it through socket() before open(). tls: from tls_client_context(); null =
// plain. host: the name or address that the server's certificate must have.
std::unique_ptr<Transport> make_client_transport(
    boost::asio::ip::tcp::socket socket, const std::shared_ptr<boost::asio::ssl::context>& tls,
    const std::string& host);

// TLS 1.2 and 1.3. certificate: file in PEM form, the server's own and its chain; key: its private
// key, in PEM form, without a password. Throws invalid_argument naming the file.
std::shared_ptr<boost::asio::ssl::context> tls_context(const std::string& certificate,
                                                       const std::string& key);
// TLS 1.2 and 1.3. Without authorities OpenSSL's places (SSL_CERT_FILE, SSL_CERT_DIR), else this
// system's (rbee/core/certificates.h). Throws invalid_argument naming the file.
std::shared_ptr<boost::asio::ssl::context> tls_client_context(const ClientTls& files);
// Logs if the context's certificate, from `file`, is expired or not yet valid.
void warn_of_dates(const boost::asio::ssl::context& context, const std::string& file);

}  // namespace rbee::server
