//===- StackPieces.cpp - Arguments that are rows of one -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Import/StackPieces.h"

using namespace mlir;

namespace whale {

std::optional<StackPiece> getStackPiece(DictionaryAttr attributes) {
  auto piece = attributes ? attributes.getAs<DictionaryAttr>(kStackPieceAttr)
                          : DictionaryAttr();
  if (!piece)
    return std::nullopt;
  auto begin = piece.getAs<IntegerAttr>("begin");
  auto stack = piece.getAs<IntegerAttr>("stack");
  auto whole = piece.getAs<TypeAttr>("whole");
  auto type =
      whole ? dyn_cast<RankedTensorType>(whole.getValue()) : RankedTensorType();
  if (!begin || !stack || !type)
    return std::nullopt;
  return StackPiece{begin.getInt(), type, stack.getInt()};
}

Attribute makeStackPiece(MLIRContext *context, const StackPiece &piece) {
  mlir::Builder builder(context);
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("begin", builder.getI64IntegerAttr(piece.begin)),
       builder.getNamedAttr("stack", builder.getI64IntegerAttr(piece.stack)),
       builder.getNamedAttr("whole", TypeAttr::get(piece.whole))});
}

SmallVector<StackRun>
findStackRuns(unsigned count,
              llvm::function_ref<DictionaryAttr(unsigned)> attrsOf) {
  SmallVector<StackRun> runs;
  std::optional<StackPiece> before;
  for (unsigned i = 0; i < count; ++i) {
    std::optional<StackPiece> piece = getStackPiece(attrsOf(i));
    if (piece && before && piece->stack == before->stack)
      runs.back().last = i + 1;
    else
      runs.push_back({i, i + 1});
    before = piece;
  }
  return runs;
}

unsigned getWhole(unsigned index,
                  llvm::function_ref<DictionaryAttr(unsigned)> attrsOf) {
  return findStackRuns(index + 1, attrsOf).size() - 1;
}

unsigned getWholeArgument(func::FuncOp main, unsigned argument) {
  return getWhole(argument, [&](unsigned i) { return main.getArgAttrDict(i); });
}

std::optional<Placement> joinPlacements(ArrayRef<int64_t> shape,
                                        ArrayRef<Placement> pieces) {
  const Placement &first = pieces.front();
  if (llvm::all_of(pieces, [&](const Placement &piece) {
        return piece.isReplicated() && piece.devices() == first.devices();
      }))
    return Placement::replicated(shape, first.devices());

  // The other dimensions in a view that all pieces have.
  Extents view(shape.drop_front());
  for (const Placement &piece : pieces) {
    if (piece.rank() == 0 || piece.isPartial())
      return std::nullopt;
    std::optional<CommonView> common =
        commonRefinement(view, piece.view().drop_front());
    if (!common)
      return std::nullopt;
    view = common->extents;
  }
  Extents sizes;
  std::vector<PlacementNode> children;
  for (const Placement &piece : pieces) {
    Extents own{piece.view().front()};
    own.append(view.begin(), view.end());
    std::optional<Placement> same = piece.withView(own);
    if (!same)
      return std::nullopt;
    sizes.push_back(own.front());
    children.push_back(same->root());
  }
  view.insert(view.begin(), shape.front());
  // A device with rows of several pieces has no one box.
  llvm::Expected<Placement> joined =
      Placement::create(view, PlacementNode::split(0, sizes, children));
  if (joined)
    return *joined;
  llvm::consumeError(joined.takeError());
  return std::nullopt;
}

/// The rows [begin, end) of a node's box, which begin with row 0.
static PlacementNode takeRows(const PlacementNode &node, int64_t begin,
                              int64_t end) {
  if (node.isLeaf())
    return node;
  PlacementNode taken = node;
  taken.children.clear();
  taken.sizes.clear();
  int64_t start = 0;
  for (auto [i, child] : llvm::enumerate(node.children)) {
    bool isOfRows = node.kind == PlacementNode::Kind::Split && node.dim == 0;
    int64_t first = begin, last = end;
    if (isOfRows) {
      first = std::max(begin - start, int64_t(0));
      last = std::min(end - start, node.sizes[i]);
      start += node.sizes[i];
      if (first >= last)
        continue;
      taken.sizes.push_back(last - first);
    } else if (node.kind == PlacementNode::Kind::Split) {
      taken.sizes.push_back(node.sizes[i]);
    }
    taken.children.push_back(takeRows(child, first, last));
  }
  return taken;
}

std::optional<Placement> takeRows(const Placement &placement, int64_t begin,
                                  int64_t end) {
  if (placement.rank() == 0 || placement.hasWindows() || begin >= end ||
      end > placement.view().front())
    return std::nullopt;
  Extents view(placement.view());
  view.front() = end - begin;
  llvm::Expected<Placement> rows =
      Placement::create(view, takeRows(placement.root(), begin, end));
  if (rows)
    return *rows;
  llvm::consumeError(rows.takeError());
  return std::nullopt;
}

void makeJoinable(MutableArrayRef<Placement> placements,
                  llvm::function_ref<DictionaryAttr(unsigned)> attrsOf) {
  for (StackRun run : findStackRuns(placements.size(), attrsOf)) {
    std::optional<StackPiece> piece = getStackPiece(attrsOf(run.first));
    auto pieces = placements.slice(run.first, run.last - run.first);
    if (!piece || joinPlacements(piece->whole.getShape(), pieces))
      continue;
    SmallVector<DeviceId> devices(pieces.front().devices());
    for (auto [i, placement] : llvm::enumerate(pieces)) {
      // The shape of the piece: its rows, and all else of the whole.
      int64_t end = i + 1 < pieces.size()
                        ? getStackPiece(attrsOf(run.first + i + 1))->begin
                        : piece->whole.getDimSize(0);
      Extents shape(piece->whole.getShape());
      shape[0] = end - getStackPiece(attrsOf(run.first + i))->begin;
      placement = Placement::replicated(shape, devices);
    }
  }
}

} // namespace whale
