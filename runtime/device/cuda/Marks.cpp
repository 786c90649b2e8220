//===- Marks.cpp - When a GPU has come how far ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Marks.h"

namespace whale::runtime::cuda {

Marks::~Marks() {
  for (EventHandle event : events)
    gpu->driver.eventDestroy.function(event);
}

void Marks::put(size_t mark, Stream stream) {
  while (events.size() < mark + 2)
    events.push_back(gpu->newEvent(/*flags=*/0));
  if (mark == 0) {
    gpu->record(events[0], stream);
    gpu->synchronize(events[0]);
    origin = Clock::now();
  }
  gpu->record(events[mark + 1], stream);
}

void Marks::read(std::vector<Clock::time_point> &times) const {
  for (size_t i = 0; i < times.size(); ++i) {
    gpu->synchronize(events[i + 1]);
    float milliseconds = 0;
    gpu->call(gpu->driver.eventElapsedTime, &milliseconds, events[0],
              events[i + 1]);
    std::chrono::duration<double, std::milli> since(milliseconds);
    times[i] = origin + std::chrono::duration_cast<Clock::duration>(since);
  }
}

} // namespace whale::runtime::cuda
