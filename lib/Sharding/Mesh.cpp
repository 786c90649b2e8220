//===- Mesh.cpp - The devices of a TaskGraph, and shards on them ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a shape, and the layout along each axis of a mesh. Out: the placement.
//
// First the shape is cut into a view in which every split piece is a dimension,
// then a node of the tree is made for each axis, from the outermost inward.
// What outer axes have left of a dimension is handed on, so that an inner axis
// can split the same piece further. The sizes are shares of the planner
// (LoadBalance.h), with devices whose memory has room for a part of the units.
//
// Cost: a node for each device, and the planner's search for shares of groups
// and devices. Shares and placements are kept in sorted maps until the balance
// changes, since programs need the same few again and again: one that is known
// is a look-up.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/Mesh.h"
#include "whale/Planner/LoadBalance.h"
#include "whale/Step/CostModel.h"
#include <numeric>

using namespace mlir;

namespace whale {

double rateOf(ArrayRef<ShareCost> devices) {
  double rate = 0;
  for (const ShareCost &device : devices)
    rate += 1 / device.seconds;
  return rate;
}

double MeshBalance::rate() const {
  double rate = 0;
  for (const std::vector<ShareCost> &group : batch)
    rate += rateOf(group);
  return rate;
}

ShareCost MeshBalance::ofGroup(size_t group) const {
  ShareCost cost;
  cost.seconds = 1 / rateOf(batch[group]);
  // What the devices of a group cut otherwise, each has all samples of.
  double least = 1, sum = 0;
  for (const ShareCost &device : batch[group]) {
    least = std::min(least, device.most);
    sum += device.most;
  }
  cost.most = byGroup ? least : std::min(sum, 1.0);
  return cost;
}

Mesh::Mesh(std::vector<std::vector<DeviceId>> groups, const Cluster &cluster)
    : groups(std::move(groups)), parts{int64_t(this->groups.size()), 0} {
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  OpCost product;
  product.opClass = OpClass::Matmul;
  product.flops = 1;
  for (const std::vector<DeviceId> &group : this->groups) {
    std::vector<ShareCost> &costs = balance.batch.emplace_back(group.size());
    for (auto [cost, device] : llvm::zip_equal(costs, group))
      cost.seconds = model->opSeconds(product, device);
    parts[1] = std::max(parts[1], int64_t(group.size()));
  }
  balance.otherInner = balance.batch;
}

Mesh::Mesh(ArrayRef<int64_t> sizes, ArrayRef<DeviceId> devices)
    : devices(devices), parts(sizes) {}

std::vector<DeviceId> Mesh::getDevices(unsigned axis) const {
  if (!groups.empty() && axis == 1)
    return groups.front();
  std::vector<DeviceId> list;
  for (const std::vector<DeviceId> &group : groups)
    list.push_back(group.front());
  if (!groups.empty())
    return list;
  int64_t stride = 1;
  for (size_t inner = axis + 1; inner < parts.size(); ++inner)
    stride *= parts[inner];
  for (int64_t i = 0; i < parts[axis]; ++i)
    list.push_back(devices[i * stride]);
  return list;
}

void Mesh::setBalance(MeshBalance newBalance) {
  balance = std::move(newBalance);
  cache.clear();
  placements.clear();
  momentShares.clear();
  groupMomentShares.clear();
  innerCache.clear();
}

/// How many of so many units a device has room for.
static int64_t roomOf(const ShareCost &cost, int64_t extent) {
  // A little more than nothing is lost to rounding.
  double room = cost.most * double(extent) * (1 + 1e-9);
  return int64_t(std::min<double>(room, double(extent)));
}

/// Devices with a byte of memory for each of so many units that they have room
/// for.
static std::vector<ShareDevice> devicesOf(ArrayRef<ShareCost> costs,
                                          int64_t extent) {
  std::vector<ShareDevice> devices;
  for (auto [index, cost] : llvm::enumerate(costs)) {
    ShareDevice &device = devices.emplace_back();
    device.id = index;
    device.secondsPerUnit = cost.seconds;
    device.fixedSeconds = cost.fixed * double(extent);
    int64_t room = roomOf(cost, extent);
    device.bytesPerUnit = room < extent ? 1 : 0;
    device.memoryBytes = room;
  }
  return devices;
}

/// The shares whose largest finish time is least. Where memory is short of all
/// of them, those that leave every device as little over its room as possible:
/// how much it really needs is known when buffers are planned.
static std::vector<int64_t> solve(int64_t extent, ArrayRef<ShareCost> costs) {
  llvm::Expected<std::vector<int64_t>> result =
      shares(extent, /*grain=*/1, devicesOf(costs, extent));
  if (result)
    return *result;
  llvm::consumeError(result.takeError());
  std::vector<ShareCost> fullness(costs.size());
  for (auto [full, cost] : llvm::zip_equal(fullness, costs))
    full.seconds = 1 / std::max(cost.most, 1e-9);
  return llvm::cantFail(
      shares(extent, /*grain=*/1, devicesOf(fullness, extent)));
}

static Extents toExtents(ArrayRef<int64_t> sizes) {
  return Extents(sizes.begin(), sizes.end());
}

/// What devices of the same place in their groups have in common, where groups
/// are of one size: all wait for the slowest. Groups hold replicas, whose sums
/// over parts are equal to the last bit only if the parts are. Where each group
/// has memory for all, but not those places together, each keeps its own.
static std::vector<ShareCost> slowest(const MeshBalance::ByDevice &groups,
                                      size_t group) {
  std::vector<ShareCost> costs = groups[group];
  for (const std::vector<ShareCost> &other : groups) {
    if (other.size() != costs.size())
      return groups[group];
    for (auto [cost, own] : llvm::zip_equal(costs, other)) {
      cost.seconds = std::max(cost.seconds, own.seconds);
      cost.fixed = std::max(cost.fixed, own.fixed);
      cost.most = std::min(cost.most, own.most);
    }
  }
  double room = 0;
  for (const ShareCost &cost : costs)
    room += cost.most;
  return room < 1 ? groups[group] : costs;
}

Extents Mesh::innerShares(int64_t extent, size_t group) const {
  auto [known, isNew] = innerCache.try_emplace({extent, group});
  if (!isNew)
    return known->second;
  auto it = balance.inner.find(extent);
  const MeshBalance::ByDevice &costs =
      it == balance.inner.end() ? balance.otherInner : it->second;
  return known->second = toExtents(solve(extent, slowest(costs, group)));
}

const std::vector<Extents> &
Mesh::batchShares(int64_t extent, std::optional<int64_t> moment) const {
  // Whole multiples of the samples of a micro-batch are shared out like them.
  if (moment && (balance.moments.empty() || balance.moments[*moment] == 0 ||
                 extent % balance.moments[*moment] != 0))
    moment.reset();
  auto [it, isNew] = cache.try_emplace({extent, moment.value_or(-1)});
  if (isNew)
    it->second = makeBatchShares(extent, moment);
  return it->second;
}

std::vector<Extents>
Mesh::makeBatchShares(int64_t extent, std::optional<int64_t> moment) const {
  // One list of all that take a share: devices or groups.
  bool areInTurn = moment && balance.isLockstep() && balance.replicas.empty();
  bool byGroup = balance.byGroup || !balance.replicas.empty() || areInTurn;
  int64_t least = moment ? *llvm::min_element(balance.moments) : extent;
  std::vector<ShareCost> costs = balance.replicas;
  for (size_t g = 0; g < groups.size() && balance.replicas.empty(); ++g) {
    if (!byGroup) {
      llvm::append_range(costs, balance.batch[g]);
      continue;
    }
    ShareCost &cost = costs.emplace_back(balance.ofGroup(g));
    if (!areInTurn || balance.byGroup || least == 0)
      continue;
    // Its devices hold whole samples.
    int64_t room = 0;
    for (const ShareCost &device : balance.batch[g])
      room += roomOf(device, least);
    cost.most = std::min(double(room) / double(least), 1.0);
  }
  std::vector<int64_t> sizes;
  if (moment) {
    int64_t samples = balance.moments[*moment];
    if (momentShares.empty()) {
      llvm::Expected<std::vector<std::vector<int64_t>>> all = sharesOfMoments(
          balance.moments, balance.period, devicesOf(costs, least));
      if (all)
        momentShares = std::move(*all);
      else
        llvm::consumeError(all.takeError());
    }
    if (!momentShares.empty())
      sizes = momentShares[*moment];
    else if (areInTurn)
      return makeBatchShares(extent, std::nullopt);
    for (int64_t &size : sizes)
      size *= extent / samples;
  }
  if (sizes.empty())
    sizes = solve(extent, costs);

  std::vector<Extents> result;
  ArrayRef<int64_t> rest = sizes;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (byGroup) {
      result.push_back(makeGroupShares(g, sizes[g], extent, moment));
    } else {
      result.push_back(toExtents(rest.take_front(groups[g].size())));
      rest = rest.drop_front(groups[g].size());
    }
  }
  return result;
}

