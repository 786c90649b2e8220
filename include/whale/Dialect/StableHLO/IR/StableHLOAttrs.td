//===- StableHLOAttrs.td - Attributes of StableHLO ---------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes that operations of StableHLO have besides enums
// (StableHLOEnums.td), and the constraints on attributes that several families
// of operations share. Names and text form are those of StableHLO.
//
// An attribute only holds numbers: except for ResultAccuracy nothing is checked
// here, and the verifier of the operation compares them with the shapes of
// operands. Parsers and printers are in
// lib/Dialect/StableHLO/IR/StableHLOAttrs.cpp; structs leave out empty lists
// and zeros.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOATTRS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOATTRS_TD

include "whale/Dialect/StableHLO/IR/StableHLOEnums.td"

class StableHLO_Attr<string name, string attrMnemonic>
    : AttrDef<Stablehlo_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def StableHLO_Dims
    : ArrayRefParameter<"int64_t", "dimension numbers">;

// Attributes with a custom form print only the lists that are not empty.
def StableHLO_GatherDimensionNumbersAttr
    : StableHLO_Attr<"GatherDimensionNumbers", "gather"> {
  let summary = "Correspondence of the dimensions of a gather";
  let description = [{
    ```mlir
    #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1],
                      start_index_map = [1], index_vector_dim = 1>
    ```
    An empty list and `index_vector_dim = 0` may be left out.
  }];
  let parameters = (ins
    StableHLO_Dims:$offsetDims,
    StableHLO_Dims:$collapsedSliceDims,
    StableHLO_Dims:$operandBatchingDims,
    StableHLO_Dims:$startIndicesBatchingDims,
    StableHLO_Dims:$startIndexMap,
    "int64_t":$indexVectorDim);
  let hasCustomAssemblyFormat = 1;
}

def StableHLO_ScatterDimensionNumbersAttr
    : StableHLO_Attr<"ScatterDimensionNumbers", "scatter"> {
  let summary = "Correspondence of the dimensions of a scatter";
  let description = [{
    ```mlir
    #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
                       scatter_dims_to_operand_dims = [0],
                       index_vector_dim = 1>
    ```
    An empty list and `index_vector_dim = 0` may be left out.
  }];
  let parameters = (ins
    StableHLO_Dims:$updateWindowDims,
    StableHLO_Dims:$insertedWindowDims,
    StableHLO_Dims:$inputBatchingDims,
    StableHLO_Dims:$scatterIndicesBatchingDims,
    StableHLO_Dims:$scatterDimsToOperandDims,
    "int64_t":$indexVectorDim);
  let hasCustomAssemblyFormat = 1;
}

def StableHLO_DotDimensionNumbersAttr
    : StableHLO_Attr<"DotDimensionNumbers", "dot"> {
  let summary = "Batching and contracting dimensions of a dot_general";
  let description = [{
    ```mlir
    #stablehlo.dot<lhs_contracting_dimensions = [1],
                   rhs_contracting_dimensions = [0]>
    ```
  }];
  let parameters = (ins
    StableHLO_Dims:$lhsBatchingDimensions,
    StableHLO_Dims:$rhsBatchingDimensions,
    StableHLO_Dims:$lhsContractingDimensions,
    StableHLO_Dims:$rhsContractingDimensions);
  let hasCustomAssemblyFormat = 1;
}

def StableHLO_DotAlgorithmAttr
    : StableHLO_Attr<"DotAlgorithm", "dot_algorithm"> {
  let summary = "The arithmetic of a dot_general";
  let parameters = (ins
    "::mlir::Type":$lhsPrecisionType,
    "::mlir::Type":$rhsPrecisionType,
    "::mlir::Type":$accumulationType,
    "int64_t":$lhsComponentCount,
    "int64_t":$rhsComponentCount,
    "int64_t":$numPrimitiveOperations,
    "bool":$allowImpreciseAccumulation);
  let assemblyFormat = [{
    `<` `lhs_precision_type` `=` $lhsPrecisionType `,`
        `rhs_precision_type` `=` $rhsPrecisionType `,`
        `accumulation_type` `=` $accumulationType `,`
        `lhs_component_count` `=` $lhsComponentCount `,`
        `rhs_component_count` `=` $rhsComponentCount `,`
        `num_primitive_operations` `=` $numPrimitiveOperations `,`
        `allow_imprecise_accumulation` `=` $allowImpreciseAccumulation `>`
  }];
}

