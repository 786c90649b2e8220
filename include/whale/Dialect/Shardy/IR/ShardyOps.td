//===- ShardyOps.td - Shardy operations --------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_SHARDY_IR_SHARDYOPS_TD
#define WHALE_DIALECT_SHARDY_IR_SHARDYOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Shardy/IR/ShardyAttrs.td"

class Sdy_Op<string mnemonic, list<Trait> traits = []>
    : Op<Sdy_Dialect, mnemonic, traits>;

def Sdy_MeshOp : Sdy_Op<"mesh", [Symbol]> {
  let summary = "Named mesh";
  let description = [{
    Names a mesh of devices for the shardings of the module.

    ```mlir
    sdy.mesh @mesh = <["data"=4, "model"=2]>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Sdy_MeshAttr:$mesh);
  let assemblyFormat = "$sym_name `=` custom<StrippedMesh>($mesh) attr-dict";
}

class Sdy_ShardingOp<string mnemonic>
    : Sdy_Op<mnemonic, [Pure, SameOperandsAndResultType,
                        DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = (ins AnyRankedTensor:$input,
                       Sdy_TensorShardingAttr:$sharding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input custom<StrippedSharding>($sharding) attr-dict `:` type($result)
  }];
}

def Sdy_ShardingConstraintOp : Sdy_ShardingOp<"sharding_constraint"> {
  let summary = "Request for a sharding";
  let description = [{
    Returns the operand; the user requests this sharding for it.

    ```mlir
    %r = sdy.sharding_constraint %x <@mesh, [{"data"}, {?} ]> : tensor<8x8xf32>
    ```
  }];
}

def Sdy_ReshardOp : Sdy_ShardingOp<"reshard"> {
  let summary = "Change of sharding";
  let description = [{
    Returns the operand in another sharding.

    ```mlir
    %r = sdy.reshard %x <@mesh, [{"data"}, {} ]> : tensor<8x8xf32>
    ```
  }];
}

def Sdy_ShardingGroupOp : Sdy_Op<"sharding_group"> {
  let summary = "Membership in a group of equal shardings";
  let description = [{
    All tensors of one group get the same sharding.

    ```mlir
    sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$group_id);
  let assemblyFormat =
    "$input `group_id` `` `=` `` $group_id attr-dict `:` type($input)";
}

def Sdy_ManualComputationOp
    : Sdy_Op<"manual_computation", [IsolatedFromAbove, RecursiveMemoryEffects,
        SingleBlock,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Computation on local shards";
  let description = [{
    The region is computed on the shards of one device, as by shard_map. Its
    arguments are shards of the operands, its results shards of the results.

    ```mlir
    %r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"}, {} ]>]
           out_shardings=[<@mesh, [{"data"}, {} ]>] manual_axes={"data"}
           (%a: tensor<2x8xf32>) {
      sdy.return %a : tensor<2x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$tensors,
    Sdy_TensorShardingPerValueAttr:$in_shardings,
    Sdy_TensorShardingPerValueAttr:$out_shardings,
    Sdy_ManualAxesAttr:$manual_axes);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyType>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Sdy_ReturnOp : Sdy_Op<"return", [Pure, Terminator]> {
  let summary = "End of a manual computation";
  let description = [{
    Returns the shards that the region has computed.

    ```mlir
    sdy.return %a : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
}

#endif // WHALE_DIALECT_SHARDY_IR_SHARDYOPS_TD
