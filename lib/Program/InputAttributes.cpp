//===- InputAttributes.cpp - What annotated text may say ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module that was parsed, and the number of the cluster's devices. Out:
// nothing, or the first attribute that input may not have there. One walk over
// the module: each discardable attribute is looked up in the table of those
// that input may have, and compared with where it is (arguments of @main, the
// outermost module) and with the number of devices. The same for JAX's
// attributes of donated arguments. Cost: linear in operations, arguments,
// results and their attributes.
//
//===----------------------------------------------------------------------===//

#include "InputAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace whale {
namespace {

class Checker {
public:
  explicit Checker(int64_t devices) : devices(devices) {}

  LogicalResult check(Operation *op);

private:
  LogicalResult checkName(Operation *op, NamedAttribute attr);
  LogicalResult checkDevices(Operation *op, NamedAttribute attr);
  LogicalResult checkFunction(func::FuncOp function);
  LogicalResult checkDonation(func::FuncOp function, bool isMain);

  int64_t devices;
};

} // namespace

LogicalResult Checker::checkName(Operation *op, NamedAttribute attr) {
  if (!isa_and_nonnull<WhaleDialect>(attr.getNameDialect()) ||
      isInputAttribute(attr.getName()))
    return success();
  return op->emitError("attribute '")
         << attr.getName().getValue()
         << "' is written by the compiler, and has no meaning in its input";
}

/// Where an error of the operation is shown: JAX gives modules no location, but
/// what is in them.
static Location locate(Operation *op) {
  Location found = op->getLoc();
  if (isa<UnknownLoc>(found))
    op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
      if (isa<UnknownLoc>(nested->getLoc()) || nested->getNumResults() == 0)
        return WalkResult::advance();
      found = nested->getLoc();
      return WalkResult::interrupt();
    });
  return found;
}

LogicalResult Checker::checkDevices(Operation *op, NamedAttribute attr) {
  if (auto strategy = dyn_cast<StrategyAttr>(attr.getValue()))
    if (strategy.getDevices().value_or(0) > devices)
      return emitError(locate(op), "attribute '")
             << attr.getName().getValue() << "' asks for "
             << *strategy.getDevices() << " devices, the cluster has "
             << devices;
  auto check = [&](Attribute lists, const Twine &what) -> LogicalResult {
    for (auto list : cast<ArrayAttr>(lists).getAsRange<DenseI64ArrayAttr>())
      for (int64_t device : list.asArrayRef())
        if (device >= devices)
          return emitError(locate(op), "attribute '")
                 << attr.getName().getValue() << "': " << what
                 << " names device " << device << ", the cluster has "
                 << devices;
    return success();
  };
  if (attr.getName() == kVirtualDevicesAttr)
    for (auto [index, list] : llvm::enumerate(cast<ArrayAttr>(attr.getValue())))
      if (failed(check(ArrayAttr::get(op->getContext(), list),
                       "virtual device " + Twine(index))))
        return failure();
  if (attr.getName() == kLikeDevicesAttr)
    for (NamedAttribute like : cast<DictionaryAttr>(attr.getValue()))
      if (failed(check(like.getValue(),
                       "task graph '" + like.getName().getValue() + "'")))
        return failure();
  return success();
}

LogicalResult Checker::checkFunction(func::FuncOp function) {
  bool isMain = function.getSymName() == "main" &&
                isa<ModuleOp>(function->getParentOp()) &&
                !function->getParentOp()->getParentOp();
  auto check = [&](DictionaryAttr attributes) -> LogicalResult {
    for (NamedAttribute attr :
         attributes ? attributes.getValue() : ArrayRef<NamedAttribute>()) {
      if (failed(checkName(function, attr)))
        return failure();
      if (!isMain && isInputAttribute(attr.getName()))
        return function.emitError("attribute '")
               << attr.getName().getValue() << "' is on @"
               << function.getSymName() << ": it belongs on an argument of "
               << "@main";
      if (auto placement = dyn_cast<PlacementAttr>(attr.getValue()))
        for (DeviceId device : placement.getValue().devices())
          if (device >= devices)
            return function.emitError("attribute '")
                   << attr.getName().getValue() << "' names device " << device
                   << ", the cluster has " << devices;
    }
    return success();
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (failed(check(function.getArgAttrDict(i))))
      return failure();
    auto fedBy = function.getArgAttrOfType<IntegerAttr>(i, kFedByAttr);
    if (fedBy && function.getArgumentTypes()[i] !=
                     function.getResultTypes()[fedBy.getInt()])
      return function.emitError("attribute '")
             << kFedByAttr << "' of argument " << i << " pairs "
             << function.getArgumentTypes()[i] << " with result "
             << fedBy.getInt() << ", which is "
             << function.getResultTypes()[fedBy.getInt()];
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (failed(check(function.getResultAttrDict(i))))
      return failure();
  return checkDonation(function, isMain);
}

/// JAX's attributes of arguments whose memory the function may reuse.
LogicalResult Checker::checkDonation(func::FuncOp function, bool isMain) {
  llvm::SmallSet<int64_t, 8> taken;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    Attribute donor = function.getArgAttr(i, kBufferDonorAttr);
    if (donor && !isa<BoolAttr>(donor))
      return function.emitError("attribute '")
             << kBufferDonorAttr << "' of argument " << i << " is " << donor
             << ", expected true or false";
    Attribute value = function.getArgAttr(i, kAliasingOutputAttr);
    if (!value || !isMain)
      continue;
    auto result = dyn_cast<IntegerAttr>(value);
    if (!result || !result.getType().isSignlessInteger() ||
        result.getValue().uge(function.getNumResults()))
      return function.emitError("attribute '")
             << kAliasingOutputAttr << "' of argument " << i << " is " << value
             << ", the function has " << function.getNumResults() << " results";
    if (!taken.insert(result.getInt()).second)
      return function.emitError("attribute '")
             << kAliasingOutputAttr << "' of argument " << i << " is " << value
             << ", which an argument before it has, too";
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    for (StringRef name : {kAliasingOutputAttr, kBufferDonorAttr})
      if (function.getResultAttr(i, name))
        return function.emitError("attribute '")
               << name << "' is on result " << i
               << ": it belongs on an argument of @main";
  return success();
}

LogicalResult Checker::check(Operation *op) {
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (failed(checkName(op, attr)) || failed(checkDevices(op, attr)))
      return failure();
  for (StringRef name : {kAliasingOutputAttr, kBufferDonorAttr})
    if (op->hasAttr(name))
      return op->emitError("attribute '")
             << name
             << "' is on an operation: it belongs on an argument of @main";
  // The parser puts the outermost module into another for a while, so that the
  // verifier can't distinguish it.
  if (isa<ModuleOp>(op) && op->getParentOp())
    for (NamedAttribute attr : op->getDiscardableAttrs())
      if (isInputAttribute(attr.getName()))
        return op->emitError("attribute '")
               << attr.getName().getValue()
               << "' is on an inner module: it belongs on the outermost";
  auto function = dyn_cast<func::FuncOp>(op);
  return function ? checkFunction(function) : success();
}

LogicalResult checkInputAttributes(ModuleOp module, int64_t devices) {
  Checker checker(devices);
  WalkResult result = module->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { return WalkResult(checker.check(op)); });
  return failure(result.wasInterrupted());
}

} // namespace whale
