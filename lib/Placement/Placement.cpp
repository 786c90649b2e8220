//===- Placement.cpp - Which device holds which part ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Construction, validation and queries of placements. In: a view and a tree.
// Out: an immutable value, or an error. Validation walks the tree once and
// stores the box of each device; the queries read these. Rewriting is in
// PlacementRewrite.cpp, printing and parsing in PlacementText.cpp.
//
// Cost: validation is linear in the tree, and in the devices times the
// dimensions for their boxes. A copy shares the value; the box of a device is a
// look-up in a hash table. Unequal placements nearly always differ in a stored
// hash; equal ones that are stored twice are compared node by node. Boundaries
// along a dimension are sorted; all other queries walk the tree or the devices
// once.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Placement.h"
#include "whale/Cluster/DeviceIds.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

using namespace llvm;
using namespace whale;
using Kind = PlacementNode::Kind;

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static PlacementNode inner(Kind kind, std::vector<PlacementNode> children) {
  PlacementNode node;
  node.kind = kind;
  node.children = std::move(children);
  return node;
}

static std::vector<PlacementNode> leaves(ArrayRef<DeviceId> devices) {
  std::vector<PlacementNode> nodes;
  nodes.reserve(devices.size());
  for (DeviceId device : devices)
    nodes.push_back(PlacementNode::leaf(device));
  return nodes;
}

PlacementNode PlacementNode::leaf(DeviceId device) {
  PlacementNode node;
  node.device = device;
  return node;
}

PlacementNode PlacementNode::split(int64_t dim, ArrayRef<int64_t> sizes,
                                   std::vector<PlacementNode> children) {
  PlacementNode node = inner(Kind::Split, std::move(children));
  node.dim = dim;
  node.sizes.assign(sizes.begin(), sizes.end());
  return node;
}

PlacementNode PlacementNode::windows(int64_t dim, ArrayRef<int64_t> starts,
                                     ArrayRef<int64_t> sizes,
                                     std::vector<PlacementNode> children) {
  PlacementNode node = split(dim, sizes, std::move(children));
  node.starts.assign(starts.begin(), starts.end());
  return node;
}

PlacementNode PlacementNode::replicate(std::vector<PlacementNode> children) {
  if (children.size() == 1)
    return std::move(children.front());
  return inner(Kind::Replicate, std::move(children));
}

PlacementNode PlacementNode::partial(Reduction reduction,
                                     std::vector<PlacementNode> children) {
  if (children.size() == 1)
    return std::move(children.front());
  PlacementNode node = inner(Kind::Partial, std::move(children));
  node.reduction = reduction;
  return node;
}

PlacementNode PlacementNode::split(int64_t dim, ArrayRef<int64_t> sizes,
                                   ArrayRef<DeviceId> devices) {
  return split(dim, sizes, leaves(devices));
}

PlacementNode PlacementNode::replicate(ArrayRef<DeviceId> devices) {
  return replicate(leaves(devices));
}

PlacementNode PlacementNode::partial(Reduction reduction,
                                     ArrayRef<DeviceId> devices) {
  return partial(reduction, leaves(devices));
}

Extents PlacementNode::partStarts() const {
  if (!starts.empty())
    return starts;
  Extents result;
  int64_t next = 0;
  for (int64_t size : sizes) {
    result.push_back(next);
    next += size;
  }
  return result;
}

static void collectDevices(const PlacementNode &node,
                           SmallVectorImpl<DeviceId> &devices) {
  if (node.isLeaf())
    devices.push_back(node.device);
  for (const PlacementNode &child : node.children)
    collectDevices(child, devices);
}

SmallVector<DeviceId> PlacementNode::devices() const {
  SmallVector<DeviceId> result;
  collectDevices(*this, result);
  return result;
}

bool PlacementNode::operator==(const PlacementNode &other) const {
  if (kind != other.kind)
    return false;
  switch (kind) {
  case Kind::Leaf:
    return device == other.device;
  case Kind::Split:
    return dim == other.dim && sizes == other.sizes && starts == other.starts &&
           children == other.children;
  case Kind::Replicate:
    return children == other.children;
  case Kind::Partial:
    return reduction == other.reduction && children == other.children;
  }
  llvm_unreachable("all kinds covered");
}

