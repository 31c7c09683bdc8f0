#pragma once
// Shared by both halves of the parser: the tokens with one token of lookahead, nodes, and the
// depth.

#include <string_view>
#include <utility>
#include <vector>

#include "rbee/text/template/ast.h"
#include "rbee/text/template/lexer.h"

namespace rbee::text::jinja {

class TokenStream {
 public:
  TokenStream(Template& out, int max_depth)
      : out_(out), tokens_(tokenize(out.source)), max_depth_(max_depth) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + (at_ + 1 < tokens_.size() ? 1 : 0)]; }
  bool at(TokenType type) const { return current().type == type; }
  bool at_symbol(std::string_view symbol) const { return current().is_symbol(symbol); }
  bool at_name(std::string_view name) const { return current().is_name(name); }

  Token next() {
    const Token token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_symbol(std::string_view symbol) { return at_symbol(symbol) && (next(), true); }
  bool skip_name(std::string_view name) { return at_name(name) && (next(), true); }
  void expect_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol)) unexpected(cat("'", symbol, "'"));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) unexpected(cat("'", name, "'"));
  }
  Token expect(TokenType type, std::string_view what) {
    if (!at(type)) unexpected(what);
    return next();
  }
  [[noreturn]] void unexpected(std::string_view expected) const {
    if (at(TokenType::end)) raise_at(current().position, "the template ends, expected ", expected);
    raise_at(current().position, "unexpected '", current().text, "', expected ", expected);
  }

  template <typename T, typename... Parts>
  T* make(int32_t line, Parts&&... parts) {
    auto owned = std::make_unique<T>(std::forward<Parts>(parts)...);
    T* node = owned.get();
    node->line = line;
    out_.nodes.push_back(std::move(owned));
    return node;
  }
  Template& out() { return out_; }
  int32_t line() const { return current().position.line; }

  // Guards one level of recursion.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(stream) {
      if (stream.depth_ >= stream.max_depth_) {
        raise_at(stream.current().position, "nested more than ", stream.max_depth_, " deep");
      }
      ++stream.depth_;
    }
    ~Level() { --stream_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  Template& out_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int max_depth_;
};

}  // namespace rbee::text::jinja
