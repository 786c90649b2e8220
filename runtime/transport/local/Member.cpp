//===- Member.cpp - Moving the data of a transfer -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/local/Member.h"

#include "CopyBox.h"
#include "transport/Reduce.h"

#include <algorithm>

namespace whale::runtime::local {

void Member::move() const {
  switch (stage) {
  case Stage::Pull:
    return pull();
  case Stage::Reduce:
    return reduceSlice();
  case Stage::Copy:
    return copySlices();
  case Stage::Nothing:
    return;
  }
}

void Member::pull() const {
  std::map<int64_t, const void *> given{{rank, src}};
  for (const Member *source : sources)
    given[source->rank] = source->src;
  const Shape &dstShape = collective->dstShapes.at(rank);
  int64_t elementBytes = byteSize(collective->dtype);
  std::vector<BoxSource> boxes;
  for (const Cell &cell : *collective->cells.at(rank)) {
    boxes.clear();
    for (const Cell::Contribution &from : cell.from)
      boxes.push_back({given.at(from.peer),
                       &collective->srcShapes.at(from.peer), &from.start});
    if (boxes.size() == 1)
      copyBox(dst, dstShape, cell.dstStart, boxes[0].data, *boxes[0].shape,
              *boxes[0].start, cell.size, elementBytes);
    else
      reduceBox(collective->dtype, *collective->reduction, dst, dstShape,
                cell.dstStart, cell.size, boxes);
  }
}

// An all-reduce has two stages. In between nobody writes what another still
// reads, even where source and destination are one buffer.

void Member::reduceSlice() const {
  int64_t offset = slice.begin * byteSize(collective->dtype);
  std::vector<const void *> parts;
  for (const Member *member : *peers)
    parts.push_back(static_cast<const char *>(member->src) + offset);
  reduce(collective->dtype, *collective->reduction,
         static_cast<char *>(dst) + offset, parts, slice.size());
}

void Member::copySlices() const {
  int64_t elementBytes = byteSize(collective->dtype);
  // A peer without a slice may have left already.
  for (const Member *member : *peers)
    if (member != this && member->slice.size() > 0)
      std::copy_n(static_cast<const char *>(member->dst) +
                      member->slice.begin * elementBytes,
                  member->slice.size() * elementBytes,
                  static_cast<char *>(dst) +
                      member->slice.begin * elementBytes);
}

} // namespace whale::runtime::local
