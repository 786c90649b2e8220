//===- StableHLOBase.td - Dialect, types, base classes -----*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect, its token and future types, the constraints on tensor types and
// the base classes of its operations. Every other .td file of the dialect
// includes it; chlo uses its tensor types as well.
//
// Prefixes: StableHLO_ for what the dialect defines, HLO_ for constraints. The
// classes differ in where result types come from: a StableHLO_InferredOp
// computes them and accepts any compatible ones, a StableHLO_SameTypeOp has
// those of its operands, a StableHLO_Op is given them, and its verifier or its
// traits check them. areCompatibleTypes is in
// lib/Dialect/StableHLO/IR/StableHLODialect.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOBASE_TD
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Stablehlo_Dialect : Dialect {
  let name = "stablehlo";
  let cppNamespace = "::mlir::stablehlo";
  let summary = "The StableHLO operation set, as JAX prints it";
  let description = [{
    StableHLO is the operation set in which JAX prints a lowered function. It
    has no C++ package for MLIR 22, so Whale defines the operations itself, with
    the same names and text form. Text that JAX prints is read and printed back
    unchanged.

    Values are immutable tensors with static shapes. Dynamic dimensions are
    valid in the dialect and rejected by the passes that need static ones. The
    labels in comments, such as `concatenate_c4`, name the constraints of the
    StableHLO specification that a verifier checks.
  }];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = "void registerAttributes();";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class StableHLO_Type<string name, string typeMnemonic>
    : TypeDef<Stablehlo_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def StableHLO_Token : StableHLO_Type<"Token", "token"> {
  let summary = "orders operations that have side effects";
}

def StableHLO_Future : StableHLO_Type<"Future", "future"> {
  let summary = "the pending results of an asynchronous operation";
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "`<` $types `>`";
}

//===----------------------------------------------------------------------===//
// Type constraints
//===----------------------------------------------------------------------===//

// The specification's signed integers are signless here, its unsigned ones are
// ui types; i1 is a boolean.
def HLO_Pred
    : TypeConstraint<I1.predicate, "pred (AKA boolean or 1-bit integer)">;
def HLO_Int : TypeConstraint<
    And<[AnyInteger.predicate, Neg<I1.predicate>]>, "integer">;
def HLO_Quantized : TypeConstraint<
    CPred<"$_self.getDialect().getNamespace() == \"quant\"">, "quantized">;

class HLO_RankedTensorOf<list<TypeConstraint> elements, string description>
    : Type<And<[IsRankedTensorTypePred,
                Concat<"[](::mlir::Type elementType) { return ",
                  SubstLeaves<"$_self", "elementType",
                    Or<!foreach(t, elements, t.predicate)>>,
                  "; }(::llvm::cast<::mlir::ShapedType>($_self)"
                  ".getElementType())">]>,
           "ranked tensor of " # description, "::mlir::RankedTensorType">;

// Operations that only move data accept any element type.
def HLO_Tensor : Type<IsRankedTensorTypePred, "ranked tensor",
                      "::mlir::RankedTensorType">;
def HLO_PredTensor : HLO_RankedTensorOf<[HLO_Pred], "booleans">;
def HLO_IntTensor : HLO_RankedTensorOf<[HLO_Int], "integers">;
def HLO_FpTensor : HLO_RankedTensorOf<[AnyFloat], "floats">;
def HLO_ComplexTensor : HLO_RankedTensorOf<[AnyComplex], "complex numbers">;
def HLO_PredOrIntTensor
    : HLO_RankedTensorOf<[AnyInteger], "booleans or integers">;
def HLO_PredIntOrFpTensor
    : HLO_RankedTensorOf<[AnyInteger, AnyFloat, HLO_Quantized],
                         "booleans, integers or floats">;
def HLO_FpOrComplexTensor
    : HLO_RankedTensorOf<[AnyFloat, AnyComplex, HLO_Quantized],
                         "floats or complex numbers">;
def HLO_NumericTensor
    : HLO_RankedTensorOf<[AnyInteger, AnyFloat, AnyComplex, HLO_Quantized],
                         "booleans, integers, floats or complex numbers">;
def HLO_SignedTensor
    : HLO_RankedTensorOf<[AnySignlessInteger, AnyFloat, AnyComplex,
                          HLO_Quantized],
                         "signed integers, floats or complex numbers">;
def HLO_IntFpOrComplexTensor
    : HLO_RankedTensorOf<[HLO_Int, AnyFloat, AnyComplex, HLO_Quantized],
                         "integers, floats or complex numbers">;

class HLO_RankTensor<int rank, TypeConstraint element, string description>
    : Type<And<[IsRankedTensorTypePred,
                CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == "
                      # rank>,
                SubstLeaves<"$_self",
                  "::llvm::cast<::mlir::ShapedType>($_self).getElementType()",
                  element.predicate>]>,
           description, "::mlir::RankedTensorType">;

def HLO_ScalarPredTensor
    : HLO_RankTensor<0, HLO_Pred, "0-dimensional tensor of a boolean">;
def HLO_ScalarIntTensor
    : HLO_RankTensor<0, HLO_Int, "0-dimensional tensor of an integer">;
def HLO_ScalarI32Tensor
    : HLO_RankTensor<0, I32, "0-dimensional tensor of i32">;
def HLO_DimensionTensor
    : HLO_RankTensor<1, AnyTypeOf<[AnyInteger, Index]>,
                     "1-dimensional tensor of integers">;
def HLO_ScalarTensor
    : Type<And<[IsRankedTensorTypePred,
                CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == "
                      "0">]>,
           "0-dimensional tensor", "::mlir::RankedTensorType">;

def HLO_TensorOrToken : AnyTypeOf<[HLO_Tensor, StableHLO_Token]>;
def HLO_Value
    : AnyTypeOf<[HLO_Tensor, StableHLO_Token, StableHLO_Future, AnyTuple],
                "ranked tensor, token or tuple">;

//===----------------------------------------------------------------------===//
// Operation classes
//===----------------------------------------------------------------------===//

class StableHLO_Op<string mnemonic, list<Trait> traits = []>
    : Op<Stablehlo_Dialect, mnemonic, traits>;

// Types that are equal up to dynamic dimensions are compatible.
class StableHLO_CompatibleTypesOp<string mnemonic, list<Trait> traits>
    : StableHLO_Op<mnemonic, traits> {
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs,
                                        ::mlir::TypeRange rhs) {
      return ::mlir::stablehlo::areCompatibleTypes(lhs, rhs);
    }
  }];
}

// A hand-written inferReturnTypes computes the result types from operands and
// attributes; the verifier compares the actual types with these.
class StableHLO_InferredOp<string mnemonic, list<Trait> traits = []>
    : StableHLO_CompatibleTypesOp<mnemonic, traits # [InferTypeOpAdaptor]>;

class StableHLO_SameTypeOp<string mnemonic, list<Trait> traits = []>
    : StableHLO_CompatibleTypesOp<mnemonic,
                                  traits # [SameOperandsAndResultType]>;

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOBASE_TD
