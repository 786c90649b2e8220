//===- Writer.h - Parts of a program as JSON --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_WRITER_H
#define WHALE_LIB_PROGRAMFORMAT_WRITER_H

#include "JsonText.h"
#include "whale/ProgramFormat/Program.h"

#include <map>
#include <tuple>
#include <vector>

namespace whale::format {

/// Appends a member whose key the object does not have yet, without a look-up.
void addMember(Json &object, const std::string &key, Json value);

/// Makes room for so many members in an object, or in null, which becomes one.
void reserveMembers(Json &object, size_t count);

/// Returns null if there is no value.
template <typename T>
Json toJson(const std::optional<T> &value) {
  return value ? Json(*value) : Json();
}

/// Writes the buffers of a class; `rankClass` is null for those of a function.
Json buffersToJson(const std::vector<BufferInfo> &buffers,
                   const Program &program, const RankClass *rankClass);

/// Writes the cells of each rank.
Json cellsToJson(const ChannelPart &part);

/// The distinct runs of a class.
class RunTable {
public:
  /// Returns the number of a run; adds it if it is new.
  int64_t add(const Run &run);
  Json list = Json::array();

private:
  std::map<std::tuple<int64_t, int64_t, std::vector<BufferIndex>,
                      std::vector<BufferIndex>>,
           int64_t>
      numbers;
};

/// The moments of a class's runs.
class MomentTable {
public:
  /// Adds the next run.
  void add(std::optional<int64_t> moment);
  /// Returns null if no run has a moment.
  Json toJson() const;

private:
  Json inGroupsOf(size_t count) const;

  /// How many runs in a row are of which moment.
  std::vector<std::pair<int64_t, std::optional<int64_t>>> turns;
};

/// By channel, the origin of most of its starts.
using ChannelOrigins = std::map<int64_t, std::optional<int64_t>>;

/// Prints the instructions of one class or function.
struct InstructionWriter {
  const ChannelOrigins &channelOrigins;
  RunTable runs = {};
  MomentTable moments = {};

  Json toJson(const std::vector<Instruction> &instructions);
};

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_WRITER_H
