//===- Convolution.cpp - Convolutions on a CPU ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions of f32 (and, where the processor has it, bf16), and their
// gradients with respect to image and kernel, go to oneDNN, or are products of
// shifted views (ViewConvolution.h) where those are cheaper. Everything else
// that stablehlo.convolution can say (other reversals, cropping, other types)
// becomes matrix products of unrolled patches, a bounded number of output
// positions at a time.
//
// Cost: where oneDNN wants another order of elements than a tensor has, it is
// copied to or from that order in each run. Otherwise an element of the image
// is copied once for each position of the kernel that reads it, and all
// products are formed, with zeros too; one thread copies the kernel and the
// results. Scratch: the reordered tensors and what oneDNN asks for; or the
// kernel of a group, and patches of 4 MiB, or 16 rows where these are more, and
// their products.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Gemm.h"
#include "device/cpu/Operations.h"
#include "device/cpu/Parallel.h"
#include "device/cpu/ViewMoves.h"
#include "device/cpu/Work.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace whale::runtime {

using Form = format::ConvolutionForm;

PreparedConvolution::PreparedConvolution(const Convolution &convolution,
                                         CpuContext &context)
    : op(convolution),
      threads(threadsFor(workOf(convolution), context.threads)) {
  if (elementCount(op.outShape) == 0)
    return;
  ThreadCount count(threads);
  direct = prepareDirect(context);
  if (prepareViews(context)) {
    scratch = views->getScratch();
    // Of these slots the views have none for a tensor that is copied.
    for (auto [slot, side] : {std::pair(0, &lhsView), std::pair(1, &rhsView),
                              std::pair(2, &outView)})
      scratch[slot] = std::max(scratch[slot], side->bytes());
  } else if (direct)
    scratch = {{lhsSide.bytes(), rhsSide.bytes(), outSide.bytes(),
                static_cast<int64_t>(scratchDesc.get_size())}};
  else
    preparePacked();
}

bool PreparedConvolution::prepareViews(CpuContext &context) {
  ViewMoves moves(op);
  try {
    auto prepare = [&](Side &side, const std::optional<ViewMoves::Move> &move,
                       bool isBack) {
      if (!move)
        return;
      side.given = move->given;
      side.wanted = move->wanted;
      side.reordered = true;
      const auto &[from, to] = isBack ? std::pair(side.wanted, side.given)
                                      : std::pair(side.given, side.wanted);
      side.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(
          context.engine, from, context.engine, to));
    };
    prepare(lhsView, moves.lhs, /*isBack=*/false);
    prepare(rhsView, moves.rhs, /*isBack=*/false);
    prepare(outView, moves.out, /*isBack=*/true);
  } catch (const dnnl::error &) {
    return false; // not these types on this processor
  }
  views = ViewConvolution::prepare(moves.op, moves.rhsStrides);
  if (views && !prefersViews())
    views.reset();
  return views.has_value();
}

/// Whether the convolution is faster as products of views.
bool PreparedConvolution::prefersViews() const {
  double price =
      views->price(lhsView.bytes() + rhsView.bytes() + outView.bytes());
  if (!direct)
    return price < views->priceOfLibrary("", 0);
  const char *implementation = "";
  dnnl_primitive_desc_query(primitive.get_primitive_desc(),
                            dnnl_query_impl_info_str, 0, &implementation);
  int64_t moved = lhsSide.bytes() + rhsSide.bytes() + outSide.bytes();
  return price < views->priceOfLibrary(implementation, moved);
}

