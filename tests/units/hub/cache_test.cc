#include "rbee/hub/cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "rbee/core/error.h"
#include "rbee/hub/digest.h"
#include "rbee/hub/hub_json.h"
#include "rbee/hub/parts.h"

namespace rbee::hub {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'c');

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    std::string name = (fs::temp_directory_path() / "rbee-hub-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~CacheTest() override { fs::remove_all(folder_); }

  static void write(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  fs::path folder_;
};

TEST_F(CacheTest, PathsAreThoseOfHuggingfaceHub) {
  const Cache cache("/c");
  EXPECT_EQ(cache.blob("org/repo", "etag"), "/c/models--org--repo/blobs/etag");
  EXPECT_EQ(cache.lock("org/repo", "etag"), "/c/.locks/models--org--repo/etag.lock");
  EXPECT_EQ(cache.snapshot_file("org/repo", kCommit, "a/b"),
            "/c/models--org--repo/snapshots/" + kCommit + "/a/b");
}

TEST_F(CacheTest, NamesThatLeaveTheCacheAreRefused) {
  const Cache cache(folder_);
  for (const char* file : {"", "..", "../x", "a/../../x", "/x", "a//x", "a\\x", "a\nx", "./x"}) {
    EXPECT_THROW((void)cache.snapshot_file("org/repo", kCommit, file), Error) << file;
  }
  for (const char* etag : {"", ".", "..", "a/b", ".hidden", "a b"}) {
    EXPECT_THROW((void)cache.blob("org/repo", etag), Error) << etag;
  }
  for (const char* repo : {"", ".", "..", "a--b", "../x", "a/..", "a/b/c"}) {
    EXPECT_THROW((void)cache.repo_folder(repo), Error) << repo;
  }
  EXPECT_THROW((void)cache.snapshot("org/repo", "main"), Error);
}

// From the hub's first years; huggingface_hub names their folders so.
TEST_F(CacheTest, RepositoriesWithoutAnOrganisation) {
  const Cache cache(folder_);
  EXPECT_EQ(cache.repo_folder("gpt2"), folder_ / "models--gpt2");
  cache.prepare("gpt2");
  write(cache.blob("gpt2", "etag"), "bytes");
  cache.link("gpt2", kCommit, "a.txt", "etag");
  const std::vector<CachedRepo> list = cache.list();
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list.front().repo, "gpt2");
  EXPECT_EQ(list.front().revisions.size(), 1U);
  EXPECT_TRUE(cache.remove("gpt2"));
  EXPECT_TRUE(cache.list().empty());
}

TEST_F(CacheTest, LinksRefsAndListingsAreFoundAgain) {
  const Cache cache(folder_);
  cache.prepare("org/repo");
  write(cache.blob("org/repo", "etag"), "bytes");
  cache.link("org/repo", kCommit, "a/b.txt", "etag");
  cache.set_commit("org/repo", "refs/pr/1", kCommit);
  EXPECT_EQ(fs::read_symlink(cache.snapshot_file("org/repo", kCommit, "a/b.txt")),
            "../../../blobs/etag");
  EXPECT_EQ(cache.commit_of("org/repo", "refs/pr/1"), kCommit);
  EXPECT_EQ(cache.commit_of("org/repo", "main"), std::nullopt);
  EXPECT_TRUE(cache.has_file("org/repo", kCommit, {.path = "a/b.txt", .size = 5, .blob_id = {}}));
  EXPECT_FALSE(cache.has_file("org/repo", kCommit, {.path = "a/b.txt", .size = 6, .blob_id = {}}));
  const std::vector<CachedRepo> list = cache.list();
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].repo, "org/repo");
  EXPECT_EQ(list[0].bytes, 5);
  ASSERT_EQ(list[0].revisions.size(), 1U);
  EXPECT_EQ(list[0].revisions[0].refs, std::vector<std::string>{"refs/pr/1"});
  EXPECT_EQ(list[0].revisions[0].files[0].path, "a/b.txt");
  EXPECT_TRUE(cache.remove("org/repo"));
  EXPECT_FALSE(cache.remove("org/repo"));
}

