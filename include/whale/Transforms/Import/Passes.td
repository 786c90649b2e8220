//===- Passes.td - Whale import passes ---------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of level 'annotated', from the text that JAX prints to a single
// `@main` of StableHLO in which each operation has a strategy and a phase; and
// whale-load-cluster, which belongs to no level. Their order is in
// lib/Program/Pipelines.cpp. whale-cut-task-graphs, whale-divide-stacks and
// whale-micro-batch are for pipelines and micro-batches; they leave other
// programs alone.
//
// whale-normalize refuses what a partitioned step can't do.
// Each description has an example that a test runs. How a pass works is told in
// the file of its name in lib/Transforms/Import.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_IMPORT_PASSES_TD
#define WHALE_TRANSFORMS_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def InlineCalls : Pass<"whale-inline-calls", "::mlir::ModuleOp"> {
  let summary = "inline every function into @main";
  let description = [{
    JAX outlines functions (`jit`, `closed_call`, the bodies of scans) whose
    operations hold names relative to their call. Every `func.call` and
    `stablehlo.composite`, inside regions too, is replaced by the body of what
    it calls, and the name paths of the call and of each operation are composed
    into one. A function that is called from several places is inlined into
    each; the ids of its scopes then get the number of the call as a suffix, so
    that each call's scope is its own. Functions that nothing refers to any
    more are removed. Recursion is an error, and so are functions that become
    more than 262144 operations, and 32 times what is written, and loops and
    branches that are nested more than 128 deep.

    Example, with `-mlir-print-debuginfo -mlir-print-local-scope`:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(s)/jit(f)")
      return %0 : tensor<8xf32>
    }
    func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32> loc("whale:split:2:0:/neg")
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %arg0 : tensor<8xf32>
          loc("jit(s)/jit(f)/whale:split:2:0:/neg")
      return %0 : tensor<8xf32>
    }
    ```
  }];
}

def EraseUnusedCalls : Pass<"whale-erase-unused-calls", "::mlir::ModuleOp"> {
  let summary = "erase calls into Python that nobody needs";
  let description = [{
    Where `@main` calls into Python, operations go that none of its results and
    no effect depends on, as they go in `jax.jit`. A call has an effect where it
    has `has_side_effect`, or no results: `jax.pure_callback` is made for its
    results alone, and of `io_callback` it is seen whether they are used.

    In loops and branches, too: what a loop carries for nobody, and what a
    branch gives to nobody, becomes zeros.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32>
      %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%0)
          {mhlo.backend_config = {index = 0 : ui64}}
          : (tensor<8xf32>) -> tensor<8xf32>
      %2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
          {has_side_effect = true, mhlo.backend_config = {index = 1 : ui64}}
          : (tensor<8xf32>) -> tensor<8xf32>
      %3 = stablehlo.add %1, %2 : tensor<8xf32>
      return %x : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0)
          {has_side_effect = true, mhlo.backend_config = {index = 1 : ui64}}
          : (tensor<8xf32>) -> tensor<8xf32>
      return %arg0 : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def CheckNans : Pass<"whale-check-nans", "::mlir::ModuleOp"> {
  let summary = "ask of each operation whether it makes a NaN";
  let description = [{
    Where the module's `whale.config` has `debug_nans`, each operation that
    computes floating-point numbers is followed by a call into Python with
    whether any of them is a NaN, `index` -1 in the place of a function; so is
    each result of `@main`, with -2. In loops of a known number of rounds and in
    branches it is the operations inside; of other loops it is their results.
    Complex numbers are left out.

    Example:
    ```mlir
    module attributes {whale.config = {debug_nans = true}} {
      func.func @main(%x: tensor<8xf32>) -> tensor<8xi32> {
        %0 = stablehlo.log %x : tensor<8xf32>
        %1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xi32>
        return %1 : tensor<8xi32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {whale.config = {debug_nans = true}} {
      func.func @main(%arg0: tensor<8xf32>) -> tensor<8xi32> {
        %0 = stablehlo.log %arg0 : tensor<8xf32>
        %1 = stablehlo.compare NE, %0, %0
            : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
        %c = stablehlo.constant dense<false> : tensor<i1>
        %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.or
            across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
        stablehlo.custom_call @xla_ffi_python_cpu_callback(%2)
            {mhlo.backend_config = {index = -1 : i64}} : (tensor<i1>) -> ()
        %3 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xi32>
        return %3 : tensor<8xi32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def LiftCallbacks : Pass<"whale-lift-callbacks", "::mlir::ModuleOp"> {
  let summary = "calls into Python become results, or stay on one device";
  let description = [{
    JAX prints `jax.debug.print`, `io_callback` and the like as custom calls of
    Python functions. Of one that gives nothing, or whose results nobody uses,
    the operands become results of `@main`, and Python makes the call when the
    step has ended: once, on whole values, however they are cut. The attribute
    `whale.callback` of such a result is which operand it is of which function.

    - In a loop whose number of rounds is known, each operand is stacked along a
      new first dimension; `loops` lists, for each loop around the call, its
      number and its rounds.
    - In a branch, the others give zeros; a result without `operand` says by
      booleans which calls are made.
    - Calls and loops share one numbering, `order`: Python makes the calls in
      the order of the text, round by round.
    - The tokens of ordered calls are no arguments and results any more; between
      calls that stay they are numbers.
    - A call whose results are used, as of `jax.pure_callback`, stays.
    - A branch in which equinox's `error_if` raises gives nothing: the branch
      that gives the checked value is taken, and the condition is a result.

    What can't be lifted is an error: in loops of unknown length, beside ordered
    calls that stay, and all where Python doesn't run the program.

    Example, with `python`:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32>
      stablehlo.custom_call @xla_ffi_python_cpu_callback(%0)
          {mhlo.backend_config = {index = 0 : ui64}} : (tensor<8xf32>) -> ()
          loc("jit(step)/debug_print")
      return %x : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32> {
        jax.result_info = "debug_print",
        whale.callback = {index = 0 : i64, loops = array<i64>,
                          operand = 0 : i64, order = 0 : i64}}) {
      %0 = stablehlo.negate %arg0 : tensor<8xf32>
      return %arg0, %0 : tensor<8xf32>, tensor<8xf32>
    }
    ```
  }];
  let options = [Option<"python", "python", "bool", /*default=*/"false",
                        "Python runs the program">];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def ImportScopes : Pass<"whale-import-scopes", "::mlir::ModuleOp"> {
  let summary = "read strategies and phases from name paths";
  let description = [{
    Sets `whale.strategy` and `whale.phase` on every operation of `@main`, also
    inside while loops and branches. What is written by hand on an operation
    wins. Else the innermost scope `whale:KIND:COUNT:ID:NAME` of its name path
    is its strategy, and it is backward if `transpose(` is in the path and
    no `jvp(` before it. The module's `whale.scopes` (`wh.scopes`) gives
    strategies by patterns of names: each is put into the paths behind the names
    that its pattern matches, as if a scope had been entered there.
    Scopes of one name are one TaskGraph, and so are the forward and backward
    operations of one scope without a name; the attribute's `scope` numbers the
    TaskGraphs in order of first use.

    Where nothing is backward, everything is forward. Else operations that are
    neither forward nor backward by their path (no `jvp(`) are `apply` if they
    use gradients, or if they only serve the update of an argument whose next
    value is a result (`whale.fed_by`, or the first order-preserving match).

    Operations outside of every scope take the module's
    `whale.default_strategy`; without one they join the TaskGraph of their
    latest producer, else that of their first user. So that samples don't come
    back to a TaskGraph, one that feeds that of another producer is not taken,
    nor one that another user's feeds; backward it is the other way round.
    Operations of the apply phase follow the parameter that they update,
    constants their users. Calls into Python are a TaskGraph of their own, which
    is on device 0, and takes no device from others. A loop outside of scopes has the one that most of its
    operations have; what a scan stores in stacks belongs to the scope that
    reads it.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.tanh %x : tensor<8xf32>
          loc("jit(s)/jvp(whale:split:4:7:head)/tanh")
      %1 = stablehlo.negate %0 : tensor<8xf32>
          loc("jit(s)/transpose(jvp(whale:split:4:7:head))/neg")
      return %1 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.tanh %arg0
          {whale.phase = #whale.phase<forward>,
          whale.strategy = #whale.split<devices = 4, name = "head", scope = 0>}
          : tensor<8xf32>
      %1 = stablehlo.negate %0
          {whale.phase = #whale.phase<backward>,
          whale.strategy = #whale.split<devices = 4, name = "head", scope = 0>}
          : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    ```
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", /*default=*/"\"none\"",
           "default strategy of text without one: replicate, split or none">
  ];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def ExpandChlo : Pass<"whale-expand-chlo", "::mlir::ModuleOp"> {
  let summary = "replace the operations of chlo by StableHLO";
  let description = [{
    JAX leaves some functions to the compiler as operations of the `chlo`
    dialect. They become formulas with the accuracy of XLA's own: `f64` is
    computed in `f64`, every other float type in `f32`. `chlo.top_k` becomes a
    stable sort and a slice, `chlo.ragged_dot` a masked `dot_general`. Complex
    numbers are computed in f64. So are custom calls that stand for operations:
    `@ApproxTopK`, and those of exported texts (`@mhlo.erf`).
    An operation without an expansion is an error.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xi1> {
      %0 = chlo.square %x : tensor<8xf32> -> tensor<8xf32>
      %1 = chlo.is_inf %0 : tensor<8xf32> -> tensor<8xi1>
      return %1 : tensor<8xi1>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xi1> {
      %0 = stablehlo.multiply %arg0, %arg0 : tensor<8xf32>
      %1 = stablehlo.abs %0 : tensor<8xf32>
      %cst = stablehlo.constant dense<0x7F800000> : tensor<8xf32>
      %2 = stablehlo.compare EQ, %1, %cst, FLOAT
          : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
      return %2 : tensor<8xi1>
    }
    ```
  }];
  let dependentDialects = ["::mlir::chlo::ChloDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def Normalize : Pass<"whale-normalize", "::mlir::ModuleOp"> {
  let summary = "rewrite programs into what partitioning expects";
  let description = [{
    - Operands of a reduction whose region works in a wider type are converted
      to it first.
    - Reductions start from the identity of their operation, so that a partial
      result holds an initial value never instead of once a device; outside of
      loops, adding scatters start from zeros, for the same reason.
    - Constants that the region of a reduction or a sort uses from outside come
      inside; any other value from outside is an error.
    - Carried values that a while loop returns as they came (the constants of
      `lax.scan`) become values from outside; those that nothing depends on
      (stacks for a backward pass that does not read them) go.
    - Branches with a constant index are inlined, optimization barriers, no-op
      converts, reshapes, transposes and broadcasts removed, chains of them
      merged, constants re-shaped; dead code is removed.
    - What JAX's own sharding prints stays as a hint for whale-propagate if the
      program has no strategies and a mesh has as many devices as the cluster:
      the `sdy.mesh`, the `sdy.sharding` of arguments and each
      `sdy.sharding_constraint`, which shardings of results become too.
      Otherwise it is dropped, with a remark for each kind that says why.
    - `sdy.manual_computation` (`shard_map`, `pmap`) is written out for all
      devices of its mesh, with its collectives; Whale then places the parts.
    - Operations of dynamic shape become static ones where types and constants
      say the sizes; tuples are taken apart.
    - Gathers and scatters one index of which counts along, as in
      `x[jnp.arange(n), i]`, are batched in that dimension.
    - Where a ReLU of a sum of two tensors lets pass is told by its result, if a
      product reads that: a gradient then needs the sum no more.
    - Collectives of a program for one process give what they were given;
      `batch_norm_*` and `dot` are written out.
    - What a partitioned step can't do (unknown custom calls, infeed,
      collectives elsewhere, dynamic shapes) is an error that names it.

    Example:
    ```mlir
    func.func @main(%x: tensor<8xf32>, %init: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add
          across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<f32>) -> tensor<f32> {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add
          across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %1 = stablehlo.add %arg1, %0 : tensor<f32>
      return %1 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def MixedPrecision : Pass<"whale-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "products of f32 take halves";
  let description = [{
    With `amp.level = "bf16"` in `whale.config`, the operands of `dot_general`
    and `convolution` are rounded to bf16, with `"f16"` or `"O1"` to f16.
    Parameters and results of the step keep their types.

    - **In halves**: products of f32 with f32, and what only moves elements to
      them (`broadcast_in_dim`, `reshape`, `reverse`, `slice`, `transpose`).
      What a product gives is of halves, and widened where it is read; a product
      that reads it takes it as it is. A value that several products read is rounded
      once, where it is made, so that other TaskGraphs get halves too; an
      argument before its first use.
    - **In f32**: all other operations, among them sums, norms, softmaxes and
      losses; products of the optimizer (phase `apply`), and those that the user
      has asked more precision of (`precision` other than `DEFAULT`, or an
      algorithm). So do results of products that the step's results, or what
      the optimizer reads, are sums of, as the gradients of parameters: they are
      added up over micro-batches and replicas as they are.
    - Left alone: products that don't have all three tensors of f32, as what a
      user computes in halves.

    A remark says how many products take halves and why others do not; with
    `amp.debug_log` there is one for each product.

    With f16, gradients are multiplied by a loss scale: each is followed from
    where the optimizer reads it back through operations that are linear in what
    comes from the loss (their rules' *linear in*), to constants or values of
    the forward, and what enters there is multiplied. Behind the backward
    gradients are divided. Where one is not finite, what is fed back to
    arguments is what it was. A gradient of which the backward computes
    something that is not proportional to it is an error, and so is an update in
    a loop or branch. Without a number in `amp.loss_scale`, the scale is in an
    argument of `@main` with `whale.initial`, and the result that feeds it,
    behind those of the user: the scale, and the good steps since it changed.

    Example:
    ```mlir
    module attributes {whale.config = {amp = {level = "bf16"}}} {
      func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>)
          -> tensor<4x8xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
        %1 = stablehlo.tanh %0 : tensor<4x8xf32>
        return %1 : tensor<4x8xf32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {whale.config = {amp = {level = "bf16"}}} {
      func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x8xf32>)
          -> tensor<4x8xf32> {
        %0 = stablehlo.convert %arg0
            : (tensor<4x8xf32>) -> tensor<4x8xbf16>
        %1 = stablehlo.convert %arg1
            : (tensor<8x8xf32>) -> tensor<8x8xbf16>
        %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]
            : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
        %3 = stablehlo.convert %2 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
        %4 = stablehlo.tanh %3 : tensor<4x8xf32>
        return %4 : tensor<4x8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def FormAttention : Pass<"whale-form-attention", "::mlir::ModuleOp"> {
  let summary = "one operation for each attention and for its gradient";
  let description = [{
    A softmax between two products becomes a `whale.attention`: products of
    queries and keys, which may be scaled, biased and masked, the softmax over
    the keys, and products with values. What autodiff makes of it becomes a
    `whale.attention_gradient`, which computes the scores anew, so that no
    scores or probabilities are left. A mask that compares row and key numbers,
    as `jnp.tril` does, or that is such a constant, becomes `causal`.
    Conversions between f32 and halves in between disappear; all in between is
    then in f32.

    What the gradient computes is compared as a formula: sums of products of
    exponentials, their sums over a row, and the cotangent of the probabilities.
    It may therefore be written in any way that is the same algebra.

    A softmax between products stays, and a remark says why, if anything but
    these products uses its scores or probabilities, as dropout does and the
    gradient of a bias, if it has two masks or two biases, or if the operations
    belong to several TaskGraphs. It stays without a remark where a row has
    fewer than `least-keys` keys: the scores of a few rows are in the cache then
    anyway.

    Example, with `least-keys=1`:
    ```mlir
    func.func @main(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>,
                    %v: tensor<6x5xf32>) -> tensor<4x5xf32> {
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1]
          : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
      %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum
          across dimensions = [1]
          : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
      %ms = stablehlo.broadcast_in_dim %m, dims = [0]
          : (tensor<4xf32>) -> tensor<4x6xf32>
      %x = stablehlo.subtract %s, %ms : tensor<4x6xf32>
      %e = stablehlo.exponential %x : tensor<4x6xf32>
      %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add
          across dimensions = [1]
          : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
      %ls = stablehlo.broadcast_in_dim %l, dims = [0]
          : (tensor<4xf32>) -> tensor<4x6xf32>
      %p = stablehlo.divide %e, %ls : tensor<4x6xf32>
      %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0]
          : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
      return %o : tensor<4x5xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<6x8xf32>,
        %arg2: tensor<6x5xf32>) -> tensor<4x5xf32> {
      %0 = whale.attention query "qd" %arg0 key "kd" %arg1 value "ke" %arg2 to
          "qe" scale 1.000000e+00
          : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>)
          -> tensor<4x5xf32>
      return %0 : tensor<4x5xf32>
    }
    ```
  }];
  let options = [
    Option<"leastKeys", "least-keys", "int64_t", "64",
           "Keys of a row below which attention stays as it is">,
  ];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def CutTaskGraphs : Pass<"whale-cut-task-graphs", "::mlir::ModuleOp"> {
  let summary = "cut a step into the stages that num_task_graph asks for";
  let description = [{
    Where `whale.config` has `num_task_graph = N`, cuts the forward operations
    of `@main` in topological order into N TaskGraphs `stage0`, `stage1`, ...
    Each takes a copy of the default strategy; where that names no number of
    devices, or there is none, the devices of the cluster are divided evenly,
    and each stage is a `replicate`. The cut is the one whose slowest stage
    takes the least time, computation in proportion to the speed of the stage's
    devices and the values that cross into and out of it included, within the
    memory of the devices. A remark for each stage says what it holds.

    Operations of the backward go with the earliest of the gradients and
    forward values that they use, those of the optimizer with the parameter
    that they update; what depends on no argument is copied into each stage
    that uses it. A counted loop is cut between two iterations, and the loop of
    its backward between the same: each becomes several loops.

    A text with scopes is left alone if these make N TaskGraphs, and is an
    error else.

    Example, for two devices:
    ```mlir
    module attributes {whale.config = {num_task_graph = 2 : i64}} {
      whale.cluster @cluster {
        nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
      func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
        %0 = stablehlo.tanh %x : tensor<8xf32>
        %1 = stablehlo.sine %0 : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {whale.config = {num_task_graph = 2 : i64}} {
      whale.cluster @cluster
          {nodes = [{devices = [{count = 2 : i64, kind = "cpu"} ]} ]}
      func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
        %0 = stablehlo.tanh %arg0
            {whale.phase = #whale.phase<forward>,
            whale.strategy = #whale.replicate<devices = 1, name = "stage0">}
            : tensor<8xf32>
        %1 = stablehlo.sine %0
            {whale.phase = #whale.phase<forward>,
            whale.strategy = #whale.replicate<devices = 1, name = "stage1">}
            : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def DivideStacks : Pass<"whale-divide-stacks", "::mlir::ModuleOp"> {
  let summary = "store stacked layers in the stages that use them";
  let description = [{
    Where stages with devices of their own use different rows of an argument, as
    the parameters of layers under `lax.scan` once the loop is cut, each gets an
    argument of its rows (`whale.stack_piece`), and so do the results that are
    the argument's next value. whale-join-stacks makes one of them again, so
    that a stage stores its rows and nothing else.

    The operations on the way are divided at the same rows: casts before the
    layers, and the optimizer with its state. A reduction over the rows, as in
    the norm of all gradients, becomes one of each stage's rows and of their
    terms. An argument whose next value can't be computed row by row stays
    whole. A remark for each argument says who has which rows.

    Example, of rows that "stage0" and "stage1" use:
    ```mlir
    #s0 = #whale.replicate<devices = 1, name = "stage0">
    #s1 = #whale.replicate<devices = 1, name = "stage1">
    whale.cluster @cluster {nodes = [{devices = [{kind = "cpu", count = 2} ]} ]}
    func.func @main(%ws: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.slice %ws [0:2] {whale.strategy = #s0}
          : (tensor<4xf32>) -> tensor<2xf32>
      %1 = stablehlo.slice %ws [2:4] {whale.strategy = #s1}
          : (tensor<4xf32>) -> tensor<2xf32>
      %g0 = stablehlo.sine %0 {whale.strategy = #s0} : tensor<2xf32>
      %g1 = stablehlo.sine %1 {whale.strategy = #s1} : tensor<2xf32>
      %g = stablehlo.concatenate %g0, %g1, dim = 0 {whale.strategy = #s0}
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
      %next = stablehlo.subtract %ws, %g {whale.strategy = #s0} : tensor<4xf32>
      return %next : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    whale.cluster @cluster
        {nodes = [{devices = [{count = 2 : i64, kind = "cpu"} ]} ]}
    func.func @main(
        %arg0: tensor<2xf32> {whale.fed_by = 0 : i64, whale.stack_piece =
            {begin = 0 : i64, stack = 0 : i64, whole = tensor<4xf32>}},
        %arg1: tensor<2xf32> {whale.fed_by = 1 : i64, whale.stack_piece =
            {begin = 2 : i64, stack = 0 : i64, whole = tensor<4xf32>}})
        -> (tensor<2xf32> {whale.stack_piece =
                {begin = 0 : i64, stack = 0 : i64, whole = tensor<4xf32>}},
            tensor<2xf32> {whale.stack_piece =
                {begin = 2 : i64, stack = 0 : i64, whole = tensor<4xf32>}})
        attributes {whale.feedback_found} {
      %0 = stablehlo.sine %arg0
          {whale.strategy = #whale.replicate<devices = 1, name = "stage0">}
          : tensor<2xf32>
      %1 = stablehlo.sine %arg1
          {whale.strategy = #whale.replicate<devices = 1, name = "stage1">}
          : tensor<2xf32>
      %2 = stablehlo.subtract %arg0, %0
          {whale.strategy = #whale.replicate<devices = 1, name = "stage0">}
          : tensor<2xf32>
      %3 = stablehlo.subtract %arg1, %1
          {whale.strategy = #whale.replicate<devices = 1, name = "stage1">}
          : tensor<2xf32>
      return %2, %3 : tensor<2xf32>, tensor<2xf32>
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def KeepReceived : Pass<"whale-keep-received", "::mlir::ModuleOp"> {
  let summary = "keep what a stage received instead of sending it anew";
  let description = [{
    The backward of a layer under `jax.checkpoint` computes its forward again.
    Where such a layer is cut between two stages, the backward of the later one
    reads what the backward of the earlier one computes again, and waits until
    that comes to this micro-batch: no two stages would work at once. Here it
    reads what the forward of the earlier stage made, which the later stage
    received then and keeps. What nothing needs any more isn't computed again.

    Example:
    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %h = stablehlo.tanh %x {whale.phase = #whale.phase<forward>,
          whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
      %y = stablehlo.sine %h {whale.phase = #whale.phase<forward>,
          whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
      %again = stablehlo.tanh %x {whale.phase = #whale.phase<backward>,
          whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
      %g = stablehlo.cosine %again {whale.phase = #whale.phase<backward>,
          whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
      %r = stablehlo.multiply %y, %g : tensor<4xf32>
      return %r : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.tanh %arg0 {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage0">} : tensor<4xf32>
      %1 = stablehlo.sine %0 {whale.phase = #whale.phase<forward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
      %2 = stablehlo.cosine %0 {whale.phase = #whale.phase<backward>, whale.strategy = #whale.replicate<name = "stage1">} : tensor<4xf32>
      %3 = stablehlo.multiply %1, %2 : tensor<4xf32>
      return %3 : tensor<4xf32>
    }
    ```
  }];
}

def SinkConversions : Pass<"whale-sink-conversions", "::mlir::ModuleOp"> {
  let summary = "widen behind loops and branches what these only move";
  let description = [{
    Sums over samples are kept in f32 and rounded to their own type when they
    are complete, which in a loop would be in each of its rounds. Where a loop
    or branch only moves numbers that it has widened from a type with a smaller
    range (f16 and 8 bits), as into the rows of a stack of gradients, it moves
    the narrow ones, and their users widen them. bf16 has the range of f32 and
    stays.

    Example:
    ```mlir
    func.func @main(%g: tensor<4xf16>) -> tensor<3x4xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %zeros = stablehlo.constant dense<0.0> : tensor<3x4xf32>
      %r:2 = stablehlo.while(%i = %zero, %stack = %zeros)
          : tensor<i32>, tensor<3x4xf32>
      cond {
        %more = stablehlo.compare LT, %i, %three
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %wide = stablehlo.convert %g : (tensor<4xf16>) -> tensor<4xf32>
        %row = stablehlo.reshape %wide : (tensor<4xf32>) -> tensor<1x4xf32>
        %next = stablehlo.dynamic_update_slice %stack, %row, %i, %zero
            : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>)
            -> tensor<3x4xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %next : tensor<i32>, tensor<3x4xf32>
      }
      return %r#1 : tensor<3x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%arg0: tensor<4xf16>) -> tensor<3x4xf32> {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %c_0 = stablehlo.constant dense<1> : tensor<i32>
      %c_1 = stablehlo.constant dense<3> : tensor<i32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<3x4xf16>
      %0:2 = stablehlo.while(%iterArg = %c, %iterArg_2 = %cst)
          : tensor<i32>, tensor<3x4xf16>
      cond {
        %2 = stablehlo.compare LT, %iterArg, %c_1
            : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %2 : tensor<i1>
      } do {
        %2 = stablehlo.reshape %arg0 : (tensor<4xf16>) -> tensor<1x4xf16>
        %3 = stablehlo.dynamic_update_slice %iterArg_2, %2, %iterArg, %c
            : (tensor<3x4xf16>, tensor<1x4xf16>, tensor<i32>, tensor<i32>)
            -> tensor<3x4xf16>
        %4 = stablehlo.add %iterArg, %c_0 : tensor<i32>
        stablehlo.return %4, %3 : tensor<i32>, tensor<3x4xf16>
      }
      %1 = stablehlo.convert %0#1 : (tensor<3x4xf16>) -> tensor<3x4xf32>
      return %1 : tensor<3x4xf32>
    }
    
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def MicroBatch : Pass<"whale-micro-batch", "::mlir::ModuleOp"> {
  let summary = "compute the step one micro-batch at a time";
  let description = [{
    With `num_micro_batch = M` in `whale.config`, the mini-batch (the arguments
    with `whale.batch_dim`) is split along an axis of M moments, and what
    follows it goes into a `whale.micro_batches`: batch arguments are cut before
    it, sums over the samples accumulated, values of each sample joined behind
    it. Moments differ in size by one sample at most.

    - What depends on batch arguments alone and is needed whole (the count of a
      masked mean) is computed once, before the loop.
    - Where the backward pass needs a sum over the forward pass of all samples
      (a balance loss), all forwards come before all backwards: two loops.
    - A forward pass with parameters that the step has updated (a generator's
      after a discriminator's) is in a further loop.
    - Where samples meet at the end of the forward pass (logits of all samples
      with all, a loss that is no sum over them, a metric), what depends on it
      is computed once, between the forwards and backwards of all of them; a
      remark says how many bytes they keep until then.
    - Where layers with parameters follow (batch norm), micro-batches would
      compute something else: an error, or, with `batch_norm = "micro"` in
      `whale.config`, statistics of each micro-batch.

    Example:
    ```mlir
    module attributes {whale.config = {num_micro_batch = 2 : i64}} {
      func.func @main(%x: tensor<8xf32> {whale.batch_dim = 0 : i64})
          -> tensor<f32> {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add
            across dimensions = [0]
            : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {whale.config = {num_micro_batch = 2 : i64}} {
      func.func @main(%arg0: tensor<8xf32> {whale.batch_dim = 0 : i64})
          -> tensor<f32> {
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %0 = stablehlo.slice %arg0 [0:4] : (tensor<8xf32>) -> tensor<4xf32>
        %1 = stablehlo.slice %arg0 [4:8] : (tensor<8xf32>) -> tensor<4xf32>
        %2 = whale.micro_batches [0, 0](%0, %1) reduce [#whale.reduction<sum>]
            batch_dims [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32> {
        ^bb0(%arg1: tensor<4xf32>):
          %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
          %3 = stablehlo.reduce(%arg1 init: %cst_0) applies stablehlo.add
              across dimensions = [0]
              : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          whale.yield %3 : tensor<f32>
        }
        return %2 : tensor<f32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def LoadCluster : Pass<"whale-load-cluster", "::mlir::ModuleOp"> {
  let summary = "read the cluster file into a whale.cluster";
  let description = [{
    Puts a `whale.cluster @cluster` at the start of the module that says what
    the cluster file says, with the built-in kinds that it uses written out.
    Instead of a file, `ranks` stands for that many CPU ranks of one machine.
    A mistake in the file is an error at its line that names the field.

    Example, with `ranks=2`:
    ```mlir
    module {
    }
    ```
    becomes
    ```mlir
    whale.cluster @cluster {
      kinds = {cpu = {
        flops = {f32 = 1.000000e+12 : f64, f64 = 5.000000e+11 : f64},
        memory_bandwidth = 1.000000e+11 : f64,
        memory_bytes = 274877906944 : i64}},
      nodes = [{devices = [{count = 2 : i64, kind = "cpu"} ],
                name = "local"} ]}
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "", "The cluster file to read">,
    Option<"ranks", "ranks", "int64_t", "0", "A number of CPU ranks">,
  ];
  let dependentDialects = ["::whale::WhaleDialect"];
}

#endif // WHALE_TRANSFORMS_IMPORT_PASSES_TD
