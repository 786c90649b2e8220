
#include "mlir/IR/Builders.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
using namespace mlir;
using namespace mlir::stablehlo;
LogicalResult AbsOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                      Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult ImagOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult RealOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult IsFiniteOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location>, Adaptor,
                                           SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult ReducePrecisionOp::verify() { return success(); }
LogicalResult BitcastConvertOp::verify() { return success(); }
LogicalResult ComplexOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>, Adaptor,
                                          SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult CompareOp::verify() { return success(); }
LogicalResult CompareOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>, Adaptor,
                                          SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult SelectOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult ClampOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult ConstantOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location>, Adaptor,
                                           SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult IotaOp::verify() { return success(); }
LogicalResult BroadcastInDimOp::verify() { return success(); }
LogicalResult ReshapeOp::verify() { return success(); }
LogicalResult TransposeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>, Adaptor,
                                            SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult ReverseOp::verify() { return success(); }
LogicalResult ConcatenateOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location>, Adaptor,
                                              SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                      Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult GetDimensionSizeOp::inferReturnTypes(MLIRContext *,
                                                   std::optional<Location>,
                                                   Adaptor,
                                                   SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult DynamicBroadcastInDimOp::verify() { return success(); }
LogicalResult DynamicIotaOp::verify() { return success(); }
LogicalResult DynamicPadOp::verify() { return success(); }
LogicalResult DynamicReshapeOp::verify() { return success(); }
LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult DynamicSliceOp::inferReturnTypes(MLIRContext *,
                                               std::optional<Location>, Adaptor,
                                               SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult DynamicUpdateSliceOp::inferReturnTypes(MLIRContext *,
                                                     std::optional<Location>,
                                                     Adaptor,
                                                     SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult RealDynamicSliceOp::verify() { return success(); }
LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult DynamicGatherOp::verify() { return success(); }
LogicalResult ScatterOp::verify() { return success(); }
LogicalResult SortOp::verify() { return success(); }
LogicalResult ReduceOp::verifyRegions() { return success(); }
LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult ReduceWindowOp::verifyRegions() { return success(); }
LogicalResult ReduceWindowOp::inferReturnTypes(MLIRContext *,
                                               std::optional<Location>, Adaptor,
                                               SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult SelectAndScatterOp::verify() { return success(); }
LogicalResult MapOp::verify() { return success(); }
LogicalResult DotGeneralOp::verify() { return success(); }
LogicalResult ConvolutionOp::verify() { return success(); }
LogicalResult CholeskyOp::verify() { return success(); }
LogicalResult TriangularSolveOp::inferReturnTypes(MLIRContext *,
                                                  std::optional<Location>,
                                                  Adaptor,
                                                  SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult FftOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                      Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult WhileOp::verifyRegions() { return success(); }
LogicalResult WhileOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult CaseOp::verifyRegions() { return success(); }
LogicalResult IfOp::verifyRegions() { return success(); }
LogicalResult OptimizationBarrierOp::inferReturnTypes(MLIRContext *,
                                                      std::optional<Location>,
                                                      Adaptor,
                                                      SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult CustomCallOp::verify() { return success(); }
LogicalResult CompositeOp::verify() { return success(); }
LogicalResult TupleOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult GetTupleElementOp::inferReturnTypes(MLIRContext *,
                                                  std::optional<Location>,
                                                  Adaptor,
                                                  SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult AllGatherOp::verify() { return success(); }
LogicalResult AllReduceOp::verify() { return success(); }
LogicalResult ReduceScatterOp::verify() { return success(); }
LogicalResult AllToAllOp::verify() { return success(); }
LogicalResult AllToAllOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location>, Adaptor,
                                           SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult CollectiveBroadcastOp::verify() { return success(); }
LogicalResult CollectivePermuteOp::verify() { return success(); }
LogicalResult PartitionIdOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location>, Adaptor,
                                              SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult ReplicaIdOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>, Adaptor,
                                            SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult SendOp::verify() { return success(); }
LogicalResult RecvOp::verify() { return success(); }
LogicalResult AsyncStartOp::verify() { return success(); }
LogicalResult AsyncDoneOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>, Adaptor,
                                            SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult RngOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                      Adaptor, SmallVectorImpl<Type> &) {
  return failure();
}
LogicalResult RngBitGeneratorOp::verify() { return success(); }
