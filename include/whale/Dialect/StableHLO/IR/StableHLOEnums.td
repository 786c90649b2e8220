//===- StableHLOEnums.td - Enumerations of StableHLO -------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOENUMS_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOENUMS_TD

include "mlir/IR/EnumAttr.td"
include "whale/Dialect/StableHLO/IR/StableHLOBase.td"

def StableHLO_Precision
    : I32EnumAttr<"Precision",
                  "How many bits of the operands a product uses", [
    I32EnumAttrCase<"DEFAULT", 0>,
    I32EnumAttrCase<"HIGH", 1>,
    I32EnumAttrCase<"HIGHEST", 2>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_PrecisionAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_Precision, "precision">;

def StableHLO_ComparisonDirection
    : I32EnumAttr<"ComparisonDirection", "Which relation a comparison tests", [
    I32EnumAttrCase<"EQ", 0>,
    I32EnumAttrCase<"NE", 1>,
    I32EnumAttrCase<"GE", 2>,
    I32EnumAttrCase<"GT", 3>,
    I32EnumAttrCase<"LE", 4>,
    I32EnumAttrCase<"LT", 5>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_ComparisonDirectionAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_ComparisonDirection,
               "comparison_direction">;

def StableHLO_ComparisonType
    : I32EnumAttr<"ComparisonType",
                  "How a comparison reads the bits of its operands", [
    I32EnumAttrCase<"NOTYPE", 0>,
    I32EnumAttrCase<"FLOAT", 1>,
    I32EnumAttrCase<"TOTALORDER", 2>,
    I32EnumAttrCase<"SIGNED", 3>,
    I32EnumAttrCase<"UNSIGNED", 4>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_ComparisonTypeAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_ComparisonType, "comparison_type">;

def StableHLO_FftType
    : I32EnumAttr<"FftType", "Kind of a fast Fourier transform", [
    I32EnumAttrCase<"FFT", 0>,
    I32EnumAttrCase<"IFFT", 1>,
    I32EnumAttrCase<"RFFT", 2>,
    I32EnumAttrCase<"IRFFT", 3>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_FftTypeAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_FftType, "fft_type">;

def StableHLO_Transpose
    : I32EnumAttr<"Transpose",
                  "Whether the matrix is transposed, or conjugated too", [
    I32EnumAttrCase<"TRANSPOSE_INVALID", 0>,
    I32EnumAttrCase<"NO_TRANSPOSE", 1>,
    I32EnumAttrCase<"TRANSPOSE", 2>,
    I32EnumAttrCase<"ADJOINT", 3>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_TransposeAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_Transpose, "transpose">;

def StableHLO_RngAlgorithm
    : I32EnumAttr<"RngAlgorithm", "Algorithm of the random bit generator", [
    I32EnumAttrCase<"DEFAULT", 0>,
    I32EnumAttrCase<"THREE_FRY", 1>,
    I32EnumAttrCase<"PHILOX", 2>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_RngAlgorithmAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_RngAlgorithm, "rng_algorithm">;

def StableHLO_RngDistribution
    : I32EnumAttr<"RngDistribution", "Distribution of random numbers", [
    I32EnumAttrCase<"UNIFORM", 1>,
    I32EnumAttrCase<"NORMAL", 2>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_RngDistributionAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_RngDistribution,
               "rng_distribution">;

def StableHLO_ResultAccuracyMode
    : I32EnumAttr<"ResultAccuracyMode",
                  "How exact a transcendental function has to be", [
    I32EnumAttrCase<"DEFAULT", 0>,
    I32EnumAttrCase<"HIGHEST", 1>,
    I32EnumAttrCase<"TOLERANCE", 2>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::stablehlo";
}
def StableHLO_ResultAccuracyModeAttr
    : EnumAttr<Stablehlo_Dialect, StableHLO_ResultAccuracyMode,
               "result_accuracy_mode"> {
  let assemblyFormat = "`<` $value `>`";
}

def StableHLO_CustomCallApiVersionAttr
    : I32EnumAttr<"CustomCallApiVersion",
                  "Calling convention of a custom call", [
    I32EnumAttrCase<"API_VERSION_UNSPECIFIED", 0>,
    I32EnumAttrCase<"API_VERSION_ORIGINAL", 1>,
    I32EnumAttrCase<"API_VERSION_STATUS_RETURNING", 2>,
    I32EnumAttrCase<"API_VERSION_STATUS_RETURNING_UNIFIED", 3>,
    I32EnumAttrCase<"API_VERSION_TYPED_FFI", 4>]> {
  let cppNamespace = "::mlir::stablehlo";
}

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOENUMS_TD
