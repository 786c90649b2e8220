//===- CHLOBase.td - CHLO dialect and attributes -----------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_CHLO_IR_CHLOBASE_TD
#define WHALE_DIALECT_CHLO_IR_CHLOBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Chlo_Dialect : Dialect {
  let name = "chlo";
  let cppNamespace = "::mlir::chlo";
  let summary = "Operations that JAX leaves to the compiler to expand";
  let description = [{
    Functions and algorithms that JAX doesn't lower itself, such as `erf_inv`
    and `top_k`. They are expanded to StableHLO before anything is planned.
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def CHLO_Precision : I32EnumAttr<"Precision", "Precision of a product", [
    I32EnumAttrCase<"DEFAULT", 0>,
    I32EnumAttrCase<"HIGH", 1>,
    I32EnumAttrCase<"HIGHEST", 2>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::chlo";
}
def CHLO_PrecisionAttr : EnumAttr<Chlo_Dialect, CHLO_Precision, "precision">;
def CHLO_PrecisionConfigAttr
    : TypedArrayAttrBase<CHLO_PrecisionAttr, "precision config">;

def CHLO_Dims : ArrayRefParameter<"int64_t", "dimension numbers">;

def CHLO_RaggedDotDimensionNumbersAttr
    : AttrDef<Chlo_Dialect, "RaggedDotDimensionNumbers"> {
  let mnemonic = "ragged_dot";
  let summary = "The roles of the dimensions of a ragged_dot";
  let parameters = (ins
    CHLO_Dims:$lhsBatchingDimensions, CHLO_Dims:$rhsBatchingDimensions,
    CHLO_Dims:$lhsContractingDimensions, CHLO_Dims:$rhsContractingDimensions,
    CHLO_Dims:$lhsRaggedDimensions, CHLO_Dims:$rhsGroupDimensions);
  let hasCustomAssemblyFormat = 1;
}

#endif // WHALE_DIALECT_CHLO_IR_CHLOBASE_TD
