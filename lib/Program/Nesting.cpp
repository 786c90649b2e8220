//===- Nesting.cpp - How deep a text is nested ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a text of MLIR. Out: the first position where it nests too deeply, or has
// too many operators in an expression or too long an alias. One pass over the
// characters, without a parser: a stack of the brackets that are open, the
// minus signs in a row, the operators of an expression. Strings and comments
// are skipped. '<' and '>' may be comparisons, so any other closing bracket
// closes the '<' that are open inside of it. The depth of each alias and its
// length, written out, are kept when it is defined, so that a use takes
// constant time.
//
// Cost: linear in the text, except for a row of empty lines and comments after
// which the definition of an alias continues or the text ends: each line of it
// is searched to the end of the row.
//
//===----------------------------------------------------------------------===//

#include "whale/Program/Nesting.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

using llvm::StringRef;

namespace whale {
namespace {

/// How much longer than the text the value of an alias may be, written out.
constexpr size_t kAliasRoom = size_t(1) << 20;

/// What an alias stands for, written out.
struct Extent {
  unsigned depth = 0;
  size_t length = 0;
};

class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  std::optional<NestingError> run() {
    while (at < text.size() && !error)
      step();
    return error;
  }

private:
  void step();
  void skipString();
  void skipLine() { at = std::min(text.find('\n', at), text.size()); }
  void open(char bracket);
  void close(char bracket);
  void visitAlias();
  void visitWord();
  void noteOperator();
  void endLine();
  void fail(const std::string &what);
  bool startsWith(StringRef prefix) const {
    return text.substr(at).starts_with(prefix);
  }

  /// The depth here, a row of signs counted, and what it is in the alias that
  /// is being defined.
  void noteDepth(unsigned inner) {
    unsigned depth = brackets.size() + signs;
    if (depth > mostBrackets)
      fail("is nested more than " + std::to_string(mostBrackets) + " deep");
    if (depth + inner > mostAliasBrackets)
      fail("is nested more than " + std::to_string(mostAliasBrackets) +
           " deep, with the aliases that it names");
    if (defined)
      defined->depth = std::max(defined->depth, depth + inner);
  }

  StringRef text;
  size_t at = 0;
  /// The brackets around this place.
  llvm::SmallVector<char, 64> brackets;
  /// How many minus signs are in front of it: each is of what follows.
  unsigned signs = 0;
  /// How many operators of arithmetic are before it in the same expression,
  /// however that is bracketed.
  unsigned operators = 0;
  /// The last character that is neither space nor in a comment; '>' of an
  /// arrow is '-'.
  char last = 0;
  llvm::StringMap<Extent> aliases;
  /// The alias whose definition this is a part of.
  Extent *defined = nullptr;
  std::optional<NestingError> error;
};

void Scanner::fail(const std::string &what) {
  if (error)
    return;
  StringRef before = text.take_front(at);
  unsigned line = before.count('\n') + 1;
  unsigned column = before.size() - (before.rfind('\n') + 1) + 1;
  error = NestingError{line, column, "the text " + what};
}

// An unclosed string ends with its line, as in MLIR's lexer.
void Scanner::skipString() {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    at += text[at] == '\\';
  at = std::min(at + 1, text.size());
}

void Scanner::open(char bracket) {
  brackets.push_back(bracket);
  noteDepth(0);
}

void Scanner::noteOperator() {
  if (++operators > mostAffineOperators)
    fail("has an expression of more than " +
         std::to_string(mostAffineOperators) + " operators");
}

/// At a letter, which may begin the name of an operator.
void Scanner::visitWord() {
  size_t begin = at;
  while (at < text.size() && (llvm::isAlnum(text[at]) || text[at] == '_' ||
                              text[at] == '.' || text[at] == '$'))
    ++at;
  StringRef word = text.slice(begin, at);
  if (word == "floordiv" || word == "ceildiv" || word == "mod")
    noteOperator();
}

// '<' and '>' stand for comparisons, too: one alone says nothing.
void Scanner::close(char bracket) {
  char opened = bracket == ')'   ? '('
                : bracket == ']' ? '['
                : bracket == '}' ? '{'
                                 : '<';
  if (opened != '<')
    while (!brackets.empty() && brackets.back() == '<')
      brackets.pop_back();
  if (!brackets.empty() && (opened != '<' || brackets.back() == '<'))
    brackets.pop_back();
}

/// At '#' or '!': an alias is used, or defined if '=' follows and no bracket is
/// open.
void Scanner::visitAlias() {
  size_t begin = at++;
  auto isOfName = [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
  };
  while (at < text.size() && isOfName(text[at]) && !startsWith("->"))
    ++at;
  StringRef name = text.slice(begin, at);
  StringRef rest = text.substr(at).ltrim();
  if (brackets.empty() && rest.starts_with("=") && !rest.starts_with("==")) {
    defined = &aliases[name];
    at = rest.data() - text.data() + 1;
    last = '=';
    return;
  }
  last = 'a';
  auto known = aliases.find(name);
  if (known == aliases.end())
    return;
  noteDepth(known->second.depth);
  if (!defined)
    return;
  defined->length += known->second.length;
  if (defined->length > text.size() + kAliasRoom)
    fail("defines an alias whose value has more than " +
         std::to_string(text.size() + kAliasRoom) + " characters");
}

/// A definition goes on in the next line where it is not complete, or where
/// that starts with what nothing else starts with.
void Scanner::endLine() {
  if (!defined || !brackets.empty() || last == '-' || last == '=' ||
      last == ':' || last == ',')
    return;
  StringRef rest = text.substr(at).ltrim();
  while (rest.starts_with("//"))
    rest = rest.split('\n').second.ltrim();
  if (rest.starts_with("{-#") ||
      (!rest.empty() && !StringRef("-<([{:,=").contains(rest.front())))
    defined = nullptr;
}

void Scanner::step() {
  char c = text[at];
  if (c == '\n') {
    ++at;
    return endLine();
  }
  if (llvm::isSpace(c)) {
    ++at;
    return;
  }
  if (startsWith("//"))
    return skipLine();
  size_t begin = at;
  if (c == '-' && !startsWith("->")) {
    ++signs;
    noteDepth(0);
    noteOperator();
    last = c;
    ++at;
    return;
  }
  signs = 0;
  last = c;
  if (c == '"') {
    skipString();
  } else if (startsWith("->") || startsWith(">=") || startsWith("<=")) {
    last = '-';
    at += 2;
  } else if (c == '#' || c == '!') {
    visitAlias();
  } else if (llvm::isAlpha(c) || c == '_') {
    visitWord();
  } else {
    if (c == '+' || c == '*')
      noteOperator();
    else if (StringRef(",:=<[{").contains(c))
      operators = 0;
    if (StringRef("([{<").contains(c))
      open(c);
    else if (StringRef(")]}>").contains(c))
      close(c);
    ++at;
  }
  if (defined)
    defined->length += at - begin;
}

} // namespace

std::optional<NestingError> findDeepNesting(StringRef text) {
  if (text.starts_with("ML\xefR"))
    return std::nullopt;
  return Scanner(text).run();
}

} // namespace whale
