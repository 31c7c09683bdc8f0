#pragma once
// The server's part of a command line: who may use it, and its limits.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/server.h"
#include "workers/common/stop_signals.h"

namespace CLI {
class App;
}

namespace rbee::workers {

struct ServerFlags {
  uint16_t port = 8080;  // 0 = any free one
  std::string host;      // empty = default_host()
  std::string api_keys;  // file of keys, see ApiKeys::add_file(); empty = none
  std::string tls_cert;  // files in PEM form, see tls_context(); empty = plain HTTP
  std::string tls_key;
  std::vector<std::string> cors_origins;  // web pages that may send requests; "*" = all
  int drain_seconds = 0;                  // time for running answers after a signal
  size_t max_connections = 512;
  size_t max_client_connections = 0;  // of one address; 0 = no extra limit
  size_t max_body_bytes = 0;          // 0 = the program's default
  size_t max_held_bytes = server::ServerOptions().max_held_bytes;
  size_t max_header_bytes = 16 * 1024;
  std::string
      otlp_endpoint;        // of a trace collector, see make_tracer(); empty = from the environment
  int header_seconds = 10;  // for a request's head, and for TLS's handshake
};

// Adds --port, --host, --api-keys, --tls-cert and all others to `app`.
void add_server_flags(CLI::App& app, ServerFlags& flags);

// The address of Ollama's variable OLLAMA_HOST, as Ollama reads it: "0.0.0.0", "host:port",
// ":port", "[::1]:port", "http://host:port/", also with blanks or quotes around it. Without a port,
// or with one that is none, it is Ollama's 11434, or the scheme's; an empty host is default_host().
struct OllamaHost {
  std::string host;
  uint16_t port = 11434;
  std::string warning;  // for the log: what is wrong with the port; empty: nothing
};
OllamaHost parse_ollama_host(std::string_view text);

// The token of LLORCH_API_TOKEN and the keys of the file. Throws io, and invalid_argument if the
// file has no valid keys.
server::ApiKeys read_keys(const ServerFlags& flags);

// name: value of the Server header. Logs who may use the server.
server::ServerOptions server_options(const std::string& name, const ServerFlags& flags,
                                     const server::ApiKeys& keys);

// What SIGHUP does: it reloads if there are files to read again.
Hangup hangup_of(const ServerFlags& flags);
// Reads keys and certificate again. If one of them is invalid, it logs that and keeps the old one.
void reload(const ServerFlags& flags, server::Server& server);

// All addresses if a token guards the server, else only this machine's.
std::string default_host(bool has_token);

// Value of an environment variable; empty if it is not set.
std::string environment(const char* name);

}  // namespace rbee::workers
