//===- WhaleDialect.td - The whale dialect -----------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEDIALECT_TD
#define WHALE_DIALECT_WHALE_IR_WHALEDIALECT_TD

include "mlir/IR/OpBase.td"

def Whale_Dialect : Dialect {
  let name = "whale";
  let cppNamespace = "::whale";
  let summary = "Strategies, placements and communication of a training step";
  let description = [{
    The dialect says how a training step is spread over devices: which part of
    it is a TaskGraph under which strategy, where each value lives, and what
    is communicated when. What is computed stays in StableHLO. The rationale
    is in `docs/dialects/whale.md`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();

    /// Pointers to what a check asks for: names, types and attributes, of which
    /// a context has one each.
    using Checked = ::std::tuple<const void *, const void *, const void *,
                                 const void *>;
    /// Whether `check` holds of `key`. A program repeats few exchanges often,
    /// and on many devices each takes long to check: what was right once isn't
    /// checked again.
    ::llvm::LogicalResult checkOnce(
        Checked key, ::llvm::function_ref<::llvm::LogicalResult()> check);

    /// What the attempts of a compilation leave for one another. Null where
    /// passes run by themselves.
    ::whale::MemoryFit *memoryFit = nullptr;

  private:
    ::std::mutex checkedMutex;
    ::llvm::DenseSet<Checked> checked;

  public:
  }];
}

class Whale_Op<string mnemonic, list<Trait> traits = []>
    : Op<Whale_Dialect, mnemonic, traits>;

#endif // WHALE_DIALECT_WHALE_IR_WHALEDIALECT_TD
