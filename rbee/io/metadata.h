#pragma once
// The key/value pairs of a GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rbee::io {

// Numbered as in the file.
enum class MetaType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
inline constexpr uint32_t kMetaTypeCount = 13;

// Lower-case name, e.g. "u32" or "string".
std::string_view name(MetaType type);
// Bytes of a value; 0 for strings and arrays, whose size is in the file.
size_t size_of(MetaType type);
bool is_integer(MetaType type);

// One pair as it lies in the file.
struct MetaEntry {
  std::string_view key;
  MetaType type = MetaType::u8;
  MetaType element = MetaType::u8;   // of an array's items
  uint64_t count = 1;                // an array's items
  std::span<const std::byte> value;  // as encoded; an array's starts with its type and count

  // The encoded items of an array, else the value.
  std::span<const std::byte> items() const;
  // What it is, e.g. "u32" or "an array of 3 string".
  std::string describe_type() const;
};

// Getters convert values; nothing is converted earlier. Views stay valid as long as the Metadata or
// its Checkpoint.
//
// get_* return nothing if the key is absent, and throw invalid_argument, naming the key and both
// types, if its value has another type. require_* throw not_found if the key is absent.
class Metadata {
 public:
  Metadata() = default;
  // `source` names the file in errors; `owner` keeps the entries' bytes. The entries hold
  // well-formed values. Throws invalid_argument if a key occurs twice.
  Metadata(std::string source, std::shared_ptr<const void> owner, std::vector<MetaEntry> entries);

  const std::vector<MetaEntry>& entries() const { return entries_; }  // in the file's order
  const MetaEntry* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // From any integer type whose value fits.
  std::optional<uint64_t> get_u64(std::string_view key) const;
  std::optional<int64_t> get_i64(std::string_view key) const;
  // From any float or integer type.
  std::optional<double> get_f64(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const;
  std::optional<std::vector<float>> get_floats(std::string_view key) const;
  std::optional<std::vector<int64_t>> get_ints(std::string_view key) const;
  std::optional<std::vector<bool>> get_bools(std::string_view key) const;

  uint64_t require_u64(std::string_view key) const;
  int64_t require_i64(std::string_view key) const;
  double require_f64(std::string_view key) const;
  bool require_bool(std::string_view key) const;
  std::string_view require_string(std::string_view key) const;
  std::vector<std::string_view> require_strings(std::string_view key) const;
  std::vector<float> require_floats(std::string_view key) const;
  std::vector<int64_t> require_ints(std::string_view key) const;

 private:
  const MetaEntry* find_array(std::string_view key, std::string_view wanted) const;
  [[noreturn]] void fail_type(const MetaEntry& entry, std::string_view wanted) const;
  [[noreturn]] void fail_missing(std::string_view key) const;

  std::string source_ = "metadata";
  std::shared_ptr<const void> owner_;
  std::vector<MetaEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace rbee::io
