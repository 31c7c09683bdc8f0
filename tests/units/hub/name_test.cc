#include "rbee/hub/name.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

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
      {"hf:gpt2", "gpt2"},  // from the hub's first years, without an organisation
      {"hf:gpt2:Q8_0", "gpt2", "", "Q8_0"},
      {"hf:gpt2@refs/pr/3", "gpt2", "", "", "refs/pr/3"},
      {"hf:gpt2:Q8_0@dev", "gpt2", "", "Q8_0", "dev"},
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
                               "hf:re po",
                               "hf:..",
                               "hf:a--b",
                               "hf:gpt2@",
                               "hf:gpt2:",
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
  EXPECT_EQ(name_of_page("https://huggingface.co/gpt2", hub), "gpt2");
  EXPECT_EQ(name_of_page("https://huggingface.co/gpt2/tree/v1", hub), "gpt2@v1");
  EXPECT_EQ(name_of_page("https://huggingface.co/tree/blob", hub), "tree/blob");
}

TEST(ModelName, AddressesAreNames) {
  EXPECT_EQ(model_of_address("hf.co/Org/Tiny:Q8_0"), "hf:Org/Tiny:Q8_0");
  EXPECT_EQ(model_of_address("HF.co/org/tiny:latest"), "hf:org/tiny");
  EXPECT_EQ(model_of_address("huggingface.co/org/tiny"), "hf:org/tiny");
  EXPECT_EQ(model_of_address("https://huggingface.co/org/tiny/tree/v1"), "hf:org/tiny@v1");
  EXPECT_EQ(model_of_address("hf.co/gpt2"), "hf:gpt2");
  for (const char* text : {"hf:org/tiny", "org/tiny", "other.example/org/tiny", "hf.co"}) {
    EXPECT_EQ(model_of_address(text), std::nullopt) << text;
  }
}

TEST(ModelName, WhatNoRequestCanName) {
  for (const char* text : {"llama3.2:3b", "a", "org/repo", "hf:org/repo:Q8_0", "hf.co/org/repo",
                           "hf:org/repo/a b.gguf@dev", "registry.ollama.ai/library/llama3.2:latest",
                           "https://ollama.com/library/x", "gpt2:latest"}) {
    EXPECT_NO_THROW(check_written_name(text)) << text;
  }
  for (const std::string& text : {std::string(),
                                  std::string("../../etc/passwd"),
                                  std::string("a/../b"),
                                  std::string("/a"),
                                  std::string("a//b"),
                                  std::string("a/"),
                                  std::string("a b"),
                                  std::string("a\nb"),
                                  std::string("a\0b", 3),
                                  std::string("a\\b"),
                                  std::string("\xff"),
                                  std::string("."),
                                  std::string("hf:"),
                                  std::string("hf:org/a--b"),
                                  std::string("hf:org/../x"),
                                  std::string("hf.co/../x"),
                                  std::string("hf.co/"),
                                  std::string("hf:org/repo:Q 4"),
                                  std::string(2000, 'a'),
                                  "hf:org/" + std::string(97, 'a')}) {
    try {
      check_written_name(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument) << text;
      EXPECT_TRUE(std::string_view(error.what()).starts_with("model: ")) << error.what();
    }
  }
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
  for (const char* name : {"", "3b", "hf:org/tiny", "llama", "llama3.2-3b", "user/llama3.2"}) {
    EXPECT_EQ(model_of_library_name(name), std::nullopt) << name;
  }
  for (const char* name :
       {"library/llama3.2", "ollama.com/library/llama3.2:3b", "Llama3.2:3B",
        "registry.ollama.ai/library/llama3.2:latest", "https://ollama.com/library/llama3.2"}) {
    EXPECT_EQ(model_of_library_name(name), small) << name;
  }
  const std::vector<std::string> both{"llama3.2:3b", "llama3.2"};
  EXPECT_EQ(library_names_of("bartowski/Llama-3.2-3B-Instruct-GGUF", "Q4_K_M"), both);
  EXPECT_TRUE(library_names_of("bartowski/Llama-3.2-3B-Instruct-GGUF", "Q8_0").empty());
}

// As Ollama's library tags its models.
TEST(ModelName, OllamasTagsNameAVariantAndAQuantization) {
  const std::pair<const char*, const char*> cases[] = {
      {"llama3.2:3b-instruct-q8_0", "bartowski/Llama-3.2-3B-Instruct-GGUF:Q8_0"},
      {"llama3.2:1b-instruct", "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M"},
      {"qwen2.5:7b-instruct-q4_K_M", "bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"},
      {"gemma2:2b-instruct-fp16", "bartowski/gemma-2-2b-it-GGUF:F16"},
      {"gemma3:4b-it-q8_0", "ggml-org/gemma-3-4b-it-GGUF:Q8_0"},
      {"llama2:13b-chat-q5_K_S", "TheBloke/Llama-2-13B-chat-GGUF:Q5_K_S"},
      {"mistral:7b-instruct-v0.3-q4_0", "bartowski/Mistral-7B-Instruct-v0.3-GGUF:Q4_0"},
      {"tinyllama:1.1b-chat-v1-q2_K", "TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF:Q2_K"},
      {"deepseek-r1:7b-qwen-distill-q4_K_M", "bartowski/DeepSeek-R1-Distill-Qwen-7B-GGUF:Q4_K_M"},
      {"qwen3:30b-a3b-q4_K_M", "unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M"},
      {"qwen3:8b-bf16", "unsloth/Qwen3-8B-GGUF:BF16"},
      {"nomic-embed-text:137m-v1.5-fp16", "nomic-ai/nomic-embed-text-v1.5-GGUF:F16"},
      {"library/qwen2.5:7b-instruct-q6_K", "bartowski/Qwen2.5-7B-Instruct-GGUF:Q6_K"},
  };
  for (const auto& [name, hub] : cases) {
    EXPECT_EQ(model_of_library_name(name), cat("hf:", hub)) << name;
    EXPECT_NO_THROW((void)parse_model_name(*model_of_library_name(name))) << name;
  }
  // Other models than the table's: of base models, other versions and sizes it knows nothing.
  for (const char* name :
       {"llama3.2:9b", "llama3.2:", "llama3.2:*3b", "llama3.2:3b-text-q4_0", "llama3.2:3b-chat",
        "mistral:7b-instruct-v0.2-q4_0", "deepseek-r1:8b-llama-distill-q4_K_M", "llama3.2:q8_0",
        "llama3.2:3b-q9_0", "llama3.2:3b--q8_0", "gemma3:4b-it-qat"}) {
    try {
      ADD_FAILURE() << name << " is " << model_of_library_name(name).value_or("none");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::not_found) << name;
      const std::string_view why = error.what();
      const std::string_view known = std::string_view(name).starts_with("llama3.2")
                                         ? "bartowski/Llama-3.2-3B-Instruct-GGUF"
                                         : "GGUF";
      EXPECT_NE(why.find(known), why.npos) << why;
    }
  }
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
