//===- PlacementText.cpp - Print and parse placements ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints and parses the text of a placement:
//
//   placement ::= `[` list `]` node
//   node      ::= axis* `on` `[` list `]` | axis+ `{` node (`,` node)* `}`
//   axis      ::= `split` int `(` list `)` | `replicate` int
//               | `partial` reduction int
//   list      ::= (item (`,` item)*)?
//   item      ::= int | int `x` int (count and value) | int `to` int
//
// Axes before `on` form a regular tree over the devices. Axes before `{` form
// one whose innermost parts are the nodes in braces, in order. Linear in the
// length of the text.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Placement.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace whale;
using Node = PlacementNode;
using Kind = PlacementNode::Kind;

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// Runs of this many equal sizes, or of consecutive devices, are abbreviated.
static constexpr size_t longRun = 5;

/// Prints `values`, where `step` is 0 to abbreviate equal ones and 1 to
/// abbreviate consecutive ones.
static void printList(raw_ostream &os, ArrayRef<int64_t> values, int64_t step) {
  ListSeparator comma;
  while (!values.empty()) {
    size_t run = 1;
    while (run < values.size() && values[run] == values[run - 1] + step)
      ++run;
    if (run < longRun)
      run = 1;
    os << comma;
    if (run == 1)
      os << values.front();
    else if (step == 0)
      os << run << " x " << values.front();
    else
      os << values.front() << " to " << values[run - 1];
    values = values.drop_front(run);
  }
}

static void printAxis(raw_ostream &os, const PlacementAxis &axis) {
  switch (axis.kind) {
  case Kind::Split:
    os << "split " << axis.dim << " (";
    if (axis.starts.empty())
      printList(os, axis.sizes, 0);
    else
      llvm::interleaveComma(llvm::zip(axis.starts, axis.sizes), os,
                            [&](auto window) {
                              auto [start, size] = window;
                              os << start << ':' << start + size;
                            });
    os << ") ";
    return;
  case Kind::Replicate:
    os << "replicate " << axis.count << ' ';
    return;
  case Kind::Partial:
    os << "partial " << stringifyReduction(axis.reduction) << ' ' << axis.count
       << ' ';
    return;
  case Kind::Leaf:
    break;
  }
  llvm_unreachable("a leaf is no axis");
}

static std::optional<std::vector<PlacementAxis>> printNode(const Node &node,
                                                           std::string &text);

/// Prints the children of an irregular node in braces.
static void printIrregular(const Node &node, ArrayRef<std::string> children,
                           raw_ostream &os) {
  printAxis(os, {node.kind, node.dim, node.sizes, node.starts,
                 int64_t(node.children.size()), node.reduction});
  os << '{' << llvm::join(children, ", ") << '}';
}

/// Prints a node; returns its axes if it is regular.
static std::optional<std::vector<PlacementAxis>> printNode(const Node &node,
                                                           std::string &text) {
  raw_string_ostream os(text);
  std::optional<std::vector<PlacementAxis>> axes;
  std::vector<std::string> children;
  bool regular = true;
  for (auto [i, child] : llvm::enumerate(node.children)) {
    auto own = printNode(child, children.emplace_back());
    regular &= own.has_value() && (i == 0 || own == axes);
    axes = std::move(own);
  }
  if (!regular) {
    printIrregular(node, children, os);
    return std::nullopt;
  }
  if (!axes)
    axes.emplace();
  if (!node.isLeaf())
    axes->insert(axes->begin(),
                 {node.kind, node.dim, node.sizes, node.starts,
                  int64_t(node.children.size()), node.reduction});
  for (const PlacementAxis &axis : *axes)
    printAxis(os, axis);
  os << "on [";
  printList(os, node.devices(), 1);
  os << ']';
  return axes;
}

void Placement::print(raw_ostream &os) const {
  if (!storage) {
    os << "<none>";
    return;
  }
  os << '[';
  llvm::interleaveComma(view(), os);
  std::string text;
  printNode(root(), text);
  os << "] " << text;
}

