#include "cli/doctor/machine.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"

namespace rbee::doctor {
namespace {

namespace fs = std::filesystem;

// The PCI classes, "0x030000" and the like.
constexpr std::string_view kDisplay = "0x03", kAccelerator = "0x12";

std::string group_name(const fs::path& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) return "";
  const group* known = getgrgid(facts.st_gid);  // NOLINT(concurrency-mt-unsafe): one thread
  return known != nullptr ? known->gr_name : cat(facts.st_gid);
}

std::string user_name() {
  const passwd* known = getpwuid(geteuid());  // NOLINT(concurrency-mt-unsafe): one thread
  return known != nullptr ? known->pw_name : "";
}

std::string environment_of(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return text != nullptr ? text : "";
}

}  // namespace

bool Machine::has(const std::string& path) const {
  std::error_code ignored;
  return fs::exists(root / path, ignored);
}

std::string Machine::read(const std::string& path) const {
  try {
    return read_file(root / path);
  } catch (const Error&) {
    return "";
  }
}

std::vector<std::string> Machine::list(const std::string& folder, std::string_view prefix) const {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(root / folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix)) out.push_back(cat(folder, "/", name));
  }
  std::ranges::sort(out);
  return out;
}

std::string Machine::container() const {
  if (has(".dockerenv")) return "docker";
  if (has("run/.containerenv")) return "podman";
  const std::string groups = read("proc/1/cgroup");
  for (const char* word : {"docker", "containerd", "kubepods", "lxc", "libpod"}) {
    if (groups.find(word) != std::string::npos) return word;
  }
  return variable("container");
}

int Machine::cards(std::string_view vendor) const {
  int count = 0;
  for (const std::string& device : list("sys/bus/pci/devices")) {
    const std::string kind = read(device + "/class");
    if (!kind.starts_with(kDisplay) && !kind.starts_with(kAccelerator)) continue;
    if (read(device + "/vendor").starts_with(vendor)) ++count;
  }
  return count;
}

bool Machine::is_listed_in(std::string_view listed) const {
  std::istringstream lines(read("etc/group"));
  for (std::string line; std::getline(lines, line);) {  // "render:x:105:anna,bert"
    if (!line.starts_with(cat(listed, ":"))) continue;
    std::istringstream names(line.substr(line.rfind(':') + 1));
    for (std::string name; std::getline(names, name, ',');) {
      if (!user.empty() && name == user) return true;
    }
  }
  return false;
}

Machine this_machine() {
  return {.processors = static_cast<int>(std::thread::hardware_concurrency()),
          .opens = [](const fs::path& path) { return access(path.c_str(), R_OK | W_OK) == 0; },
          .group = group_name,
          .variable = environment_of,
          .user = user_name()};
}

}  // namespace rbee::doctor
