//===- ReadInstructions.cpp - Decode instructions ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the JSON of a list of instructions, and the buffers of the class or
// function that it belongs to. Out: the instructions; or an error that names
// the field.
//
// Each instruction is checked against its buffers: sizes, types, strides,
// overlap, and that each started transfer is waited for. Whether two buffers
// overlap is known at once in a class. In a function it depends on who runs it:
// the pair is kept, for ReadFunction.cpp to check in each run.
//
// Cost: linear in the size of the text, but that each output of an instruction
// is compared with all its inputs.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "whale/ProgramFormat/Limits.h"
#include "whale/ProgramFormat/Numeric.h"
#include "whale/System/Error.h"
#include "whale/System/Json.h"

#include <algorithm>
#include <utility>

namespace whale::format {

BufferIndex InstructionReader::readBuffer(const Field &field) const {
  return field.integer(0, static_cast<int64_t>(body.buffers.size()) - 1);
}

void InstructionReader::checkWritable(const Field &field,
                                      BufferIndex index) const {
  const BufferInfo &buffer = info(index);
  if (buffer.space == Space::Constant || buffer.space == Space::RankConstant)
    field.fail("is a constant and cannot be written");
  if (buffer.space == Space::Argument && !reader.aliased[buffer.index])
    field.fail("is an argument that no result is an alias of: it cannot be "
               "written");
  if (buffer.space == Space::Operand)
    reader.needs[number].written.insert(buffer.index);
}

bool InstructionReader::overlap(BufferIndex input, BufferIndex output) {
  if (rankClass)
    return rangeOf(input).overlaps(rangeOf(output));
  const BufferInfo &in = info(input), &out = info(output);
  if (in.bytes == 0 || out.bytes == 0 || in.space == Space::Constant)
    return false;
  ProgramReader::Slot a = {in.space, in.index}, b = {out.space, out.index};
  if (a == b)
    return true;
  ProgramReader::FunctionNeeds &needs = reader.needs[number];
  bool areLocals = a.space == Space::Local && b.space == Space::Local;
  (areLocals ? needs.localsApart : needs.apart).insert(std::minmax(a, b));
  return false;
}

BufferIndex
InstructionReader::readOutput(const Field &field,
                              const std::vector<BufferIndex> &inputs) {
  BufferIndex output = readBuffer(field);
  checkWritable(field, output);
  for (BufferIndex input : inputs)
    if (overlap(input, output))
      field.fail("overlaps buffer " + std::to_string(input));
  return output;
}

void InstructionReader::readKernelOutput(const Field &field,
                                         const Kernel &kernel, size_t place,
                                         const KernelSignature &signature) {
  BufferIndex output = kernel.buffers[place];
  checkWritable(field, output);
  for (size_t i = 0; i < place; ++i)
    if (!signature.inplace.contains({i, place}) &&
        overlap(kernel.buffers[i], output))
      field.fail("overlaps buffer " + std::to_string(kernel.buffers[i]) +
                 ", which the kernel uses meanwhile");
}

Kernel InstructionReader::readKernel(const Field &field) {
  Kernel kernel;
  kernel.symbol = field.at("kernel").text();
  kernel.extent = field.at("extent").integer();
  Field buffers = field.at("buffers");
  for (size_t i = 0; i < buffers.size(); ++i)
    kernel.buffers.push_back(readBuffer(buffers[i]));

  if (!reader.program.kernelSignatures)
    return kernel;
  auto it = reader.program.kernelSignatures->find(kernel.symbol);
  if (it == reader.program.kernelSignatures->end())
    field.at("kernel").fail("kernel_signatures has no '" + kernel.symbol + "'");
  const KernelSignature &signature = it->second;
  if (kernel.extent != signature.extent)
    field.at("extent").fail("the kernel has extent " +
                            std::to_string(signature.extent));
  if (kernel.buffers.size() != signature.bytes.size())
    buffers.fail("the kernel takes " + std::to_string(signature.bytes.size()) +
                 " buffers");
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    if (info(kernel.buffers[i]).bytes != signature.bytes[i])
      buffers[i].fail("the kernel takes " + std::to_string(signature.bytes[i]) +
                      " bytes here");
    if (i >= signature.inputs)
      readKernelOutput(buffers[i], kernel, i, signature);
  }
  return kernel;
}