void PreparedConvolution::preparePacked() {
  for (size_t d = 0; d < op.windows.size(); ++d) {
    positions *= op.outShape[op.outDims.spatial[d]];
    taps *= op.rhsShape[op.rhsDims.spatial[d]];
  }
  depth = taps * op.rhsShape[op.rhsDims.first];
  outputs = op.rhsShape[op.rhsDims.second] / op.featureGroups / op.batchGroups;
  rows = op.outShape[op.outDims.first] * positions;
  dispatchProduct(op.lhsType, op.rhsType, op.outType, [&]<typename T>() {
    constexpr int64_t patchBytes = 4 << 20, fewestRows = 16;
    constexpr int64_t size = sizeof(T);
    block =
        std::max(fewestRows, patchBytes / std::max<int64_t>(depth * size, 1));
    block = std::min(block, rows);
    scratch = {{depth * outputs * size, block * depth * size,
                block * outputs * size, 0}};
  });

  std::vector<int64_t> strides = stridesOf(op.lhsShape);
  for (size_t d = 0; d < op.windows.size(); ++d) {
    const Convolution::Window &window = op.windows[d];
    int64_t positions = op.outShape[op.outDims.spatial[d]];
    int64_t kernel = op.rhsShape[op.rhsDims.spatial[d]];
    int64_t extent = op.lhsShape[op.lhsDims.spatial[d]];
    std::vector<int64_t> &table = offsets.emplace_back();
    table.reserve(positions * kernel);
    for (int64_t o = 0; o < positions; ++o)
      for (int64_t k = 0; k < kernel; ++k) {
        int64_t step = window.reversed ? kernel - 1 - k : k;
        int64_t at = o * window.stride + step * window.rhsDilation - window.low;
        bool inside = at >= 0 && at % window.lhsDilation == 0 &&
                      at / window.lhsDilation < extent;
        table.push_back(inside ? at / window.lhsDilation *
                                     strides[op.lhsDims.spatial[d]]
                               : -1);
      }
  }
}

void PreparedConvolution::prepareSides(CpuContext &context,
                                       const dnnl::memory::desc &lhs,
                                       const dnnl::memory::desc &rhs,
                                       const dnnl::memory::desc &out) {
  lhsSide.wanted = lhs;
  rhsSide.wanted = rhs;
  outSide.wanted = out;
  auto prepare = [&](Side &side, const dnnl::memory::desc &from,
                     const dnnl::memory::desc &to) {
    side.reordered = side.given != side.wanted;
    if (side.reordered)
      side.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(
          context.engine, from, context.engine, to));
  };
  prepare(lhsSide, lhsSide.given, lhsSide.wanted);
  prepare(rhsSide, rhsSide.given, rhsSide.wanted);
  prepare(outSide, outSide.wanted, outSide.given);
}

/// Sizes and strides of a tensor in oneDNN's order of dimensions.
struct DnnTensor {
  dnnl::memory::dims sizes, strides;
};

/// An image or what is computed of it: batch, channels, spatial dimensions.
static DnnTensor imageOf(const Shape &shape,
                         const Convolution::Dimensions &dims,
                         bool isExchanged) {
  std::vector<int64_t> strides = stridesOf(shape);
  DnnTensor result;
  auto add = [&](int64_t dim) {
    result.sizes.push_back(shape[dim]);
    result.strides.push_back(strides[dim]);
  };
  add(isExchanged ? dims.second : dims.first);
  add(isExchanged ? dims.first : dims.second);
  std::ranges::for_each(dims.spatial, add);
  return result;
}

/// A kernel: [groups,] channels of a group of y, those of a group of x, spatial
/// dimensions. `dims.second` has all groups, and is what y has or what x has.
static DnnTensor kernelOf(const Shape &shape,
                          const Convolution::Dimensions &dims, int64_t groups,
                          bool isSecondOfY) {
  DnnTensor result = imageOf(shape, dims, isSecondOfY);
  if (groups == 1)
    return result;
  int64_t &ofGroup = result.sizes[isSecondOfY ? 0 : 1];
  ofGroup /= groups;
  int64_t stride = ofGroup * result.strides[isSecondOfY ? 0 : 1];
  result.sizes.insert(result.sizes.begin(), groups);
  result.strides.insert(result.strides.begin(), stride);
  return result;
}

/// The windows, where oneDNN has such ones.
struct DnnWindows {
  dnnl::memory::dims strides, dilations, before, after;
};

