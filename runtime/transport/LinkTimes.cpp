//===- LinkTimes.cpp - How long a transfer takes on links -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/LinkTimes.h"

#include "whale/Step/ProgramModel.h"

namespace whale::runtime {

std::map<int64_t, double> linkSeconds(const Collective &collective,
                                      const Network &network) {
  std::map<int64_t, double> seconds;
  for (int64_t rank : collective.participants)
    seconds[rank] = 0;
  std::unique_ptr<CostModel> model = createRooflineModel(*network);
  std::vector<Exchange> exchanges = exchangesOf(collective);
  auto exchange = exchanges.begin();
  for (const Group &group : collective.groups) {
    if (exchange == exchanges.end())
      break; // a local slice
    double all = model->exchangeSeconds(*exchange++);
    for (int64_t rank : group)
      seconds[rank] = all;
  }
  return seconds;
}

} // namespace whale::runtime
