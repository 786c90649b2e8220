//===- WhaleAttrs.td - Attributes --------------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes of the whale dialect, and its only type, the token of a
// started transfer. In order of the levels that use them: strategies and phases
// of annotated text, placements and reductions of placed values, the orders of
// pipelines.
//
// Attributes that are written onto operations of other dialects, such as
// `whale.strategy`, are not declared here:
// lib/Dialect/Whale/IR/WhaleDiscardableAttrs.cpp has the table of their names.
// Text forms and verifiers are in WhaleAttrs.cpp beside it; a placement is
// parsed, printed and checked by whale::Placement.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEATTRS_TD
#define WHALE_DIALECT_WHALE_IR_WHALEATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "whale/Dialect/Whale/IR/WhaleDialect.td"
include "whale/Dialect/Whale/IR/WhaleInterfaces.td"

class Whale_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Whale_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Whale_Token : TypeDef<Whale_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a transfer that was started";
  let description = [{
    Defined by a collective that has been started; used by the `whale.wait` that
    ends it.
  }];
}

//===----------------------------------------------------------------------===//
// Strategies
//===----------------------------------------------------------------------===//

def Whale_OptionalInt : OptionalParameter<"::std::optional<int64_t>"> {
  let printer = "$_printer << *$_self";
}

class Whale_Strategy<string name, string attrMnemonic>
    : Whale_Attr<name, attrMnemonic,
                 [DeclareAttrInterfaceMethods<Whale_StrategyAttr>]> {
  let parameters = (ins Whale_OptionalInt:$devices,
      StringRefParameter<"the scope's name", [{""}]>:$name,
      Whale_OptionalInt:$scope);
  let assemblyFormat = "(`<` struct($devices, $name, $scope)^ `>`)?";
  let genVerifyDecl = 1;
}

def Whale_ReplicateAttr : Whale_Strategy<"Replicate", "replicate"> {
  let summary = "the TaskGraph's mini-batch is divided among its devices";
  let description = [{
    Each device holds the whole TaskGraph and takes its share of the mini-batch.
    If `devices` is left out, all devices are used. `scope` distinguishes the
    scopes that have no `name`.

    Example:
    ```mlir
    #whale.replicate<devices = 4, name = "encoder", scope = 0>
    #whale.replicate
    ```

    **Constraints:**
    - `devices` is at least 1.
    - `scope` is not negative.
  }];
}

def Whale_SplitAttr : Whale_Strategy<"Split", "split"> {
  let summary = "the TaskGraph's tensors are sharded over its devices";
  let description = [{
    Every large parameter of the TaskGraph is stored in shards, and none of
    the operations that use one is computed twice.

    Example:
    ```mlir
    #whale.split<devices = 4, name = "head", scope = 1>
    ```

    **Constraints:**
    - `devices` is at least 1.
    - `scope` is not negative.
  }];
}

//===----------------------------------------------------------------------===//
// Phases and reductions
//===----------------------------------------------------------------------===//

def Whale_Phase : I32Enum<"Phase", "phase of a training step", [
      I32EnumCase<"Forward", 0, "forward">,
      I32EnumCase<"Backward", 1, "backward">,
      I32EnumCase<"Apply", 2, "apply">,
    ]> {
  let cppNamespace = "::whale";
}

def Whale_PhaseAttr : EnumAttr<Whale_Dialect, Whale_Phase, "phase"> {
  let summary = "whether an operation is forward, backward or apply";
  let description = [{
    Forward computes the loss, backward its gradients, apply the optimizer's
    update.

    Example:
    ```mlir
    #whale.phase<backward>
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Whale_ReductionAttr : Whale_Attr<"Reduction", "reduction"> {
  let summary = "how partial values combine";
  let description = [{
    One of `sum`, `product`, `min`, `max`, `and`, `or`.

    Example:
    ```mlir
    #whale.reduction<sum>
    ```
  }];
  let parameters = (ins "::whale::Reduction":$value);
  let hasCustomAssemblyFormat = 1;
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

def Whale_PlacementAttr : Whale_Attr<"Placement", "placement"> {
  let summary = "which device holds which part of a value";
  let description = [{
    A view of the tensor (extents whose row-major product is its shape) and a
    tree over the view's dimensions, whose nodes are split, replicate or partial
    and whose leaves are devices. The value class `whale::Placement` defines the
    meaning and the syntax.

    Example:
    ```mlir
    #placement = #whale.placement<[8, 16] split 0 (3, 5) on [0, 1]>
    #placement1 = #whale.placement<[8, 16] replicate 2 on [0, 1]>
    ```

    **Constraints:**
    - Those of `whale::Placement`, for instance: the sizes of a split sum to the
      extent that it splits, and no device appears twice.
  }];
  let parameters = (ins
      AttrParameter<"::whale::Placement", "the placement",
                    "const ::whale::Placement &">:$value);
  let hasCustomAssemblyFormat = 1;
  let genMnemonicAlias = 1;
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

def Whale_OrderAttr : Whale_Attr<"Order", "order"> {
  let summary = "the steps of a pipeline's schedule that devices compute";
  let description = [{
    Each of the devices computes the steps in their order. A step is the
    `forward` or the `backward` of one micro-batch, or its `weight_gradient` if
    the gradients of the weights are separate (`whale.weight_gradient`). It
    consists of all task graphs of that phase on the device. If the device has
    several of a phase, `chunk` selects those with that `whale.chunk`; the
    default is 0.

    Example:
    ```mlir
    #whale.order<[0, 2]: forward 0, forward 1, backward 0, backward 1>
    #whale.order<[1]: forward 0, forward 0 chunk 1, backward 0 chunk 1>
    ```

    **Constraints:**
    - There is at least one device and one step; no device is negative or
      appears twice.
    - No micro-batch and no chunk is negative.
    - The micro-batches of one kind of step and chunk ascend. So values are
      received in the order in which they are sent.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$devices,
      ArrayRefParameter<"::whale::ScheduleStep">:$steps);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // WHALE_DIALECT_WHALE_IR_WHALEATTRS_TD
