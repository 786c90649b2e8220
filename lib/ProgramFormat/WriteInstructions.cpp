//===- WriteInstructions.cpp - Instructions as JSON -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts instructions to JSON. Ranges of consecutive buffers are written as
// [first, count]; an origin that most starts of a channel share is left out.
// Moments are written once for runs in a row. Linear in the number of
// instructions.
//
//===----------------------------------------------------------------------===//

#include "ShortLists.h"
#include "Writer.h"
#include "whale/System/Json.h"

namespace whale::format {

/// Writes a list of buffers; [first, count] denotes several consecutive
/// numbers.
static Json rangesToJson(const std::vector<BufferIndex> &buffers) {
  Json list = Json::array();
  for (size_t i = 0; i < buffers.size();) {
    size_t end = i + 1;
    while (end < buffers.size() && buffers[end] == buffers[end - 1] + 1)
      ++end;
    if (end - i > 2) {
      list.push_back(Json::array({buffers[i], end - i}));
      i = end;
    } else {
      list.push_back(buffers[i++]);
    }
  }
  return list;
}

namespace {
/// Adds the fields of an operation.
struct AddOperation {
  InstructionWriter &out;
  Json &json;

  void operator()(const Kernel &kernel) const {
    addMember(json, "kernel", kernel.symbol);
    addMember(json, "buffers", kernel.buffers);
    addMember(json, "extent", kernel.extent);
  }

  void operator()(const Copy &copy) const {
    json = {{"copy", Json::array({copy.src, copy.dst})}};
  }

  void operator()(const Matmul &matmul) const {
    Json batch = Json::array();
    for (const Matmul::Batch &dim : matmul.batch)
      batch.push_back(Json::array({dim.size, dim.lhs, dim.rhs, dim.out}));
    json = {{"matmul", Json::array({matmul.lhs, matmul.rhs, matmul.out})},
            {"batch", std::move(batch)},
            {"m", {matmul.m, matmul.mLhs, matmul.mOut}},
            {"n", {matmul.n, matmul.nRhs, matmul.nOut}},
            {"k", {matmul.k, matmul.kLhs, matmul.kRhs}}};
    Epilogue epilogue = matmul.epilogue;
    if (epilogue == Epilogue::None)
      return;
    Json own = {{"function", name(epilogue)}};
    if (usesBias(epilogue))
      own["bias"] = matmul.bias;
    if (usesAux(epilogue))
      own["aux"] = matmul.aux;
    json["epilogue"] = std::move(own);
  }

  void operator()(const Convolution &convolution) const {
    auto list = [&](auto get) {
      Json list = Json::array();
      for (const Convolution::Window &window : convolution.windows)
        list.push_back(get(window));
      return list;
    };
    using Window = Convolution::Window;
    const Convolution::Dimensions &lhs = convolution.lhsDims,
                                  &rhs = convolution.rhsDims,
                                  &out = convolution.outDims;
    Json numbers = {{"input_batch_dimension", lhs.first},
                    {"input_feature_dimension", lhs.second},
                    {"input_spatial_dimensions", lhs.spatial},
                    {"kernel_input_feature_dimension", rhs.first},
                    {"kernel_output_feature_dimension", rhs.second},
                    {"kernel_spatial_dimensions", rhs.spatial},
                    {"output_batch_dimension", out.first},
                    {"output_feature_dimension", out.second},
                    {"output_spatial_dimensions", out.spatial}};
    json = {
        {"convolution",
         Json::array({convolution.lhs, convolution.rhs, convolution.out})},
        {"window_strides", list([](const Window &w) { return w.stride; })},
        {"padding",
         list([](const Window &w) { return Json::array({w.low, w.high}); })},
        {"lhs_dilation", list([](const Window &w) { return w.lhsDilation; })},
        {"rhs_dilation", list([](const Window &w) { return w.rhsDilation; })},
        {"window_reversal", list([](const Window &w) { return w.reversed; })},
        {"dimension_numbers", std::move(numbers)},
        {"feature_group_count", convolution.featureGroups},
        {"batch_group_count", convolution.batchGroups}};
  }

  void operator()(const Call &call) const {
    json = {{"call", call.function},
            {"inputs", call.inputs},
            {"outputs", call.outputs},
            {"config", system::parseJson<Json>(call.config)}};
  }

