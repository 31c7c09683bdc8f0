#include "workers/common/server_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "server/http/client.h"
#include "server/http/cors.h"
#include "server/http/local_host.h"

namespace rbee::workers {
namespace {

// The text without such characters at its ends.
std::string_view without_edges(std::string_view text, std::string_view characters) {
  const size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

}  // namespace

void add_server_flags(CLI::App& app, ServerFlags& flags) {
  app.add_option("--port", flags.port, "Port to listen on; 0 = any free one")
      ->capture_default_str();
  app.add_option("--host", flags.host,
                 "Address to listen on; by default 127.0.0.1, and 0.0.0.0 when LLORCH_API_TOKEN "
                 "or --api-keys is set");
  app.add_option("--api-keys", flags.api_keys,
                 "File of keys that clients may send, NAME KEY a line; read again on SIGHUP")
      ->check(CLI::ExistingFile);
  CLI::Option* certificate = app.add_option("--tls-cert", flags.tls_cert,
                                            "Certificate and its chain, PEM; read again on SIGHUP")
                                 ->check(CLI::ExistingFile);
  app.add_option("--tls-key", flags.tls_key, "Private key of --tls-cert, PEM, without a password")
      ->check(CLI::ExistingFile)
      ->needs(certificate);
  certificate->needs("--tls-key");
  app.add_option("--cors-origin", flags.cors_origins,
                 "Allow web pages of this origin; may be given several times; * = all")
      ->check([](const std::string& text) -> std::string {
        if (text == "*" || server::is_origin(text)) return {};
        return cat("'", text, "' is no origin as browsers send it, such as https://chat.example");
      });
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "After a signal, time for running answers to end")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_option("--max-connections", flags.max_connections, "Open connections at most")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--max-client-connections", flags.max_client_connections,
                 "Open connections of one address at most; 0 = no such limit")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--max-body-bytes", flags.max_body_bytes,
                 "Size of a request's body at most; 0 = the default of the worker's kind")
      ->check(CLI::Range(size_t{0}, size_t{1} << 30))
      ->capture_default_str();
  app.add_option("--max-held-bytes", flags.max_held_bytes,
                 "Size of all bodies above 64 KiB that are held at once, at least that of four of "
                 "the largest")
      ->check(CLI::Range(size_t{0}, size_t{1} << 40))
      ->capture_default_str();
  app.add_option("--max-header-bytes", flags.max_header_bytes, "Size of a request's head at most")
      ->check(CLI::Range(1024, 1 << 20))
      ->capture_default_str();
  app.add_option("--header-seconds", flags.header_seconds,
                 "Time for a request's head to arrive, from its first byte")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--otlp-endpoint", flags.otlp_endpoint,
                 "Collector of OpenTelemetry's traces, e.g. http://localhost:4318")
      ->check([](const std::string& text) -> std::string {
        try {
          server::parse_url(text);
          return {};
        } catch (const Error& error) {
          return error.what();
        }
      });
}

OllamaHost parse_ollama_host(std::string_view text) {
  OllamaHost out;
  std::string_view rest = without_edges(text, " \t\r\n\v\f");
  rest = without_edges(rest, "\"'");
  const auto take_scheme = [&](std::string_view scheme, uint16_t port) {
    if (!rest.starts_with(scheme)) return;
    rest.remove_prefix(scheme.size());
    out.port = port;
  };
  take_scheme("http://", 80);
  take_scheme("https://", 443);
  rest = rest.substr(0, rest.find('/'));
  const bool bracketed = rest.starts_with('[');
  const size_t end = bracketed ? rest.find(']') : rest.rfind(':');
  // More than one colon without brackets: an address of IPv6 alone.
  const bool bare = !bracketed && rest.find(':') != end;
  const size_t colon = bare ? std::string_view::npos : rest.find(':', bracketed ? end : 0);
  out.host = rest.substr(0, colon);
  if (bracketed && end != std::string_view::npos) out.host = rest.substr(1, end - 1);
  if (colon == std::string_view::npos) return out;
  const std::string_view port = rest.substr(colon + 1);
  const char* const stop = port.data() + port.size();
  uint16_t number = 0;
  const auto [read, error] = std::from_chars(port.data(), stop, number);
  if (error == std::errc() && read == stop) {
    out.port = number;
  } else {
    out.warning = cat("'", printable_line(text), "' has no port from 0 to 65535 after its last ",
                      "colon: it is ", out.port);
  }
  return out;
}

server::ApiKeys read_keys(const ServerFlags& flags) {
  server::ApiKeys keys(environment("LLORCH_API_TOKEN"));
  if (flags.api_keys.empty()) return keys;
  keys.add_file(read_file(flags.api_keys), flags.api_keys);
  return keys;
}

server::ServerOptions server_options(const std::string& name, const ServerFlags& flags,
                                     const server::ApiKeys& keys) {
  server::ServerOptions options;
  options.host = flags.host.empty() ? default_host(keys.enabled()) : flags.host;
  options.port = flags.port;
  options.name = name;
  options.max_connections = flags.max_connections;
  options.max_client_connections = flags.max_client_connections;
  options.max_held_bytes = flags.max_held_bytes;
  options.max_header_bytes = flags.max_header_bytes;
  options.header_timeout = std::chrono::seconds(flags.header_seconds);
  options.cors_origins = flags.cors_origins;
  options.tls_certificate = flags.tls_cert;
  options.tls_key = flags.tls_key;
  if (keys.enabled()) {
    log(LogLevel::info, "a key is needed", {{"keys", keys.describe()}});
  } else if (!server::is_loopback_host(options.host)) {
    log(LogLevel::warn,
        "ANYBODY WHO REACHES THIS ADDRESS MAY USE THE WORKER: set LLORCH_API_TOKEN or --api-keys, "
        "or listen on 127.0.0.1",
        {{"host", options.host}});
  }
  return options;
}

Hangup hangup_of(const ServerFlags& flags) {
  return flags.api_keys.empty() && flags.tls_cert.empty() ? Hangup::ends : Hangup::reloads;
}

void reload(const ServerFlags& flags, server::Server& server) {
  // A removed key must not stay valid because a certificate is half written.
  try {
    const server::ApiKeys keys = read_keys(flags);
    server.set_keys(keys);
    log(LogLevel::info, "the keys are read again", {{"keys", keys.describe()}});
  } catch (const Error& error) {
    log(LogLevel::error, "the keys stay as they were", {{"error", error.what()}});
  }
  if (flags.tls_cert.empty()) return;
  try {
    server.reload_tls();
    log(LogLevel::info, "the certificate is read again");
  } catch (const Error& error) {
    log(LogLevel::error, "the certificate stays as it was", {{"error", error.what()}});
  }
}

std::string default_host(bool has_token) {
  return has_token ? "0.0.0.0" : "127.0.0.1";
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace rbee::workers
