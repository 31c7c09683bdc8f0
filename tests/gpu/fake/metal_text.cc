#include "tests/gpu/fake/metal_text.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

namespace rbee::fake {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& file) {
  std::stringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

// This library, which has what the text calls: opened by path, it is in no scope but its own.
std::string own_path() {
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(&compile_metal), &info);
  return info.dli_fname;
}

// Empty: it compiled.
std::string compile(const std::string& source, const fs::path& library) {
  const std::string stem = library.string() + "." + std::to_string(getpid());
  const fs::path text = stem + ".metal", log = stem + ".log", made = stem + ".so";
  std::ofstream(text) << source;
  const std::string command = RBEE_FAKE_METAL_CLANG
                              " -std=c++14 -x c++ -O1 -w -ffp-contract=off -fPIC -shared -isystem "
                              "\"" RBEE_FAKE_METAL_STDLIB "\" " +
                              text.string() + " -x none " + own_path() + " -o " + made.string() +
                              " 2>" + log.string();
  const bool works = std::system(command.c_str()) == 0;
  std::string error = works ? "" : contents(log);
  if (!works && error.empty()) error = "clang did not run";
  if (works) fs::rename(made, library);
  fs::remove(text);
  fs::remove(log);
  return error;
}

void read(const std::string& source, void* library, MetalText& out) {
  static const std::regex entry(R"(RB_ENTRY\((\d+)\)\s+void\s+(\w+)\s*\()");
  for (std::sregex_iterator at(source.begin(), source.end(), entry), end; at != end; ++at) {
    const std::string name = (*at)[2];
    void* function = dlsym(library, name.c_str());
    if (function == nullptr) continue;
    out.kernels[name] = {.function = reinterpret_cast<KernelFunction>(function),
                         .most_threads = static_cast<uint32_t>(std::stoul((*at)[1]))};
  }
  using Bounds = void(unsigned char** begin, unsigned char** end);
  unsigned char *begin = nullptr, *end = nullptr;
  reinterpret_cast<Bounds*>(dlsym(library, "rb_shared_bounds"))(&begin, &end);
  out.group_memory = begin;
  out.group_bytes = static_cast<size_t>(end - begin);
}

}  // namespace

const MetalText& compile_metal(const std::string& source) {
  static auto* const known = new std::map<std::string, MetalText>;
  const auto [found, added] = known->try_emplace(source);
  MetalText& out = found->second;
  out.source = &found->first;
  if (!added) return out;
  const char* cache = std::getenv("RBEE_FAKE_METAL_CACHE");
  const fs::path folder = cache != nullptr ? fs::path(cache) : fs::temp_directory_path();
  char name[64];
  std::snprintf(name, sizeof name, "rbee-metal-%016zx-%d.so", std::hash<std::string>()(source),
                cache != nullptr ? 0 : static_cast<int>(getpid()));
  const fs::path library = folder / name;
  if (!fs::exists(library)) out.error = compile(source, library);
  if (!out.error.empty()) return out;
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    out.error = dlerror();
  } else {
    read(source, opened, out);
  }
  if (cache == nullptr) fs::remove(library);
  return out;
}

}  // namespace rbee::fake