TEST_F(CacheTest, ALinkOnTheWayIsNotFollowed) {
  const Cache cache(folder_ / "cache");
  fs::create_directories(folder_ / "outside");
  fs::create_directories(cache.repo_folder("org/repo"));
  fs::create_directory_symlink(folder_ / "outside", cache.repo_folder("org/repo") / "snapshots");
  EXPECT_THROW(cache.link("org/repo", kCommit, "file", "etag"), Error);
  EXPECT_TRUE(fs::is_empty(folder_ / "outside"));
  fs::create_directory_symlink(folder_ / "outside", folder_ / "cache" / "models--org--other");
  EXPECT_FALSE(cache.remove("org/other"));
  EXPECT_TRUE(fs::exists(folder_ / "outside"));
}

TEST_F(CacheTest, ListingsHaveThePythonForm) {
  const std::vector<RepoFile> files{
      {.path = "model.safetensors", .size = 9, .blob_id = "b2", .sha256 = "s", .xet_hash = "x"},
      {.path = "a.json", .size = 1, .blob_id = "b1"},
      {.path = "\xc3\xa9.txt", .size = 2, .blob_id = "b3"}};
  EXPECT_EQ(listing_to_json(files), R"({
 "format_version": 1,
 "files": {
  "a.json": {
   "size": 1,
   "blob_id": "b1"
  },
  "model.safetensors": {
   "size": 9,
   "blob_id": "b2",
   "lfs_sha256": "s",
   "lfs_size": 9,
   "xet_hash": "x"
  },
  "\u00e9.txt": {
   "size": 2,
   "blob_id": "b3"
  }
 }
})");
  EXPECT_EQ(listing_to_json(listing_from_json(listing_to_json(files))), listing_to_json(files));
  for (const char* text : {"", "[]", "{}", R"({"format_version": 2, "files": {}})",
                           R"({"format_version": 1, "files": {"a": 1}})",
                           R"({"format_version": 1, "files": {"a": {"size": -1}}})"}) {
    EXPECT_THROW((void)listing_from_json(text), Error) << text;
  }
}

TEST_F(CacheTest, ListingsBeyondTheLimitsAreRefused) {
  std::vector<RepoFile> files;
  size_t left_out = 0;
  const auto entry = [](const std::string& size) {
    return R"({"type": "file", "path": "a", "oid": "b", "size": )" + size + "}";
  };
  parse_tree("[" + entry("70368744177664") + "]", files, left_out);
  EXPECT_EQ(files.at(0).size, kMaxFileBytes);
  for (const char* size :
       {"70368744177665", "9223372036854775807", "18446744073709551615", "-1", "1e3", "null"}) {
    EXPECT_THROW(parse_tree("[" + entry(size) + "]", files, left_out), Error) << size;
  }
  files.resize(kMaxFiles - 1);
  parse_tree("[" + entry("1") + "]", files, left_out);
  EXPECT_THROW(parse_tree("[" + entry("1") + "]", files, left_out), Error);
}

TEST_F(CacheTest, NestedJsonIsRefused) {
  std::vector<RepoFile> files;
  size_t left_out = 0;
  const std::string open(20'000'000, '['),
      deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THROW(parse_tree(open, files, left_out), Error);
  EXPECT_THROW(parse_tree(deep, files, left_out), Error);
  EXPECT_THROW((void)listing_from_json(R"({"format_version": )" + deep + R"(, "files": {}})"),
               Error);
  std::string many = "[1";
  for (int i = 0; i < 4'000'000; ++i) many += ",1";
  EXPECT_THROW((void)parse_json(many + "]", "it"), Error);
  EXPECT_EQ(parse_json(std::string(32, '[') + std::string(32, ']'), "it").size(), 1U);
}

TEST_F(CacheTest, IntegersAreClamped) {
  const auto row = parse_json(R"({"a": 18446744073709551615, "b": 7, "c": [], "d": 1e30})", "it");
  EXPECT_EQ(integer_of(row, "a"), INT64_MAX);
  EXPECT_EQ(integer_of(row, "b"), 7);
  EXPECT_EQ(integer_of(row, "c") + integer_of(row, "d") + integer_of(row, "e"), 0);
}

