//===- ProgramCosts.cpp - What a program's parts cost --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates instructions, channels and buffers of a program to operations,
// exchanges and bytes of the cost model. Cost: linear in the buffers of an
// instruction, in the members and cells of a channel, and in all buffers of a
// rank's class and functions.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/ProgramModel.h"

#include "whale/ProgramFormat/ConstantBytes.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace whale {

using format::BufferIndex;

/// Integers of either sign are computed alike, in whole bytes.
static format::DType storedType(format::DType dtype) {
  using enum format::DType;
  switch (dtype) {
  case I2:
  case I4:
  case UI2:
  case UI4:
  case UI8:
    return I8;
  case UI16:
    return I16;
  case UI32:
    return I32;
  case UI64:
    return I64;
  default:
    return dtype;
  }
}

namespace {
/// Adds up what an instruction reads and writes.
class Work {
public:
  Work(const format::Instruction &instruction, const format::Body &body)
      : body(body) {
    cost.flops = static_cast<double>(instruction.flops.value_or(0));
    cost.bytes = static_cast<double>(instruction.bytes.value_or(0));
    isKnown = instruction.bytes.has_value();
  }

  void use(BufferIndex buffer) {
    if (!isKnown)
      cost.bytes += static_cast<double>(body.buffers[buffer].bytes);
  }
  /// Where nothing else is said, the type of the first result is that of the
  /// computation.
  void result(BufferIndex buffer) {
    cost.dtype = format::name(storedType(body.buffers[buffer].dtype));
  }

  OpCost cost;

private:
  const format::Body &body;
  bool isKnown;
};
} // namespace

static bool roundsToTf32(const format::Operation &operation) {
  if (const auto *matmul = std::get_if<format::Matmul>(&operation))
    return matmul->tf32;
  const auto *convolution = std::get_if<format::Convolution>(&operation);
  return convolution && convolution->tf32;
}

std::optional<OpCost> workOf(const format::Instruction &instruction,
                             const format::Body &body,
                             const KernelSignatures *signatures) {
  Work work(instruction, body);
  const auto &operation = instruction.operation;
  if (const auto *kernel = std::get_if<format::Kernel>(&operation)) {
    work.cost.opClass = OpClass::Elementwise;
    size_t inputs = kernel->buffers.size() - 1;
    if (signatures)
      if (auto it = signatures->find(kernel->symbol); it != signatures->end())
        inputs = std::min(inputs, it->second.inputs);
    if (!kernel->buffers.empty())
      work.result(kernel->buffers[inputs]);
  } else if (const auto *copy = std::get_if<format::Copy>(&operation)) {
    work.cost.opClass = OpClass::Elementwise;
    work.result(copy->dst);
    work.use(copy->src);
    work.use(copy->dst);
  } else if (const auto *matmul = std::get_if<format::Matmul>(&operation)) {
    work.cost.opClass = OpClass::Matmul;
    work.result(matmul->out);
    work.cost.extent =
        static_cast<double>(std::min({matmul->m, matmul->n, matmul->k}));
    for (BufferIndex buffer : {matmul->lhs, matmul->rhs, matmul->out})
      work.use(buffer);
    if (usesBias(matmul->epilogue))
      work.use(matmul->bias);
    if (usesAux(matmul->epilogue))
      work.use(matmul->aux);
  } else if (const auto *convolution =
                 std::get_if<format::Convolution>(&operation)) {
    work.cost.opClass = OpClass::Convolution;
    work.result(convolution->out);
    work.cost.extent = static_cast<double>(windowPlaces(*convolution));
    for (BufferIndex buffer :
         {convolution->lhs, convolution->rhs, convolution->out})
      work.use(buffer);
  } else if (const auto *call = std::get_if<format::Call>(&operation)) {
    // Of all calls the arithmetic of attention alone is known.
    work.cost.opClass =
        work.cost.flops > 0 ? OpClass::Attention : OpClass::Other;
    for (BufferIndex buffer : call->inputs)
      work.use(buffer);
    for (BufferIndex buffer : call->outputs)
      work.use(buffer);
    if (!call->outputs.empty())
      work.result(call->outputs.front());
  } else {
    return std::nullopt;
  }
  if (instruction.opClass)
    work.cost.opClass = *instruction.opClass;
  if (instruction.computesIn)
    work.cost.dtype = format::name(*instruction.computesIn);
  if (roundsToTf32(operation))
    work.cost.dtype = "tf32";
  return work.cost;
}