def StableHLO_ConvDimensionNumbersAttr
    : StableHLO_Attr<"ConvDimensionNumbers", "conv"> {
  let summary = "Batch, feature and spatial dimensions of a convolution";
  let description = [{
    Written as the order of the dimensions of input, kernel and output: `b` is
    batch, `f` feature, `i` and `o` the kernel's input and output feature, and a
    number a spatial dimension.

    ```mlir
    #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
    ```
  }];
  let parameters = (ins
    "int64_t":$inputBatchDimension,
    "int64_t":$inputFeatureDimension,
    StableHLO_Dims:$inputSpatialDimensions,
    "int64_t":$kernelInputFeatureDimension,
    "int64_t":$kernelOutputFeatureDimension,
    StableHLO_Dims:$kernelSpatialDimensions,
    "int64_t":$outputBatchDimension,
    "int64_t":$outputFeatureDimension,
    StableHLO_Dims:$outputSpatialDimensions);
  let hasCustomAssemblyFormat = 1;
}

def StableHLO_ChannelHandleAttr
    : StableHLO_Attr<"ChannelHandle", "channel_handle"> {
  let summary = "The channel that instances of a collective share";
  let parameters = (ins "int64_t":$handle, "int64_t":$type);
  let assemblyFormat = "`<` struct(params) `>`";
}

def StableHLO_OutputOperandAliasAttr
    : StableHLO_Attr<"OutputOperandAlias", "output_operand_alias"> {
  let summary = "A result of a custom call that shares an operand's buffer";
  let parameters = (ins
    StableHLO_Dims:$outputTupleIndices,
    "int64_t":$operandIndex,
    StableHLO_Dims:$operandTupleIndices);
  let hasCustomAssemblyFormat = 1;
}

def StableHLO_ResultAccuracyAttr
    : StableHLO_Attr<"ResultAccuracy", "result_accuracy"> {
  let summary = "The accuracy required of a transcendental function";
  let parameters = (ins
    DefaultValuedParameter<"::llvm::APFloat", "::llvm::APFloat(0.0)">:$atol,
    DefaultValuedParameter<"::llvm::APFloat", "::llvm::APFloat(0.0)">:$rtol,
    DefaultValuedParameter<"int64_t", "0">:$ulps,
    "::mlir::stablehlo::ResultAccuracyModeAttr":$mode);
  let constBuilderCall = "$0";
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def StableHLO_TypeExtensionsAttr
    : StableHLO_Attr<"TypeExtensions", "bounds"> {
  let summary = "Upper bounds of the dynamic dimensions of a tensor type";
  let parameters = (ins StableHLO_Dims:$bounds);
  let hasCustomAssemblyFormat = 1;
}

// Passes read elements directly from the attribute, so whale-compile replaces
// references to resources by their elements.
def HLO_DenseElements
    : ElementsAttrBase<CPred<"::llvm::isa<::mlir::DenseElementsAttr>($_self)">,
                       "dense elements that are no resource">;

def HLO_PrecisionConfigAttr
    : TypedArrayAttrBase<StableHLO_PrecisionAttr, "precision config">;
def HLO_OutputOperandAliases
    : TypedArrayAttrBase<StableHLO_OutputOperandAliasAttr,
                         "aliases of results and operands">;
def HLO_FlatSymbolRefArrayAttr
    : TypedArrayAttrBase<FlatSymbolRefAttr, "functions">;
def HLO_Layout
    : Attr<And<[CPred<"::llvm::isa<::mlir::DenseIntElementsAttr>($_self)">,
                CPred<"::llvm::cast<::mlir::DenseIntElementsAttr>($_self)"
                      ".getType().getElementType().isIndex()">,
                CPred<"::llvm::cast<::mlir::DenseIntElementsAttr>($_self)"
                      ".getType().getRank() == 1">]>,
           "permutation of the dimensions, minor to major"> {
  let storageType = "::mlir::DenseIntElementsAttr";
}
def HLO_Layouts : TypedArrayAttrBase<HLO_Layout, "layouts">;

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOATTRS_TD