Copy InstructionReader::readCopy(const Field &field) {
  Field buffers = field.at("copy");
  if (buffers.size() != 2)
    buffers.fail("must be [src, dst]");
  Copy copy{readBuffer(buffers[0]), readBuffer(buffers[1])};
  checkWritable(buffers[1], copy.dst);
  if (info(copy.src).bytes != info(copy.dst).bytes)
    field.fail("src and dst have different sizes");
  return copy;
}

/// Checks that `strides` stay within a buffer's elements.
static void checkReach(const Field &field, const BufferInfo &buffer,
                       const std::string &what,
                       std::span<const std::pair<int64_t, int64_t>> strides) {
  int64_t last = 0;
  for (auto [size, stride] : strides) {
    if (size == 0)
      return;
    int64_t reach;
    if (__builtin_mul_overflow(size - 1, stride, &reach) ||
        __builtin_add_overflow(last, reach, &last))
      field.fail("the strides of " + what + " are too large");
  }
  if (last >= elementCount(buffer.shape))
    field.fail("the strides of " + what + " reach element " +
               std::to_string(last) + " of a buffer of " +
               std::to_string(elementCount(buffer.shape)));
}

/// Whether different indices always give different elements. Sufficient
/// condition: sorted by stride, each stride exceeds the largest offset of the
/// dimensions before it. True for every permuted or sliced dense tensor.
static bool isInjective(std::vector<std::pair<int64_t, int64_t>> strides) {
  std::sort(strides.begin(), strides.end(),
            [](auto a, auto b) { return a.second < b.second; });
  int64_t reach = 0;
  for (auto [size, stride] : strides) {
    if (size <= 1)
      continue;
    if (stride <= reach)
      return false;
    reach += (size - 1) * stride;
  }
  return true;
}

void checkProduct(const Field &field, const BufferInfo &lhs,
                  const BufferInfo &rhs, const BufferInfo &out) {
  for (DType dtype : {lhs.dtype, rhs.dtype, out.dtype})
    if (!hasArithmetic(dtype))
      field.fail("there is no product of " + std::string(name(dtype)));
  if ((isComplex(lhs.dtype) || isComplex(rhs.dtype)) && !isComplex(out.dtype))
    field.fail("the product of complex numbers must be complex");
  if (isInteger(out.dtype) && (!isInteger(lhs.dtype) || !isInteger(rhs.dtype)))
    field.fail("the product of floating-point numbers must be floating-point");
}

std::tuple<BufferIndex, BufferIndex, BufferIndex>
InstructionReader::readOperands(const Field &field) {
  if (field.size() != 3)
    field.fail("must be [lhs, rhs, out]");
  BufferIndex lhs = readBuffer(field[0]), rhs = readBuffer(field[1]);
  return {lhs, rhs, readOutput(field[2], {lhs, rhs})};
}

