//===- WhaleProgramOps.cpp - Executable operations ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers of the operations that a rank executes: strided accesses stay
// inside buffers, and launches match their kernels. Also counts FLOPs, states
// which operands' buffers results can use and which calls have effects, and
// translates products to the program format.
//
// In: the operation. Out: success, or an error that states the first violated
// constraint; what is asked of it. Bounds of strided accesses follow from sizes
// and strides alone. Cost: linear in operands, results and dimensions, of a
// schedule in its ranks; a launch looks its kernel up in each symbol table
// around it.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "whale/Cluster/DeviceIds.h"
#include "whale/Dialect/Whale/IR/ConvolutionFlops.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

SmallVector<ScheduleOp> whale::getRankClasses(ModuleOp module) {
  return llvm::to_vector(module.getOps<ScheduleOp>());
}

std::optional<ArrayRef<int64_t>> whale::getRanks(Operation *op) {
  auto schedule = dyn_cast<ScheduleOp>(op);
  if (!schedule)
    schedule = op->getParentOfType<ScheduleOp>();
  if (!schedule)
    return std::nullopt;
  return schedule.getRanks();
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

/// Checks that `inplace` and `updates` name, for each result, an operand with a
/// buffer of the same size, or -1.
static LogicalResult verifySharing(Operation *op, StringRef name,
                                   std::optional<ArrayRef<int64_t>> operands) {
  if (!operands)
    return success();
  if (operands->size() != op->getNumResults())
    return op->emitOpError("expects one entry in '")
           << name << "' for each of its " << op->getNumResults()
           << " results, got " << operands->size();
  for (auto [result, operand] : llvm::enumerate(*operands)) {
    if (operand == -1)
      continue;
    if (operand < 0 || operand >= op->getNumOperands())
      return op->emitOpError("'") << name << "' names operand " << operand
                                  << " of " << op->getNumOperands();
    auto from = cast<ShapedType>(op->getOperand(operand).getType());
    auto to = cast<ShapedType>(op->getResult(result).getType());
    if (from.getNumElements() != to.getNumElements() ||
        getElementBytes(from.getElementType()) !=
            getElementBytes(to.getElementType()))
      return op->emitOpError("'")
             << name << "' lets result " << result << " of type " << to
             << " share the buffer of operand " << operand << " of type "
             << from;
  }
  return success();
}

/// Whether a buffer type matches a tensor type in shape and element width.
static bool fits(Type tensor, Type buffer) {
  auto value = cast<ShapedType>(tensor);
  auto memref = dyn_cast<MemRefType>(buffer);
  return memref && memref.getShape() == value.getShape() &&
         getElementBytes(memref.getElementType()) ==
             getElementBytes(value.getElementType());
}

/// Checks the types of a kernel's arguments: inputs, outputs, begin, end.
static LogicalResult verifyKernelArguments(Operation *op, TypeRange arguments) {
  size_t count = op->getNumOperands() + op->getNumResults() + 2;
  if (arguments.size() != count)
    return op->emitOpError("expects a kernel of ")
           << count << " arguments, got " << arguments.size();
  unsigned position = 0;
  for (Type type : op->getOperandTypes())
    if (!fits(type, arguments[position++]))
      return op->emitOpError("operand ")
             << position - 1 << " of type " << type
             << " does not fit the kernel's argument of type "
             << arguments[position - 1];
  for (Type type : op->getResultTypes())
    if (!fits(type, arguments[position++]))
      return op->emitOpError("result of type ")
             << type << " does not fit the kernel's argument of type "
             << arguments[position - 1];
  if (!arguments[position].isIndex() || !arguments[position + 1].isIndex())
    return op->emitOpError("expects the kernel's range to be of type index");
  return success();
}

/// Checks that the strided accesses of one operand stay within its elements.
static LogicalResult
verifyBounds(Operation *op, StringRef name, Type type,
             ArrayRef<std::pair<int64_t, int64_t>> sizesAndStrides) {
  int64_t last = 0;
  for (auto [size, stride] : sizesAndStrides) {
    if (size < 0 || stride < 0)
      return op->emitOpError("has a negative size or stride for ") << name;
    if (size == 0)
      return success();
    last += (size - 1) * stride;
  }
  int64_t elements = cast<ShapedType>(type).getNumElements();
  if (last >= elements)
    return op->emitOpError("reaches element ")
           << last << " of " << name << " of type " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// ScheduleOp
//===----------------------------------------------------------------------===//

ParseResult ScheduleOp::parse(OpAsmParser &parser, OperationState &result) {
  if (parser.parseKeyword("ranks"))
    return failure();
  auto ranks = dyn_cast_or_null<DenseI64ArrayAttr>(
      DenseI64ArrayAttr::parse(parser, Type()));
  if (!ranks)
    return failure();
  auto makeType = [](Builder &builder, ArrayRef<Type> arguments,
                     ArrayRef<Type> results,
                     function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  SMLoc loc = parser.getCurrentLocation();
  if (function_interface_impl::parseFunctionOp(
          parser, result, /*allowVariadic=*/false,
          getFunctionTypeAttrName(result.name), makeType,
          getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)))
    return failure();
  if (result.attributes.get(getRanksAttrName(result.name)))
    return parser.emitError(loc, "has 'ranks' twice");
  result.addAttribute(getRanksAttrName(result.name), ranks);
  return success();
}

void ScheduleOp::print(OpAsmPrinter &printer) {
  printer << " ranks ";
  getRanksAttr().print(printer);
  printer << ' ';
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(
      printer, *this, getArgumentTypes(), /*isVariadic=*/false,
      getResultTypes());
  function_interface_impl::printFunctionAttributes(
      printer, *this,
      {getRanksAttrName(), getFunctionTypeAttrName(), getArgAttrsAttrName(),
       getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ScheduleOp::verify() {
  // A private function that nothing calls may be removed.
  if (!isPublic())
    return emitOpError("must be public");
  ArrayRef<int64_t> ranks = getRanks();
  if (ranks.empty())
    return emitOpError("has no ranks");
  for (int64_t rank : ranks)
    if (const char *fault = findDeviceFault(rank))
      return emitOpError("rank ") << rank << fault;
  for (auto [rank, next] : llvm::zip(ranks, ranks.drop_front()))
    if (next <= rank)
      return emitOpError("rank ")
             << next << " is behind rank " << rank << ", expected an ascending "
             << "order";
  if (front().empty() || !isa<ReturnOp>(front().back()))
    return emitOpError("does not end with 'whale.return'");
  return success();
}

LogicalResult ReturnOp::verify() {
  auto schedule = cast<ScheduleOp>((*this)->getParentOp());
  if (getOperandTypes() != schedule.getResultTypes())
    return emitOpError("returns (")
           << getOperandTypes() << ") but the results of @"
           << schedule.getSymName() << " are (" << schedule.getResultTypes()
           << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

SmallVector<InPlacePair> LaunchOp::getInPlacePairs() {
  SmallVector<InPlacePair> pairs;
  auto add = [&](std::optional<ArrayRef<int64_t>> operands, bool required) {
    for (auto [result, operand] :
         llvm::enumerate(operands.value_or(ArrayRef<int64_t>())))
      if (operand >= 0)
        pairs.push_back({unsigned(result), unsigned(operand), required});
  };
  add(getUpdates(), true);
  add(getInplace(), false);
  return pairs;
}

func::FuncOp LaunchOp::getKernelFunc(SymbolTableCollection &symbols) {
  auto kernelsName = StringAttr::get(getContext(), kKernelsModuleName);
  for (Operation *table = SymbolTable::getNearestSymbolTable(*this); table;
       table = table->getParentOp()
                   ? SymbolTable::getNearestSymbolTable(table->getParentOp())
                   : nullptr)
    if (auto kernels = dyn_cast_or_null<ModuleOp>(
            symbols.lookupSymbolIn(table, kernelsName)))
      return dyn_cast_or_null<func::FuncOp>(
          symbols.lookupSymbolIn(kernels, getKernelAttr().getAttr()));
  return {};
}

LogicalResult LaunchOp::verify() {
  if (failed(verifySharing(*this, "inplace", getInplace())))
    return failure();
  return verifySharing(*this, "updates", getUpdates());
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  func::FuncOp kernel = getKernelFunc(symbols);
  if (!kernel)
    return emitOpError("launches '")
           << getKernel() << "', which is not a function of @"
           << kKernelsModuleName;
  return verifyKernelArguments(*this, kernel.getArgumentTypes());
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verify() {
  if (failed(verifySharing(*this, "inplace", getInplace())) ||
      failed(verifySharing(*this, "updates", getUpdates())))
    return failure();
  if (getExtent() < 1)
    return emitOpError("expects a positive extent, got ") << getExtent();
  return verifyKernelArguments(*this, getBody().getArgumentTypes());
}

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

SmallVector<InPlacePair> MatmulOp::getInPlacePairs() {
  // The product is added to the contents of the addend's buffer.
  if (getAddend())
    return {{0, 2, /*required=*/true}};
  return {};
}

LogicalResult ViewOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType())
    return emitOpError("views elements of type ")
           << from.getElementType() << " as " << to.getElementType();
  int64_t offset = getOffset();
  if (offset < 0 || offset > from.getNumElements() - to.getNumElements())
    return emitOpError("reaches out of the ")
           << from.getNumElements() << " elements of its operand";
  return success();
}

/// Whether the parts, one after the other, are the whole.
static LogicalResult verifyParts(Operation *op, TypeRange parts, Type whole) {
  auto type = cast<RankedTensorType>(whole);
  if (type.getRank() != 1)
    return op->emitOpError("expects a whole of one dimension, got ") << type;
  int64_t elements = 0;
  for (Type part : parts) {
    auto tensor = cast<RankedTensorType>(part);
    if (tensor.getElementType() != type.getElementType())
      return op->emitOpError("has a part of type ")
             << tensor << " of a whole of type " << type;
    elements += tensor.getNumElements();
  }
  if (elements != type.getNumElements())
    return op->emitOpError("has parts of ")
           << elements << " elements of a whole of " << type.getNumElements();
  return success();
}

LogicalResult PackOp::verify() {
  return verifyParts(*this, getParts().getTypes(), getWhole().getType());
}

LogicalResult UnpackOp::verify() {
  return verifyParts(*this, getParts().getTypes(), getWhole().getType());
}

/// Checks that the operands and results of an epilogue are there, and fit.
static LogicalResult verifyEpilogue(MatmulOp op) {
  std::optional<format::Epilogue> epilogue = format::Epilogue::None;
  if (op.getEpilogue()) {
    epilogue = format::parseEpilogue(op.getEpilogue()->str());
    if (!epilogue)
      return op.emitOpError("has no epilogue '") << *op.getEpilogue() << "'";
  }
  bool hasSecond = writesAux(*epilogue) || writesBias(*epilogue);
  for (auto [value, isWanted, name] :
       {std::tuple<Value, bool, StringRef>{op.getBias(), readsBias(*epilogue),
                                           "a bias"},
        {op.getAux(), readsAux(*epilogue), "an aux"},
        {op.getSecond(), hasSecond, "a second result"}})
    if (bool(value) != isWanted)
      return op.emitOpError(isWanted ? "expects " : "does not expect ")
             << name << " with epilogue '" << format::name(*epilogue) << "'";
  if (epilogue == format::Epilogue::None)
    return success();
  for (Value value : {Value(op.getLhs()), Value(op.getRhs()), op.getOutput()}) {
    Type type = getElementTypeOrSelf(value.getType());
    if (!type.isF16() && !type.isBF16() && !type.isF32())
      return op.emitOpError("has an epilogue, but elements of type ") << type;
  }
  const char *why = nullptr;
  std::optional<format::EpilogueShape> shape =
      format::shapeForEpilogue(op.toFormat(), &why);
  if (!shape)
    return op.emitOpError("can have no epilogue: ") << why;
  int64_t all = shape->rows * shape->columns;
  for (auto [value, count] :
       {std::pair<Value, int64_t>{op.getBias(), shape->columns},
        {op.getAux(), all},
        {op.getSecond(), writesAux(*epilogue) ? all : shape->columns}}) {
    if (!value)
      continue;
    auto type = cast<ShapedType>(value.getType());
    if (type.getNumElements() != count ||
        type.getElementType() != getElementTypeOrSelf(op.getOutput().getType()))
      return op.emitOpError("has a part of its epilogue of type ")
             << type << ", expected " << count
             << " elements of the result's type";
  }
  return success();
}

LogicalResult MatmulOp::verify() {
  if (getOutputs().empty() || getOutputs().size() > 2)
    return emitOpError("expects one or two results, got ")
           << getOutputs().size();
  if (getAddend() && getAddend().getType() != getOutput().getType())
    return emitOpError("adds to a tensor of type ")
           << getAddend().getType() << ", but the result is of type "
           << getOutput().getType();
  if (getBatch().size() % 4 != 0)
    return emitOpError("expects four numbers for each batch dimension, got ")
           << getBatch().size() << " in all";
  for (auto [name, numbers] :
       {std::pair<StringRef, ArrayRef<int64_t>>{"m", getM()},
        {"n", getN()},
        {"k", getK()}})
    if (numbers.size() != 3)
      return emitOpError("expects three numbers in '")
             << name << "', got " << numbers.size();
  SmallVector<std::pair<int64_t, int64_t>> lhs, rhs, out;
  for (ArrayRef<int64_t> batch = getBatch(); !batch.empty();
       batch = batch.drop_front(4)) {
    lhs.push_back({batch[0], batch[1]});
    rhs.push_back({batch[0], batch[2]});
    out.push_back({batch[0], batch[3]});
  }
  lhs.push_back({getM()[0], getM()[1]});
  out.push_back({getM()[0], getM()[2]});
  rhs.push_back({getN()[0], getN()[1]});
  out.push_back({getN()[0], getN()[2]});
  lhs.push_back({getK()[0], getK()[1]});
  rhs.push_back({getK()[0], getK()[2]});
  if (failed(verifyBounds(*this, "lhs", getLhs().getType(), lhs)) ||
      failed(verifyBounds(*this, "rhs", getRhs().getType(), rhs)))
    return failure();
  if (failed(verifyBounds(*this, "the result", getOutput().getType(), out)))
    return failure();
  return verifyEpilogue(*this);
}

format::Matmul MatmulOp::toFormat() {
  auto typeOf = [](Value value) {
    std::optional<format::DType> type =
        format::parseDType(getDTypeName(getElementTypeOrSelf(value.getType())));
    assert(type && "buffers are of types that programs hold");
    return *type;
  };
  format::Matmul product = {};
  product.lhsType = typeOf(getLhs());
  product.rhsType = typeOf(getRhs());
  product.outType = typeOf(getOutput());
  ArrayRef<int64_t> batch = getBatch();
  for (size_t i = 0; i + 3 < batch.size(); i += 4)
    product.batch.push_back(
        {batch[i], batch[i + 1], batch[i + 2], batch[i + 3]});
  ArrayRef<int64_t> m = getM(), n = getN(), k = getK();
  std::tie(product.m, product.mLhs, product.mOut) = std::tie(m[0], m[1], m[2]);
  std::tie(product.n, product.nRhs, product.nOut) = std::tie(n[0], n[1], n[2]);
  std::tie(product.k, product.kLhs, product.kRhs) = std::tie(k[0], k[1], k[2]);
  product.accumulate = getAddend() != nullptr;
  product.tf32 = getTf32();
  if (getEpilogue())
    product.epilogue = *format::parseEpilogue(getEpilogue()->str());
  return product;
}

/// Returns the product, at most the largest number.
static int64_t countFlops(ArrayRef<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors)
    if (llvm::MulOverflow(product, factor, product))
      return std::numeric_limits<int64_t>::max();
  return product;
}

int64_t MatmulOp::getFlops() {
  SmallVector<int64_t> factors = {2, getM()[0], getN()[0], getK()[0]};
  for (size_t i = 0; i < getBatch().size(); i += 4)
    factors.push_back(getBatch()[i]);
  return countFlops(factors);
}

//===----------------------------------------------------------------------===//
// ConvolutionOp
//===----------------------------------------------------------------------===//

LogicalResult ConvolutionOp::verify() {
  size_t spatial = getInputSpatialDimensions().size();
  for (auto [name, size] :
       {std::pair<StringRef, size_t>{"kernel_spatial_dimensions",
                                     getKernelSpatialDimensions().size()},
        {"output_spatial_dimensions", getOutputSpatialDimensions().size()},
        {"window_strides", getWindowStrides().size()},
        {"lhs_dilation", getLhsDilation().size()},
        {"rhs_dilation", getRhsDilation().size()},
        {"window_reversal", getWindowReversal().size()}})
    if (size != spatial)
      return emitOpError("expects ")
             << spatial << " entries in '" << name << "', got " << size;
  if (getPadding().size() != 2 * spatial)
    return emitOpError("expects ") << 2 * spatial << " entries in 'padding', "
                                   << "got " << getPadding().size();
  for (Type type :
       {getLhs().getType(), getRhs().getType(), getOutput().getType()})
    if (cast<ShapedType>(type).getRank() != static_cast<int64_t>(spatial) + 2)
      return emitOpError("expects operands and result of rank ")
             << spatial + 2 << ", got " << type;
  return success();
}

int64_t whale::countConvolutionFlops(Value filter, int64_t features,
                                     Value result,
                                     ArrayRef<int64_t> lhsDilation) {
  auto kernel = cast<ShapedType>(filter.getType());
  int64_t outputs = kernel.getDimSize(features);
  if (outputs == 0)
    return 0;
  int64_t flops =
      countFlops({2, cast<ShapedType>(result.getType()).getNumElements(),
                  kernel.getNumElements() / outputs});
  // A dilated input is zero in all but one of so many places.
  for (int64_t factor : lhsDilation)
    flops /= std::max<int64_t>(factor, 1);
  return flops;
}

int64_t ConvolutionOp::getFlops() {
  return countConvolutionFlops(getRhs(), getKernelOutputFeatureDimension(),
                               getOutput(), getLhsDilation());
}

//===----------------------------------------------------------------------===//
// LibraryCallOp
//===----------------------------------------------------------------------===//

Speculation::Speculatability LibraryCallOp::getSpeculatability() {
  return getFunction() == kPython ? Speculation::NotSpeculatable
                                  : Speculation::Speculatable;
}

void LibraryCallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (getFunction() != kPython)
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleProgramOps.cpp.inc"