static std::optional<DnnWindows> windowsOf(const Convolution &op, Form form) {
  // oneDNN's convolutions are not made for large kernels.
  constexpr int64_t largestKernel = 15;
  DnnWindows result;
  for (size_t d = 0; d < op.windows.size(); ++d) {
    const Convolution::Window &window = op.windows[d];
    format::ConvolutionWindow its = format::windowOf(op, d);
    int64_t after = (its.y - 1) * its.stride + (its.w - 1) * its.dilation + 1 -
                    its.x - its.before;
    bool isMeant = !window.reversed;
    if (form == Form::ImageGradient)
      isMeant = window.stride == 1 && (window.reversed || its.w == 1);
    if (form == Form::Forward)
      after = window.high;
    if (!isMeant || its.before < 0 || after + its.stride <= 0 ||
        (form == Form::Forward && after < 0) ||
        (form != Form::FilterGradient && its.w > largestKernel))
      return std::nullopt;
    result.strides.push_back(its.stride);
    result.dilations.push_back(its.dilation - 1);
    result.before.push_back(its.before);
    result.after.push_back(after);
  }
  return result;
}

bool PreparedConvolution::prepareDirect(CpuContext &context) {
  using Desc = dnnl::memory::desc;
  using Type = dnnl::memory::data_type;
  Type type;
  if (op.lhsType == DType::F32)
    type = Type::f32;
  else if (op.lhsType == DType::BF16)
    type = Type::bf16;
  else
    return false;
  bool sameOut = op.outType == op.lhsType;
  if (op.rhsType != op.lhsType || (!sameOut && op.outType != DType::F32))
    return false;
  Type outType = sameOut ? type : Type::f32;
  size_t spatial = op.windows.size();
  Form form = format::formOf(op);
  if (spatial < 1 || spatial > 3 ||
      (op.batchGroups != 1 && form != Form::FilterGradient) ||
      elementCount(op.lhsShape) == 0 || elementCount(op.rhsShape) == 0)
    return false;
  std::optional<DnnWindows> windows = windowsOf(op, form);
  if (!windows)
    return false;
  // In the gradient of a kernel the batch is what is contracted, and the result
  // is the kernel.
  int64_t groups = op.featureGroups * op.batchGroups;
  bool isFilter = form == Form::FilterGradient;
  DnnTensor lhs = imageOf(op.lhsShape, op.lhsDims, isFilter);
  DnnTensor rhs = isFilter ? imageOf(op.rhsShape, op.rhsDims, false)
                           : kernelOf(op.rhsShape, op.rhsDims, groups,
                                      /*isSecondOfY=*/form == Form::Forward);
  DnnTensor out = isFilter ? kernelOf(op.outShape, op.outDims, groups, true)
                           : imageOf(op.outShape, op.outDims, false);
  const auto &[strides, dilations, before, after] = *windows;
  if (!fitsOneDnn(
          {lhs.sizes, rhs.sizes, out.sizes, strides, dilations, before, after}))
    return false;
  try {
    lhsSide.given = {lhs.sizes, type, lhs.strides};
    rhsSide.given = {rhs.sizes, type, rhs.strides};
    outSide.given = {out.sizes, outType, out.strides};
    // As oneDNN likes them best.
    auto any = [](const DnnTensor &tensor, Type type) {
      return Desc(tensor.sizes, type, dnnl::memory::format_tag::any);
    };
    Desc anyLhs = any(lhs, type), anyRhs = any(rhs, type),
         anyOut = any(out, outType);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    // A gradient wants to know the convolution that it is one of.
    auto describe = [&](const Desc &x, const Desc &w, const Desc &y) {
      return dnnl::convolution_forward::primitive_desc(
          dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training,
                                          direct, x, w, y, strides, dilations,
                                          before, after),
          attributes, context.engine);
    };
    dnnl::primitive_desc desc;
    switch (form) {
    case Form::Forward:
      arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
      desc = describe(anyLhs, anyRhs, anyOut);
      break;
    case Form::ImageGradient:
      arguments = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC};
      desc = dnnl::convolution_backward_data::primitive_desc(
          dnnl::convolution_backward_data::desc(direct, anyOut, anyRhs, anyLhs,
                                                strides, dilations, before,
                                                after),
          attributes, context.engine, describe(anyOut, anyRhs, anyLhs));
      break;
    case Form::FilterGradient:
      arguments = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS};
      desc = dnnl::convolution_backward_weights::primitive_desc(
          dnnl::convolution_backward_weights::desc(direct, anyLhs, anyOut,
                                                   anyRhs, strides, dilations,
                                                   before, after),
          attributes, context.engine, describe(anyLhs, anyOut, anyRhs));
      break;
    }
    if (std::strstr(desc.impl_info_str(), "ref"))
      return false;
    primitive = dnnl::primitive(desc);
    scratchDesc = desc.scratchpad_desc();
    auto wanted = [&](size_t operand) {
      return desc.query_md(dnnl::query::exec_arg_md, arguments[operand]);
    };
    prepareSides(context, wanted(0), wanted(1), wanted(2));
  } catch (const dnnl::error &) {
    return false; // not these parameters, or not on this processor
  }
  return true;
}