static hash_code hashNode(const PlacementNode &node) {
  hash_code code = hash_combine(uint8_t(node.kind), node.children.size());
  if (node.isLeaf())
    return hash_combine(code, node.device);
  if (node.kind == Kind::Split)
    code = hash_combine(
        code, node.dim,
        hash_combine_range(node.sizes.begin(), node.sizes.end()),
        hash_combine_range(node.starts.begin(), node.starts.end()));
  if (node.kind == Kind::Partial)
    code = hash_combine(code, uint32_t(node.reduction));
  for (const PlacementNode &child : node.children)
    code = hash_combine(code, hashNode(child));
  return code;
}

PlacementAxis PlacementAxis::split(int64_t dim, ArrayRef<int64_t> sizes) {
  return {Kind::Split,           dim,           Extents(sizes), {},
          int64_t(sizes.size()), Reduction::Sum};
}

PlacementAxis PlacementAxis::replicate(int64_t count) {
  return {Kind::Replicate, 0, {}, {}, count, Reduction::Sum};
}

PlacementAxis PlacementAxis::partial(Reduction reduction, int64_t count) {
  return {Kind::Partial, 0, {}, {}, count, reduction};
}

//===----------------------------------------------------------------------===//
// Creation and validation
//===----------------------------------------------------------------------===//

struct Placement::Storage {
  Extents view;
  Node root;
  hash_code hash = hash_code(0);
  SmallVector<DeviceId> devices;
  std::vector<Shard> shards;
  DenseMap<DeviceId, unsigned> shardOf;
  std::optional<Reduction> reduction;
  bool hasWindows = false;
};

namespace {
/// Walks a tree once: checks it, drops nodes with one child, records the
/// shards.
struct Builder {
  ArrayRef<int64_t> view;
  std::vector<Shard> shards;
  DenseMap<DeviceId, unsigned> shardOf;
  std::optional<Reduction> reduction;
  bool hasWindows = false;

  template <typename... Args>
  static Error fail(const char *format, Args... args) {
    return createStringError(inconvertibleErrorCode(), format, args...);
  }

  Error visit(PlacementNode &node, Box &box) {
    if (node.isLeaf()) {
      if (const char *fault = findDeviceFault(node.device))
        return fail("device %lld%s", (long long)node.device, fault);
      if (!shardOf.try_emplace(node.device, shards.size()).second)
        return fail("device %lld appears twice", (long long)node.device);
      shards.push_back({node.device, box});
      return Error::success();
    }
    if (node.children.empty())
      return fail("a node has no parts");
    if (node.kind == Kind::Partial && node.children.size() > 1) {
      if (reduction.value_or(node.reduction) != node.reduction)
        return fail("two kinds of reduction in one placement");
      reduction = node.reduction;
    }
    if (node.kind == Kind::Split) {
      if (Error error = visitSplit(node, box))
        return error;
    } else {
      for (PlacementNode &child : node.children)
        if (Error error = visit(child, box))
          return error;
    }
    if (node.children.size() == 1 && node.starts.empty()) {
      PlacementNode only = std::move(node.children.front());
      node = std::move(only);
    }
    return Error::success();
  }

  /// Checks that windows ascend; windows without overlaps and gaps become
  /// parts.
  Error checkWindows(PlacementNode &node, int64_t extent) {
    if (node.starts.empty())
      return Error::success();
    long long dim = node.dim;
    if (node.starts.size() != node.sizes.size())
      return fail("split of dimension %lld has %zu starts for %zu sizes", dim,
                  node.starts.size(), node.sizes.size());
    int64_t first = 0, last = 0;
    for (auto [start, size] : llvm::zip(node.starts, node.sizes)) {
      bool isInside = start >= 0 && start <= extent && size <= extent - start;
      bool isAfter = size == 0 || (start >= first && start + size >= last);
      if (!isInside || !isAfter)
        return fail("window %lld:%lld of dimension %lld is not inside of 0:%lld"
                    " or not in ascending order",
                    (long long)start, (long long)(start + size), dim,
                    (long long)extent);
      if (size == 0)
        continue;
      first = start;
      last = start + size;
    }
    Extents starts = std::move(node.starts);
    node.starts.clear();
    if (node.partStarts() != starts || last != extent) {
      node.starts = std::move(starts);
      hasWindows = true;
    }
    return Error::success();
  }