/// The messages in a group of a channel; those between two ranks are one.
static Exchange messagesOf(const format::Collective &channel,
                           const format::Group &group) {
  std::map<std::pair<int64_t, int64_t>, double> bytes;
  for (const format::ChannelPart &part : channel.parts) {
    auto elementBytes = static_cast<double>(byteSize(part.dtype));
    for (int64_t rank : group) {
      auto cells = part.cells.find(rank);
      if (cells == part.cells.end())
        continue;
      for (const format::Cell &cell : *cells->second)
        for (const format::Cell::Contribution &from : cell.from)
          if (from.peer != rank)
            bytes[{from.peer, rank}] +=
                static_cast<double>(format::elementCount(cell.size)) *
                elementBytes;
    }
  }
  Exchange exchange;
  exchange.isAllToAll = channel.kind == "all_to_all";
  for (const auto &[ranks, count] : bytes)
    exchange.transfers.push_back({ranks.first, ranks.second, count});
  return exchange;
}

static std::optional<Exchange::Kind> kindOf(const format::Collective &channel) {
  static const std::map<std::string_view, Exchange::Kind> kinds = {
      {"all_reduce", Exchange::Kind::AllReduce},
      {"all_gather", Exchange::Kind::AllGather},
      {"reduce_scatter", Exchange::Kind::ReduceScatter},
      {"broadcast", Exchange::Kind::Broadcast}};
  auto it = kinds.find(channel.kind);
  return it == kinds.end() ? std::nullopt : std::optional(it->second);
}

std::vector<Exchange> exchangesOf(const format::Collective &channel) {
  if (channel.isLocal())
    return {};
  std::optional<Exchange::Kind> kind = kindOf(channel);
  auto side = kind == Exchange::Kind::ReduceScatter
                  ? &format::ChannelPart::dstShapes
                  : &format::ChannelPart::srcShapes;
  auto bytesIn = [&](int64_t rank) {
    double bytes = 0;
    for (const format::ChannelPart &part : channel.parts)
      if (auto shape = (part.*side).find(rank); shape != (part.*side).end())
        bytes += static_cast<double>(format::elementCount(shape->second) *
                                     byteSize(part.dtype));
    return bytes;
  };
  std::vector<Exchange> exchanges;
  for (const format::Group &group : channel.groups) {
    if (!kind) {
      exchanges.push_back(messagesOf(channel, group));
      continue;
    }
    Exchange &exchange = exchanges.emplace_back();
    exchange.kind = *kind;
    exchange.devices = group;
    // What is broadcast is in the first device.
    if (*kind == Exchange::Kind::Broadcast)
      if (auto root = std::ranges::find_if(
              exchange.devices,
              [&](int64_t rank) { return bytesIn(rank) > 0; });
          root != exchange.devices.end())
        std::rotate(exchange.devices.begin(), root, root + 1);
    for (int64_t rank : exchange.devices)
      exchange.bytes.push_back(bytesIn(rank));
  }
  return exchanges;
}

double sentBytes(const Exchange &exchange) {
  double total = 0;
  for (double bytes : exchange.bytes)
    total += bytes;
  auto others = static_cast<double>(exchange.devices.size()) - 1;
  switch (exchange.kind) {
  case Exchange::Kind::AllReduce:
    return 2 * others / (others + 1) * total;
  case Exchange::Kind::AllGather:
  case Exchange::Kind::ReduceScatter:
    return others * total;
  case Exchange::Kind::Broadcast:
    return others * exchange.bytes.front();
  case Exchange::Kind::AllToAll:
    return others / (others + 1) * total;
  case Exchange::Kind::PointToPoint:
    total = 0;
    for (const Transfer &transfer : exchange.transfers)
      if (transfer.from != transfer.to)
        total += transfer.bytes;
    return total;
  }
  return 0;
}

RankBytes bytesOf(const format::Program &program, int64_t rank) {
  RankBytes bytes;
  auto heldOf = [&](const format::Parameter &parameter) -> int64_t {
    const std::optional<format::Box> &box = parameter.layout->boxes[rank];
    return box ? box->elements() * byteSize(parameter.dtype) : 0;
  };
  for (const format::Parameter &argument : program.arguments)
    (argument.isInHost ? bytes.host : bytes.arguments) += heldOf(argument);
  for (const format::Parameter &result : program.results)
    if (!result.alias)
      (result.isInHost ? bytes.host : bytes.results) += heldOf(result);
  const format::RankClass &rankClass =
      program.classes[program.ranks[rank].rankClass];
  bytes.arena = rankClass.arenaBytes;
  bytes.workspace = rankClass.workspaceBytes;
  bytes.constants = format::constantBytes(program, rankClass);
  return bytes;
}

} // namespace whale
