#include "rbee/hub/url.h"

#include <gtest/gtest.h>

#include "rbee/core/error.h"

namespace rbee::hub {
namespace {

TEST(Url, OriginsAreSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://Hub.example/x"), (Origin{"https", "hub.example", 443}));
  EXPECT_EQ(origin_of("http://h:8080?x"), (Origin{"http", "h", 8080}));
  EXPECT_EQ(origin_of("http://[::1]:81/"), (Origin{"http", "::1", 81}));
  for (const char* text :
       {"", "ftp://h/", "http://", "http://u@h/", "http://h:0/", "http://h:99999/", "http://h:8x/",
        "http://a\\@b/", "http://[::1", "http://h%2e/"}) {
    EXPECT_THROW((void)origin_of(text), Error) << text;
  }
}

TEST(Url, ReferencesAreResolvedAsRfc3986Says) {
  const char* const base = "http://h:1/a/b?q";
  EXPECT_EQ(resolve_reference(base, "https://x/y"), "https://x/y");
  EXPECT_EQ(resolve_reference(base, "//x/y"), "http://x/y");
  EXPECT_EQ(resolve_reference(base, "/y?u=http://z"), "http://h:1/y?u=http://z");
  EXPECT_EQ(resolve_reference(base, "c"), "http://h:1/a/c");
  EXPECT_EQ(resolve_reference("http://h", "c"), "http://h/c");
}

TEST(Url, InnerAddressesAreKnownInAllTheirForms) {
  for (const char* text :
       {"10.1.2.3",   "172.16.0.1", "172.31.255.255", "192.168.0.1",     "169.254.169.254",
        "100.64.0.1", "0.0.0.0",    "224.0.0.1",      "255.255.255.255", "fc00::1",
        "fd12::1",    "fe80::1",    "fe80::1%eth0",   "ff02::1",         "::",
        "0x0a000001", "012.0.0.1",  "167772161",      "::ffff:10.0.0.1", "64:ff9b::10.0.0.1"}) {
    EXPECT_EQ(address_kind(text), AddressKind::inner) << text;
  }
  for (const char* text :
       {"127.0.0.1", "127.1", "::1", "localhost", "LocalHost", "a.localhost", "::ffff:127.0.0.1"}) {
    EXPECT_EQ(address_kind(text), AddressKind::loopback) << text;
  }
  for (const char* text : {"1.1.1.1", "172.32.0.1", "11.0.0.1", "2606:4700::1", "hub.example"}) {
    EXPECT_EQ(address_kind(text), AddressKind::open) << text;
  }
}

}  // namespace
}  // namespace rbee::hub
