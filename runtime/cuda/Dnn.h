//===- Dnn.h - What we use of cuDNN -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Whale uses of cudnn.h from version 9 on: its graphs, of which everything
// is a descriptor with attributes. These are declarations of our own, so that
// the runtime builds where no cuDNN is; a table of pointers is filled when the
// library is first needed. unittests/Runtime/CudaHeadersTest.cpp compares them
// with NVIDIA's header where there is one. Cost: a look-up by name for each
// function when the library is opened, then a call through a pointer.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_DNN_H
#define WHALE_RUNTIME_CUDA_DNN_H

#include "cuda/Driver.h"

#include <cstdint>

struct cudnnContext;

namespace whale::runtime::cuda {

/// cudnnStatus_t: 0 if all is well.
using DnnStatus = int;
using DnnHandle = cudnnContext *;
/// cudnnBackendDescriptor_t.
using DnnDescriptor = void *;

#define WHALE_CUDA_DNN_FUNCTIONS(FUNCTION)                                     \
  FUNCTION(getVersion, cudnnGetVersion, size_t())                              \
  FUNCTION(getErrorString, cudnnGetErrorString, const char *(DnnStatus))       \
  FUNCTION(getLastError, cudnnGetLastErrorString, void(char *, size_t))        \
  FUNCTION(create, cudnnCreate, DnnStatus(DnnHandle *))                        \
  FUNCTION(destroy, cudnnDestroy, DnnStatus(DnnHandle))                        \
  FUNCTION(setStream, cudnnSetStream, DnnStatus(DnnHandle, Stream))            \
  FUNCTION(createDescriptor, cudnnBackendCreateDescriptor,                     \
           DnnStatus(int, DnnDescriptor *))                                    \
  FUNCTION(destroyDescriptor, cudnnBackendDestroyDescriptor,                   \
           DnnStatus(DnnDescriptor))                                           \
  FUNCTION(setAttribute, cudnnBackendSetAttribute,                             \
           DnnStatus(DnnDescriptor, int, int, int64_t, const void *))          \
  FUNCTION(getAttribute, cudnnBackendGetAttribute,                             \
           DnnStatus(DnnDescriptor, int, int, int64_t, int64_t *, void *))     \
  FUNCTION(finalize, cudnnBackendFinalize, DnnStatus(DnnDescriptor))           \
  FUNCTION(execute, cudnnBackendExecute,                                       \
           DnnStatus(DnnHandle, DnnDescriptor, DnnDescriptor))

#define WHALE_CUDA_DNN_VALUES(VALUE)                                           \
  VALUE(kDnnBadParameter, CUDNN_STATUS_BAD_PARAM, 2000)                        \
  VALUE(kDnnNotSupported, CUDNN_STATUS_NOT_SUPPORTED, 3000)                    \
  VALUE(kDnnF32, CUDNN_DATA_FLOAT, 0)                                          \
  VALUE(kDnnF16, CUDNN_DATA_HALF, 2)                                           \
  VALUE(kDnnI32, CUDNN_DATA_INT32, 4)                                          \
  VALUE(kDnnBF16, CUDNN_DATA_BFLOAT16, 9)                                      \
  VALUE(kDnnBoolean, CUDNN_DATA_BOOLEAN, 11)                                   \
  VALUE(kDnnOfHandle, CUDNN_TYPE_HANDLE, 0)                                    \
  VALUE(kDnnOfDataType, CUDNN_TYPE_DATA_TYPE, 1)                               \
  VALUE(kDnnOfBoolean, CUDNN_TYPE_BOOLEAN, 2)                                  \
  VALUE(kDnnOfInteger, CUDNN_TYPE_INT64, 3)                                    \
  VALUE(kDnnOfFloat, CUDNN_TYPE_FLOAT, 4)                                      \
  VALUE(kDnnOfPointer, CUDNN_TYPE_VOID_PTR, 6)                                 \
  VALUE(kDnnOfMode, CUDNN_TYPE_CONVOLUTION_MODE, 7)                            \
  VALUE(kDnnOfHeuristic, CUDNN_TYPE_HEUR_MODE, 8)                              \
  VALUE(kDnnOfKnob, CUDNN_TYPE_KNOB_TYPE, 9)                                   \
  VALUE(kDnnOfNote, CUDNN_TYPE_NUMERICAL_NOTE, 11)                             \
  VALUE(kDnnOfPointwise, CUDNN_TYPE_POINTWISE_MODE, 14)                        \
  VALUE(kDnnOfDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                   \
  VALUE(kDnnOfReduction, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 18)               \
  VALUE(kDnnOfText, CUDNN_TYPE_CHAR, 24)                                       \
  VALUE(kDnnPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                  \
  VALUE(kDnnConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)              \
  VALUE(kDnnEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                        \
  VALUE(kDnnEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)               \
  VALUE(kDnnHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                \
  VALUE(kDnnPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                  \
  VALUE(kDnnForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,   \
        10)                                                                    \
  VALUE(kDnnFilterGradient,                                                    \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11)    \
  VALUE(kDnnDataGradient,                                                      \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)      \
  VALUE(kDnnKnobChoice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 7)               \
  VALUE(kDnnPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,  \
        13)                                                                    \
  VALUE(kDnnGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                \
  VALUE(kDnnVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)            \
  VALUE(kDnnTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                       \
  VALUE(kDnnMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR, 18)                       \
  VALUE(kDnnMatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19)    \
  VALUE(kDnnReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 21)                 \
  VALUE(kDnnReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,  \
        22)                                                                    \
  VALUE(kDnnReshapeOperation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31)  \
  VALUE(kDnnDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)         \
  VALUE(kDnnPointwiseMode, CUDNN_ATTR_POINTWISE_MODE, 0)                       \
  VALUE(kDnnPointwisePrecision, CUDNN_ATTR_POINTWISE_MATH_PREC, 1)             \
  VALUE(kDnnPointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS, 9)                       \
  VALUE(kDnnComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                \
  VALUE(kDnnConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)            \
  VALUE(kDnnDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                  \
  VALUE(kDnnStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)               \
  VALUE(kDnnPaddingAfter, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)           \
  VALUE(kDnnPaddingBefore, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)           \
  VALUE(kDnnSpatialDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)             \
  VALUE(kDnnHeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                    \
  VALUE(kDnnHeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)        \
  VALUE(kDnnHeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)              \
  VALUE(kDnnHeuristicDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)            \
  VALUE(kDnnConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                    \
  VALUE(kDnnConfigKnobs, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 302)               \
  VALUE(kDnnKnobType, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 600)                   \
  VALUE(kDnnKnobValue, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 601)                 \
  VALUE(kDnnPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                 \
  VALUE(kDnnPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)          \
  VALUE(kDnnPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)      \
  VALUE(kDnnPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)             \
  VALUE(kDnnForwardFirst, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) \
  VALUE(kDnnDataGradientFirst,                                                 \
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                  \
  VALUE(kDnnFilterGradientFirst,                                               \
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)                \
  VALUE(kDnnPointwiseDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, \
        750)                                                                   \
  VALUE(kDnnPointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)             \
  VALUE(kDnnPointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)             \
  VALUE(kDnnPointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)             \
  VALUE(kDnnPointwiseT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 758)             \
  VALUE(kDnnGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                \
  VALUE(kDnnGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)               \
  VALUE(kDnnTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)            \
  VALUE(kDnnTensorType, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                      \
  VALUE(kDnnTensorSizes, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                    \
  VALUE(kDnnTensorStrides, CUDNN_ATTR_TENSOR_STRIDES, 903)                     \
  VALUE(kDnnTensorNumber, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                    \
  VALUE(kDnnTensorVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                  \
  VALUE(kDnnTensorByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 908)                 \
  VALUE(kDnnPackNumbers, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)             \
  VALUE(kDnnPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)         \
  VALUE(kDnnPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)            \
  VALUE(kDnnEngineNumber, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                \
  VALUE(kDnnEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)               \
  VALUE(kDnnMatmulPrecision, CUDNN_ATTR_MATMUL_COMP_TYPE, 1500)                \
  VALUE(kDnnMatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1520)                  \
  VALUE(kDnnMatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 1521)                  \
  VALUE(kDnnMatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC, 1522)                  \
  VALUE(kDnnMatmulDescriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC, 1523)          \
  VALUE(kDnnReductionMode, CUDNN_ATTR_REDUCTION_OPERATOR, 1600)                \
  VALUE(kDnnReductionPrecision, CUDNN_ATTR_REDUCTION_COMP_TYPE, 1601)          \
  VALUE(kDnnReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 1610)            \
  VALUE(kDnnReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 1611)            \
  VALUE(kDnnReductionDescriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC, 1612)    \
  VALUE(kDnnReshapeX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 2200)                \
  VALUE(kDnnReshapeY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 2201)                \
  VALUE(kDnnPropertiesText, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)   \
  VALUE(kDnnTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                   \
  VALUE(kDnnDownConverts, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)         \
  VALUE(kDnnReducedSums, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)  \
  VALUE(kDnnNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)        \
  VALUE(kDnnFlippedWindows, CUDNN_CONVOLUTION, 0)                              \
  VALUE(kDnnWindows, CUDNN_CROSS_CORRELATION, 1)                               \
  VALUE(kDnnAdd, CUDNN_POINTWISE_ADD, 0)                                       \
  VALUE(kDnnMultiply, CUDNN_POINTWISE_MUL, 1)                                  \
  VALUE(kDnnDivide, CUDNN_POINTWISE_DIV, 6)                                    \
  VALUE(kDnnSubtract, CUDNN_POINTWISE_SUB, 9)                                  \
  VALUE(kDnnExponential, CUDNN_POINTWISE_EXP, 13)                              \
  VALUE(kDnnLogarithm, CUDNN_POINTWISE_LOG, 15)                                \
  VALUE(kDnnNotLess, CUDNN_POINTWISE_CMP_GE, 303)                              \
  VALUE(kDnnIndex, CUDNN_POINTWISE_GEN_INDEX, 501)                             \
  VALUE(kDnnSelect, CUDNN_POINTWISE_BINARY_SELECT, 601)                        \
  VALUE(kDnnSum, CUDNN_REDUCE_TENSOR_ADD, 0)                                   \
  VALUE(kDnnMaximum, CUDNN_REDUCE_TENSOR_MAX, 3)                               \
  VALUE(kDnnFallbackHeuristic, CUDNN_HEUR_MODE_FALLBACK, 2)                    \
  VALUE(kDnnHeuristic, CUDNN_HEUR_MODE_A, 3)

WHALE_CUDA_DNN_VALUES(WHALE_LIBRARY_VALUE)

/// The functions of libcudnn.
struct Dnn {
  WHALE_CUDA_DNN_FUNCTIONS(WHALE_LIBRARY_ENTRY)

  template <typename Visit>
  void forEach(Visit visit) {
    WHALE_CUDA_DNN_FUNCTIONS(WHALE_LIBRARY_VISIT)
  }
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_DNN_H
