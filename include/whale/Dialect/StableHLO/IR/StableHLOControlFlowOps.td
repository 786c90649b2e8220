//===- StableHLOControlFlowOps.td - Loops, branches, calls -*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops, branches, calls and what carries values between them: returns, tuples
// and tokens.
//
// Regions may use values from outside, so whoever moves such an operation has
// to ask getReads. `while`, `case` and `if` have the effects of their regions.
// On import composites are inlined, tuples taken apart, and each `if` becomes a
// `case`. Verifiers and the form of `while` are in
// lib/Dialect/StableHLO/IR/StableHLOControlFlowOps.cpp. They look at the
// arguments and the terminator of a region only.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOCONTROLFLOWOPS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOCONTROLFLOWOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "whale/Dialect/StableHLO/IR/StableHLOAttrs.td"

def StableHLO_ReturnOp
    : StableHLO_Op<"return", [Pure, Terminator]> {
  let summary = "End of a region";
  let description = [{
    Returns the results of the enclosing region.

    ```mlir
    stablehlo.return %a, %b : tensor<f32>, tensor<i32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Value>:$results);
  let assemblyFormat = "$results attr-dict (`:` type($results)^)?";
}

def StableHLO_WhileOp
    : StableHLO_InferredOp<"while", [RecursiveMemoryEffects,
        DeclareOpInterfaceMethods<OpAsmOpInterface,
                                  ["getAsmBlockArgumentNames"]>]> {
  let summary = "Loop";
  let description = [{
    Runs `body` on the carried values as long as `cond` of them is true.

    ```mlir
    %r:2 = stablehlo.while(%iterArg = %i, %iterArg_0 = %x)
           : tensor<i32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %iterArg, %n
           : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %iterArg, %one : tensor<i32>
      stablehlo.return %j, %iterArg_0 : tensor<i32>, tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<HLO_Value>:$operand);
  let regions = (region SizedRegion<1>:$cond, SizedRegion<1>:$body);
  let results = (outs Variadic<HLO_Value>);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def StableHLO_CaseOp
    : StableHLO_Op<"case", [RecursiveMemoryEffects, RecursivelySpeculatable,
                            SingleBlock]> {
  let summary = "Choice of one of several branches";
  let description = [{
    Runs the branch with the given index; an index out of range selects the
    last.

    ```mlir
    %r = "stablehlo.case"(%i) ({
      stablehlo.return %a : tensor<f32>
    }, {
      stablehlo.return %b : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins HLO_ScalarI32Tensor:$index);
  let regions = (region VariadicRegion<SizedRegion<1>>:$branches);
  let results = (outs Variadic<HLO_Value>);
  let hasRegionVerifier = 1;
}

def StableHLO_IfOp
    : StableHLO_Op<"if", [RecursiveMemoryEffects, RecursivelySpeculatable,
                          SingleBlock]> {
  let summary = "Choice of one of two branches";
  let description = [{
    Runs the first branch if `pred` is true, else the second.

    ```mlir
    %r = "stablehlo.if"(%p) ({
      stablehlo.return %a : tensor<f32>
    }, {
      stablehlo.return %b : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    ```
  }];
  let arguments = (ins HLO_ScalarPredTensor:$pred);
  let regions = (region SizedRegion<1>:$true_branch,
                        SizedRegion<1>:$false_branch);
  let results = (outs Variadic<HLO_Value>);
  let hasRegionVerifier = 1;
}

def StableHLO_OptimizationBarrierOp
    : StableHLO_InferredOp<"optimization_barrier", [Pure]> {
  let summary = "Barrier to optimization";
  let description = [{
    Returns its operands; operations that compute them aren't moved, merged or
    removed across it.

    ```mlir
    %r = stablehlo.optimization_barrier %x : tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Value>:$operand);
  let results = (outs Variadic<HLO_Value>:$result);
  let assemblyFormat = [{
    attr-dict ($operand^ `:`
    custom<PairwiseOpType>(type($operand), type($result))):(`(` `)`)?
  }];
}

def StableHLO_CustomCallOp
    : StableHLO_Op<"custom_call",
        [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Call of a function of the implementation";
  let description = [{
    Calls a function of the target by name. It has no side effect only if
    `has_side_effect` is given as false.

    ```mlir
    %r = stablehlo.custom_call @foo(%x) {backend_config = ""}
         : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Value>:$inputs,
    StrAttr:$call_target_name,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$has_side_effect,
    OptionalAttr<AnyAttrOf<[StrAttr, DictionaryAttr]>>:$backend_config,
    DefaultValuedOptionalAttr<StableHLO_CustomCallApiVersionAttr,
      "::mlir::stablehlo::CustomCallApiVersion::API_VERSION_ORIGINAL">
      :$api_version,
    DefaultValuedOptionalAttr<HLO_FlatSymbolRefArrayAttr, "{}">
      :$called_computations,
    OptionalAttr<HLO_Layouts>:$operand_layouts,
    OptionalAttr<HLO_Layouts>:$result_layouts,
    DefaultValuedOptionalAttr<HLO_OutputOperandAliases, "{}">
      :$output_operand_aliases);
  let results = (outs Variadic<HLO_Value>);
  let assemblyFormat = [{
    custom<CustomCallTarget>($call_target_name) `(` $inputs `)` attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def StableHLO_CompositeOp
    : StableHLO_Op<"composite",
        [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Operation with a name and a decomposition";
  let description = [{
    An operation composed of other operations: `decomposition` names the
    function that computes it.

    ```mlir
    %r = stablehlo.composite "my.op" %x {
           composite_attributes = {k = 2 : i64}, decomposition = @my.op,
           version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    func.func private @my.op(tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<HLO_Value>:$inputs, StrAttr:$name,
    DefaultValuedOptionalAttr<DictionaryAttr, "{}">:$composite_attributes,
    FlatSymbolRefAttr:$decomposition,
    DefaultValuedOptionalAttr<I32Attr, "0">:$version);
  let regions = (region VariadicRegion<AnyRegion>:$composite_regions);
  let results = (outs Variadic<HLO_Value>);
  let assemblyFormat = [{
    $name $inputs attr-dict (`(` $composite_regions^ `)`)? `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def StableHLO_TupleOp : StableHLO_InferredOp<"tuple", [Pure]> {
  let summary = "Tuple of values";
  let description = [{
    Collects values in a tuple.

    ```mlir
    %r = stablehlo.tuple %a, %b : tuple<tensor<f32>, tensor<i32>>
    ```
  }];
  let arguments = (ins Variadic<HLO_Value>:$val);
  let results = (outs AnyTuple:$result);
  let assemblyFormat = [{
    $val attr-dict `:` custom<TupleOpType>(type($val), type($result))
  }];
}

def StableHLO_GetTupleElementOp
    : StableHLO_InferredOp<"get_tuple_element", [Pure]> {
  let summary = "Element of a tuple";
  let description = [{
    The value at position `index` of a tuple.

    ```mlir
    %r = stablehlo.get_tuple_element %t[0]
         : (tuple<tensor<f32>, tensor<i32>>) -> tensor<f32>
    ```
  }];
  let arguments = (ins AnyTuple:$operand, I32Attr:$index);
  let results = (outs HLO_Value);
  let assemblyFormat = [{
    $operand `[` $index `]` attr-dict `:` functional-type(operands, results)
  }];
}

def StableHLO_AfterAllOp : StableHLO_Op<"after_all", [Pure]> {
  let summary = "Join of tokens";
  let description = [{
    Returns a token that is ready when all of the given ones are.

    ```mlir
    %r = stablehlo.after_all %a, %b : !stablehlo.token
    ```
  }];
  let arguments = (ins Variadic<StableHLO_Token>:$inputs);
  let results = (outs StableHLO_Token:$result);
  let assemblyFormat = [{
    $inputs attr-dict `:`
    custom<VariadicSameOperandsAndResultType>(ref($inputs), type($inputs),
                                              type($result))
  }];
}

def StableHLO_CreateTokenOp : StableHLO_Op<"create_token", [Pure]> {
  let summary = "New token";
  let description = [{
    Returns a token that is ready at once.

    ```mlir
    %r = stablehlo.create_token : !stablehlo.token
    ```
  }];
  let results = (outs StableHLO_Token:$output);
  let assemblyFormat = "attr-dict `:` type(results)";
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOCONTROLFLOWOPS_TD
