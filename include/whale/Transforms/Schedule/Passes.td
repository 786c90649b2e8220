//===- Passes.td - Whale scheduling passes -----------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of level 'program': the order of the instructions of each rank
// class, when its transfers start and end, and where its values are in memory.
// In come schedules of kernels, library calls and collectives; out comes what
// lib/Program writes to a program directory. Their order is in
// lib/Program/Pipelines.cpp.
//
// None changes what is computed. How much memory a device needs is known only
// after the last of them; where it has less, lib/Program/Compile.cpp tries
// again, first with `late`. Each description has an example that a test runs.
// How a pass works is told in the file of its name in lib/Transforms/Schedule.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_SCHEDULE_PASSES_TD
#define WHALE_TRANSFORMS_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def CopyHostState : Pass<"whale-copy-host-state", "::mlir::ModuleOp"> {
  let summary = "Copy state between the memories of host and device";
  let description = [{
    Instructions use the memory of devices alone: an argument with
    `whale.in_host` is copied there before the first instruction that reads it,
    and what a result with it is made of is copied back behind the instruction
    that makes it. State that a step gives back as it is stays where it is. What
    is read again when others of at least its size were read meanwhile is copied
    again, so that its memory is free for them.
    `whale-start-copies` has the copies begin earlier and end later.

    Example:
    ```mlir
    module @kernels {
      func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
    }
    #p = #whale.placement<[4] on [0]>
    whale.schedule ranks [0] @rank_class_0(%m: tensor<4xf32> {whale.donated,
        whale.fed_by = 0 : i64, whale.in_host, whale.placement = #p})
        -> (tensor<4xf32> {whale.in_host, whale.placement = #p}) {
      %0 = whale.launch @k0(%m) {inplace = array<i64: 0>}
          : (tensor<4xf32>) -> tensor<4xf32>
      whale.return %0 : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[4] on [0]>
    module {
      module @kernels {
        func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
      }
      whale.schedule ranks [0] @rank_class_0(%arg0: tensor<4xf32>
          {whale.donated, whale.fed_by = 0 : i64, whale.in_host,
          whale.placement = #placement})
          -> (tensor<4xf32> {whale.in_host, whale.placement = #placement}) {
        %0 = whale.host_to_device %arg0 channel 0 at #placement
            : (tensor<4xf32>) -> tensor<4xf32>
        %1 = whale.launch @k0(%0) {inplace = array<i64: 0>}
            : (tensor<4xf32>) -> tensor<4xf32>
        %2 = whale.device_to_host %1 channel 1 at #placement
            : (tensor<4xf32>) -> tensor<4xf32>
        whale.return %2 : tensor<4xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def OrderInstructions : Pass<"whale-order-instructions", "::mlir::ModuleOp"> {
  let summary = "Order instructions so that less is alive at once";
  let description = [{
    Moves the instructions of each `whale.schedule` between the collectives and
    calls that they are between, and those of segments. Collectives stay where
    they are, and an instruction that writes in place stays behind those that
    read its operand.
    The order is the best of four: the given one, one that always takes next
    what adds the least memory, the given one but with what adds none as soon as
    it can be, and one that takes what adds the least from the end. The given
    one stays where the others are no better.

    Example: what is large is used up before the next large value is made.
    ```mlir
    module @kernels {
      func.func private @spread(memref<4xf32>, memref<4096xf32>, index, index)
      func.func private @sum(memref<4096xf32>, memref<4xf32>, index, index)
    }
    whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>, %y: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>) {
      %a = whale.launch @spread(%x) : (tensor<4xf32>) -> tensor<4096xf32>
      %b = whale.launch @spread(%y) : (tensor<4xf32>) -> tensor<4096xf32>
      %c = whale.launch @sum(%a) : (tensor<4096xf32>) -> tensor<4xf32>
      %d = whale.launch @sum(%b) : (tensor<4096xf32>) -> tensor<4xf32>
      whale.return %c, %d : tensor<4xf32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    module @kernels {
      func.func private @spread(memref<4xf32>, memref<4096xf32>, index, index)
      func.func private @sum(memref<4096xf32>, memref<4xf32>, index, index)
    }
    whale.schedule ranks [0] @rank_class_0(
        %arg0: tensor<4xf32>, %arg1: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = whale.launch @spread(%arg0) : (tensor<4xf32>) -> tensor<4096xf32>
      %1 = whale.launch @sum(%0) : (tensor<4096xf32>) -> tensor<4xf32>
      %2 = whale.launch @spread(%arg1) : (tensor<4xf32>) -> tensor<4096xf32>
      %3 = whale.launch @sum(%2) : (tensor<4096xf32>) -> tensor<4xf32>
      whale.return %1, %3 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
}

def StartTransfers : Pass<"whale-start-transfers", "::mlir::ModuleOp"> {
  let summary = "Start transfers early and wait for them late";
  let description = [{
    Divides collectives of each `whale.schedule` in a start, which has a token
    as its last result, and a `whale.wait`. All starts of all rank classes
    follow one order, in which transfers become ready on a timeline that the
    cluster's costs give. So none waits for another in a circle, even where a
    transfer begins only when it is the next one of every rank that takes part.

    A reduction that alone reads its operand starts when the operand is there.
    What is only sent starts where it is, what is only received before the
    instruction that runs when it is sent. Waits are where what is received is
    first used, or, where memory is kept for what is sent, when the transfer is
    expected to be over. Other collectives that give a rank what others have,
    such as gathers of shards of parameters, take memory from their start on.
    They start one ahead, when the one before is first used, if the timeline
    says that the step takes at least 2% less time so; else, like all in loops
    and branches, they start and end where they are.

    What updates the state (all that only results need which are arguments of
    the next step, up to the products, calls and reductions that gradients come
    from) stands where its gradient is expected to be reduced, and behind what
    reads the old value. Gathers of what it has changed start there too, as
    their memory is that of the argument. With `optimizer.num_apply_group` of
    `whale.config` updates stand together in so many groups of about equal
    bytes.

    With `late`, which is for devices that lack memory, updates stand directly
    behind the reduction of their gradient, and nothing takes memory ahead: what
    is received starts where it is first used, unless ranks that receive
    together would wait for one another in a circle. A module that has starts
    and waits already is scheduled anew.

    Example: the second kernel runs beside the reduction.
    ```mlir
    module @kernels {
      func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
    }
    #from = #whale.placement<[4] partial sum 2 on [0, 1]>
    #to = #whale.placement<[4] replicate 2 on [0, 1]>
    whale.schedule ranks [0, 1] @rank_class_0(%x: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = whale.all_reduce %0 channel 0 from #from to #to
          : (tensor<4xf32>) -> tensor<4xf32>
      whale.return %1, %2 : tensor<4xf32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[4] partial sum 2 on [0, 1]>
    #placement1 = #whale.placement<[4] replicate 2 on [0, 1]>
    module {
      module @kernels {
        func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
      }
      whale.schedule ranks [0, 1] @rank_class_0(%arg0: tensor<4xf32>)
          -> (tensor<4xf32>, tensor<4xf32>) {
        %0 = whale.launch @k0(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
        %1:2 = whale.all_reduce %0 channel 0 from #placement to #placement1
            : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
        %2 = whale.launch @k0(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
        %3 = whale.wait %1#1 for %1#0 : (!whale.token, tensor<4xf32>)
            -> tensor<4xf32>
        whale.return %2, %3 : tensor<4xf32>, tensor<4xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
  let options = [
    Option<"late", "late", "bool", "false",
           "Take no memory for what is not needed yet">
  ];
}

def StartCopies : Pass<"whale-start-copies", "::mlir::ModuleOp"> {
  let summary = "Start copies from hosts early and wait for those back late";
  let description = [{
    Divides copies between the memories of host and device in a start and a
    `whale.wait`, so that they go on beside computation, in a queue of their
    own. What one instruction is the first to read is fetched together, as a
    granule. It starts as late as the link of the host lets it come in time, by
    the cluster's costs, but only so early that at most twice the bytes of the
    largest granule are fetched and not used yet. What goes back starts behind
    the instruction that makes it, and is waited for where it is expected to be
    over: its memory is kept until then. All devices of a node are taken to copy
    at the same time, over the link that they share.

    Where devices lack memory, copies stay as they are: each is over before the
    next instruction.

    Example: the copies for an update go on beside other instructions.
    ```mlir
    whale.cluster @cluster {kinds = {k = {flops = {f32 = 1.0e9},
        memory_bytes = 1.0e9, memory_bandwidth = 16.0}},
        nodes = [{devices = [{kind = "k"} ],
        host = {memory_bytes = 1.0e9, bandwidth = 16.0}} ]}
    module @kernels {
      func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
          attributes {whale.bytes = 64 : i64}
    }
    #p = #whale.placement<[4] on [0]>
    whale.schedule ranks [0] @rank_class_0(
        %m: tensor<4xf32> {whale.in_host, whale.placement = #p},
        %x: tensor<4xf32>) -> (tensor<4xf32> {whale.in_host,
        whale.placement = #p}, tensor<4xf32>) {
      %0 = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = whale.host_to_device %m channel 0 at #p
          : (tensor<4xf32>) -> tensor<4xf32>
      %2 = whale.launch @k0(%1) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = whale.device_to_host %2 channel 1 at #p
          : (tensor<4xf32>) -> tensor<4xf32>
      %4 = whale.launch @k0(%0) : (tensor<4xf32>) -> tensor<4xf32>
      whale.return %3, %4 : tensor<4xf32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[4] on [0]>
    module {
      whale.cluster @cluster {kinds = {k = {flops = {f32 = 1.000000e+09 : f64},
          memory_bandwidth = 1.600000e+01 : f64,
          memory_bytes = 1.000000e+09 : f64}}, nodes = [{devices = [{kind = "k"} ],
          host = {bandwidth = 1.600000e+01 : f64,
          memory_bytes = 1.000000e+09 : f64}} ]}
      module @kernels {
        func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
            attributes {whale.bytes = 64 : i64}
      }
      whale.schedule ranks [0] @rank_class_0(
          %arg0: tensor<4xf32> {whale.in_host, whale.placement = #placement},
          %arg1: tensor<4xf32>) -> (tensor<4xf32> {whale.in_host,
          whale.placement = #placement}, tensor<4xf32>) {
        %0:2 = whale.host_to_device %arg0 channel 0 at #placement
            : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
        %1 = whale.launch @k0(%arg1) : (tensor<4xf32>) -> tensor<4xf32>
        %2 = whale.wait %0#1 for %0#0 keeps %arg0
            : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %3 = whale.launch @k0(%2) : (tensor<4xf32>) -> tensor<4xf32>
        %4:2 = whale.device_to_host %3 channel 1 at #placement
            : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
        %5 = whale.launch @k0(%1) : (tensor<4xf32>) -> tensor<4xf32>
        %6 = whale.wait %4#1 for %4#0 keeps %3
            : (!whale.token, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        whale.return %6, %5 : tensor<4xf32>, tensor<4xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::whale::WhaleDialect"];
}

def JoinChannels : Pass<"whale-join-channels", "::mlir::ModuleOp"> {
  let summary = "Make parts of one transfer of small sends side by side";
  let description = [{
    Sends, broadcasts and other reshards of one kind that follow one another in
    the schedules of all rank classes that take part become parts of one
    transfer: two ranks exchange one message for all of them. The others start
    `with` the first one, and all are waited for where the first of them is
    needed. Of reductions and gathers in groups, `whale-join-collectives` makes
    one.

    What is sent waits for what is sent behind it, so they are joined only where
    what is computed in between takes less than it takes to start another
    message; what is only received is so with the first.
    They are at most `communication.bucket_bytes` together, each at most half of
    it. A module that has such transfers already stays as it is.

    Example: a stage sends two tensors. The ranks of the next one have half of
    each.
    ```mlir
    #a = #whale.placement<[4] on [0]>
    #b = #whale.placement<[4] split 0 (1, 3) on [1, 2]>
    whale.schedule ranks [0] @rank_class_0(
        %x: tensor<4xf32>, %y: tensor<4xi32>) {
      %t0 = whale.send_recv %x channel 0 from #a to #b
          : (tensor<4xf32>) -> !whale.token
      %t1 = whale.send_recv %y channel 1 from #a to #b
          : (tensor<4xi32>) -> !whale.token
      whale.wait %t0 keeps %x : (!whale.token, tensor<4xf32>) -> ()
      whale.wait %t1 keeps %y : (!whale.token, tensor<4xi32>) -> ()
      whale.return
    }
    ```
    becomes
    ```mlir
    #placement = #whale.placement<[4] on [0]>
    #placement1 = #whale.placement<[4] split 0 (1, 3) on [1, 2]>
    module {
      whale.schedule ranks [0] @rank_class_0(
          %arg0: tensor<4xf32>, %arg1: tensor<4xi32>) {
        %0 = whale.send_recv %arg0 channel 0 from #placement to #placement1
            : (tensor<4xf32>) -> !whale.token
        %1 = whale.send_recv %arg1 channel 1 with 0 from #placement
            to #placement1 : (tensor<4xi32>) -> !whale.token
        whale.wait %0 keeps %arg0 : (!whale.token, tensor<4xf32>) -> ()
        whale.wait %1 keeps %arg1 : (!whale.token, tensor<4xi32>) -> ()
        whale.return
      }
    }
    ```
  }];
}

def VerifySchedule : Pass<"whale-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Check that one order of all transfers exists";
  let description = [{
    Changes nothing. An error unless the transfers of all schedules can be put
    in one order in which each schedule starts its own. Then no rank waits
    forever, wherever the waits are, even where a transfer begins only when it
    is the next one of every rank that takes part. That each start has one wait
    is verified by the operations themselves.
    Parts of one transfer start right behind one another, in all schedules in
    one order, and are waited for without anything between the waits.

    Example: rank 0 starts channel 0 first, rank 1 channel 1.
    ```mlir
    #from = #whale.placement<[4] partial sum 2 on [0, 1]>
    #to = #whale.placement<[4] replicate 2 on [0, 1]>
    whale.schedule ranks [0] @rank_class_0(
        %x: tensor<4xf32>, %y: tensor<4xf32>) {
      %0, %t0 = whale.all_reduce %x channel 0 from #from to #to
          : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
      %1, %t1 = whale.all_reduce %y channel 1 from #from to #to
          : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
      %2 = whale.wait %t0 for %0 : (!whale.token, tensor<4xf32>)
          -> tensor<4xf32>
      %3 = whale.wait %t1 for %1 : (!whale.token, tensor<4xf32>)
          -> tensor<4xf32>
      whale.return
    }
    whale.schedule ranks [1] @rank_class_1(
        %x: tensor<4xf32>, %y: tensor<4xf32>) {
      %0, %t0 = whale.all_reduce %y channel 1 from #from to #to
          : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
      %1, %t1 = whale.all_reduce %x channel 0 from #from to #to
          : (tensor<4xf32>) -> (tensor<4xf32>, !whale.token)
      %2 = whale.wait %t0 for %0 : (!whale.token, tensor<4xf32>)
          -> tensor<4xf32>
      %3 = whale.wait %t1 for %1 : (!whale.token, tensor<4xf32>)
          -> tensor<4xf32>
      whale.return
    }
    ```
    is refused:
    ```text
    error: 'whale.all_reduce' op channel 0 is started in another order in
        @rank_class_1
    ```
  }];
}

def PlanBuffers : Pass<"whale-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "Give every value of a rank class a place in memory";
  let description = [{
    Assigns a buffer to each value of the schedules of rank classes, and
    writes the plan as attributes:
    - on the schedule `whale.buffers`, the list of buffers (in the arena at an
      offset, an argument's or result's own, a constant), `whale.arena_bytes`,
      and `whale.result_buffers`, the buffer of each result;
    - on a result `whale.alias`, the donated argument whose buffer it takes;
    - on an operation `whale.out`, the buffers of its results. Argument i of the
      schedule has buffer i, arguments of a loop's regions have those of the
      loop's results;
    - on an operation `whale.copies`, pairs of buffers (from, to) to copy
      before it; on a terminator, at its place.

    A `whale.view` is a buffer `{argument, offset, bytes}`, a part of an
    argument's, `offset` in bytes.

    Functions with `whale.segment` are planned once, whoever calls them. Each of
    their buffers is an `operand`, a `result`, a `constant`, or a `local`. A
    rank class has in `whale.locals`, for each segment that it calls, one or
    more layouts: the offsets of its locals in the arena. A call has the number
    of its layout in `whale.layout`, if that isn't 0. There are several where
    large operands that die in a call, or results that are born there, are not
    always in the same buffers: locals can be where they are not yet, or no
    more. A segment whose
    result is in the buffer of an operand (in `whale.result_buffers`) writes
    there: such a call passes the buffer of its result for that operand too, and
    `whale.copies` puts the operand there if it is elsewhere. Segments write
    only to operands with `whale.last_use`.

    Values share buffers where one ends as the other begins: in place where a
    kernel allows it, loop-carried values from one iteration to the next,
    results in the buffers of donated arguments after their last read. What a
    call reads is free after its last read in the segment, and the results of
    calls of one segment take turns, large ones of about one size also those of
    several segments. The plan is checked by running it on
    symbols.

    With `peak`, a rank class has in `whale.peak` what is in its arena when most
    of it is in use: the bytes of each buffer, and where its value comes from.

    Example: two kernels, the second in place.
    ```mlir
    module @kernels {
      func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
      func.func private @k1(memref<4xf32>, memref<f32>, index, index)
    }
    whale.schedule ranks [0] @rank_class_0(%x: tensor<4xf32>) -> tensor<f32> {
      %0 = whale.launch @k0(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = whale.launch @k0(%0) {inplace = array<i64: 0>}
          : (tensor<4xf32>) -> tensor<4xf32>
      %2 = whale.launch @k1(%1) : (tensor<4xf32>) -> tensor<f32>
      whale.return %2 : tensor<f32>
    }
    ```
    becomes
    ```mlir
    module @kernels {
      func.func private @k0(memref<4xf32>, memref<4xf32>, index, index)
      func.func private @k1(memref<4xf32>, memref<f32>, index, index)
    }
    whale.schedule ranks [0] @rank_class_0(%arg0: tensor<4xf32>) -> tensor<f32>
        attributes {whale.arena_bytes = 64 : i64,
        whale.buffers = [{argument = 0 : i64, bytes = 16 : i64},
        {arena = 0 : i64, bytes = 16 : i64},
        {bytes = 4 : i64, result = 0 : i64} ],
        whale.result_buffers = array<i64: 2>} {
      %0 = whale.launch @k0(%arg0) {whale.out = array<i64: 1>} : (tensor<4xf32>)
          -> tensor<4xf32>
      %1 = whale.launch @k0(%0)
          {inplace = array<i64: 0>, whale.out = array<i64: 1>} : (tensor<4xf32>)
          -> tensor<4xf32>
      %2 = whale.launch @k1(%1) {whale.out = array<i64: 2>} : (tensor<4xf32>)
          -> tensor<f32>
      whale.return %2 : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "64",
           "Of offsets in the arena, a multiple of 64">,
    Option<"peak", "peak", "bool", "false",
           "Say what is in the arena when most of it is in use">
  ];
}

#endif // WHALE_TRANSFORMS_SCHEDULE_PASSES_TD