std::string Placement::str() const {
  std::string text;
  raw_string_ostream os(text);
  print(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
class Parser {
public:
  explicit Parser(StringRef text) : text(text), rest(text) {}

  Error parse(Extents &view, Node &root) {
    if (Error error = parseList('[', ']', /*abbreviated=*/false, view))
      return error;
    if (Error error = parseNode(root, 0))
      return error;
    skipSpace();
    if (!rest.empty())
      return fail("end of the placement");
    return Error::success();
  }

private:
  /// Deeper trees are rejected because the parser is recursive. A tree has one
  /// level for each use of a device group.
  static constexpr unsigned maxDepth = 64;
  /// More parts than any cluster has.
  static constexpr int64_t maxParts = int64_t(1) << 20;

  StringRef text, rest;

  Error fail(StringRef expected) {
    return createStringError("expected " + expected + " at character " +
                             Twine(text.size() - rest.size()) +
                             " of placement '" + text.take_front(200) + "'");
  }

  void skipSpace() { rest = rest.ltrim(); }

  bool consume(char c) {
    skipSpace();
    return rest.consume_front(StringRef(&c, 1));
  }

  Error expect(char c) {
    if (consume(c))
      return Error::success();
    return fail(("'" + Twine(c) + "'").str());
  }

  bool consumeWord(StringRef word) {
    skipSpace();
    StringRef head = rest.take_while(isAlpha);
    if (head != word)
      return false;
    rest = rest.drop_front(word.size());
    return true;
  }

  Error parseInt(int64_t &value, StringRef what) {
    skipSpace();
    StringRef before = rest;
    if (!rest.empty() && isDigit(rest.front()) &&
        !rest.consumeInteger(10, value))
      return Error::success();
    rest = before;
    return fail(what);
  }

  Error parseList(char open, char close, bool abbreviated,
                  SmallVectorImpl<int64_t> &values) {
    if (Error error = expect(open))
      return error;
    if (consume(close))
      return Error::success();
    do {
      int64_t value;
      if (Error error = parseInt(value, "a number"))
        return error;
      if (abbreviated && consumeWord("x")) {
        int64_t count = value;
        if (Error error = parseInt(value, "a number"))
          return error;
        if (count > maxParts)
          return fail("fewer parts");
        values.append(count, value);
      } else if (abbreviated && consumeWord("to")) {
        int64_t last;
        if (Error error = parseInt(last, "a number"))
          return error;
        if (last < value || last - value >= maxParts)
          return fail("an ascending range");
        for (; value <= last; ++value)
          values.push_back(value);
      } else {
        values.push_back(value);
      }
      if (int64_t(values.size()) > maxParts)
        return fail("fewer parts");
    } while (consume(','));
    return expect(close);
  }

  /// The sizes of parts, or windows with their ends: `(0:5, 3:8)`.
  Error parseParts(PlacementAxis &axis) {
    StringRef before = rest;
    if (Error error = expect('('))
      return error;
    skipSpace();
    bool isWindows = rest.ltrim("0123456789").starts_with(":");
    if (!isWindows) {
      rest = before;
      return parseList('(', ')', true, axis.sizes);
    }
    do {
      int64_t start, end;
      if (Error error = parseInt(start, "the start of a window"))
        return error;
      if (Error error = expect(':'))
        return error;
      if (Error error = parseInt(end, "the end of a window"))
        return error;
      if (end < start)
        return fail("a window that ends after it starts");
      axis.starts.push_back(start);
      axis.sizes.push_back(end - start);
      if (int64_t(axis.sizes.size()) > maxParts)
        return fail("fewer parts");
    } while (consume(','));
    return expect(')');
  }

  Error parseAxis(PlacementAxis &axis, bool &found) {
    found = true;
    if (consumeWord("split")) {
      axis.kind = Kind::Split;
      if (Error error = parseInt(axis.dim, "the dimension to split"))
        return error;
      if (Error error = parseParts(axis))
        return error;
      axis.count = axis.sizes.size();
      if (axis.count == 0)
        return fail("a size");
      return Error::success();
    }
    if (consumeWord("replicate")) {
      axis.kind = Kind::Replicate;
    } else if (consumeWord("partial")) {
      axis.kind = Kind::Partial;
      skipSpace();
      StringRef word = rest.take_while(isAlpha);
      std::optional<Reduction> reduction = parseReduction(word);
      if (!reduction)
        return fail("sum, product, min, max, and, or");
      axis.reduction = *reduction;
      rest = rest.drop_front(word.size());
    } else {
      found = false;
      return Error::success();
    }
    if (Error error = parseInt(axis.count, "the number of parts"))
      return error;
    if (axis.count < 1 || axis.count > maxParts)
      return fail("fewer parts, but one at least,");
    return Error::success();
  }

  /// Builds the tree of `axes` over `parts`, which are moved from.
  static Node build(ArrayRef<PlacementAxis> axes, MutableArrayRef<Node> parts) {
    if (axes.empty())
      return std::move(parts.front());
    const PlacementAxis &axis = axes.front();
    std::vector<Node> children;
    size_t chunk = parts.size() / axis.count;
    for (int64_t i = 0; i != axis.count; ++i)
      children.push_back(
          build(axes.drop_front(), parts.slice(i * chunk, chunk)));
    if (axis.kind == Kind::Split)
      return Node::windows(axis.dim, axis.starts, axis.sizes,
                           std::move(children));
    if (axis.kind == Kind::Replicate)
      return Node::replicate(std::move(children));
    return Node::partial(axis.reduction, std::move(children));
  }

  Error parseNode(Node &node, unsigned depth) {
    if (depth == maxDepth)
      return fail("a tree of fewer levels");
    std::vector<PlacementAxis> axes;
    int64_t count = 1;
    while (true) {
      PlacementAxis axis;
      bool found;
      if (Error error = parseAxis(axis, found))
        return error;
      if (!found)
        break;
      count *= axis.count;
      if (count > maxParts || axes.size() == maxDepth)
        return fail("fewer parts");
      axes.push_back(std::move(axis));
    }
    std::vector<Node> parts;
    if (!axes.empty() && consume('{')) {
      do {
        if (Error error = parseNode(parts.emplace_back(), depth + 1))
          return error;
      } while (consume(','));
      if (Error error = expect('}'))
        return error;
    } else if (consumeWord("on")) {
      SmallVector<int64_t> devices;
      if (Error error = parseList('[', ']', true, devices))
        return error;
      for (int64_t device : devices)
        parts.push_back(Node::leaf(device));
    } else {
      return fail("split, replicate, partial or on");
    }
    if (int64_t(parts.size()) != count)
      return createStringError("the axes have " + Twine(count) +
                               " parts, but " + Twine(parts.size()) +
                               " are given");
    node = build(axes, parts);
    return Error::success();
  }
};
} // namespace

Expected<Placement> Placement::parse(StringRef text) {
  Extents view;
  Node root;
  if (Error error = Parser(text).parse(view, root))
    return error;
  return create(view, std::move(root));
}
