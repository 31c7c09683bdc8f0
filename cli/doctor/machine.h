#pragma once
// What the checks of `rbee doctor` read of a machine. Tests give another root folder and other
// rights.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rbee::doctor {

struct Machine {
  std::filesystem::path root = "/";
  int processors = 0;  // that this process may run on
  // Whether this process may read and write the file.
  std::function<bool(const std::filesystem::path&)> opens;
  // The name of the file's group, or its number if it has no name here.
  std::function<std::string(const std::filesystem::path&)> group;
  std::function<std::string(const char*)> variable;  // of the environment; "" = not set
  std::string user;                                  // only compared, never printed

  // Paths are relative to the root.
  bool has(const std::string& path) const;
  std::string read(const std::string& path) const;  // "" if it cannot be read
  // The entries of a folder whose names begin with `prefix`, sorted, as "folder/name".
  std::vector<std::string> list(const std::string& folder, std::string_view prefix = "") const;

  // What this process runs in: "docker", "podman", or the kernel's word; empty = no container.
  std::string container() const;
  // Graphics cards and accelerators of a vendor on the PCI bus. vendor: as "0x10de".
  int cards(std::string_view vendor) const;
  // Whether /etc/group lists the user, who may not have logged in since.
  bool is_listed_in(std::string_view listed) const;
};

Machine this_machine();

}  // namespace rbee::doctor
