//===- WhaleProgramOps.td - Executable operations ----------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The schedule of a rank class, and the operations that a rank executes, other
// than collectives: launches of compiled kernels, calls of library routines,
// products and convolutions of libraries, and views. Tensors are values here;
// buffers are assigned later.
//
// In: whale-partition makes schedules of StableHLO and collectives on local
// shapes; the passes of lib/Conversion replace StableHLO by the other
// operations. Out: whale-plan-buffers adds buffers as attributes, and
// lib/Program writes each operation as an instruction of
// docs/program-format.md.
//
// Each description lists all constraints. The verifiers are in
// lib/Dialect/Whale/IR/WhaleProgramOps.cpp. Cost: each looks at one operation
// with its types, and is linear in these; that of a launch also looks up its
// kernel by name.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEPROGRAMOPS_TD
#define WHALE_DIALECT_WHALE_IR_WHALEPROGRAMOPS_TD

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Whale/IR/WhaleDialect.td"
include "whale/Dialect/Whale/IR/WhaleInterfaces.td"

class Whale_ProgramOp<string mnemonic, list<Trait> traits = []>
    : Op<Whale_Dialect, mnemonic, !listconcat([Pure], traits)>;

def Whale_ScheduleOp : Op<Whale_Dialect, "schedule", [
    AffineScope, AutomaticAllocationScope, FunctionOpInterface,
    HasParent<"::mlir::ModuleOp">, IsolatedFromAbove
  ]> {
  let summary = "What the ranks of a class execute in a step";
  let description = [{
    A function that nothing calls: each of its `ranks` executes it once a step,
    on its own shards of the arguments. The types are those of the shards, which
    all ranks of a class have alike. Collectives exchange values with the
    schedules of other ranks; segments, which are functions, are called for one
    micro-batch at a time.

    Example:

    ```mlir
    #terms = #whale.placement<[4] partial sum 2 on [0, 1]>
    #whole = #whale.placement<[4] replicate 2 on [0, 1]>
    whale.schedule ranks [0, 1] @rank_class_0(%x: tensor<4xf32>)
        -> tensor<4xf32> {
      %0 = whale.all_reduce %x channel 0 from #terms to #whole
          : (tensor<4xf32>) -> tensor<4xf32>
      whale.return %0 : tensor<4xf32>
    }
    ```

    **Constraints:**
    - It is in a module.
    - There are ranks, none of them negative, in ascending order.
    - `whale.return` ends it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       DenseI64ArrayAttr:$ranks,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    mlir::ArrayRef<mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    mlir::ArrayRef<mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Whale_ReturnOp : Op<Whale_Dialect, "return", [
    HasParent<"ScheduleOp">, Pure, ReturnLike, Terminator
  ]> {
  let summary = "Ends a schedule";
  let description = [{
    Gives the results of a `whale.schedule`.

    Example:

    ```mlir
    whale.schedule ranks [0] @rank_class_1(%x: tensor<4xf32>) -> tensor<4xf32> {
      whale.return %x : tensor<4xf32>
    }
    ```

    **Constraints:**
    - The operands are of the types of the schedule's results.
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Whale_LaunchOp : Whale_ProgramOp<"launch",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     DeclareOpInterfaceMethods<Whale_InPlaceOp>]> {
  let summary = "Runs a compiled kernel";
  let description = [{
    Runs a function of the module `@kernels`. The kernel gets one buffer for
    each operand, then one for each result, and the range of its outermost
    parallel loop that it has to compute; `whale.extent` of the kernel is the
    length of that loop. The types match the kernel's memrefs in shape and
    width; the kernel's integers are signless.

    Two attributes state how buffers may be shared. Each has one entry for each
    result: an operand number or -1.
    - `inplace`: the result may use the buffer of that operand, because the
      kernel reads an element of it only to compute the same element of the
      result.
    - `updates`: the kernel writes only a part of the result; the rest is that
      operand. Either the result uses the operand's buffer, or the operand is
      copied to the result's buffer before the launch. The kernel does not read
      the operand's own buffer.

    Example:

    ```mlir
    module @kernels {
      func.func private @k3(memref<4x8xf32>, memref<8xf32>, memref<4x8xf32>,
                            index, index)
    }
    %0 = whale.launch @k3(%a, %b) {inplace = array<i64: 0>}
       : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<DenseI64ArrayAttr>:$inplace,
                       OptionalAttr<DenseI64ArrayAttr>:$updates);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the function of `@kernels` that is launched; null if there is
    /// none.
    ::mlir::func::FuncOp
    getKernelFunc(::mlir::SymbolTableCollection &symbols);
  }];
}

def Whale_KernelOp : Whale_ProgramOp<"kernel", [SingleBlock, NoTerminator]> {
  let summary = "A kernel before it is outlined";
  let description = [{
    A loop nest over buffers, in the function that uses it. The block has one
    memref argument for each operand, one for each result, and two of type
    `index`: the range of the outermost parallel loop (of `extent` iterations)
    to compute. `inplace` and `updates` are those of `whale.launch`. Outlining
    turns the block into a function and the operation into a `whale.launch`.

    Example:

    ```mlir
    %0 = whale.kernel(%a) extent 8 : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%in: memref<8xf32>, %out: memref<8xf32>, %begin: index, %end: index):
      %c1 = arith.constant 1 : index
      scf.for %i = %begin to %end step %c1 {
        %x = memref.load %in[%i] : memref<8xf32>
        %y = arith.negf %x : f32
        memref.store %y, %out[%i] : memref<8xf32>
      }
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$extent,
                       OptionalAttr<DenseI64ArrayAttr>:$inplace,
                       OptionalAttr<DenseI64ArrayAttr>:$updates);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `extent` $extent attr-dict
    `:` functional-type($inputs, $outputs) $body
  }];
  let hasVerifier = 1;
}

def Whale_ViewOp : Whale_ProgramOp<"view"> {
  let summary = "A part of an argument's memory";
  let description = [{
    The elements of the operand from `offset` on, in row-major order, in another
    shape. Nothing is copied: the operand is an argument of the function, and
    the result shares its memory.

    Example: the second of two micro-batches.

    ```mlir
    %0 = whale.view %x offset 32 : tensor<8x8xf32> -> tensor<4x8xf32>
    ```

    **Constraints:**
    - Operand and result have the same element type, and all elements of the
      result are elements of the operand.
  }];
  let arguments = (ins AnyStaticShapeTensor:$input, I64Attr:$offset);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $input `offset` $offset attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Whale_PackOp : Whale_ProgramOp<"pack"> {
  let summary = "Values side by side in memory";
  let description = [{
    The elements of the operands, each in row-major order, one after the other.
    `whale-plan-buffers` gives operands parts of the result's buffer where
    nothing else needs that memory: they are written there, and this is no
    instruction. Others are copied there.

    Example: two gradients that one all-reduce sums up.

    ```mlir
    %0 = whale.pack %a, %b : tensor<4x8xf32>, tensor<8xf32> to tensor<40xf32>
    ```

    **Constraints:**
    - The result has one dimension, and the elements of all operands.
    - All are of one element type.
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$parts);
  let results = (outs AnyStaticShapeTensor:$whole);
  let assemblyFormat = [{
    $parts attr-dict `:` type($parts) `to` type($whole)
  }];
  let hasVerifier = 1;
}

def Whale_UnpackOp : Whale_ProgramOp<"unpack"> {
  let summary = "Parts of a value that are side by side in memory";
  let description = [{
    The opposite of `whale.pack`: the results are the elements of the operand,
    divided among them in their order. Nothing is copied where a result can be
    read in the operand's buffer.

    Example:

    ```mlir
    %0:2 = whale.unpack %whole
         : tensor<40xf32> to tensor<4x8xf32>, tensor<8xf32>
    ```

    **Constraints:** those of `whale.pack`.
  }];
  let arguments = (ins AnyStaticShapeTensor:$whole);
  let results = (outs Variadic<AnyStaticShapeTensor>:$parts);
  let assemblyFormat = [{
    $whole attr-dict `:` type($whole) `to` type($parts)
  }];
  let hasVerifier = 1;
}

def Whale_MatmulOp : Whale_ProgramOp<"matmul",
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<Whale_InPlaceOp>]> {
  let summary = "Batched matrix product with any strides";
  let description = [{
    `out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]`, where each of
    b, m, n and k has its own stride in each buffer, counted in elements, so a
    transposed operand or result needs no copy. Products are accumulated in
    f32 (f64 for f64 operands, i32 for narrower integers) and rounded once.
    - `batch`: size, lhs stride, rhs stride, out stride for each batch
      dimension, one after the other.
    - `m`: size, lhs stride, out stride. `n`: size, rhs stride, out stride.
      `k`: size, lhs stride, rhs stride.

    If there is an `addend`, a tensor of the result's type, the product is added
    to it, in its buffer. With `tf32` a GPU may round f32 operands to TF32.

    An `epilogue` is done to the product before it is rounded and stored, see
    `whale-form-epilogues`: `bias`, `gelu`, `gelu_bias`; `gelu_aux` and
    `gelu_aux_bias`, of which what GELU is taken of is a second result; `dgelu`,
    the product times the derivative of GELU at `aux`; `dgelu_bgrad`, whose sums
    over all rows are a second result. A bias has an element for each of the
    elements that are neighbours in a row of the result.

    Example: `tensor<4x8xf32>` times the transposed `tensor<16x8xf32>`.

    ```mlir
    %0 = whale.matmul %a, %b {batch = array<i64>, m = array<i64: 4, 8, 16>,
        n = array<i64: 16, 8, 1>, k = array<i64: 8, 1, 1>}
      : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
                       DenseI64ArrayAttr:$batch, DenseI64ArrayAttr:$m,
                       DenseI64ArrayAttr:$n, DenseI64ArrayAttr:$k,
                       UnitAttr:$tf32, OptionalAttr<StrAttr>:$epilogue,
                       Optional<AnyRankedTensor>:$addend,
                       Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$aux);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $lhs `,` $rhs (`plus` $addend^ `:` type($addend))?
    (`bias` $bias^ `:` type($bias))? (`aux` $aux^ `:` type($aux))? attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($outputs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    mlir::Value getOutput() { return getOutputs().front(); }
    /// The second result of an epilogue, or null.
    mlir::Value getSecond() {
      return getOutputs().size() > 1 ? getOutputs().back() : mlir::Value();
    }
    /// As programs have it, but for the numbers of its buffers.
    ::whale::format::Matmul toFormat();

    /// Multiplications and additions: 2 * batch * m * n * k.
    int64_t getFlops();
  }];
}

def Whale_ConvolutionOp : Whale_ProgramOp<"convolution"> {
  let summary = "Convolution by the library";
  let description = [{
    `stablehlo.convolution` with every attribute given explicitly, named as in
    the StableHLO specification. `padding` has low and high of each spatial
    dimension, one after the other. With `tf32` a GPU may round f32 operands to
    TF32.

    Example:

    ```mlir
    %0 = whale.convolution %x, %k {window_strides = array<i64: 1, 1>,
        padding = array<i64: 1, 1, 1, 1>, lhs_dilation = array<i64: 1, 1>,
        rhs_dilation = array<i64: 1, 1>,
        window_reversal = array<i1: false, false>,
        input_batch_dimension = 0, input_feature_dimension = 3,
        input_spatial_dimensions = array<i64: 1, 2>,
        kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3,
        kernel_spatial_dimensions = array<i64: 0, 1>,
        output_batch_dimension = 0, output_feature_dimension = 3,
        output_spatial_dimensions = array<i64: 1, 2>,
        feature_group_count = 1, batch_group_count = 1}
      : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
    ```
  }];
  let arguments = (ins
    AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
    DenseI64ArrayAttr:$window_strides, DenseI64ArrayAttr:$padding,
    DenseI64ArrayAttr:$lhs_dilation, DenseI64ArrayAttr:$rhs_dilation,
    DenseBoolArrayAttr:$window_reversal,
    I64Attr:$input_batch_dimension, I64Attr:$input_feature_dimension,
    DenseI64ArrayAttr:$input_spatial_dimensions,
    I64Attr:$kernel_input_feature_dimension,
    I64Attr:$kernel_output_feature_dimension,
    DenseI64ArrayAttr:$kernel_spatial_dimensions,
    I64Attr:$output_batch_dimension, I64Attr:$output_feature_dimension,
    DenseI64ArrayAttr:$output_spatial_dimensions,
    I64Attr:$feature_group_count, I64Attr:$batch_group_count,
    UnitAttr:$tf32);
  let results = (outs AnyRankedTensor:$output);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($output)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Multiplications and additions, including those on padding.
    int64_t getFlops();
  }];
}

def Whale_LibraryCallOp : Op<Whale_Dialect, "library_call", [
    DeclareOpInterfaceMethods<ConditionallySpeculatable>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>
  ]> {
  let summary = "Calls a routine of the runtime";
  let description = [{
    Calls a routine of the runtime by name; its discardable attributes are the
    routine's parameters. If the runtime doesn't have the routine, loading the
    program fails.

    Routines are pure, but for `python`, which calls a function of the user's:
    it may read and write anything, so that a call is neither moved nor joined
    with another one, nor erased where nothing uses its results.

    Example:

    ```mlir
    %0 = whale.library_call "fft"(%a) {length = array<i64: 4>, type = "FFT"}
       : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    ```
  }];
  let arguments = (ins StrAttr:$function, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $function `(` $inputs `)` attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let extraClassDeclaration = [{
    /// The routine that calls Python.
    static constexpr llvm::StringLiteral kPython = "python";
  }];
}

#endif // WHALE_DIALECT_WHALE_IR_WHALEPROGRAMOPS_TD
