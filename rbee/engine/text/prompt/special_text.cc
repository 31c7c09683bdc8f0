#include "rbee/engine/text/prompt/special_text.h"

#include <set>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/engine/text/prompt/chat_prompt.h"

namespace rbee::engine {
namespace {

// U+FDD0, one of the characters that Unicode keeps out of texts (The Unicode Standard, 23.7).
constexpr std::string_view kMark = "\xEF\xB7\x90";

size_t first_character(std::string_view text) {
  size_t end = 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end;
}

// Puts marks into the special tokens that are found. False: there are none. Every byte is looked at
// a few times, however many there are: a text is read before anything bounds its tokens.
bool mark_found(std::string& text, const text::Tokenizer& tokenizer) {
  std::string out;
  size_t done = 0;                 // bytes of the text that are in it
  std::set<text::TokenId> absent;  // after these
  for (const text::TokenId id : tokenizer.encode(text, {.add_special = false})) {
    if (!tokenizer.is_special(id) || absent.contains(id)) continue;
    const std::string token = tokenizer.piece(id, true);
    const size_t at = text.find(token, done);
    const size_t first = first_character(token);
    if (at == std::string::npos || first >= token.size()) {
      absent.insert(id);  // it replaces what the model does not know
      continue;
    }
    out += text.substr(done, at + first - done);
    out += kMark;
    done = at + first;
  }
  if (done == 0) return false;
  text = out + text.substr(done);
  return true;
}

std::string marked(std::string_view text, const text::Tokenizer& tokenizer) {
  std::string out(text);
  // The rest of a token may hold another one.
  while (mark_found(out, tokenizer)) {
  }
  return out;
}

// mark: of a text between two pictures.
template <typename Mark>
void mark_content(ChatMessage& message, const Mark& mark) {
  const std::string content = std::exchange(message.content, {});
  size_t done = 0;
  for (ChatPicture& picture : message.pictures) {
    message.content += mark(std::string_view(content).substr(done, picture.at - done));
    done = std::exchange(picture.at, message.content.size());
  }
  message.content += mark(std::string_view(content).substr(done));
}

std::string without_tags(std::string_view text) {
  const std::string_view first = kPictureTag.substr(0, 1);
  std::string out;
  for (size_t at = text.find(kPictureTag); at != std::string_view::npos;
       at = text.find(kPictureTag)) {
    out += cat(text.substr(0, at), first, kMark);
    text.remove_prefix(at + first.size());
  }
  return out += text;
}

}  // namespace

std::vector<ChatMessage> mark_special_texts(std::vector<ChatMessage> messages,
                                            const text::Tokenizer& tokenizer) {
  for (ChatMessage& message : messages) {
    if (message.role == "assistant") continue;
    mark_content(message, [&](std::string_view text) { return marked(text, tokenizer); });
  }
  return messages;
}

std::string mark_special_texts(std::string_view text, const text::Tokenizer& tokenizer) {
  return marked(text, tokenizer);
}

void mark_picture_tags(ChatMessage& message) {
  mark_content(message, without_tags);
}

std::vector<text::TokenId> encode_marked(std::string_view prompt,
                                         const text::Tokenizer& tokenizer) {
  std::vector<text::TokenId> out;
  while (true) {
    const size_t at = prompt.find(kMark);
    const auto ids = tokenizer.encode(prompt.substr(0, at), {.add_special = false});
    out.insert(out.end(), ids.begin(), ids.end());
    if (at == std::string_view::npos) return out;
    prompt.remove_prefix(at + kMark.size());
  }
}

}  // namespace rbee::engine
