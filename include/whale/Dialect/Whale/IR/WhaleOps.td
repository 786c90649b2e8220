//===- WhaleOps.td - Operations of planning ----------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of a module while a step is planned: cluster and virtual
// devices, task graphs and micro-batches around StableHLO, and changes of
// placement. The collectives that replace these are in WhaleCollectiveOps.td,
// what ranks execute in WhaleProgramOps.td.
//
// Each description lists all constraints. The verifiers check them in this
// order: in lib/Dialect/Whale/IR/WhaleVerifiers.cpp, of the cluster in
// ClusterOp.cpp, of micro-batches in MicroBatches.cpp. Each has a test in
// test/Dialect/Whale. Tensors have global shapes and static sizes up to
// whale-partition.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEOPS_TD
#define WHALE_DIALECT_WHALE_IR_WHALEOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Whale/IR/WhaleAttrs.td"

def Whale_DeviceGroups
    : TypedArrayAttrBase<DenseI64ArrayAttr, "lists of device ids">;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

def Whale_ClusterOp : Whale_Op<"cluster", [Symbol]> {
  let summary = "the devices, their speeds and their links";
  let description = [{
    The contents of the cluster file, with the same field names. The built-in
    kinds that it uses are written out, so that the IR is self-contained.

    Example:
    ```mlir
    whale.cluster @cluster {
      kinds = {P100 = {flops = {f32 = 9.3e12}, memory_bytes = 17179869184,
                       memory_bandwidth = 7.32e11}},
      nodes = [{name = "a", count = 1, devices = [{kind = "P100", count = 8} ],
                link = {bandwidth = 1.0e10, latency = 5.0e-6}} ],
      network = {bandwidth = 6.25e9, latency = 1.0e-5}}
    ```

    **Constraints:**
    - The attributes form a valid cluster file (`docs/cluster.md`).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      OptionalAttr<DictionaryAttr>:$kinds, ArrayAttr:$nodes,
      OptionalAttr<DictionaryAttr>:$network);
  let assemblyFormat = "$sym_name attr-dict";
  let extraClassDeclaration = [{
    /// Returns the planner's Cluster. The operation must have been verified.
    ::whale::Cluster getCluster();
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
      "const ::whale::Cluster &":$cluster)>];
  let hasVerifier = 1;
}

def Whale_VirtualDeviceOp : Whale_Op<"virtual_device", [Symbol]> {
  let summary = "the devices of a TaskGraph";
  let description = [{
    One list of device ids for each repetition of the group of TaskGraphs
    (nested data parallelism).

    Example:
    ```mlir
    whale.virtual_device @vd0 [[0, 1], [4, 5]]
    ```

    **Constraints:**
    - There is at least one list, and no list is empty.
    - No device id is negative or appears twice.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Whale_DeviceGroups:$groups);
  let assemblyFormat = "$sym_name custom<DeviceGroups>($groups) attr-dict";
  let extraClassDeclaration = [{
    /// The number of repetitions.
    size_t getNumGroups() { return getGroups().size(); }
    /// The devices of one repetition.
    ::llvm::ArrayRef<int64_t> getGroup(size_t index) {
      return ::llvm::cast<::mlir::DenseI64ArrayAttr>(getGroups()[index])
          .asArrayRef();
    }
    /// All devices, repetition by repetition.
    ::llvm::SmallVector<int64_t> getDevices();
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
      "::llvm::ArrayRef<::std::vector<int64_t>>":$groups)>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Task graphs
//===----------------------------------------------------------------------===//

def Whale_TaskGraphOp : Whale_Op<"task_graph", [
    SingleBlock, NoRegionArguments, RecursiveMemoryEffects,
    RecursivelySpeculatable, DeclareOpInterfaceMethods<SymbolUserOpInterface>
  ]> {
  let summary = "a part of the step under one strategy";
  let description = [{
    The region may use values defined outside; its results are the values that
    are used outside. Task graphs with one `name` belong together: they are the
    phases of one scope, or pieces of it with others in between, and share a
    virtual device. `flops` and `bytes` are for the whole mini-batch.

    Example:
    ```mlir
    %h = whale.task_graph "encoder" forward
        strategy #whale.replicate<devices = 2> on @vd0 flops 1024 bytes 4096
        -> tensor<8x16xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
      whale.yield %0 : tensor<8x16xf32>
    }
    ```

    **Constraints:**
    - The `whale.yield` has as many operands as there are results, of the same
      types.
    - `name` is not empty.
    - `flops` and `bytes` are not negative.
    - The virtual device is a `whale.virtual_device`.
    - A task graph is not inside another.
  }];
  let arguments = (ins StrAttr:$name, Whale_PhaseAttr:$phase,
      OptionalAttr<Whale_StrategyAttr>:$strategy,
      OptionalAttr<FlatSymbolRefAttr>:$virtual_device,
      OptionalAttr<I64Attr>:$flops, OptionalAttr<I64Attr>:$bytes);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name custom<Phase>($phase) (`strategy` $strategy^)?
    (`on` $virtual_device^)? (`flops` $flops^)? (`bytes` $bytes^)?
    attr-dict-with-keyword (`->` type($results)^)? $body
  }];
  let extraClassDeclaration = [{
    /// The terminator of the region.
    ::whale::YieldOp getYield();
    /// Returns the step of a pipeline's schedule that computes it for a
    /// micro-batch.
    ::whale::ScheduleStep getStep(int64_t microBatch);
  }];
  let hasVerifier = 1;
}

def Whale_MicroBatchesOp : Whale_Op<"micro_batches", [
    SingleBlock, RecursiveMemoryEffects, RecursivelySpeculatable,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>
  ]> {
  let summary = "a part of the step, computed for one micro-batch at a time";
  let description = [{
    The mini-batch is cut into micro-batches, the moments of a time axis. A
    region computes the part of the step that depends on the mini-batch, for one
    moment. Moments whose pieces have the same sizes share a region; `variants`
    lists the region of each moment. Like a task graph, a region may use values
    defined outside.

    An argument of the regions corresponds to one operand for each moment, in
    order: its pieces. If `reduce` has n entries, the first n results are the
    first n yielded values, combined over all moments in order. Each further
    yielded value corresponds to one result for each moment.

    `batch_dims` is, for each argument, the dimension that carries samples, or
    -1.

    `order` is the order in which the devices of a pipeline compute the task
    graphs of the moments. If it is left out, each device computes the moments
    one after the other.

    Example:
    ```mlir
    %loss, %y0, %y1 = whale.micro_batches [0, 0] (%x0, %x1)
        reduce [#whale.reduction<sum>] batch_dims [0]
        : (tensor<4xf32>, tensor<4xf32>)
        -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%x: tensor<4xf32>):
      %y = stablehlo.tanh %x : tensor<4xf32>
      %0 = stablehlo.reduce(%y init: %zero) applies stablehlo.add
          across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      whale.yield %0, %y : tensor<f32>, tensor<4xf32>
    }
    ```
    A pipeline of two stages, on @vd0 and @vd1:
    ```mlir
    whale.virtual_device @vd1 [[2, 3], [6, 7]]
    whale.micro_batches [0, 0] () order [
      #whale.order<[0, 1, 4, 5]: forward 0, forward 1, backward 0, backward 1>,
      #whale.order<[2, 3, 6, 7]: forward 0, backward 0, forward 1, backward 1>
    ] : () -> () {
      whale.task_graph "front" forward on @vd0 {
        whale.yield
      }
      whale.task_graph "back" forward on @vd1 {
        whale.yield
      }
      whale.task_graph "back" backward on @vd1 {
        whale.yield
      }
      whale.task_graph "front" backward on @vd0 {
        whale.yield
      }
      whale.yield
    }
    ```

    **Constraints:**
    - There is at least one moment, every moment has a region, and every region
      has a moment.
    - The regions have equal numbers of arguments and of yielded values.
    - Operands, arguments, yielded values and results correspond in number and
      type as described above.
    - Each entry of `batch_dims` is a dimension of the argument, or -1.
    - It is not inside another `whale.micro_batches` or a task graph.
    - If there is an `order`, no device has two lists in it, and all steps are
      of existing moments. Each device of a task graph has a list that contains
      the task graph's step for each moment of its region.
  }];
  let arguments = (ins DenseI64ArrayAttr:$variants,
      Variadic<AnyStaticShapeTensor>:$slices,
      DefaultValuedAttr<TypedArrayAttrBase<Whale_ReductionAttr, "reductions">,
                        "{}">:$reductions,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$batch_dims,
      OptionalAttr<TypedArrayAttrBase<Whale_OrderAttr, "orders">>:$order);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let assemblyFormat = [{
    $variants `(` $slices `)` (`reduce` $reductions^)?
    (`batch_dims` $batch_dims^)? (`order` $order^)? attr-dict-with-keyword
    `:` functional-type($slices, $results) $bodies
  }];
  let extraClassDeclaration = [{
    /// The number of micro-batches.
    int64_t getNumMoments() { return getVariants().size(); }
    /// The number of moments that the region computes.
    int64_t getNumMoments(::mlir::Region *body);
    /// Returns the block that computes one moment.
    ::mlir::Block &getBody(int64_t moment) {
      return getBodies()[getVariants()[moment]].front();
    }
    ::whale::YieldOp getYield(int64_t moment);
    unsigned getNumSlicedArguments() {
      return getBodies().front().getNumArguments();
    }
    /// Returns the operand that an argument of the regions corresponds to at
    /// one moment.
    ::mlir::OpOperand &getSlice(unsigned argument, int64_t moment) {
      return getOperation()->getOpOperand(argument * getNumMoments() + moment);
    }
    unsigned getNumReduced() { return getReductions().size(); }
    /// The lists of the order; none if there is no order.
    auto getOrders() {
      return getOrder().value_or(::mlir::ArrayAttr::get(getContext(), {}))
          .getAsRange<::whale::OrderAttr>();
    }
    /// Returns the index of the yielded value that a result corresponds to, and
    /// the moment if the result is the value of a single one.
    std::pair<unsigned, std::optional<int64_t>> getYielded(unsigned result);
  }];
  let hasVerifier = 1;
}

def Whale_YieldOp : Whale_Op<"yield", [
    ParentOneOf<["TaskGraphOp", "MicroBatchesOp"]>, Pure, ReturnLike, Terminator
  ]> {
  let summary = "the values that leave a task graph or a micro-batch";
  let description = [{
    Ends the region of a `whale.task_graph`, whose results are its operands, or
    of a `whale.micro_batches`.

    Example:
    ```mlir
    %y, %loss = whale.task_graph "head" forward -> tensor<8xf32>, tensor<f32> {
      whale.yield %0, %1 : tensor<8xf32>, tensor<f32>
    }
    ```

    **Constraints:**
    - The parent is a `whale.task_graph` or a `whale.micro_batches`.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Whale_ReshardOp : Whale_Op<"reshard", [
    Pure, AllTypesMatch<["input", "result"]>
  ]> {
  let summary = "the same value in another placement";
  let description = [{
    The only operation at level 3 that changes a placement; the resolver
    replaces it by collectives. With `wire` these send elements of that type,
    which the operand's, times `scale`, are rounded to.

    Example:
    ```mlir
    #rows = #whale.placement<[8, 16] split 0 (3, 5) on [0, 1]>
    #whole = #whale.placement<[8, 16] replicate 2 on [0, 1]>
    #sum = #whale.placement<[8, 16] partial sum 2 on [0, 1]>
    %1 = whale.reshard %0 from #rows to #whole : tensor<8x16xf32>
    %2 = whale.reshard %1 from #sum to #whole {wire = bf16} : tensor<8x16xf32>
    ```

    **Constraints:**
    - The views of `from` and `to` are views of the tensor's shape.
    - Where both are partial, they have the same reduction.
    - `wire` is bf16 or f16, elements are f32, bf16 or f16, and `from` is a
      partial sum.
    - `scale` is positive, and stands beside `wire`.
  }];
  let arguments = (ins AnyStaticShapeTensor:$input,
      Whale_PlacementAttr:$from, Whale_PlacementAttr:$to,
      OptionalAttr<TypeAttr>:$wire, OptionalAttr<F64Attr>:$scale);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $input `from` custom<Placement>($from) `to` custom<Placement>($to)
    attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def Whale_ShardOffsetOp : Whale_Op<"shard_offset", [Pure]> {
  let summary = "the start of this rank's part of a value";
  let description = [{
    The start of this rank's box along one dimension of the placement's view. It
    differs among the ranks of one class, so it is data, not an attribute.

    Example:
    ```mlir
    #columns = #whale.placement<[8, 16] split 1 (6, 10) on [0, 1]>
    %0 = whale.shard_offset 1 of #columns : tensor<i32>
    ```

    **Constraints:**
    - `dim` is a dimension of the placement's view.
    - The result is a scalar.
    - In a `whale.schedule`, every rank of it holds a part of the value.
  }];
  let arguments = (ins I64Attr:$dim, Whale_PlacementAttr:$placement);
  let results = (outs 0DTensorOf<[AnyInteger]>:$result);
  let assemblyFormat = [{
    custom<Int>($dim) `of` custom<Placement>($placement) attr-dict
    `:` type($result)
  }];
  let hasVerifier = 1;
}

include "whale/Dialect/Whale/IR/WhaleAttentionOps.td"
include "whale/Dialect/Whale/IR/WhaleCollectiveOps.td"

#endif // WHALE_DIALECT_WHALE_IR_WHALEOPS_TD
