#include "cli/model_records.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "cli/made_files.h"
#include "cli/work_folder.h"
#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "rbee/hub/cache.h"
#include "rbee/hub/name.h"
#include "server/apis/ollama/models.h"
#include "server/apis/ollama/names.h"
#include "server/front/model_store.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;
using server::OllamaRecord;

constexpr size_t kMostRecords = 1000;
constexpr size_t kMaxRecord = size_t{1} << 20;  // bytes
constexpr std::string_view kRecord = ".json", kTemplate = ".jinja";
constexpr std::chrono::seconds kPatience{5};     // a client waits for the lock
constexpr std::chrono::seconds kTimesDiffer{1};  // between two changes of a folder, surely

void check_io(bool good, const fs::path& path, std::string_view what) {
  if (!good) fail(Code::io, path.filename().string(), what, ": ", std::strerror(errno));
}

// Of one name in all its spellings.
std::string file_of(const std::string& name) {
  return cat(server::ollama_digest(server::plain_model_name(name)), kRecord);
}

bool is_settled(fs::file_time_type changed) {
  return fs::file_time_type::clock::now() - changed > kTimesDiffer;
}

std::vector<fs::path> files_of(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ending) out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

bool names(const OllamaRecord& record, const std::string& digest) {
  const auto in = [&](const OllamaRecord::Files& files) {
    return std::ranges::any_of(files, [&](const auto& file) { return file.second == digest; });
  };
  return in(record.files) || in(record.adapters);
}

bool any_names(const std::vector<OllamaRecord>& all, const std::string& digest) {
  return std::ranges::any_of(all, [&](const auto& record) { return names(record, digest); });
}

// So that a name is not there before its bytes are.
void sync(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check_io(descriptor >= 0 && fsync(descriptor) == 0, path, "it cannot be written");
  close(descriptor);
}

// Throws if the file holds no record, or one that no front would have written there.
OllamaRecord read_record(const fs::path& file) {
  OllamaRecord out = server::record_from_json(read_file(file, kMaxRecord));
  hub::check_written_name(out.name);
  if (!out.from.empty()) (void)hub::parse_model_name(out.from);
  check(file.filename() == file_of(out.name), "record", "its file is not named after '", out.name,
        "'");
  return out;
}

}  // namespace

void ModelRecords::read() {
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(folder_, error);
  if (settled_ && !error && changed == changed_) return;
  records_.clear();
  changed_ = changed;
  settled_ = !error && is_settled(changed);
  std::map<fs::path, ReadFile> files;
  for (const fs::path& file : files_of(folder_, kRecord)) {
    if (records_.size() >= kMostRecords) break;
    const ReadFile& one = files.emplace(file, read_again(file)).first->second;
    if (one.record) records_.push_back(*one.record);
  }
  files_ = std::move(files);
  std::ranges::sort(records_, {}, &OllamaRecord::name);
}

// Reads the file only if it changed since the last time.
ModelRecords::ReadFile ModelRecords::read_again(const fs::path& file) const {
  std::error_code error;
  ReadFile out;
  out.changed = fs::last_write_time(file, error);
  if (!error) out.bytes = fs::file_size(file, error);
  out.settled = !error && is_settled(out.changed);
  const auto before = files_.find(file);
  const bool same = before != files_.end() && before->second.settled && out.settled &&
                    before->second.changed == out.changed && before->second.bytes == out.bytes;
  if (same) {
    out.record = before->second.record;
    return out;
  }
  try {
    out.record = read_record(file);
  } catch (const Error& unreadable) {
    log(LogLevel::warn, "the record of a model cannot be read",
        {{"file", file.string()}, {"error", printable_line(unreadable.what())}});
  }
  return out;
}

std::vector<OllamaRecord> ModelRecords::list() {
  const std::scoped_lock lock(mutex_);
  read();
  return records_;
}

std::optional<OllamaRecord> ModelRecords::find(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  read();
  const auto found = std::ranges::find_if(records_, [&](const OllamaRecord& record) {
    return server::same_model_name(record.name, name);
  });
  return found == records_.end() ? std::nullopt : std::optional(*found);
}

fs::path ModelRecords::template_file(const OllamaRecord& record) const {
  return folder_ / cat(server::ollama_digest(record.chat_template), kTemplate);
}