Matmul InstructionReader::readMatmul(const Field &field) {
  Matmul matmul;
  std::tie(matmul.lhs, matmul.rhs, matmul.out) =
      readOperands(field.at("matmul"));
  const BufferInfo &lhs = info(matmul.lhs), &rhs = info(matmul.rhs);
  const BufferInfo &out = info(matmul.out);
  matmul.lhsType = lhs.dtype;
  matmul.rhsType = rhs.dtype;
  matmul.outType = out.dtype;
  checkProduct(field, lhs, rhs, out);

  constexpr int64_t most = int64_t(1) << 56;
  std::vector<std::pair<int64_t, int64_t>> lhsReach, rhsReach, outReach;
  Field batch = field.at("batch");
  if (batch.size() > size_t(mostDimensions))
    batch.fail("has more than " + std::to_string(mostDimensions) +
               " dimensions");
  for (size_t i = 0; i < batch.size(); ++i) {
    auto entry = batch[i].integers(0, most);
    if (entry.size() != 4)
      batch[i].fail("must be [size, lhs stride, rhs stride, out stride]");
    matmul.batch.push_back({entry[0], entry[1], entry[2], entry[3]});
    lhsReach.emplace_back(entry[0], entry[1]);
    rhsReach.emplace_back(entry[0], entry[2]);
    outReach.emplace_back(entry[0], entry[3]);
  }
  auto readTriple = [&](const char *key, int64_t &size, int64_t &first,
                        int64_t &second) {
    Field triple = field.at(key);
    auto entry = triple.integers(0, most);
    if (entry.size() != 3)
      triple.fail("must be [size, stride, stride]");
    size = entry[0];
    first = entry[1];
    second = entry[2];
  };
  readTriple("m", matmul.m, matmul.mLhs, matmul.mOut);
  readTriple("n", matmul.n, matmul.nRhs, matmul.nOut);
  readTriple("k", matmul.k, matmul.kLhs, matmul.kRhs);
  lhsReach.insert(lhsReach.end(),
                  {{matmul.m, matmul.mLhs}, {matmul.k, matmul.kLhs}});
  rhsReach.insert(rhsReach.end(),
                  {{matmul.n, matmul.nRhs}, {matmul.k, matmul.kRhs}});
  outReach.insert(outReach.end(),
                  {{matmul.m, matmul.mOut}, {matmul.n, matmul.nOut}});
  checkReach(field, lhs, "lhs", lhsReach);
  checkReach(field, rhs, "rhs", rhsReach);
  checkReach(field, out, "out", outReach);
  bool empty = std::any_of(outReach.begin(), outReach.end(),
                           [](auto dim) { return dim.first == 0; });
  if (!empty && !isInjective(outReach))
    field.fail("the strides of out give two indices one element");
  // With broadcast operands, a few elements can require any amount of work.
  double work = static_cast<double>(matmul.k);
  for (auto [size, stride] : outReach)
    work *= static_cast<double>(size);
  if (work > 1e18)
    field.fail("the product is too large");
  if (std::optional<Field> accumulate = field.find("accumulate"))
    matmul.accumulate = accumulate->boolean();
  if (std::optional<Field> tf32 = field.find("tf32"))
    matmul.tf32 = tf32->boolean();
  if (std::optional<Field> epilogue = field.find("epilogue"))
    readEpilogue(*epilogue, matmul);
  return matmul;
}

void InstructionReader::readEpilogue(const Field &field, Matmul &matmul) {
  Field function = field.at("function");
  std::optional<Epilogue> epilogue = parseEpilogue(function.text());
  if (!epilogue)
    function.fail("there is no epilogue '" + function.text() + "'");
  const char *why = nullptr;
  std::optional<EpilogueShape> shape = shapeForEpilogue(matmul, &why);
  if (!shape)
    field.fail(std::string("the product can have none: ") + why);
  matmul.epilogue = *epilogue;
  std::vector<BufferIndex> others = {matmul.lhs, matmul.rhs, matmul.out};
  auto read = [&](const char *key, bool isWritten, int64_t count,
                  BufferIndex &buffer) {
    Field own = field.at(key);
    buffer = isWritten ? readOutput(own, others) : readBuffer(own);
    if (info(buffer).dtype != matmul.outType ||
        elementCount(info(buffer).shape) != count)
      own.fail("must have " + std::to_string(count) +
               " elements of the product's type");
    if (!isWritten && overlap(buffer, matmul.out))
      own.fail("overlaps buffer " + std::to_string(matmul.out));
    others.push_back(buffer);
  };
  // What is written comes last, and is apart from all others.
  int64_t all = shape->rows * shape->columns;
  if (readsBias(*epilogue))
    read("bias", false, shape->columns, matmul.bias);
  if (usesAux(*epilogue))
    read("aux", writesAux(*epilogue), all, matmul.aux);
  if (writesBias(*epilogue))
    read("bias", true, shape->columns, matmul.bias);
}

Convolution InstructionReader::readConvolution(const Field &field) {
  auto [lhs, rhs, out] = readOperands(field.at("convolution"));
  Convolution convolution =
      decodeConvolution(field, info(lhs), info(rhs), info(out));
  convolution.lhs = lhs;
  convolution.rhs = rhs;
  convolution.out = out;
  if (std::optional<Field> tf32 = field.find("tf32"))
    convolution.tf32 = tf32->boolean();
  return convolution;
}

