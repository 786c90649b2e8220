//===- ClassEmitter.cpp - Rank classes and segments -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a schedule or a segment whose buffers whale-plan-buffers has assigned.
// Out: its buffers and instructions as a program has them, its origins,
// constants and kernels, numbered in this body alone. It is a translation:
// nothing is decided here. A planned buffer that is used under several types
// (reshapes) appears in the program once for each.
//
// Cost: linear in operations and their operands, with a look-up in a hash table
// for each, and, for the starts of ranks' boxes, in ranks. Types of buffers
// that copies alone use are found by walks over all operations, as many as such
// copies follow one another. For a segment, each operand, result and local is
// searched in all of its buffers: quadratic in these.
//
//===----------------------------------------------------------------------===//

#include "ClassEmitter.h"

#include "Json.h"
#include "ToFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/ProgramFormat/Numeric.h"
#include "whale/Step/Costs.h"
#include "whale/Step/ProgramModel.h"
#include "whale/System/Error.h"
#include "whale/System/Json.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/OperationWork.h"
#include "whale/Transforms/ScopePath.h"
#include "whale/Transforms/SourceLines.h"

using namespace mlir;

namespace whale {

static constexpr StringLiteral kNoPlan =
    "has no buffer plan; run whale-plan-buffers first";

std::string getLabel(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return named.getName().str();
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return getLabel(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (std::string label = getLabel(part); !label.empty())
        return label;
  }
  return "";
}

/// The bytes of an integer of this type.
static std::vector<uint8_t> encode(format::DType dtype, int64_t value) {
  std::vector<uint8_t> bytes(format::byteSize(dtype));
  format::dispatch(dtype, [&]<typename T>() {
    if constexpr (!format::isOpaque<T>) {
      using Compute = typename format::Element<T>::Compute;
      T element = format::Element<T>::store(static_cast<Compute>(value));
      std::memcpy(bytes.data(), &element, sizeof(T));
    }
  });
  return bytes;
}

/// The start of each rank's box along the operation's dimension.
static FailureOr<std::vector<std::vector<uint8_t>>>
getRankConstant(ShardOffsetOp op, ArrayRef<int64_t> ranks) {
  const Placement &placement = op.getPlacementAttr().getValue();
  format::DType dtype = toDType(op.getType().getElementType());
  std::vector<std::vector<uint8_t>> values;
  for (int64_t rank : ranks) {
    std::optional<Box> box = placement.box(rank);
    if (!box)
      return op.emitError("rank ") << rank << " holds nothing of the value";
    values.push_back(encode(dtype, box->start[op.getDim()]));
  }
  return values;
}

int64_t ClassEmitter::planned(Value value) { return plannedOf.at(value); }

int64_t ClassEmitter::buffer(Value value) {
  return buffer(planned(value), cast<RankedTensorType>(value.getType()));
}

int64_t ClassEmitter::wholeBuffer(int64_t number) {
  return buffer(number, types.at(number));
}

int64_t ClassEmitter::buffer(int64_t number, RankedTensorType type) {
  if (type.getEncoding())
    type = RankedTensorType::get(type.getShape(), type.getElementType());
  std::vector<format::BufferInfo> &buffers = result.body.buffers;
  auto [it, isNew] = numbers.try_emplace({number, type}, buffers.size());
  if (!isNew)
    return it->second;
  auto where = cast<DictionaryAttr>(plan[number]);
  format::BufferInfo buffer;
  if (Operation *constant = constants.lookup(number)) {
    if (auto offset = dyn_cast<ShardOffsetOp>(constant)) {
      buffer.space = format::Space::RankConstant;
      buffer.values = *getRankConstant(offset, *getRanks(function));
    } else {
      auto value = cast<stablehlo::ConstantOp>(constant).getValue();
      buffer.space = format::Space::Constant;
      result.constants.emplace_back(it->second, cast<DenseElementsAttr>(value));
    }
  } else if (auto offset = where.getAs<IntegerAttr>("arena")) {
    buffer.space = format::Space::Arena;
    buffer.offset = offset.getInt();
  } else {
    for (format::Space space : {format::Space::Argument, format::Space::Result,
                                format::Space::Operand, format::Space::Local})
      if (auto index = where.getAs<IntegerAttr>(format::name(space))) {
        buffer.space = space;
        buffer.index = index.getInt();
      }
    if (auto offset = where.getAs<IntegerAttr>("offset"))
      buffer.offset = offset.getInt();
  }
  buffer.bytes = getTensorBytes(type);
  buffer.dtype = toDType(type.getElementType());
  buffer.shape = toShape(type.getShape());
  buffers.push_back(std::move(buffer));
  return it->second;
}

// Finds the planned buffer of each value, and what the constants hold.
LogicalResult ClassEmitter::collect() {
  plan = function->getAttrOfType<ArrayAttr>(kBuffersAttr);
  auto results = function->getAttrOfType<DenseI64ArrayAttr>(kResultBuffersAttr);
  if (!plan || !results)
    return function.emitError(kNoPlan);
  auto note = [&](Value value, int64_t number) {
    plannedOf[value] = number;
    types.try_emplace(number, cast<RankedTensorType>(value.getType()));
  };
  for (BlockArgument argument : function.getArguments())
    note(argument, argument.getArgNumber());
  WalkResult walk = function.walk([&](Operation *op) {
    if (op == function || op->getNumResults() == 0)
      return WalkResult::advance();
    auto out = op->getAttrOfType<DenseI64ArrayAttr>(kOutAttr);
    auto values = llvm::make_filter_range(op->getResults(), [](Value value) {
      return !isa<TokenType>(value.getType());
    });
    if (!out || size_t(out.size()) != llvm::range_size(values)) {
      op->emitError("has no buffers; run whale-plan-buffers first");
      return WalkResult::interrupt();
    }
    for (auto [value, number] : llvm::zip(values, out.asArrayRef())) {
      note(value, number);
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
        for (Region &region : op->getRegions())
          note(region.getArgument(cast<OpResult>(value).getResultNumber()),
               number);
      if (auto offset = dyn_cast<ShardOffsetOp>(op)) {
        constants[number] = op;
        if (failed(getRankConstant(offset, *getRanks(function))))
          return WalkResult::interrupt();
      }
      if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
        constants[number] = op;
        if (!isa<DenseElementsAttr>(constant.getValue())) {
          op->emitError("holds its value in an unknown form");
          return WalkResult::interrupt();
        }
      }
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  for (auto [type, number] :
       llvm::zip(function.getResultTypes(), results.asArrayRef()))
    types.try_emplace(number, cast<RankedTensorType>(type));
  // A buffer that only copies use is of its counterpart's type.
  for (bool again = true; again;) {
    again = false;
    function.walk([&](Operation *op) {
      auto pairs = op->getAttrOfType<DenseI64ArrayAttr>(kCopiesAttr);
      for (int64_t i = 0; pairs && i + 1 < pairs.size(); i += 2)
        for (auto [known, other] : {std::pair{pairs[i], pairs[i + 1]},
                                    std::pair{pairs[i + 1], pairs[i]}})
          if (types.count(known) && !types.count(other)) {
            types.try_emplace(other, types.at(known));
            again = true;
          }
    });
  }
  return success();
}

void ClassEmitter::copies(Operation &op, List &list) {
  auto pairs = op.getAttrOfType<DenseI64ArrayAttr>(kCopiesAttr);
  for (int64_t i = 0; pairs && i + 1 < pairs.size(); i += 2) {
    format::Copy copy;
    copy.src = wholeBuffer(pairs[i]);
    copy.dst = wholeBuffer(pairs[i + 1]);
    list.push_back({.operation = copy});
  }
}

LogicalResult ClassEmitter::launch(LaunchOp op,
                                   format::Instruction &instruction) {
  func::FuncOp function = op.getKernelFunc(symbols);
  auto extent = function ? function->getAttrOfType<IntegerAttr>("whale.extent")
                         : IntegerAttr();
  if (!extent)
    return op.emitError("launches a kernel without whale.extent");
  format::Kernel kernel{op.getKernel().str(), {}, extent.getInt()};
  auto [it, isNew] = result.kernels.try_emplace(kernel.symbol);
  format::KernelSignature &signature = it->second;
  signature.inputs = op.getInputs().size();
  signature.extent = kernel.extent;
  for (ValueRange values :
       {ValueRange(op.getInputs()), ValueRange(op.getOutputs())})
    for (Value value : values) {
      kernel.buffers.push_back(buffer(value));
      if (isNew)
        signature.bytes.push_back(getTensorBytes(value.getType()));
    }
  // Each launch names at most one operand for a result, though its kernel may
  // write over several.
  for (InPlacePair pair : op.getInPlacePairs())
    signature.inplace.emplace(pair.operand, signature.inputs + pair.result);
  auto number = [&](StringRef name) -> std::optional<int64_t> {
    auto attribute = function->getAttrOfType<IntegerAttr>(name);
    if (!attribute)
      return std::nullopt;
    return attribute.getInt();
  };
  instruction.flops = number("whale.flops");
  instruction.bytes = number("whale.bytes");
  instruction.operation = std::move(kernel);
  return success();
}

void ClassEmitter::matmul(MatmulOp op, format::Instruction &instruction) {
  format::Matmul matmul = op.toFormat();
  matmul.lhs = buffer(op.getLhs());
  matmul.rhs = buffer(op.getRhs());
  matmul.out = buffer(op.getOutput());
  if (op.getBias())
    matmul.bias = buffer(op.getBias());
  if (op.getAux())
    matmul.aux = buffer(op.getAux());
  if (op.getSecond())
    (writesAux(matmul.epilogue) ? matmul.aux : matmul.bias) =
        buffer(op.getSecond());
  instruction.flops = op.getFlops();
  instruction.operation = std::move(matmul);
}

void ClassEmitter::convolution(ConvolutionOp op,
                               format::Instruction &instruction) {
  format::Convolution convolution = toFormat(op);
  convolution.lhs = buffer(op.getLhs());
  convolution.rhs = buffer(op.getRhs());
  convolution.out = buffer(op.getOutput());
  instruction.flops = op.getFlops();
  instruction.operation = std::move(convolution);
}

static FailureOr<Json> attributeToJson(Attribute attribute, Operation *op) {
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return Json(boolean.getValue());
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return Json(integer.getInt());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return Json(number.getValueAsDouble());
  if (auto text = dyn_cast<StringAttr>(attribute))
    return Json(text.str());
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute))
    return Json(symbol.getValue().str());
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute))
    return toJson(list.asArrayRef());
  if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    Json json = Json::array();
    for (Attribute element : list) {
      FailureOr<Json> value = attributeToJson(element, op);
      if (failed(value))
        return failure();
      json.push_back(std::move(*value));
    }
    return json;
  }
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    Json json = Json::object();
    for (NamedAttribute entry : dictionary) {
      FailureOr<Json> value = attributeToJson(entry.getValue(), op);
      if (failed(value))
        return failure();
      json[entry.getName().str()] = std::move(*value);
    }
    return json;
  }
  return op->emitError("has a parameter that a program cannot hold: ")
         << attribute;
}