void ModelRecords::write(const fs::path& path, const std::string& text) const {
  const fs::path unfinished = folder_ / "unfinished";  // one process at a time writes
  std::ofstream out(unfinished, std::ios::binary);
  out << text;
  out.close();
  check_io(out.good(), path, "it cannot be written");
  sync(unfinished);
  check_io(rename(unfinished.c_str(), path.c_str()) == 0, path, "it cannot be written");
  sync(folder_);
}

void ModelRecords::lock_and(const std::function<void()>& change) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) fail(Code::io, "records", "their folder cannot be made: ", error.message());
  const hub::FileLock lock(folder_ / "lock", kPatience);  // also against this process's threads
  if (!lock.is_ours()) {
    throw server::FilesBusy(
        "another process changes the made models, or holds their lock: try again");
  }
  change();
}

void ModelRecords::save(const OllamaRecord& record) {
  const std::string text = server::record_to_json(record);
  check(text.size() <= kMaxRecord, "create", "the model's settings have ", text.size(),
        " bytes, more than the ", kMaxRecord, " allowed");
  lock_and([&] {
    const fs::path path = folder_ / file_of(record.name);
    const bool room = files_of(folder_, kRecord).size() < kMostRecords || fs::exists(path);
    check(room, "create", "there are ", kMostRecords, " made models, which is the most");
    const std::optional<OllamaRecord> former = find(record.name);
    make_links(record.files, "files");
    make_links(record.adapters, "adapters");
    if (!record.chat_template.empty()) write(template_file(record), record.chat_template);
    write(path, text);
    remove_unused(former);
  });
}

bool ModelRecords::remove(const std::string& name) {
  bool out = false;
  lock_and([&] {
    std::error_code error;
    const std::optional<OllamaRecord> former = find(name);
    out = fs::remove(folder_ / file_of(name), error);
    if (error) fail(Code::io, "delete", "the record cannot be deleted: ", error.message());
    sync(folder_);
    remove_unused(former);
  });
  return out;
}

fs::path ModelRecords::folder_of(const OllamaRecord::Files& files) const {
  return links() / folder_name(files);
}

void ModelRecords::make_links(const OllamaRecord::Files& files, const std::string& field) const {
  if (files.empty()) return;
  const WorkFolder work(links());
  const fs::path target = folder_of(files);
  link_files(blobs_, files, field, work.path());
  std::error_code error;
  if (fs::exists(target, error)) return;
  fs::rename(work.path(), target, error);
  if (error) fail(Code::io, field, "a folder cannot be made: ", error.message());
  sync(links());
}

void ModelRecords::prune() {
  std::error_code error;
  if (!fs::exists(folder_, error)) return;
  lock_and([&] { remove_unused(std::nullopt); });
}

// former: the record that another took the place of, or that was deleted: its files go at once.
void ModelRecords::remove_unused(const std::optional<OllamaRecord>& former) {
  const std::vector<OllamaRecord> all = list();
  remove_unused_templates(all);
  remove_unused_links(all);
  if (former) {
    for (const OllamaRecord::Files* files : {&former->files, &former->adapters}) {
      for (const auto& [name, digest] : *files) {
        if (!any_names(all, digest)) blobs_.remove(digest);
      }
    }
  }
  blobs_.remove_unused([&](const std::string& digest) { return any_names(all, digest); });
}

void ModelRecords::remove_unused_links(const std::vector<OllamaRecord>& all) const {
  WorkFolder::sweep(links());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(links(), error)) {
    const fs::path& folder = entry.path();
    const bool used =
        WorkFolder::is_one(folder) || std::ranges::any_of(all, [&](const OllamaRecord& record) {
          return folder_of(record.files) == folder || folder_of(record.adapters) == folder;
        });
    if (!used) fs::remove_all(folder, error);
  }
}

void ModelRecords::remove_unused_templates(const std::vector<OllamaRecord>& all) const {
  for (const fs::path& file : files_of(folder_, kTemplate)) {
    const bool used = std::ranges::any_of(all, [&](const OllamaRecord& record) {
      return !record.chat_template.empty() && template_file(record) == file;
    });
    std::error_code error;
    if (!used) fs::remove(file, error);
  }
}

}  // namespace rbee::tools