/// What the devices of a group take of `size`, which is the group's share.
Extents Mesh::makeGroupShares(size_t group, int64_t size, int64_t extent,
                              std::optional<int64_t> moment) const {
  std::vector<ShareCost> costs = balance.batch[group];
  for (ShareCost &cost : costs) {
    cost.fixed = 0;
    if (balance.byGroup)
      cost.most = 1;
  }
  if (moment && !momentShares.empty() && !balance.byGroup &&
      !balance.isLockstep()) {
    auto [it, isNew] = groupMomentShares.try_emplace(group);
    if (isNew) {
      std::vector<int64_t> sizes;
      for (const std::vector<int64_t> &shares : momentShares)
        sizes.push_back(shares[group]);
      llvm::Expected<std::vector<std::vector<int64_t>>> all = sharesOfMoments(
          sizes, balance.period,
          devicesOf(costs, *llvm::min_element(balance.moments)));
      if (all)
        it->second = std::move(*all);
      else
        llvm::consumeError(all.takeError());
    }
    if (!it->second.empty()) {
      Extents shares = toExtents(it->second[*moment]);
      for (int64_t &share : shares)
        share *= extent / balance.moments[*moment];
      return shares;
    }
  }
  // Whole multiples of the samples of a micro-batch are shared out like them.
  int64_t times = 1;
  if (moment && !momentShares.empty() && balance.isLockstep()) {
    times = extent / balance.moments[*moment];
    size = momentShares[*moment][group];
    extent /= times;
  }
  // They can hold parts of the whole.
  for (ShareCost &cost : costs)
    cost.most *= double(extent) / double(std::max<int64_t>(size, 1));
  Extents shares = toExtents(solve(size, costs));
  for (int64_t &share : shares)
    share *= times;
  return shares;
}