LogicalResult ClassEmitter::call(LibraryCallOp op,
                                 format::Instruction &instruction) {
  format::Call call;
  call.function = op.getFunction().str();
  for (Value value : op.getInputs())
    call.inputs.push_back(buffer(value));
  for (Value value : op.getOutputs())
    call.outputs.push_back(buffer(value));
  Json config = Json::object();
  for (NamedAttribute entry : op->getDiscardableAttrs()) {
    if (entry.getName().strref().starts_with("whale."))
      continue;
    FailureOr<Json> value = attributeToJson(entry.getValue(), op);
    if (failed(value))
      return failure();
    config[entry.getName().str()] = std::move(*value);
  }
  call.config = system::printJson(config);
  try {
    libraries.checkCall(call.function, describeTensors(op.getInputs()),
                        describeTensors(op.getOutputs()), call.config);
  } catch (const system::Error &error) {
    return op.emitError(error.what());
  }
  if (auto flops = op->getAttrOfType<IntegerAttr>(kFlopsAttrName))
    instruction.flops = flops.getInt();
  instruction.operation = std::move(call);
  return success();
}

LogicalResult ClassEmitter::run(func::CallOp op,
                                format::Instruction &instruction) {
  auto callee =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  auto number = segments.find(callee);
  if (number == segments.end())
    return op.emitError("calls what is no segment");
  format::Run run;
  run.function = number->second;
  instruction.origin = scopeOf(op.getLoc(), callee.getLoc());
  if (auto layout = op->getAttrOfType<IntegerAttr>(kLayoutAttr))
    run.layout = layout.getInt();
  if (auto moment = op->getAttrOfType<IntegerAttr>(kMomentAttr))
    run.moment = moment.getInt();
  for (Value value : op.getOperands())
    run.operands.push_back(buffer(value));
  for (Value value : op.getResults())
    run.results.push_back(buffer(value));
  // A result that takes the memory of an operand is written there.
  auto buffers = callee->getAttrOfType<ArrayAttr>(kBuffersAttr);
  auto results = callee->getAttrOfType<DenseI64ArrayAttr>(kResultBuffersAttr);
  if (!buffers || !results)
    return callee.emitError(kNoPlan);
  for (auto [k, planned] : llvm::enumerate(results.asArrayRef()))
    if (auto operand = cast<DictionaryAttr>(buffers[planned])
                           .getAs<IntegerAttr>("operand"))
      run.operands[operand.getInt()] = run.results[k];
  instruction.operation = std::move(run);
  return success();
}

