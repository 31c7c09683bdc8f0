#include "rbee/hub/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <unistd.h>

#include <array>
#include <string>

#include "rbee/core/error.h"
#include "rbee/hub/client.h"
#include "rbee/hub/url.h"

namespace rbee::hub {
namespace {

Code code_of(const HttpRequest& request) {
  HttpClient client;
  try {
    (void)client.send(request);
  } catch (const Error& error) {
    return error.code();
  }
  return Code::internal;
}

// This machine's name if it resolves to a private address; empty without one.
std::string local_name() {
  std::array<char, 256> name{};
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  if (getaddrinfo(name.data(), nullptr, &hints, &found) != 0) return {};
  std::array<char, INET_ADDRSTRLEN> address{};
  inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr, address.data(),
            address.size());
  freeaddrinfo(found);
  const bool open = address_kind(address.data()) == AddressKind::open;
  return open || address_kind(name.data()) != AddressKind::open ? std::string() : name.data();
}

TEST(Http, AGuardedRequestConnectsToNoInnerAddress) {
  for (const char* url : {"http://10.0.0.1/", "http://127.0.0.1:9/", "http://localhost:9/"}) {
    EXPECT_EQ(code_of({.url = url, .guarded = true}), Code::unsupported) << url;
  }
  // Here it is allowed, but no server listens.
  EXPECT_EQ(code_of({.url = "http://127.0.0.1:9/", .guarded = true, .loopback_allowed = true}),
            Code::io);
}

TEST(Http, TheTokenIsForTheEndpointThatWasSet) {
  const Settings mirror{.endpoint = "https://mirror.example/hf", .cache = {}, .token = "hf_x"};
  EXPECT_TRUE(takes_token(mirror, "https://mirror.example/api/models"));
  for (const char* url : {"https://huggingface.co/api/models", "http://mirror.example/",
                          "https://mirror.example:444/"}) {
    EXPECT_FALSE(takes_token(mirror, url)) << url;
  }
  EXPECT_TRUE(takes_token(Settings{}, "https://huggingface.co/api/models"));
}

TEST(Http, TheAddressOfANameCountsNotTheName) {
  const std::string name = local_name();
  if (name.empty()) GTEST_SKIP() << "no such name";
  const std::string url = "http://" + name + ":9/";
  EXPECT_EQ(code_of({.url = url, .guarded = true}), Code::unsupported);
  EXPECT_EQ(code_of({.url = url}), Code::io);
}

}  // namespace
}  // namespace rbee::hub
