#pragma once
// Folders for files that are not finished: an upload, a model that is being quantized.

#include <filesystem>

namespace rbee::tools {

// A fresh folder below `parent`, which only this object's process uses. Its destructor removes it
// with all that is in it; if the process was killed, sweep() of another one does.
class WorkFolder {
 public:
  // Makes `parent` too. Throws io.
  explicit WorkFolder(const std::filesystem::path& parent);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Whether this may be the folder of one, by its name.
  static bool is_one(const std::filesystem::path& path);
  // Removes those whose processes have ended.
  static void sweep(const std::filesystem::path& parent);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;  // of the folder, locked: its process lives
};

}  // namespace rbee::tools