/// That of a collective and of those behind it that are parts of its transfer.
format::Start ClassEmitter::start(CollectiveOp first, List &list) {
  format::Start start;
  start.channel = int64_t(first.getChannel());
  start.transfer = starts++;
  start.parts.clear();
  for (CollectiveOp op = first;
       op && (op == first || op.getWith() == first.getChannel());
       op = dyn_cast_or_null<CollectiveOp>(op->getNextNode())) {
    if (op != first)
      copies(*op, list);
    format::Start::Ends &part = start.parts.emplace_back();
    if (Value input = op.getInput())
      part.src = buffer(input);
    if (Value output = op.getOutput())
      part.dst = buffer(output);
  }
  if (Value token = first.getToken())
    transfers[token] = start.transfer;
  return start;
}

LogicalResult ClassEmitter::loop(Operation &op,
                                 format::Instruction &instruction) {
  Block &cond = op.getRegion(0).front();
  format::While loop;
  if (failed(block(cond, loop.cond)) ||
      failed(block(op.getRegion(1).front(), loop.body)))
    return failure();
  loop.predicate = buffer(cond.getTerminator()->getOperand(0));
  loop.trips = tripCount(cast<stablehlo::WhileOp>(op));
  instruction.operation = std::move(loop);
  return success();
}