  void operator()(const Start &start) const {
    addMember(json, "start", start.channel);
    auto addSide = [&](const char *key,
                       std::optional<BufferIndex> Start::Ends::*side) {
      Json list = Json::array();
      bool isThere = false;
      for (const Start::Ends &part : start.parts) {
        list.push_back(format::toJson(part.*side));
        isThere |= (part.*side).has_value();
      }
      if (isThere)
        addMember(json, key, std::move(list));
    };
    addSide("src", &Start::Ends::src);
    addSide("dst", &Start::Ends::dst);
  }

  void operator()(const Wait &wait) const {
    addMember(json, "wait", wait.transfer);
  }

  void operator()(const Run &run) const {
    addMember(json, "run", out.runs.add(run));
    out.moments.add(run.moment);
  }

  void operator()(const While &loop) const {
    json = {{"while", loop.predicate},
            {"cond", out.toJson(loop.cond)},
            {"body", out.toJson(loop.body)}};
    if (loop.trips)
      json["trips"] = *loop.trips;
  }

  void operator()(const Case &choice) const {
    Json branches = Json::array();
    for (const std::vector<Instruction> &branch : choice.branches)
      branches.push_back(out.toJson(branch));
    json = {{"case", choice.index}, {"branches", std::move(branches)}};
  }
};
} // namespace

int64_t RunTable::add(const Run &run) {
  auto [it, isNew] =
      numbers.try_emplace({run.function, run.layout, run.operands, run.results},
                          static_cast<int64_t>(list.size()));
  if (!isNew)
    return it->second;
  Json &json = list.emplace_back(Json{{"function", run.function}});
  if (run.layout)
    addMember(json, "layout", run.layout);
  addMember(json, "operands", rangesToJson(run.operands));
  addMember(json, "results", rangesToJson(run.results));
  return it->second;
}

void MomentTable::add(std::optional<int64_t> moment) {
  if (turns.empty() || turns.back().second != moment)
    turns.push_back({0, moment});
  ++turns.back().first;
}

Json MomentTable::inGroupsOf(size_t count) const {
  Json list = Json::array();
  for (size_t i = 0; i < turns.size(); ++i) {
    if (i % count == 0)
      list.push_back(Json::array());
    list.back().push_back(turns[i].first);
    list.back().push_back(format::toJson(turns[i].second));
  }
  return list;
}

/// Forward and backward turns take each other's place in a period: groups of as
/// many differ by the same, and are shorter as differences.
Json MomentTable::toJson() const {
  constexpr size_t mostInGroup = 8;
  if (turns.empty() || (turns.size() == 1 && !turns.front().second))
    return {};
  Json best = inGroupsOf(1);
  if (turns.size() <= mostInGroup)
    return best;
  size_t shortest = SIZE_MAX;
  for (size_t count = 1; count <= mostInGroup; ++count) {
    Json list = inGroupsOf(count), asShort = list;
    shortenLists(asShort);
    if (size_t length = printLine(asShort).size(); length < shortest) {
      shortest = length;
      best = std::move(list);
    }
  }
  return best;
}

Json InstructionWriter::toJson(const std::vector<Instruction> &instructions) {
  Json list = Json::array();
  list.get_ref<Json::array_t &>().reserve(instructions.size());
  for (const Instruction &instruction : instructions) {
    Json json;
    std::visit(AddOperation{*this, json}, instruction.operation);
    if (instruction.flops)
      addMember(json, "flops", *instruction.flops);
    if (instruction.bytes)
      addMember(json, "bytes", *instruction.bytes);
    if (instruction.opClass)
      addMember(json, "class",
                std::string(stringifyOpClass(*instruction.opClass)));
    if (instruction.computesIn)
      addMember(json, "computes_in",
                std::string(name(*instruction.computesIn)));
    if (instruction.taskGraph)
      addMember(json, "task_graph", *instruction.taskGraph);
    const auto *matmul = std::get_if<Matmul>(&instruction.operation);
    if (matmul && matmul->accumulate)
      addMember(json, "accumulate", true);
    const auto *convolution = std::get_if<Convolution>(&instruction.operation);
    if ((matmul && matmul->tf32) || (convolution && convolution->tf32))
      addMember(json, "tf32", true);
    const auto *start = std::get_if<Start>(&instruction.operation);
    auto origin =
        start ? channelOrigins.at(start->channel) : std::optional<int64_t>();
    if (instruction.origin != origin)
      addMember(json, "origin", format::toJson(instruction.origin));
    list.push_back(std::move(json));
  }
  return list;
}

} // namespace whale::format
