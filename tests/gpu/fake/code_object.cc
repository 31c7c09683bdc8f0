#include "tests/gpu/fake/code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

namespace rbee::fake {
namespace {

constexpr uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA

uint32_t number(const nlohmann::json& kernel, const char* key) {
  return kernel.value(key, uint32_t{0});
}

// The bytes of the one argument that the source declares; the compiler's hidden arguments follow.
// Throws if there are others, or if one reaches beyond the segment's end.
uint32_t explicit_bytes(const nlohmann::json& kernel) {
  uint32_t bytes = 0;
  const std::string name = kernel.at(".name");
  for (const nlohmann::json& argument : kernel.value(".args", nlohmann::json::array())) {
    const auto offset = argument.at(".offset").get<uint32_t>();
    const auto size = argument.at(".size").get<uint32_t>();
    if (offset + size > number(kernel, ".kernarg_segment_size")) {
      throw std::runtime_error("an argument of " + name + " ends at " +
                               std::to_string(offset + size) + ", beyond its segment");
    }
    if (argument.at(".value_kind").get<std::string>().starts_with("hidden_")) continue;
    if (offset != 0) throw std::runtime_error(name + " takes several arguments");
    bytes = size;
  }
  return bytes;
}

CodeObject from_metadata(const nlohmann::json& metadata) {
  CodeObject out;
  out.target = metadata.at("amdhsa.target");
  for (const nlohmann::json& kernel : metadata.at("amdhsa.kernels")) {
    out.kernels[kernel.at(".name")] = {
        .params_bytes = explicit_bytes(kernel),
        .params_align = std::max(number(kernel, ".kernarg_segment_align"), 1U),
        .most_threads = number(kernel, ".max_flat_workgroup_size"),
        .shared_bytes = number(kernel, ".group_segment_fixed_size"),
        .private_bytes = number(kernel, ".private_segment_fixed_size"),
        .vector_registers = number(kernel, ".vgpr_count"),
        .vector_spills = number(kernel, ".vgpr_spill_count"),
        .scalar_spills = number(kernel, ".sgpr_spill_count")};
  }
  return out;
}

}  // namespace

CodeObject read_code_object(const void* image, const std::string& architecture) {
  const auto* bytes = static_cast<const uint8_t*>(image);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) != 0) throw std::runtime_error("a module is no ELF file");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes + header.e_phoff + static_cast<size_t>(i) * header.e_phentsize,
                sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    Elf64_Nhdr note;
    const uint8_t* at = bytes + segment.p_offset;
    std::memcpy(&note, at, sizeof note);
    if (note.n_type != kMetadataNote) continue;
    const uint8_t* text = at + sizeof note + (note.n_namesz + 3) / 4 * 4;
    CodeObject out = from_metadata(nlohmann::json::from_msgpack(text, text + note.n_descsz));
    if (!out.target.ends_with("--" + architecture)) {
      throw std::runtime_error("a code object for " + out.target + " on " + architecture);
    }
    return out;
  }
  throw std::runtime_error("the code object has no metadata note");
}

}  // namespace rbee::fake
