//===- CheckSpaces.cpp - Check which memory is used for what --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the instructions of each class. Functions have buffers of their class
// alone, which are looked at where they are run. Cost: linear in the buffers of
// all instructions of classes; nothing for a program that has all in the
// devices' memory and no copies from there.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CheckSpaces.h"

#include "Uses.h"

#include <algorithm>

namespace whale::format {

bool isInHost(const Program &program, const BufferInfo &buffer) {
  if (buffer.space == Space::Argument)
    return program.arguments[buffer.index].isInHost;
  return buffer.space == Space::Result &&
         program.results[buffer.index].isInHost;
}

namespace {

class SpaceCheck {
public:
  SpaceCheck(const Program &program, const RankClass &rankClass)
      : program(program), buffers(rankClass.buffers) {}

  std::optional<Fault> check(const std::vector<Instruction> &list,
                             const std::string &path);

private:
  std::string faultOf(const Instruction &instruction) const;
  std::string faultOf(const Start &copy, bool toDevice) const;
  std::string faultOf(BufferIndex index, bool isMeantInHost) const;

  const Program &program;
  const std::vector<BufferInfo> &buffers;
};

} // namespace

/// Nothing is where there are no elements.
std::string SpaceCheck::faultOf(BufferIndex index, bool isMeantInHost) const {
  const BufferInfo &buffer = buffers[index];
  if (buffer.bytes == 0 || isInHost(program, buffer) == isMeantInHost)
    return "";
  return "buffer " + std::to_string(index) +
         (isMeantInHost ? " is in the device's memory, and must be in its "
                          "host's"
                        : " is in the host's memory, which only copies "
                          "between host and device use");
}

std::string SpaceCheck::faultOf(const Start &copy, bool toDevice) const {
  for (const Start::Ends &part : copy.parts)
    for (auto [index, isMeantInHost] :
         {std::pair(part.src, toDevice), std::pair(part.dst, !toDevice)})
      if (index)
        if (std::string fault = faultOf(*index, isMeantInHost); !fault.empty())
          return fault;
  return "";
}

std::string SpaceCheck::faultOf(const Instruction &instruction) const {
  if (const auto *start = std::get_if<Start>(&instruction.operation))
    if (const Collective &channel = *program.channels.at(start->channel);
        channel.isHostCopy())
      return faultOf(*start, channel.kind == "host_to_device");
  std::string fault;
  auto use = [&](BufferIndex index) {
    if (fault.empty())
      fault = faultOf(index, /*isMeantInHost=*/false);
  };
  forEachUse(program, instruction,
             [&](BufferIndex index, bool) { use(index); });
  if (const auto *run = std::get_if<Run>(&instruction.operation)) {
    std::ranges::for_each(run->operands, use);
    std::ranges::for_each(run->results, use);
  }
  return fault;
}

std::optional<Fault> SpaceCheck::check(const std::vector<Instruction> &list,
                                       const std::string &path) {
  for (size_t i = 0; i < list.size(); ++i) {
    auto here = [&] { return path + "[" + std::to_string(i) + "]"; };
    if (std::string fault = faultOf(list[i]); !fault.empty())
      return Fault{here(), std::move(fault)};
    std::optional<Fault> inner;
    if (const auto *loop = std::get_if<While>(&list[i].operation)) {
      inner = check(loop->cond, here() + ".cond");
      if (!inner)
        inner = check(loop->body, here() + ".body");
    } else if (const auto *choice = std::get_if<Case>(&list[i].operation)) {
      for (size_t b = 0; b < choice->branches.size() && !inner; ++b)
        inner = check(choice->branches[b],
                      here() + ".branches[" + std::to_string(b) + "]");
    }
    if (inner)
      return inner;
  }
  return std::nullopt;
}

std::optional<Fault> checkSpaces(const Program &program) {
  auto inHost = [](const Parameter &parameter) { return parameter.isInHost; };
  bool isUsed = std::ranges::any_of(program.arguments, inHost) ||
                std::ranges::any_of(program.results, inHost) ||
                std::ranges::any_of(program.channels, [](const auto &entry) {
                  return entry.second->isHostCopy();
                });
  for (size_t i = 0; isUsed && i < program.classes.size(); ++i) {
    const RankClass &rankClass = program.classes[i];
    if (auto fault =
            SpaceCheck(program, rankClass)
                .check(rankClass.instructions,
                       "classes[" + std::to_string(i) + "].instructions"))
      return fault;
  }
  return std::nullopt;
}

} // namespace whale::format
