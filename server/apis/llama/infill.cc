#include "server/apis/llama/infill.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace rbee::server {
namespace {

using Ids = std::vector<int32_t>;

// Marks of a model that was trained to fill in: file, repository: empty where it has none.
struct InfillMarks {
  std::string_view before, after, middle, file, repository;
};
constexpr std::array<InfillMarks, 6> kMarks{{
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|repo_name|>"},
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>", ""},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>", "<repo_name>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "", ""},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "hole\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     "", ""},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", ""},
}};
constexpr int64_t kRoomForAnswer = 256;  // tokens, where a request has no limit

struct InfillTokens {
  int32_t before = 0, after = 0, middle = 0;
  std::optional<int32_t> file, repository;
};

std::optional<int32_t> token_of(const engine::TextEngine& engine, std::string_view mark) {
  if (mark.empty()) return std::nullopt;
  const Ids ids = engine.tokenize(mark, {.add_special = false, .parse_special = true});
  return ids.size() == 1 ? std::optional(ids.front()) : std::nullopt;
}

// The set whose mark of files the model has as well, else the first whose others it has.
std::optional<InfillTokens> infill_tokens(const engine::TextEngine& engine) {
  std::optional<InfillTokens> out;
  for (const InfillMarks& marks : kMarks) {
    const auto before = token_of(engine, marks.before), after = token_of(engine, marks.after);
    const auto middle = token_of(engine, marks.middle);
    if (!before || !after || !middle) continue;
    const InfillTokens found{*before, *after, *middle, token_of(engine, marks.file),
                             token_of(engine, marks.repository)};
    if (found.file) return found;
    if (!out) out = found;
  }
  return out;
}

Ids plain_tokens(const engine::TextEngine& engine, std::string_view text) {
  return engine.tokenize(text, {.add_special = false, .parse_special = false});
}

void append(Ids& to, const Ids& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Other files, under their names; the farthest are left out where there is no room.
Ids file_tokens(const engine::TextEngine& engine, const InfillTokens& marks,
                const std::vector<LlamaFile>& files, int64_t room) {
  Ids out;
  if (files.empty()) return out;
  for (const LlamaFile& file : files) {
    if (marks.file) out.push_back(*marks.file);
    append(out, plain_tokens(engine, cat(marks.file ? "" : "\n\n--- ", file.name, "\n")));
    append(out, plain_tokens(engine, file.text));
  }
  if (marks.file) {
    out.push_back(*marks.file);
    append(out, plain_tokens(engine, "filename\n"));
  }
  const int64_t spare = std::ssize(out) - std::max<int64_t>(room, 0);
  if (spare > 0) out.erase(out.begin(), out.begin() + spare);
  return out;
}

}  // namespace

bool can_fill_in(const engine::TextEngine& engine) {
  return infill_tokens(engine).has_value();
}

std::vector<int32_t> infill_prompt(const engine::TextEngine& engine, const LlamaRequest& request) {
  const std::optional<InfillTokens> marks = infill_tokens(engine);
  if (!marks) {
    fail(Code::unsupported, "infill", "the model has no tokens to fill in between two texts with");
  }
  const Ids begin = engine.tokenize("", {.add_special = true});
  Ids before = plain_tokens(engine, request.before), after = plain_tokens(engine, request.after);
  const int64_t context = engine.model().context_length;
  const int64_t answer =
      std::min<int64_t>(*request.generate.max_tokens, std::min(kRoomForAnswer, context / 4));
  const int64_t room = std::max<int64_t>(context - answer - std::ssize(begin) - 4, 0);
  const int64_t behind = std::min(std::ssize(after), std::max(room / 4, room - std::ssize(before)));
  after.resize(static_cast<size_t>(behind));
  const int64_t spare = std::ssize(before) - (room - behind);
  if (spare > 0) before.erase(before.begin(), before.begin() + spare);
  const int64_t left = room - std::ssize(before) - std::ssize(after);
  Ids out = begin;
  if (marks->repository && !request.files.empty()) {
    Ids name = {*marks->repository};
    append(name, plain_tokens(engine, "repository\n"));
    if (std::ssize(name) < left) append(out, name);
  }
  const int64_t for_files = left - (std::ssize(out) - std::ssize(begin));
  append(out, file_tokens(engine, *marks, request.files, for_files));
  out.push_back(marks->before);
  append(out, before);
  out.push_back(marks->after);
  append(out, after);
  out.push_back(marks->middle);
  return out;
}

}  // namespace rbee::server