Call InstructionReader::readCall(const Field &field) {
  Call call;
  if (auto config = field.find("config"))
    call.config = system::printJson(config->json());
  Field inputs = field.at("inputs"), outputs = field.at("outputs");
  for (size_t i = 0; i < inputs.size(); ++i)
    call.inputs.push_back(readBuffer(inputs[i]));
  std::vector<BufferIndex> taken = call.inputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    call.outputs.push_back(readOutput(outputs[i], taken));
    taken.push_back(call.outputs.back());
  }
  call.function = field.at("call").text();
  return call;
}

void InstructionReader::checkParticipation(const Field &field, int64_t channel,
                                           const Collective &collective) {
  if (!joined.insert(&collective).second)
    return;
  for (int64_t rank : rankClass->ranks)
    if (!std::binary_search(collective.participants.begin(),
                            collective.participants.end(), rank))
      field.fail("rank " + std::to_string(rank) +
                 " is no participant of channel " + std::to_string(channel));
}

/// What a transfer receives must be apart from all that it sends and else
/// receives.
void InstructionReader::checkApart(const Field &field, const Start &start,
                                   bool isAllReduce) {
  std::vector<BufferIndex> sources, targets;
  for (const Start::Ends &part : start.parts)
    if (part.src)
      sources.push_back(*part.src);
  for (const Start::Ends &part : start.parts) {
    if (!part.dst)
      continue;
    for (BufferIndex source : sources)
      // An all-reduce in place reads and writes exactly the same elements.
      if (overlap(source, *part.dst) &&
          (!isAllReduce || rangeOf(source) != rangeOf(*part.dst)))
        field.fail("src and dst overlap");
    for (BufferIndex target : targets)
      if (overlap(target, *part.dst))
        field.fail("two of dst overlap");
    targets.push_back(*part.dst);
  }
}

Start InstructionReader::readStart(const Field &field) {
  Field channelField = field.at("start");
  Start start;
  start.channel = channelField.integer();
  auto it = reader.channels.find(start.channel);
  if (it == reader.channels.end())
    channelField.fail("there is no such channel");
  const Collective &collective =
      reader.channels.at(it->second.described).collective;
  std::vector<ProgramReader::Use> use(collective.parts.size());
  start.parts.resize(use.size());
  auto readSide = [&](const char *key,
                      std::optional<BufferIndex> Start::Ends::*index,
                      std::optional<Shape> ProgramReader::Use::*shape) {
    auto side = field.find(key);
    if (!side)
      return;
    if (side->size() != use.size())
      side->fail("must have an entry for each of the channel's " +
                 std::to_string(use.size()) + " parts");
    for (size_t i = 0; i < use.size(); ++i) {
      Field given = (*side)[i];
      if (given.json().is_null())
        continue;
      BufferIndex buffer = readBuffer(given);
      start.parts[i].*index = buffer;
      use[i].*shape = info(buffer).shape;
      if (info(buffer).dtype != collective.parts[i].dtype)
        given.fail("must have the channel's dtype " +
                   std::string(name(collective.parts[i].dtype)));
      if (index == &Start::Ends::dst)
        checkWritable(given, buffer);
    }
  };
  readSide("src", &Start::Ends::src, &ProgramReader::Use::src);
  readSide("dst", &Start::Ends::dst, &ProgramReader::Use::dst);
  checkApart(field, start, collective.isAllReduce());
  checkParticipation(channelField, start.channel, collective);
  // Several micro-batches may use a channel, but with equal buffers.
  if (it->second.uses.emplace(number, use).first->second != use)
    channelField.fail("the class uses channel " +
                      std::to_string(start.channel) + " in two ways");
  start.transfer = starts;
  open.insert(starts++);
  return start;
}

Wait InstructionReader::readWait(const Field &field) {
  Field transfer = field.at("wait");
  Wait wait{transfer.integer()};
  if (open.erase(wait.transfer) == 0)
    transfer.fail("no transfer " + std::to_string(wait.transfer) +
                  " was started before in this list, or there was a wait for "
                  "it already");
  return wait;
}