void PreparedConvolution::runDirect(CpuContext &context, const void *lhs,
                                    const void *rhs, void *out) const {
  auto memory = [&](const dnnl::memory::desc &desc, const void *data) {
    return dnnl::memory(desc, context.engine, const_cast<void *>(data));
  };
  auto temporary = [&](const dnnl::memory::desc &desc, size_t slot) {
    return memory(desc, context.scratch.get(slot));
  };
  auto input = [&](const Side &side, const void *data, size_t slot) {
    dnnl::memory given = memory(side.given, data);
    if (!side.reordered)
      return given;
    dnnl::memory wanted = temporary(side.wanted, slot);
    side.reorder.execute(context.stream, given, wanted);
    return wanted;
  };
  dnnl::memory lhsMemory = input(lhsSide, lhs, 0);
  dnnl::memory rhsMemory = input(rhsSide, rhs, 1);
  dnnl::memory given = memory(outSide.given, out);
  dnnl::memory result =
      outSide.reordered ? temporary(outSide.wanted, 2) : given;
  primitive.execute(context.stream,
                    {{arguments[0], lhsMemory},
                     {arguments[1], rhsMemory},
                     {arguments[2], result},
                     {DNNL_ARG_SCRATCHPAD, temporary(scratchDesc, 3)}});
  if (outSide.reordered)
    outSide.reorder.execute(context.stream, result, given);
  context.stream.wait();
}

void PreparedConvolution::runViews(CpuContext &context, const void *lhs,
                                   const void *rhs, void *out) const {
  auto copy = [&](const Side &side, const dnnl::memory::desc &fromDesc,
                  const void *from, const dnnl::memory::desc &toDesc,
                  void *to) {
    dnnl::memory source(fromDesc, context.engine, const_cast<void *>(from));
    dnnl::memory target(toDesc, context.engine, to);
    side.reorder.execute(context.stream, source, target);
    context.stream.wait();
  };
  auto input = [&](const Side &side, const void *data,
                   size_t slot) -> const void * {
    if (!side.reordered)
      return data;
    void *copied = context.scratch.get(slot);
    copy(side, side.given, data, side.wanted, copied);
    return copied;
  };
  const void *left = input(lhsView, lhs, 0), *right = input(rhsView, rhs, 1);
  void *result = outView.reordered ? context.scratch.get(2) : out;
  views->run(context.scratch, threads, left, right, result);
  if (outView.reordered)
    copy(outView, outView.wanted, result, outView.given, out);
}