  Error visitSplit(PlacementNode &node, Box &box) {
    long long dim = node.dim;
    if (dim < 0 || dim >= (long long)view.size())
      return fail("split dimension %lld is outside a view of %zu dimensions",
                  dim, view.size());
    if (node.sizes.size() != node.children.size())
      return fail("split of dimension %lld has %zu sizes for %zu parts", dim,
                  node.sizes.size(), node.children.size());
    int64_t start = box.start[dim], extent = box.size[dim], sum = 0;
    for (int64_t size : node.sizes) {
      if (size < 0)
        return fail("split of dimension %lld has the negative size %lld", dim,
                    (long long)size);
      if (AddOverflow(sum, size, sum))
        return fail("split sizes of dimension %lld are too large", dim);
    }
    if (node.starts.empty() && sum != extent)
      return fail("split sizes of dimension %lld sum to %lld, but the extent "
                  "to split is %lld",
                  dim, (long long)sum, (long long)extent);
    if (Error error = checkWindows(node, extent))
      return error;
    for (auto [first, size, child] :
         llvm::zip(node.partStarts(), node.sizes, node.children)) {
      box.start[dim] = start + first;
      box.size[dim] = size;
      if (Error error = visit(child, box))
        return error;
    }
    box.start[dim] = start;
    box.size[dim] = extent;
    return Error::success();
  }
};
} // namespace

static Error checkView(ArrayRef<int64_t> view) {
  constexpr int64_t limit = int64_t(1) << 62;
  int64_t volume = 1;
  for (int64_t extent : view) {
    if (extent < 0)
      return createStringError("view extent %lld is negative",
                               (long long)extent);
    // Zeros elsewhere must not hide an overflow of the other extents.
    if (MulOverflow(volume, std::max<int64_t>(extent, 1), volume) ||
        volume > limit)
      return createStringError("the view has too many elements");
  }
  return Error::success();
}

Expected<Placement> Placement::create(ArrayRef<int64_t> view, Node root) {
  if (Error error = checkView(view))
    return error;
  Builder builder;
  builder.view = view;
  Box box = Box::whole(view);
  if (Error error = builder.visit(root, box))
    return error;
  if (builder.hasWindows && builder.reduction)
    return createStringError("a split of partial values has windows");
  auto storage = std::make_shared<Storage>();
  storage->view.assign(view.begin(), view.end());
  storage->hash = hash_combine(hash_combine_range(view.begin(), view.end()),
                               hashNode(root));
  storage->root = std::move(root);
  for (const Shard &shard : builder.shards)
    storage->devices.push_back(shard.device);
  storage->shards = std::move(builder.shards);
  storage->shardOf = std::move(builder.shardOf);
  storage->reduction = builder.reduction;
  storage->hasWindows = builder.hasWindows;
  Placement placement;
  placement.storage = std::move(storage);
  return placement;
}

Placement Placement::get(ArrayRef<int64_t> view, Node root) {
  return cantFail(create(view, std::move(root)), "invalid placement");
}

Placement Placement::replicated(ArrayRef<int64_t> view,
                                ArrayRef<DeviceId> devices) {
  return get(view, Node::replicate(devices));
}

Placement Placement::split(ArrayRef<int64_t> view, int64_t dim,
                           ArrayRef<int64_t> sizes,
                           ArrayRef<DeviceId> devices) {
  return get(view, Node::split(dim, sizes, devices));
}

Placement Placement::partial(ArrayRef<int64_t> view, Reduction reduction,
                             ArrayRef<DeviceId> devices) {
  return get(view, Node::partial(reduction, devices));
}

static PlacementNode axesToNode(ArrayRef<PlacementAxis> axes,
                                ArrayRef<DeviceId> devices) {
  if (axes.empty())
    return PlacementNode::leaf(devices.front());
  const PlacementAxis &axis = axes.front();
  std::vector<PlacementNode> children;
  size_t chunk = devices.size() / axis.count;
  for (int64_t i = 0; i != axis.count; ++i)
    children.push_back(
        axesToNode(axes.drop_front(), devices.slice(i * chunk, chunk)));
  PlacementNode node = inner(axis.kind, std::move(children));
  node.dim = axis.dim;
  node.sizes = axis.sizes;
  node.starts = axis.starts;
  node.reduction = axis.reduction;
  return node;
}

Expected<Placement> Placement::regular(ArrayRef<int64_t> view,
                                       ArrayRef<Axis> axes,
                                       ArrayRef<DeviceId> devices) {
  int64_t parts = 1;
  for (const Axis &axis : axes) {
    if (axis.kind == Kind::Leaf || axis.count < 1)
      return createStringError("an axis has no parts");
    if (MulOverflow(parts, axis.count, parts) ||
        parts > int64_t(devices.size()))
      return createStringError("the axes have more parts than the %zu devices",
                               devices.size());
  }
  if (parts != int64_t(devices.size()))
    return createStringError("the axes have %lld parts for %zu devices",
                             (long long)parts, devices.size());
  return create(view, axesToNode(axes, devices));
}