While InstructionReader::readWhile(const Field &field) {
  While loop;
  loop.cond = readList(field.at("cond"));
  Field predicate = field.at("while");
  loop.predicate = readBuffer(predicate);
  if (info(loop.predicate).dtype != DType::I1 ||
      info(loop.predicate).bytes != 1)
    predicate.fail("must be one i1");
  loop.body = readList(field.at("body"));
  if (std::optional<Field> trips = field.find("trips"))
    loop.trips = trips->integer();
  return loop;
}

Case InstructionReader::readCase(const Field &field) {
  Case result;
  Field index = field.at("case");
  result.index = readBuffer(index);
  if (!isInteger(info(result.index).dtype) ||
      elementCount(info(result.index).shape) != 1)
    index.fail("must be one integer");
  Field branches = field.at("branches");
  if (branches.size() == 0)
    branches.fail("must not be empty");
  for (size_t i = 0; i < branches.size(); ++i)
    result.branches.push_back(readList(branches[i]));
  return result;
}

template <auto read>
static Operation readAs(InstructionReader &reader, const Field &field) {
  return (reader.*read)(field);
}

static OpClass readOpClass(const Field &field) {
  std::optional<OpClass> opClass = parseOpClass(field.text());
  if (!opClass)
    field.fail("unknown class of operations '" + field.text() + "'");
  return *opClass;
}

Instruction InstructionReader::read(const Field &field) {
  using R = InstructionReader;
  struct Kind {
    const char *name;
    Operation (*read)(InstructionReader &, const Field &);
    bool inClassesOnly = false;
  };
  static constexpr Kind kinds[] = {
      {"kernel", readAs<&R::readKernel>},
      {"copy", readAs<&R::readCopy>},
      {"matmul", readAs<&R::readMatmul>},
      {"convolution", readAs<&R::readConvolution>},
      {"call", readAs<&R::readCall>},
      {"start", readAs<&R::readStart>, true},
      {"wait", readAs<&R::readWait>, true},
      {"run", readAs<&R::readRun>, true},
      {"while", readAs<&R::readWhile>},
      {"case", readAs<&R::readCase>},
  };
  const Kind *kind = nullptr;
  for (const Kind &candidate : kinds)
    if (field.find(candidate.name)) {
      if (kind)
        field.fail("is both '" + std::string(kind->name) + "' and '" +
                   candidate.name + "'");
      kind = &candidate;
    }
  if (!kind)
    field.fail("is no instruction");
  if (!rankClass && kind->inClassesOnly)
    field.at(kind->name)
        .fail("a function must not hold '" + std::string(kind->name) + "'");
  Instruction instruction;
  instruction.operation = kind->read(*this, field);
  if (field.json().contains("origin")) {
    if (auto origin = field.find("origin"))
      instruction.origin = readOrigin(*origin, reader.program);
  } else if (auto *start = std::get_if<Start>(&instruction.operation)) {
    instruction.origin = reader.channels.at(start->channel).origin;
  }
  if (auto flops = field.find("flops"))
    instruction.flops = flops->rounded();
  if (auto bytes = field.find("bytes"))
    instruction.bytes = bytes->rounded();
  if (auto name = field.find("class"))
    instruction.opClass = readOpClass(*name);
  if (auto type = field.find("computes_in"))
    instruction.computesIn = type->dtype();
  if (auto graph = field.find("task_graph"))
    instruction.taskGraph = graph->integer(
        0, static_cast<int64_t>(reader.program.taskGraphs.size()) - 1);
  return instruction;
}

std::vector<Instruction> InstructionReader::readList(const Field &list) {
  if (depth > mostNested)
    list.fail("loops and cases are nested more than " +
              std::to_string(mostNested) + " deep");
  ++depth;
  std::set<int64_t> outside = std::exchange(open, {});
  std::vector<Instruction> result;
  result.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i)
    result.push_back(read(list[i]));
  if (!open.empty())
    list.fail("nothing waits for transfer " + std::to_string(*open.begin()));
  open = std::move(outside);
  --depth;
  return result;
}

} // namespace whale::format
