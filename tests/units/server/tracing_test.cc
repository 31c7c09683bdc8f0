// OpenTelemetry's environment variables for samplers and certificates.

#include "workers/common/tracing.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Its last 8 bytes are 0.4 of their largest value.
constexpr const char* kTrace = "4bf92f3577b34da66666666666666666";

struct Told {
  std::vector<bool> samples;          // no parent; a sampled one; one that is not
  std::vector<std::string> warnings;  // names of variables
};

Told told(const char* sampler, const char* share) {
  Told out;
  set_log_sink(
      [&](LogLevel, std::string_view, std::span<const LogField> fields) {
        out.warnings.push_back(fields.front().value);
      },
      LogLevel::warn);
  ::setenv("OTEL_TRACES_SAMPLER", sampler, 1);
  ::setenv("OTEL_TRACES_SAMPLER_ARG", share, 1);
  ServerFlags flags;
  flags.otlp_endpoint = "http://127.0.0.1:1";
  const auto tracer = make_tracer(flags, {.service = "s", .instance = "i"});
  ::unsetenv("OTEL_TRACES_SAMPLER");
  ::unsetenv("OTEL_TRACES_SAMPLER_ARG");
  set_log_sink(nullptr, LogLevel::error);
  server::TraceParent parent{.trace_id = kTrace, .span_id = "00f067aa0ba902b7", .sampled = true};
  out.samples = {tracer->samples(kTrace, std::nullopt), tracer->samples(kTrace, parent)};
  parent.sampled = false;
  out.samples.push_back(tracer->samples(kTrace, parent));
  return out;
}

TEST(TracingVariables, Samplers) {
  const auto samples = [](const char* sampler, const char* share = "") {
    const Told out = told(sampler, share);
    EXPECT_THAT(out.warnings, IsEmpty()) << sampler;
    return out.samples;
  };
  EXPECT_THAT(samples(""), ElementsAre(true, true, false));
  EXPECT_THAT(samples("always_on", "0.1"), ElementsAre(true, true, true));
  EXPECT_THAT(samples("always_off"), ElementsAre(false, false, false));
  EXPECT_THAT(samples("traceidratio", "0.5"), ElementsAre(true, true, true));
  EXPECT_THAT(samples("traceidratio", "0.3"), ElementsAre(false, false, false));
  EXPECT_THAT(samples("traceidratio"), ElementsAre(true, true, true));
  EXPECT_THAT(samples("parentbased_always_on"), ElementsAre(true, true, false));
  EXPECT_THAT(samples("parentbased_always_off"), ElementsAre(false, true, false));
  EXPECT_THAT(samples("parentbased_traceidratio", "0.5"), ElementsAre(true, true, false));
  EXPECT_THAT(samples("ParentBased_TraceIdRatio", "0.3"), ElementsAre(false, true, false));
}

TEST(TracingVariables, BadOnesAreToldAndLeftOut) {
  const Told unknown = told("sometimes", "0.3");
  EXPECT_THAT(unknown.warnings, ElementsAre("OTEL_TRACES_SAMPLER"));
  EXPECT_THAT(unknown.samples, ElementsAre(true, true, false));
  for (const char* bad : {"1.5", "-0.1", "half", "nan", "0.3x"}) {
    const Told share = told("traceidratio", bad);
    EXPECT_THAT(share.warnings, ElementsAre("OTEL_TRACES_SAMPLER_ARG")) << bad;
    EXPECT_THAT(share.samples, ElementsAre(true, true, true)) << bad;
  }
}

// Why no tracer is created for such a collector; empty if one is.
std::string refusal(const std::string& endpoint, const char* certificate, const char* key) {
  ServerFlags flags;
  flags.otlp_endpoint = endpoint;
  if (certificate != nullptr) ::setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate, 1);
  if (key != nullptr) ::setenv("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", key, 1);
  std::string out;
  try {
    make_tracer(flags, {.service = "s", .instance = "i"});
  } catch (const Error& error) {
    out = error.what();
  }
  ::unsetenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE");
  ::unsetenv("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY");
  return out;
}

TEST(TracingVariables, ACertificateOfTheClientNeedsItsKey) {
  const std::string tls = "https://localhost:1";
  EXPECT_EQ(refusal(tls, nullptr, nullptr), "");
  EXPECT_THAT(refusal(tls, "/nowhere/cert.pem", nullptr),
              StartsWith("OTEL_EXPORTER_OTLP_CLIENT_KEY: is not set, but "
                         "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE is"));
  EXPECT_THAT(refusal(tls, nullptr, "/nowhere/key.pem"),
              StartsWith("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: is not set, but "
                         "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY is"));
  EXPECT_THAT(refusal(tls, "/nowhere/cert.pem", "/nowhere/key.pem"),
              AllOf(StartsWith("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"),
                    HasSubstr("/nowhere/cert.pem is no certificate in PEM form")));
  // A collector without TLS gets no certificate.
  EXPECT_EQ(refusal("http://localhost:1", "/nowhere/cert.pem", nullptr), "");
}

}  // namespace
}  // namespace rbee::workers
