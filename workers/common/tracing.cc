#include "workers/common/tracing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::workers {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kTracesPath = "/v1/traces";

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Null bytes and line breaks would end the header.
std::string decoded(std::string_view name, std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      unsigned value = 0;
      const char* const begin = text.data() + i + 1;
      const char* const end = text.data() + std::min(i + 3, text.size());
      const auto [at, error] = std::from_chars(begin, end, value, 16);
      check(error == std::errc() && at == begin + 2, name, "'", text, "' is not percent-encoded");
      c = static_cast<char>(value);
      i += 2;
    }
    check(c >= 0x20 && c <= 0x7e, name, "may hold printable ASCII only");
    out += c;
  }
  return out;
}

// Runs `use` with a variable's value if it is set; ignores an unusable value.
template <typename Use>
void with_variable(const char* name, Use use) {
  const std::string value = environment(name);
  if (value.empty()) return;
  try {
    use(std::string_view(value));
  } catch (const Error& error) {
    log(LogLevel::warn, "a variable of the environment is not usable",
        {{"name", name}, {"error", error.what()}});
  }
}

template <typename T>
void read_number(const char* name, int64_t low, int64_t high, T& out) {
  with_variable(name, [&](std::string_view text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc() && end == text.data() + text.size() && value >= low && value <= high,
          name, "'", text, "' is not a number from ", low, " to ", high);
    out = T(value);
  });
}

// The flag, else the variable for traces, else the one for all signals.
std::optional<server::Url> endpoint_of(const ServerFlags& flags) {
  std::optional<server::Url> out;
  const auto of_all_signals = [&](std::string_view text) {
    out = server::parse_url(text);
    out->path += kTracesPath;
  };
  if (!flags.otlp_endpoint.empty()) {
    of_all_signals(flags.otlp_endpoint);
    return out;
  }
  with_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                [&](std::string_view text) { out = server::parse_url(text); });
  if (!out) with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", of_all_signals);
  return out;
}

struct NamedSampler {
  std::string_view name;
  server::TraceSampler sampler;
  bool takes_share = false;
};
constexpr std::array<NamedSampler, 6> kSamplers = {{
    {.name = "always_on", .sampler = {.follows_parent = false}},
    {.name = "always_off", .sampler = {.follows_parent = false, .share = 0}},
    {.name = "traceidratio", .sampler = {.follows_parent = false}, .takes_share = true},
    {.name = "parentbased_always_on", .sampler = {}},
    {.name = "parentbased_always_off", .sampler = {.share = 0}},
    {.name = "parentbased_traceidratio", .sampler = {}, .takes_share = true},
}};

server::TraceSampler read_sampler() {
  NamedSampler chosen;
  with_variable("OTEL_TRACES_SAMPLER", [&](std::string_view text) {
    const auto* const found = std::find_if(
        kSamplers.begin(), kSamplers.end(),
        [&](const NamedSampler& known) { return server::same_text(known.name, text); });
    check(found != kSamplers.end(), "OTEL_TRACES_SAMPLER", "'", text, "' is no known sampler");
    chosen = *found;
  });
  if (!chosen.takes_share) return chosen.sampler;
  with_variable("OTEL_TRACES_SAMPLER_ARG", [&](std::string_view text) {
    double share = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
    check(error == std::errc() && end == text.data() + text.size() && share >= 0 && share <= 1,
          "OTEL_TRACES_SAMPLER_ARG", "'", text, "' is not a number from 0 to 1");
    chosen.sampler.share = share;
  });
  return chosen.sampler;
}

// Name and value of the variable for traces, else of the one for all signals.
std::pair<std::string, std::string> of_exporter(std::string_view what) {
  std::string name = cat("OTEL_EXPORTER_OTLP_TRACES_", what);
  std::string value = environment(name.c_str());
  if (value.empty()) {
    name = cat("OTEL_EXPORTER_OTLP_", what);
    value = environment(name.c_str());
  }
  return {std::move(name), std::move(value)};
}

server::ClientTls read_tls() {
  server::ClientTls out;
  out.authorities = of_exporter("CERTIFICATE").second;
  const auto [certificate_name, certificate] = of_exporter("CLIENT_CERTIFICATE");
  const auto [key_name, key] = of_exporter("CLIENT_KEY");
  out.certificate = certificate;
  out.key = key;
  check(certificate.empty() == key.empty(), key.empty() ? key_name : certificate_name,
        "is not set, but ", key.empty() ? certificate_name : key_name, " is: they go together");
  try {
    server::check_certificate(out);
  } catch (const Error& error) {
    fail(error.code(), cat(certificate_name, ", ", key_name), error.what());
  }
  return out;
}

Pairs resource_of(const TraceSource& source) {
  Pairs out;
  std::string service = environment("OTEL_SERVICE_NAME");
  with_variable("OTEL_RESOURCE_ATTRIBUTES", [&](std::string_view text) {
    for (auto& [key, value] : parse_pairs("OTEL_RESOURCE_ATTRIBUTES", text)) {
      if (key != "service.name") {
        out.emplace_back(std::move(key), std::move(value));
      } else if (service.empty()) {
        service = std::move(value);
      }
    }
  });
  const auto set = [&](const char* key, const std::string& value) {
    std::erase_if(out, [&](const auto& pair) { return pair.first == key; });
    out.emplace_back(key, value);
  };
  set("service.name", service.empty() ? source.service : service);
  set("service.version", RBEE_VERSION);
  set("service.instance.id", source.instance);
  set("telemetry.sdk.name", "rbee");
  set("telemetry.sdk.language", "cpp");
  set("telemetry.sdk.version", RBEE_VERSION);
  return out;
}

}  // namespace

Pairs parse_pairs(std::string_view name, std::string_view list) {
  Pairs out;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    if (trimmed(entry).empty()) continue;
    const size_t equals = entry.find('=');
    check(equals != std::string_view::npos, name, "'", entry, "' is not KEY=VALUE");
    const std::string_view key = trimmed(entry.substr(0, equals));
    check(!key.empty(), name, "'", entry, "' has no key");
    out.emplace_back(decoded(name, key), decoded(name, trimmed(entry.substr(equals + 1))));
  }
  return out;
}

std::shared_ptr<server::Tracer> make_tracer(const ServerFlags& flags, const TraceSource& source) {
  const std::optional<server::Url> endpoint = endpoint_of(flags);
  if (!endpoint || server::same_text(environment("OTEL_SDK_DISABLED"), "true")) return nullptr;
  server::TracerOptions options;
  options.endpoint = *endpoint;
  options.version = RBEE_VERSION;
  options.resource = resource_of(source);
  options.sampler = read_sampler();
  if (endpoint->tls) options.tls = read_tls();
  for (const char* name : {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}) {
    with_variable(name, [&](std::string_view text) { options.headers = parse_pairs(name, text); });
  }
  read_number("OTEL_BSP_MAX_QUEUE_SIZE", 1, 1 << 20, options.max_queued);
  read_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, 1 << 20, options.max_batch);
  read_number("OTEL_BSP_SCHEDULE_DELAY", 0, 3'600'000, options.delay);
  read_number("OTEL_EXPORTER_OTLP_TIMEOUT", 1, 3'600'000, options.timeout);
  options.max_batch = std::min(options.max_batch, options.max_queued);
  log(LogLevel::info, "spans go to a collector",
      {{"host", options.endpoint.host}, {"port", cat(options.endpoint.port)}});
  return std::make_shared<server::Tracer>(std::move(options));
}

}  // namespace rbee::workers