TEST_F(CacheTest, AnotherBlobTakesThePlaceOfALink) {
  const Cache cache(folder_);
  cache.prepare("org/repo");
  write(cache.blob("org/repo", "old"), "12");
  write(cache.blob("org/repo", "new"), "123");
  cache.link("org/repo", kCommit, "f", "old");
  cache.link("org/repo", kCommit, "f", "new");
  EXPECT_EQ(fs::file_size(cache.snapshot_file("org/repo", kCommit, "f")), 3U);
}

TEST_F(CacheTest, ALargeFileAmongTheRefsIsSkipped) {
  const Cache cache(folder_);
  cache.prepare("org/repo");
  cache.set_commit("org/repo", "main", kCommit);
  write(cache.repo_folder("org/repo") / "refs" / "large", std::string(5000, 'c'));
  EXPECT_EQ(cache.list().size(), 1U);
  EXPECT_EQ(cache.commit_of("org/repo", "large"), std::nullopt);
}

TEST_F(CacheTest, WhatIsFetchedIsNotRemoved) {
  const Cache cache(folder_);
  cache.prepare("org/repo");
  {
    const FileLock lock(cache.lock("org/repo", "etag"));
    EXPECT_THROW((void)cache.remove("org/repo"), Error);
  }
  EXPECT_TRUE(cache.remove("org/repo"));
}

TEST_F(CacheTest, UnsafeNamesOfTheHubAreLeftOut) {
  std::vector<RepoFile> files;
  size_t left_out = 0;
  parse_tree(
      R"([{"type": "file", "path": "../x", "size": 1, "oid": "a"},
          {"type": "file", "path": "/x", "size": 1, "oid": "a"},
          {"type": "file", "path": "a\u0000b", "size": 1, "oid": "a"},
          {"type": "directory", "path": "d", "size": 0, "oid": "a"},
          {"type": "file", "path": "d/ok", "size": 130, "oid": "a",
           "lfs": {"oid": "s", "size": 7}}])",
      files, left_out);
  EXPECT_EQ(left_out, 3U);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].path, "d/ok");
  EXPECT_EQ(files[0].size, 7);
  EXPECT_EQ(files[0].sha256, "s");
}

// The hashes of git hash-object and sha256sum.
TEST_F(CacheTest, SumsAreThoseOfGitAndSha256sum) {
  write(folder_ / "f", "hello\n");
  EXPECT_EQ(git_blob_of_file(folder_ / "f"), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(sha256_of_file(folder_ / "f"),
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
}

TEST_F(CacheTest, PartsThatAreWholeStayWhole) {
  const fs::path path = folder_ / "x.rbee.incomplete";
  {
    PartFile parts(path, 25, 10);
    EXPECT_EQ(parts.count(), 3);
    EXPECT_EQ(parts.end(2), 25);
    EXPECT_TRUE(parts.write(10, "abcdefghij", 10));
    parts.set_whole(1);
  }
  {
    PartFile parts(path, 25, 10);
    EXPECT_FALSE(parts.is_whole(0));
    EXPECT_TRUE(parts.is_whole(1));
    EXPECT_EQ(parts.whole_bytes(), 10);
  }
  write(folder_ / "x.rbee.parts", "rbee-parts-1 25 10\n2\n-1\n99\n1 x");
  {
    PartFile parts(path, 25, 10);
    EXPECT_EQ(parts.whole_bytes(), 10);  // part 2 ends after the file's end
  }
  PartFile other(path, 26, 10);
  EXPECT_EQ(other.whole_bytes(), 0);
  EXPECT_TRUE(other.write(0, "01234567890123456789012345", 26));
  other.finish(folder_ / "done");
  EXPECT_EQ(fs::file_size(folder_ / "done"), 26U);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(folder_ / "x.rbee.parts"));
}

}  // namespace
}  // namespace rbee::hub