namespace {

/// A view in which each given piece is a dimension of its own.
struct View {
  Extents extents;
  /// The view dimension of each piece.
  SmallVector<int64_t> dims;
};

View cutView(ArrayRef<int64_t> shape, ArrayRef<DimPiece> pieces) {
  View view;
  view.dims.assign(pieces.size(), 0);
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size <= 1) { // Nothing to cut.
      view.extents.push_back(size);
      continue;
    }
    SmallVector<int64_t> cuts{size, 1};
    for (const DimPiece &piece : pieces)
      if (piece.dim == dim) {
        cuts.push_back(piece.minor);
        cuts.push_back(piece.minor * piece.extent);
      }
    llvm::sort(cuts, std::greater<>());
    cuts.erase(llvm::unique(cuts), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      for (auto [index, piece] : llvm::enumerate(pieces))
        if (piece.dim == dim && piece.minor == cuts[i + 1]) {
          assert(piece.minor * piece.extent == cuts[i] &&
                 "pieces of a dimension must be equal or disjoint");
          view.dims[index] = view.extents.size();
        }
      view.extents.push_back(cuts[i] / cuts[i + 1]);
    }
  }
  return view;
}

} // namespace

Placement Mesh::place(ArrayRef<int64_t> shape, ArrayRef<AxisState> states,
                      std::optional<int64_t> moment) const {
  if (balance.moments.empty())
    moment.reset();
  std::vector<int64_t> key(shape);
  key.push_back(moment.value_or(-1));
  for (const AxisState &state : states)
    key.insert(key.end(),
               {int64_t(state.kind), state.piece.dim, state.piece.extent,
                state.piece.minor, int64_t(state.reduction)});
  for (const AxisState &state : states)
    if (const std::optional<RowWindow> &window = state.window)
      key.insert(key.end(), {window->stride, window->reach, window->low,
                             window->base, window->grain});
    else
      key.push_back(-1);
  auto it = placements.find(key);
  if (it != placements.end())
    return it->second;

  // An axis of one part says nothing.
  SmallVector<DimPiece> pieces;
  for (auto [axis, state] : llvm::enumerate(states))
    if (state.isSplit() && getNumParts(axis) > 1)
      pieces.push_back(
          state.window ? DimPiece{state.piece.dim, shape[state.piece.dim], 1}
                       : state.piece);
  View view = cutView(shape, pieces);
  SmallVector<int64_t> dims(states.size(), -1);
  SmallVector<Rest> rests;
  for (int64_t extent : view.extents)
    rests.push_back({extent});
  unsigned next = 0;
  for (auto [axis, state] : llvm::enumerate(states)) {
    if (!state.isSplit() || getNumParts(axis) <= 1)
      continue;
    Rest &rest = rests[dims[axis] = view.dims[next++]];
    rest.grains = {0, state.piece.extent};
    rest.rows = {0, rest.extent};
  }
  PlacementNode node =
      makeNode(states, dims, /*axis=*/0, /*place=*/0, rests, moment);
  return placements.emplace(key, Placement::get(view.extents, std::move(node)))
      .first->second;
}