LogicalResult ClassEmitter::branch(Operation &op,
                                   format::Instruction &instruction) {
  format::Case choice;
  for (Region &region : op.getRegions())
    if (failed(block(region.front(), choice.branches.emplace_back())))
      return failure();
  choice.index = buffer(op.getOperand(0));
  instruction.operation = std::move(choice);
  return success();
}

LogicalResult ClassEmitter::instruction(Operation &op, List &list) {
  if (auto part = dyn_cast<CollectiveOp>(op); part && part.getWith())
    return success();
  copies(op, list);
  format::Instruction instruction;
  // Of a collective that is over where it is.
  std::optional<format::Wait> after;
  if (isa<stablehlo::ConstantOp, stablehlo::ReshapeOp, AfterOp, ShardOffsetOp,
          ViewOp, PackOp, UnpackOp>(op)) {
    return success();
  } else if (auto launchOp = dyn_cast<LaunchOp>(op)) {
    if (failed(launch(launchOp, instruction)))
      return failure();
  } else if (auto matmulOp = dyn_cast<MatmulOp>(op)) {
    matmul(matmulOp, instruction);
  } else if (auto convolutionOp = dyn_cast<ConvolutionOp>(op)) {
    convolution(convolutionOp, instruction);
  } else if (auto callOp = dyn_cast<LibraryCallOp>(op)) {
    if (failed(call(callOp, instruction)))
      return failure();
  } else if (auto segment = dyn_cast<func::CallOp>(op)) {
    if (failed(run(segment, instruction)))
      return failure();
  } else if (auto collective = dyn_cast<CollectiveOp>(op)) {
    instruction.operation = start(collective, list);
    if (!collective.getToken())
      after = format::Wait{starts - 1};
  } else if (auto wait = dyn_cast<WaitOp>(op)) {
    // The first part's is for all of them.
    if (wait.getCollective().getWith())
      return success();
    instruction.operation = format::Wait{transfers.at(wait.getToken())};
  } else if (isa<stablehlo::WhileOp>(op)) {
    if (failed(loop(op, instruction)))
      return failure();
  } else if (isa<stablehlo::CaseOp>(op)) {
    if (failed(branch(op, instruction)))
      return failure();
  } else {
    return op.emitError("cannot be in a program");
  }
  describeWork(&op, instruction);
  // A wait is shown as its start, a run as what it runs.
  if (!isa<WaitOp, func::CallOp>(op))
    instruction.origin = originOf(op.getLoc());
  if (!isa<WaitOp>(op))
    instruction.taskGraph = taskGraphOf(op.getLoc());
  list.push_back(std::move(instruction));
  if (after)
    list.push_back({.operation = *after});
  return success();
}

