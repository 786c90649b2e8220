//===- WhaleAttentionOps.td - Attention --------------------*- tablegen -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Levels 1 to 4: attention and its gradient, each as one operation, so that no
// matrix of scores is a value. Each dimension of each tensor has a letter.
//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEATTENTIONOPS_TD
#define WHALE_DIALECT_WHALE_IR_WHALEATTENTIONOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "whale/Dialect/Whale/IR/WhaleAttrs.td"

class Whale_AttentionBase<string mnemonic>
    : Whale_Op<mnemonic, [Pure, AttrSizedOperandSegments]> {
  let hasVerifier = 1;

  string sharedConstraints = [{
    - A text of letters has one for each dimension of its tensor: `q`, a row;
      `k`, a key; `d`, a feature of queries and keys; `e`, a feature of values;
      any other lower-case letter, a head or a sample; `1`, a dimension of one
      element that means nothing. No letter is twice in a text, and a letter has
      the same extent everywhere.
    - The query has `q`, `d` and heads; the key `k` and `d`, the value `k` and
      `e`, both with some of these heads; mask and bias some of `q`, `k` and the
      heads.
    - Queries, keys, values and results are of f32, bf16 or f16; the mask is of
      i1, the bias of f32, bf16 or f16.
    - There is a text for the mask if there is a mask, and for the bias if there
      is a bias; `fill` is only there with a mask or `causal`.
  }];
}

def Whale_AttentionOp : Whale_AttentionBase<"attention"> {
  let summary = "softmax of scaled, masked products of queries and keys, times "
                "values";
  let description = [{
    For each head and each row q of the query:
    `score[k] = scale * sum over d of query[q, d] * key[k, d] + bias[q, k]`,
    or `fill` (minus infinity if there is none) where the mask is false or, with
    `causal`, where k > q + causal; the result's row is the sum over k of
    `softmax(score)[k] * value[k, e]`. A head that the key and value lack shares
    them with the others. All sums are in f32, in a fixed order. Where a
    probability is 0, the value need not be read: it may be infinite or no
    number.

    Example:
    ```mlir
    %0 = whale.attention query "bqhd" %q key "bkhd" %k value "bkhe" %v
        to "bqhe" scale 0.125 {causal = 0 : i64}
        : (tensor<2x128x4x64xf32>, tensor<2x128x4x64xf32>,
           tensor<2x128x4x64xf32>) -> tensor<2x128x4x64xf32>
    ```

    **Constraints:**
  }] # sharedConstraints # [{
    - The result has `q`, `e` and all heads.
  }];
  let arguments = (ins AnyStaticShapeTensor:$query, AnyStaticShapeTensor:$key,
      AnyStaticShapeTensor:$value, Optional<AnyStaticShapeTensor>:$mask,
      Optional<AnyStaticShapeTensor>:$bias, StrAttr:$query_dims,
      StrAttr:$key_dims, StrAttr:$value_dims, OptionalAttr<StrAttr>:$mask_dims,
      OptionalAttr<StrAttr>:$bias_dims, StrAttr:$result_dims, F64Attr:$scale,
      OptionalAttr<F64Attr>:$fill, OptionalAttr<I64Attr>:$causal);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    `query` $query_dims $query `key` $key_dims $key `value` $value_dims $value
    (`mask` $mask_dims^ $mask)? (`bias` $bias_dims^ $bias)? `to` $result_dims
    `scale` $scale attr-dict
    `:` functional-type(operands, results)
  }];
}

def Whale_AttentionGradientOp : Whale_AttentionBase<"attention_gradient"> {
  let summary = "gradients of attention for queries, keys and values";
  let description = [{
    Given the cotangent of the result of a `whale.attention` with the same
    operands: the cotangents of its query, key and value. The scores are
    computed anew. Cotangents of key and value have all heads: where heads share
    them, their sum is the cotangent.

    Example:
    ```mlir
    %dq, %dk, %dv = whale.attention_gradient query "bqhd" %q key "bkhd" %k
        value "bkhe" %v cotangent "bqhe" %do to "bqhd", "bkhd", "bkhe"
        scale 0.125 {causal = 0 : i64}
        : (tensor<2x128x4x64xf32>, tensor<2x128x4x64xf32>,
           tensor<2x128x4x64xf32>, tensor<2x128x4x64xf32>)
        -> (tensor<2x128x4x64xf32>, tensor<2x128x4x64xf32>,
            tensor<2x128x4x64xf32>)
    ```

    **Constraints:**
  }] # sharedConstraints # [{
    - The cotangent has `q`, `e` and all heads; the results have `q` and `d`,
      `k` and `d`, `k` and `e`, and all heads.
  }];
  let arguments = (ins AnyStaticShapeTensor:$query, AnyStaticShapeTensor:$key,
      AnyStaticShapeTensor:$value, Optional<AnyStaticShapeTensor>:$mask,
      Optional<AnyStaticShapeTensor>:$bias, AnyStaticShapeTensor:$cotangent,
      StrAttr:$query_dims, StrAttr:$key_dims, StrAttr:$value_dims,
      OptionalAttr<StrAttr>:$mask_dims, OptionalAttr<StrAttr>:$bias_dims,
      StrAttr:$cotangent_dims, StrAttr:$query_result_dims,
      StrAttr:$key_result_dims, StrAttr:$value_result_dims, F64Attr:$scale,
      OptionalAttr<F64Attr>:$fill, OptionalAttr<I64Attr>:$causal);
  let results = (outs AnyStaticShapeTensor:$query_result,
      AnyStaticShapeTensor:$key_result, AnyStaticShapeTensor:$value_result);
  let assemblyFormat = [{
    `query` $query_dims $query `key` $key_dims $key `value` $value_dims $value
    (`mask` $mask_dims^ $mask)? (`bias` $bias_dims^ $bias)?
    `cotangent` $cotangent_dims $cotangent
    `to` $query_result_dims `,` $key_result_dims `,` $value_result_dims
    `scale` $scale attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // WHALE_DIALECT_WHALE_IR_WHALEATTENTIONOPS_TD