Extents Mesh::sizesOf(ArrayRef<AxisState> states, unsigned axis, int64_t extent,
                      size_t group, std::optional<int64_t> moment) const {
  if (groups.empty())
    return toExtents(solve(extent, std::vector<ShareCost>(parts[axis])));
  bool isBatch = states[0].isSplit() && states[1].isSplit() &&
                 states[0].piece == states[1].piece;
  if (axis == 1 && !isBatch)
    return innerShares(extent, group);
  const std::vector<Extents> &batch =
      batchShares(states[0].piece.extent, moment);
  if (axis == 1)
    return batch[group];
  Extents sizes;
  for (const Extents &own : batch)
    sizes.push_back(std::accumulate(own.begin(), own.end(), int64_t(0)));
  return sizes;
}

/// The one with a share in a micro-batch of one sample.
size_t Mesh::singlePart(unsigned axis, size_t place,
                        std::optional<int64_t> moment) const {
  const std::vector<Extents> &shares = batchShares(/*extent=*/1, moment);
  auto isSome = [](int64_t share) { return share > 0; };
  if (axis == 0)
    return llvm::find_if(shares,
                         [&](const Extents &group) {
                           return llvm::any_of(group, isSome);
                         }) -
           shares.begin();
  const auto *part = llvm::find_if(shares[place], isSome);
  return part == shares[place].end() ? 0 : part - shares[place].begin();
}

/// The part of a placement at one position along the axes outside of `axis`, of
/// what they have left of each dimension.
PlacementNode Mesh::makeNode(ArrayRef<AxisState> states, ArrayRef<int64_t> dims,
                             unsigned axis, size_t place,
                             SmallVectorImpl<Rest> &rests,
                             std::optional<int64_t> moment) const {
  if (axis == states.size())
    return PlacementNode::leaf(devices[place]);
  bool isGroup = !groups.empty() && axis == 1;
  size_t count = isGroup ? groups[place].size() : parts[axis];
  if (states[axis].isSingle()) {
    size_t part = singlePart(axis, place, moment);
    return isGroup ? PlacementNode::leaf(groups[place][part])
                   : makeNode(states, dims, axis + 1, place * count + part,
                              rests, moment);
  }
  int64_t dim = dims[axis];
  const std::optional<RowWindow> &window = states[axis].window;
  Rest whole = dim < 0 ? Rest() : rests[dim];
  Extents starts, sizes;
  SmallVector<Rest> shares;
  if (dim >= 0) {
    int64_t extent =
        window ? whole.grains.end - whole.grains.begin : whole.extent;
    RowRange grains{whole.grains.begin, whole.grains.begin};
    for (int64_t size : sizesOf(states, axis, extent, place, moment)) {
      grains = {grains.end, grains.end + size};
      Rest share{size, grains, {}};
      if (window) {
        share.rows = window->neededRows(
            {grains.begin * window->grain, grains.end * window->grain});
        share.extent = share.rows.end - share.rows.begin;
        starts.push_back(share.rows.begin - whole.rows.begin);
      }
      sizes.push_back(share.extent);
      shares.push_back(share);
    }
  }
  std::vector<PlacementNode> children;
  for (size_t i = 0; i < count; ++i) {
    if (isGroup) {
      children.push_back(PlacementNode::leaf(groups[place][i]));
      continue;
    }
    if (dim >= 0)
      rests[dim] = shares[i];
    children.push_back(
        makeNode(states, dims, axis + 1, place * count + i, rests, moment));
  }
  if (dim >= 0) {
    rests[dim] = whole;
    return PlacementNode::windows(dim, starts, sizes, std::move(children));
  }
  if (states[axis].isPartial())
    return PlacementNode::partial(states[axis].reduction, std::move(children));
  return PlacementNode::replicate(std::move(children));
}

} // namespace whale
