#pragma once
// A connection's bytes, plain or through TLS, of a server or a client. Internal to server/http: all
// calls, and all that is called, on the thread that runs the connection.

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
  // Before all else: TLS's handshake.
  virtual void open(Opened done) = 0;
  virtual void read_some(boost::asio::mutable_buffer to, Moved done) = 0;
  virtual void write(boost::asio::const_buffer from, Moved done) = 0;
  // Tells the other side that nothing follows. Plain: `done` at once, and what still comes can be
  // read. TLS: `done` when the other side has said the same; nothing is read any more.
  virtual void finish(Opened done) = 0;
  // Each side may end what it sends and read on.
  virtual bool half_closes() const = 0;
  virtual void close() = 0;
  virtual boost::asio::ip::tcp::socket& socket() = 0;
  // An error of this connection in words; of TLS also why the other side's certificate is none.
  virtual std::string explain(const boost::system::error_code& error) const = 0;
};

// tls: from tls_context(); null = plain.
std::unique_ptr<Transport> make_transport(boost::asio::ip::tcp::socket socket,
                                          const std::shared_ptr<boost::asio::ssl::context>& tls);

// A client's, to be connected through socket() before open(). tls: from tls_client_context(); null
// = plain. host: name or address that the server's certificate has to be for.
std::unique_ptr<Transport> make_client_transport(
    boost::asio::ip::tcp::socket socket, const std::shared_ptr<boost::asio::ssl::context>& tls,
    const std::string& host);

// TLS 1.2 and 1.3. certificate: file in PEM form, the server's own and those that vouch for it;
// key: its private key, in PEM form, without a password. Throws invalid_argument naming the file.
std::shared_ptr<boost::asio::ssl::context> tls_context(const std::string& certificate,
                                                       const std::string& key);
// TLS 1.2 and 1.3. Without authorities those of OpenSSL's own place count (SSL_CERT_FILE,
// SSL_CERT_DIR). Throws invalid_argument naming the file.
std::shared_ptr<boost::asio::ssl::context> tls_client_context(const ClientTls& files);
// Logs it when the context's certificate, which was read from `file`, is outside its time.
void warn_of_dates(const boost::asio::ssl::context& context, const std::string& file);

}  // namespace rbee::server