/// What a reader would not take for its work without being told.
void ClassEmitter::describeWork(Operation *op,
                                format::Instruction &instruction) {
  std::optional<OpCost> work = operationWork(op, &symbols);
  std::optional<OpCost> known =
      workOf(instruction, result.body, &result.kernels);
  if (!work || !known)
    return;
  if (work->opClass != known->opClass)
    instruction.opClass = work->opClass;
  if (work->dtype != known->dtype)
    instruction.computesIn = format::parseDType(work->dtype);
  if (work->bytes != known->bytes)
    instruction.bytes = toBytes(work->bytes);
}

std::optional<int64_t> ClassEmitter::originOf(std::string label,
                                              ArrayRef<std::string> lines) {
  format::Origin origin{std::move(label), lines};
  if (origin == format::Origin())
    return std::nullopt;
  auto [number, isFirst] =
      originNumbers.try_emplace(origin, int64_t(result.origins.size()));
  if (isFirst)
    result.origins.push_back(std::move(origin));
  return number->second;
}

std::optional<int64_t> ClassEmitter::originOf(Location loc) {
  auto [known, isNew] = origins.try_emplace(loc);
  if (isNew)
    known->second = originOf(getLabel(loc), getUserLines(loc));
  return known->second;
}

/// The number of the TaskGraph that an instruction belongs to.
std::optional<int64_t> ClassEmitter::taskGraphOf(Location loc) {
  auto [known, isNew] = taskGraphs.try_emplace(loc);
  if (!isNew)
    return known->second;
  StringRef name = findTaskGraph(loc);
  if (name.empty())
    return std::nullopt;
  auto it = llvm::find(result.taskGraphs, name);
  known->second = it - result.taskGraphs.begin();
  if (it == result.taskGraphs.end())
    result.taskGraphs.push_back(name.str());
  return known->second;
}

/// The scope that a segment is run for, where the segment doesn't say it
/// because several share it.
std::optional<int64_t> ClassEmitter::scopeOf(Location run, Location segment) {
  auto [known, isNew] = scopes.try_emplace({run, segment});
  if (isNew && isInScope(run) && !isInScope(segment))
    known->second =
        originOf(StringRef(namePath(run)).rsplit('/').first.str(), {});
  return known->second;
}

LogicalResult ClassEmitter::block(Block &block, List &list) {
  list.reserve(block.getOperations().size());
  for (Operation &op : block.without_terminator())
    if (failed(instruction(op, list)))
      return failure();
  copies(*block.getTerminator(), list);
  return success();
}

/// Every operand, result and local of a segment has a buffer, so that its size
/// is known, also where no instruction names it.
void ClassEmitter::addInterface() {
  std::vector<format::BufferInfo> &buffers = result.body.buffers;
  auto isThere = [&](format::Space space, int64_t index) {
    return llvm::any_of(buffers, [&](const format::BufferInfo &buffer) {
      return buffer.space == space && buffer.index == index;
    });
  };
  for (auto [number, attribute] : llvm::enumerate(plan))
    for (format::Space space :
         {format::Space::Operand, format::Space::Result, format::Space::Local})
      if (auto index = cast<DictionaryAttr>(attribute).getAs<IntegerAttr>(
              format::name(space));
          index && !isThere(space, index.getInt()))
        wholeBuffer(int64_t(number));
  // Those that are written in the memory of an operand.
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    if (isThere(format::Space::Result, int64_t(index)))
      continue;
    auto tensor = cast<RankedTensorType>(type);
    format::BufferInfo &buffer = buffers.emplace_back();
    buffer.space = format::Space::Result;
    buffer.index = int64_t(index);
    buffer.bytes = getTensorBytes(tensor);
    buffer.dtype = toDType(tensor.getElementType());
    buffer.shape = toShape(tensor.getShape());
  }
}

/// Says which buffers are one value, seen as several types.
void ClassEmitter::numberValues() {
  llvm::DenseMap<int64_t, SmallVector<int64_t>> buffersOf;
  for (const auto &[key, buffer] : numbers)
    buffersOf[key.first].push_back(buffer);
  for (const auto &[planned, buffers] : buffersOf)
    if (buffers.size() > 1)
      for (int64_t buffer : buffers)
        result.body.buffers[buffer].value = planned;
}

FailureOr<EmittedBody> ClassEmitter::emit() {
  if (failed(collect()) ||
      failed(block(function.front(), result.body.instructions)))
    return failure();
  if (function->hasAttr(kSegmentAttr))
    addInterface();
  else
    numberValues();
  return std::move(result);
}

} // namespace whale
