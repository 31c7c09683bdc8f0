#include "tests/gpu/fake/fat_binary.h"

#include <elf.h>
#include <zstd.h>

#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace rbee::fake {
namespace {

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint16_t kMachineCode = 2;        // kinds of entries; 1: PTX
constexpr uint32_t kReservedShared = 1024;  // bytes of a block that the system reserves, sm_90 on

struct FileHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of all entries
};
struct Entry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;       // of what follows, padded
  uint32_t compressed;  // bytes; 0: not compressed
  uint32_t unknown;
  uint16_t minor, major;
  uint32_t capability;
  uint32_t name_begin, name_bytes;
  uint64_t flags, reserved;
  uint64_t whole_bytes;
};
static_assert(sizeof(Entry) == 64);

// An entry of .nv.info.<kernel>: a format, an attribute, and 16 bits: a value or, in the last
// format, the size of the data that follows.
struct Info {
  uint8_t format, attribute;
  uint16_t value;
};
constexpr uint8_t kWithBytes = 4;
constexpr uint8_t kMaxThreads = 0x05, kParameter = 0x17, kCluster = 0x3d;

template <typename T>
T read(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

// The product of three numbers: the threads of a block or the blocks of a cluster.
uint32_t product(const std::byte* at) {
  return read<uint32_t>(at) * read<uint32_t>(at + 4) * read<uint32_t>(at + 8);
}

KernelFacts facts_of(const std::byte* at, const std::byte* end) {
  KernelFacts facts;
  while (at < end) {
    const auto info = read<Info>(at);
    at += sizeof info;
    if (info.attribute == kMaxThreads) facts.most_threads = product(at);
    if (info.attribute == kCluster) facts.cluster = product(at);
    // A kernel has one parameter: its number and place, then its size above 18 other bits.
    if (info.attribute == kParameter) facts.params_bytes = read<uint32_t>(at + 8) >> 18;
    if (info.format == kWithBytes) at += info.value;
  }
  return facts;
}

CodeObject read_cubin(const std::vector<std::byte>& code, uint32_t capability) {
  CodeObject out;
  out.target = "sm_" + std::to_string(capability);
  const auto header = read<Elf64_Ehdr>(code.data());
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    throw std::runtime_error("the machine code of a fat binary is no ELF file");
  }
  const auto section = [&](uint32_t i) {
    return read<Elf64_Shdr>(code.data() + header.e_shoff + size_t{i} * sizeof(Elf64_Shdr));
  };
  const std::byte* names = code.data() + section(header.e_shstrndx).sh_offset;
  constexpr std::string_view kInfo = ".nv.info.", kShared = ".nv.shared.";
  std::map<std::string, uint32_t> shared;
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr each = section(i);
    const std::string name = reinterpret_cast<const char*>(names + each.sh_name);
    const std::byte* at = code.data() + each.sh_offset;
    if (name.starts_with(kInfo))
      out.kernels[name.substr(kInfo.size())] = facts_of(at, at + each.sh_size);
    if (name.starts_with(kShared)) {
      shared[name.substr(kShared.size())] = static_cast<uint32_t>(each.sh_size);
    }
  }
  const uint32_t reserved = capability >= 90 ? kReservedShared : 0;
  for (auto& [name, facts] : out.kernels) {
    const auto found = shared.find(name);
    if (found != shared.end()) facts.shared_bytes = found->second - reserved;
  }
  return out;
}

std::vector<std::byte> contents(const std::byte* entry) {
  const auto about = read<Entry>(entry);
  const std::byte* stored = entry + about.header_bytes;
  if (about.compressed == 0) return {stored, stored + about.bytes};
  std::vector<std::byte> out(about.whole_bytes);
  if (ZSTD_decompress(out.data(), out.size(), stored, about.compressed) != out.size()) {
    throw std::runtime_error("a fat binary is not compressed by zstd");
  }
  return out;
}

}  // namespace

int capability_of(const std::string& architecture) {
  return architecture.starts_with("sm_") ? std::stoi(architecture.substr(3)) : 90;
}

CodeObject read_fat_binary(const void* image, const std::string& architecture) {
  const auto* at = static_cast<const std::byte*>(image);
  const auto header = read<FileHeader>(at);
  if (header.magic != kMagic) throw std::runtime_error("a module is no fat binary");
  const auto wanted = static_cast<uint32_t>(capability_of(architecture));
  const std::byte* best = nullptr;
  const auto runs = [&](uint32_t capability) {
    return capability / 10 == wanted / 10 && capability <= wanted;
  };
  uint32_t taken = 0;
  at += header.header_bytes;
  for (const std::byte* end = at + header.bytes; at < end;) {
    const auto entry = read<Entry>(at);
    if (entry.kind == kMachineCode &&
        (best == nullptr ||
         (runs(entry.capability) && (!runs(taken) || entry.capability > taken)))) {
      best = at;
      taken = entry.capability;
    }
    at += entry.header_bytes + entry.bytes;
  }
  return best != nullptr ? read_cubin(contents(best), taken) : CodeObject{};
}

}  // namespace rbee::fake