template <typename T>
void PreparedConvolution::runPacked(CpuContext &context, const void *lhs,
                                    const void *rhs, void *out) const {
  auto lhsStrides = stridesOf(op.lhsShape), rhsStrides = stridesOf(op.rhsShape);
  auto outStrides = stridesOf(op.outShape);
  size_t spatial = op.windows.size();
  int64_t groups = op.featureGroups * op.batchGroups; // one of them is 1
  int64_t batch = op.outShape[op.outDims.first];
  int64_t features = op.rhsShape[op.rhsDims.first];
  T *weights = context.scratch.get<T>(0);
  T *patches = context.scratch.get<T>(1);
  T *products = context.scratch.get<T>(2);

  int64_t lhsBatch = lhsStrides[op.lhsDims.first];
  int64_t lhsFeature = lhsStrides[op.lhsDims.second];
  for (int64_t group = 0; group < groups; ++group) {
    int64_t firstOutput = group * outputs;
    int64_t lhsStart = op.featureGroups > 1 ? group * features * lhsFeature
                                            : group * batch * lhsBatch;
    dispatch(op.rhsType, [&]<typename Storage>() {
      if constexpr (!isOpaque<Storage>) {
        auto *from = moved(static_cast<const Storage *>(rhs),
                           firstOutput * rhsStrides[op.rhsDims.second]);
        for (int64_t tap = 0; tap < taps; ++tap) {
          int64_t rest = tap, offset = 0;
          for (size_t d = spatial; d-- > 0;) {
            int64_t dim = op.rhsDims.spatial[d];
            offset += rest % op.rhsShape[dim] * rhsStrides[dim];
            rest /= op.rhsShape[dim];
          }
          for (int64_t i = 0; i < features; ++i)
            for (int64_t o = 0; o < outputs; ++o)
              weights[(tap * features + i) * outputs + o] =
                  toProduct<T>(from[offset + i * rhsStrides[op.rhsDims.first] +
                                    o * rhsStrides[op.rhsDims.second]]);
        }
      }
    });

    for (int64_t row0 = 0; row0 < rows; row0 += block) {
      int64_t count = std::min(block, rows - row0);
      int64_t parts = count * depth < 65536 ? 1 : threads;
      dispatch(op.lhsType, [&]<typename Storage>() {
        if constexpr (!isOpaque<Storage>) {
          auto *from = moved(static_cast<const Storage *>(lhs), lhsStart);
          parallelFor(count, parts, [&](int64_t begin, int64_t end) {
            // Offsets of one position's taps, dimension by dimension.
            std::vector<int64_t> reach, next;
            for (int64_t r = begin; r < end; ++r) {
              int64_t rest = (row0 + r) % positions;
              reach.assign(1, (row0 + r) / positions * lhsBatch);
              for (size_t d = 0, inner = positions; d < spatial; ++d) {
                int64_t extent = op.outShape[op.outDims.spatial[d]];
                int64_t kernel = op.rhsShape[op.rhsDims.spatial[d]];
                inner /= extent;
                const int64_t *table =
                    &offsets[d][rest / static_cast<int64_t>(inner) * kernel];
                rest %= static_cast<int64_t>(inner);
                next.clear();
                for (int64_t base : reach)
                  for (int64_t k = 0; k < kernel; ++k)
                    next.push_back(base < 0 || table[k] < 0 ? -1
                                                            : base + table[k]);
                std::swap(reach, next);
              }
              T *patch = patches + r * depth;
              for (int64_t tap = 0; tap < taps; ++tap, patch += features) {
                if (reach[tap] < 0) {
                  std::fill(patch, patch + features, T());
                  continue;
                }
                const Storage *source = from + reach[tap];
                for (int64_t i = 0; i < features; ++i)
                  patch[i] = toProduct<T>(source[i * lhsFeature]);
              }
            }
          });
        }
      });
      gemm(count, outputs, depth, patches, weights, products, threads);
      dispatch(op.outType, [&]<typename Storage>() {
        if constexpr (!isOpaque<Storage>) {
          auto *to = static_cast<Storage *>(out) +
                     firstOutput * outStrides[op.outDims.second];
          for (int64_t r = 0; r < count; ++r) {
            int64_t rest = (row0 + r) % positions;
            int64_t offset =
                (row0 + r) / positions * outStrides[op.outDims.first];
            for (size_t d = spatial; d-- > 0;) {
              int64_t dim = op.outDims.spatial[d];
              offset += rest % op.outShape[dim] * outStrides[dim];
              rest /= op.outShape[dim];
            }
            for (int64_t o = 0; o < outputs; ++o)
              to[offset + o * outStrides[op.outDims.second]] =
                  fromProduct<Storage>(products[r * outputs + o]);
          }
        }
      });
    }
  }
}

void PreparedConvolution::run(CpuContext &context, const void *lhs,
                              const void *rhs, void *out) const {
  if (elementCount(op.outShape) == 0)
    return;
  ThreadCount count(threads);
  context.scratch.reserve(scratch);
  if (views) {
    runViews(context, lhs, rhs, out);
    return;
  }
  if (direct) {
    runDirect(context, lhs, rhs, out);
    return;
  }
  dispatchProduct(op.lhsType, op.rhsType, op.outType,
                  [&]<typename T>() { runPacked<T>(context, lhs, rhs, out); });
}

} // namespace whale::runtime
