//===- ShardyAttrs.td - Shardy dialect and attributes ------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_SHARDY_IR_SHARDYATTRS_TD
#define WHALE_DIALECT_SHARDY_IR_SHARDYATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Sdy_Dialect : Dialect {
  let name = "sdy";
  let cppNamespace = "::mlir::sdy";
  let summary = "Shardings as JAX prints them";
  let description = [{
    JAX prints the shardings of its own arrays and of shard_map as operations
    and attributes of the dialect sdy, also in programs without any sharding.
    Whale reads them; its own placements are in the dialect whale.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = "void registerAttributes();";
}

class Sdy_Attr<string name, string attrMnemonic> : AttrDef<Sdy_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
}

def Sdy_MeshAxisAttr : Sdy_Attr<"MeshAxis", "mesh_axis"> {
  let summary = "Name and size of an axis of a mesh";
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$size);
}

def Sdy_MeshAttr : Sdy_Attr<"Mesh", "mesh"> {
  let summary = "Axes and devices of a mesh";
  let description = [{
    `<["data"=4, "model"=2]>`; without axes and with one device it is a maximal
    mesh, `<[], device_ids=[0]>`.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"::mlir::sdy::MeshAxisAttr">:$axes,
    OptionalArrayRefParameter<"int64_t">:$device_ids);
  let genVerifyDecl = 1;
}

def Sdy_SubAxisInfoAttr : Sdy_Attr<"SubAxisInfo", "sub_axis_info"> {
  let summary = "A part of an axis that was split";
  let description = [{
    `(pre_size)size`: the axis is split into sub-axes; the sizes of those before
    this one multiply to `pre_size`.
  }];
  let parameters = (ins "int64_t":$pre_size, "int64_t":$size);
  let genVerifyDecl = 1;
}

def Sdy_AxisRefAttr : Sdy_Attr<"AxisRef", "axis_ref"> {
  let summary = "An axis of a mesh, or a part of one";
  let parameters = (ins StringRefParameter<>:$name,
    OptionalParameter<"::mlir::sdy::SubAxisInfoAttr">:$sub_axis_info);
}

def Sdy_DimensionShardingAttr
    : Sdy_Attr<"DimensionSharding", "dimension_sharding"> {
  let summary = "The axes over which a dimension is sharded";
  let description = [{
    `{"data", ?}p1`: sharded over axis `data`, may be sharded further (`?`),
    with priority 1.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"::mlir::sdy::AxisRefAttr">:$axes,
    "bool":$is_closed,
    OptionalParameter<"std::optional<int64_t>">:$priority);
}

def Sdy_TensorShardingAttr : Sdy_Attr<"TensorSharding", "sharding"> {
  let summary = "Sharding of a tensor";
  let description = [{
    ```mlir
    #sdy.sharding<@mesh, [{"data"}, {} ], replicated={"model"}>
    ```
  }];
  let parameters = (ins "::mlir::Attribute":$mesh_or_ref,
    OptionalArrayRefParameter<"::mlir::sdy::DimensionShardingAttr">
      :$dim_shardings,
    OptionalArrayRefParameter<"::mlir::sdy::AxisRefAttr">:$replicated_axes,
    OptionalArrayRefParameter<"::mlir::sdy::AxisRefAttr">:$unreduced_axes);
}

def Sdy_TensorShardingPerValueAttr
    : Sdy_Attr<"TensorShardingPerValue", "sharding_per_value"> {
  let summary = "Shardings of several values";
  let parameters = (ins
    OptionalArrayRefParameter<"::mlir::sdy::TensorShardingAttr">:$shardings);
}

def Sdy_ManualAxesAttr : Sdy_Attr<"ManualAxes", "manual_axes"> {
  let summary = "Axes over which a manual computation is sharded";
  let parameters = (ins OptionalArrayRefParameter<"::mlir::StringAttr">:$value);
}

def Sdy_DimMappingAttr : Sdy_Attr<"DimMapping", "dim_mapping"> {
  let summary = "The factors of a dimension";
  let parameters = (ins OptionalArrayRefParameter<"int64_t">:$factor_indices);
}

def Sdy_TensorMappingAttr : Sdy_Attr<"TensorMapping", "tensor_mapping"> {
  let summary = "The factors of the dimensions of a tensor";
  let parameters = (ins
    OptionalArrayRefParameter<"::mlir::sdy::DimMappingAttr">:$dim_mappings);
}

def Sdy_OpShardingRuleAttr : Sdy_Attr<"OpShardingRule", "op_sharding_rule"> {
  let summary = "Correspondence of the dimensions of an operation";
  let description = [{
    ```mlir
    #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8}
                          reduction={k}, custom>
    ```
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"int64_t">:$factor_sizes,
    OptionalArrayRefParameter<"::mlir::sdy::TensorMappingAttr">
      :$operand_mappings,
    OptionalArrayRefParameter<"::mlir::sdy::TensorMappingAttr">
      :$result_mappings,
    OptionalArrayRefParameter<"int64_t">:$reduction_factors,
    OptionalArrayRefParameter<"int64_t">:$need_replication_factors,
    OptionalArrayRefParameter<"int64_t">:$permutation_factors,
    OptionalArrayRefParameter<"int64_t">:$blocked_propagation_factors,
    "bool":$is_custom_rule);
}

#endif // WHALE_DIALECT_SHARDY_IR_SHARDYATTRS_TD
