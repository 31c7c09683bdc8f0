#pragma once
// How tests run the scripts of clients/. CLIENTS: their folder.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "rbee/core/cat.h"

namespace rbee::testing {

// Exit status of a script whose packages are missing.
inline constexpr int kSkipped = 77;

// The Python that has the packages, if installed; see tools/get_test_clients.sh.
inline std::string python() {
  if (const char* named = std::getenv("RBEE_TEST_PYTHON")) return named;
  const std::filesystem::path own =
      std::filesystem::path(CLIENTS) / "../../../build/clients/bin/python";
  return std::filesystem::exists(own) ? own.string() : "/usr/bin/python3";
}

inline std::string client_script(const char* name) {
  return (std::filesystem::path(CLIENTS) / name).string();
}

// "NAME=value" for this process's variable.
inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return cat(name, "=", value == nullptr ? "" : value);
}

}  // namespace rbee::testing
