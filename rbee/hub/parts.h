#pragma once
// A file that is fetched in parts, in any order, and which of them are whole. The list lies beside
// the file, so that a later process goes on where this one ended, however that was.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace rbee::hub {

class PartFile {
 public:
  // Goes on with what is there if it is of this size; else starts anew. Throws io.
  PartFile(std::filesystem::path path, int64_t size, int64_t part_bytes);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  int64_t count() const { return static_cast<int64_t>(whole_.size()); }
  int64_t begin(int64_t part) const { return part * part_bytes_; }
  int64_t end(int64_t part) const;
  bool is_whole(int64_t part) const { return whole_[static_cast<size_t>(part)]; }
  int64_t whole_bytes() const;

  // False if the bytes cannot be written, with errno set. From several threads, of different parts.
  bool write(int64_t offset, const char* data, size_t size) const;
  // The part was written. Not from several threads at once. Throws io.
  void set_whole(int64_t part);
  // Forgets what was written.
  void clear();
  // Moves the file to its place and deletes the list. Throws io.
  void finish(const std::filesystem::path& place);

 private:
  void read_list();
  void begin_list();

  const std::filesystem::path path_, list_path_;
  const int64_t size_, part_bytes_;
  std::vector<bool> whole_;
  int descriptor_ = -1, list_ = -1;
};

}  // namespace rbee::hub
