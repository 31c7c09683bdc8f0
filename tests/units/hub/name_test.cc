#include "rbee/hub/name.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "rbee/core/error.h"
#include "rbee/hub/library.h"

namespace rbee::hub {
namespace {

struct Read {
  const char* text;
  const char* repo;
  const char* file = "";
  const char* quantization = "";
  const char* revision = "main";
};

TEST(ModelName, PartsAreRead) {
  const Read cases[] = {
      {"hf:org/repo", "org/repo"},
      {"hf:Org-1/re.po_2", "Org-1/re.po_2"},
      {"hf:org/repo:Q4_K_M", "org/repo", "", "Q4_K_M"},
      {"hf:org/repo/file.gguf", "org/repo", "file.gguf"},
      {"hf:org/repo/a/b c.gguf", "org/repo", "a/b c.gguf"},
      {"hf:org/repo@v1.0", "org/repo", "", "", "v1.0"},
      {"hf:org/repo@refs/pr/3", "org/repo", "", "", "refs/pr/3"},
      {"hf:org/repo:Q8_0@dev", "org/repo", "", "Q8_0", "dev"},
      {"hf:org/repo@dev:Q8_0", "org/repo", "", "Q8_0", "dev"},
      {"hf:org/repo/a/b.gguf@dev", "org/repo", "a/b.gguf", "", "dev"},
  };
  for (const Read& one : cases) {
    SCOPED_TRACE(one.text);
    const ModelName name = parse_model_name(one.text);
    EXPECT_EQ(name.repo, one.repo);
    EXPECT_EQ(name.file, one.file);
    EXPECT_EQ(name.quantization, one.quantization);
    EXPECT_EQ(name.revision, one.revision);
    const ModelName again = parse_model_name(to_text(name));
    EXPECT_EQ(to_text(again), to_text(name));
  }
}

TEST(ModelName, WhatCannotBeOneIsRefused) {
  const std::string cases[] = {"hf:",
                               "hf:repo",
                               "org/repo",
                               "hf:org/",
                               "hf:/repo",
                               "hf:org/re po",
                               "hf:org/a--b",
                               "hf:../repo",
                               "hf:org/..",
                               "hf:-org/repo",
                               "hf:org/repo/",
                               "hf:org/repo/../x",
                               "hf:org/repo//x",
                               "hf:org/repo/./x",
                               "hf:org/repo/a\\b",
                               "hf:org/repo/c:x",
                               "hf:org/repo/a\nb",
                               std::string("hf:org/repo/a\0b", 15),
                               "hf:org/repo@",
                               "hf:org/repo@../../x",
                               "hf:org/repo@/x",
                               "hf:org/repo:",
                               "hf:org/repo:Q4 K",
                               "hf:org/repo:Q4@a:Q8",
                               "hf:org/repo/f.gguf@a:Q8",
                               "hf:org/" + std::string(97, 'a')};
  for (const std::string& text : cases) {
    SCOPED_TRACE(text);
    try {
      (void)parse_model_name(text);
      ADD_FAILURE() << "it was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
    }
  }
}

TEST(ModelName, PagesAreNames) {
  const std::string hub = "https://huggingface.co";
  EXPECT_EQ(name_of_page("https://huggingface.co/org/tiny", hub), "org/tiny");
  EXPECT_EQ(name_of_page("https://huggingface.co/org/tiny/", hub), "org/tiny");
  EXPECT_EQ(name_of_page("https://huggingface.co/org/tiny/tree/v1", hub), "org/tiny@v1");
  EXPECT_EQ(name_of_page("https://huggingface.co/org/tiny/blob/main/a/b.gguf", hub),
            "org/tiny/a/b.gguf@main");
  EXPECT_EQ(name_of_page("https://other.example/org/tiny", hub), "https://other.example/org/tiny");
  EXPECT_EQ(name_of_page("org/tiny", hub), "org/tiny");
}

TEST(ModelName, NamesWithoutTheirBeginning) {
  EXPECT_TRUE(looks_like_repo("org/tiny"));
  for (const char* text : {"tiny", "a/b/c", "./tiny", "models/a.gguf", "/x/y", "hf:org/tiny"}) {
    EXPECT_FALSE(looks_like_repo(text)) << text;
  }
}

TEST(ModelName, ShortNamesAreRepositories) {
  EXPECT_EQ(model_of_short_name("turbo"), "hf:stabilityai/sdxl-turbo");
  EXPECT_EQ(model_of_short_name("3-medium"), "hf:stabilityai/stable-diffusion-3-medium-diffusers");
  EXPECT_EQ(model_of_short_name("nothing"), std::nullopt);
  for (const std::string& name : short_names()) {
    EXPECT_NO_THROW((void)parse_model_name(model_of_short_name(name).value())) << name;
  }
}

TEST(ModelName, OllamasNamesAreQuantizationsOfRepositories) {
  const std::string small = "hf:bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M";
  for (const char* name : {"llama3.2", "llama3.2:latest", "llama3.2:3b"}) {
    EXPECT_EQ(model_of_library_name(name), small) << name;
  }
  EXPECT_EQ(model_of_library_name("nomic-embed-text"),
            "hf:nomic-ai/nomic-embed-text-v1.5-GGUF:F16");
  for (const char* name : {"", "llama3.2:", "llama3.2:9b", "3b", "hf:org/tiny", "llama3.2:*3b"}) {
    EXPECT_EQ(model_of_library_name(name), std::nullopt) << name;
  }
  const std::vector<std::string> both{"llama3.2:3b", "llama3.2"};
  EXPECT_EQ(library_names_of("bartowski/Llama-3.2-3B-Instruct-GGUF", "Q4_K_M"), both);
  EXPECT_TRUE(library_names_of("bartowski/Llama-3.2-3B-Instruct-GGUF", "Q8_0").empty());
}

TEST(ModelName, OllamasNamesDifferAndCanBeParsed) {
  const std::vector<std::string> all = library_names();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  for (const std::string& name : all) {
    EXPECT_EQ(model_of_short_name(name), std::nullopt) << name;
    const ModelName parsed = parse_model_name(model_of_library_name(name).value());
    EXPECT_EQ(to_text(parsed), model_of_library_name(name)) << name;
    const auto names = library_names_of(parsed.repo, parsed.quantization);
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

TEST(ModelName, CommitsHaveFortyDigits) {
  EXPECT_TRUE(is_commit(std::string(40, 'a')));
  EXPECT_FALSE(is_commit(std::string(39, 'a')));
  EXPECT_FALSE(is_commit(std::string(40, 'g')));
}

}  // namespace
}  // namespace rbee::hub