Extents Placement::evenSizes(int64_t extent, int64_t parts) {
  Extents sizes;
  for (int64_t i = 0; i != parts; ++i)
    sizes.push_back(extent / parts + (i < extent % parts));
  return sizes;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

ArrayRef<int64_t> Placement::view() const { return storage->view; }
const PlacementNode &Placement::root() const { return storage->root; }
ArrayRef<DeviceId> Placement::devices() const { return storage->devices; }
ArrayRef<Shard> Placement::shards() const { return storage->shards; }
hash_code Placement::hash() const {
  return storage ? storage->hash : hash_code(0);
}

bool Placement::operator==(const Placement &other) const {
  if (storage == other.storage)
    return true;
  return storage && other.storage && storage->hash == other.storage->hash &&
         storage->view == other.storage->view &&
         storage->root == other.storage->root;
}

/// Appends the axes of a regular tree; false if it is not regular.
static bool collectAxes(const PlacementNode &node,
                        std::vector<PlacementAxis> &axes) {
  if (node.isLeaf())
    return true;
  axes.push_back({node.kind, node.dim, node.sizes, node.starts,
                  int64_t(node.children.size()), node.reduction});
  std::vector<PlacementAxis> common;
  for (auto [i, child] : llvm::enumerate(node.children)) {
    std::vector<PlacementAxis> own;
    if (!collectAxes(child, own) || (i != 0 && own != common))
      return false;
    common = std::move(own);
  }
  axes.insert(axes.end(), common.begin(), common.end());
  return true;
}

std::optional<std::vector<PlacementAxis>> Placement::axes() const {
  std::vector<PlacementAxis> result;
  if (!collectAxes(root(), result))
    return std::nullopt;
  return result;
}

std::optional<Box> Placement::box(DeviceId device) const {
  auto it = storage->shardOf.find(device);
  if (it == storage->shardOf.end())
    return std::nullopt;
  return storage->shards[it->second].box;
}

bool Placement::holds(DeviceId device) const {
  auto it = storage->shardOf.find(device);
  return it != storage->shardOf.end() &&
         !storage->shards[it->second].box.empty();
}

Extents Placement::localView(DeviceId device) const {
  std::optional<Box> held = box(device);
  return held ? held->size : Extents(rank(), 0);
}

bool Placement::isReplicated() const {
  return !isPartial() && llvm::all_of(shards(), [&](const Shard &shard) {
    return ArrayRef<int64_t>(shard.box.size) == view();
  });
}

bool Placement::isPartial() const { return storage->reduction.has_value(); }
bool Placement::hasWindows() const { return storage->hasWindows; }

std::optional<Reduction> Placement::reduction() const {
  return storage->reduction;
}

static void collectSplitDims(const PlacementNode &node,
                             SmallVectorImpl<int64_t> &dims) {
  if (node.kind == Kind::Split && !llvm::is_contained(dims, node.dim))
    dims.push_back(node.dim);
  for (const PlacementNode &child : node.children)
    collectSplitDims(child, dims);
}

SmallVector<int64_t> Placement::splitDims() const {
  SmallVector<int64_t> dims;
  collectSplitDims(root(), dims);
  llvm::sort(dims);
  return dims;
}

SmallVector<int64_t> Placement::boundaries(int64_t dim) const {
  SmallVector<int64_t> cuts{0, view()[dim]};
  for (const Shard &shard : shards()) {
    cuts.push_back(shard.box.start[dim]);
    cuts.push_back(shard.box.start[dim] + shard.box.size[dim]);
  }
  llvm::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

bool Placement::isViewOf(ArrayRef<int64_t> shape) const {
  return volumeOf(shape) == volumeOf(view());
}

StringRef whale::stringifyReduction(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum:
    return "sum";
  case Reduction::Product:
    return "product";
  case Reduction::Min:
    return "min";
  case Reduction::Max:
    return "max";
  case Reduction::And:
    return "and";
  case Reduction::Or:
    return "or";
  }
  llvm_unreachable("all reductions covered");
}

std::optional<Reduction> whale::parseReduction(StringRef text) {
  for (uint32_t i = 0; i <= uint32_t(Reduction::Or); ++i)
    if (stringifyReduction(Reduction(i)) == text)
      return Reduction(i);
  return std::nullopt;
}
