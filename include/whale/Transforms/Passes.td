//===- Passes.td - Whale Transforms passes -----------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PASSES_TD
#define WHALE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LoadCluster : Pass<"whale-load-cluster", "::mlir::ModuleOp"> {
  let summary = "read the cluster file into a whale.cluster";
  let description = [{
    Puts a `whale.cluster @cluster` at the start of the module that says what
    the cluster file says, with the built-in kinds that it uses written out.
    Instead of a file, `ranks` stands for that many CPU ranks of one machine.
    A mistake in the file is an error at its line that names the field.

    Example: `whale-load-cluster{ranks=2}` on an empty module gives
    ```mlir
    whale.cluster @cluster {
      kinds = {cpu = {flops = {f32 = 1.0e12, f64 = 5.0e11},
                      memory_bytes = 274877906944, memory_bandwidth = 1.0e11}},
      nodes = [{name = "local", devices = [{kind = "cpu", count = 2} ]} ]}
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "", "The cluster file to read">,
    Option<"ranks", "ranks", "int64_t", "0", "A number of CPU ranks">,
  ];
  let dependentDialects = ["::whale::WhaleDialect"];
}

#endif // WHALE_TRANSFORMS_PASSES_TD
