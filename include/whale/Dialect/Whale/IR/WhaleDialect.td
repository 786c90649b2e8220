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
    The dialect describes how a training step is distributed over devices: which
    parts are TaskGraphs and their strategies, the placement of each value, and
    the communication and its order. The computation itself stays in StableHLO.
    The rationale is in `docs/dialects/whale.md`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();

    /// The key of a check: pointers to the names, types and attributes that
    /// determine its result, which a context uniques.
    using Checked = ::std::tuple<const void *, const void *, const void *,
                                 const void *>;
    /// Runs `check` unless it has succeeded for `key` before. A program repeats
    /// few different exchanges often, and checking one on many devices takes
    /// long.
    ::llvm::LogicalResult checkOnce(
        Checked key, ::llvm::function_ref<::llvm::LogicalResult()> check);

    /// Feedback between the passes and attempts of a compilation.
    ::whale::MemoryFit memoryFit;

    /// Returns what a device uses for the products and convolutions of a
    /// module, which it may change, in addition to buffers. Set by the driver;
    /// empty where nothing is known of libraries.
    using ScratchFinder = ::std::function<int64_t(
        ::mlir::ModuleOp, const ::whale::Cluster &, int64_t device)>;
    ScratchFinder findScratch;

  private:
    ::std::mutex checkedMutex;
    ::llvm::DenseSet<Checked> checked;

  public:
  }];
}

class Whale_Op<string mnemonic, list<Trait> traits = []>
    : Op<Whale_Dialect, mnemonic, traits>;

#endif // WHALE_DIALECT_WHALE_IR_WHALEDIALECT_TD
