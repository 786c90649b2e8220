//===- Attention.cpp - Attention by blocks of rows ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: queries, keys, values, perhaps a mask, a bias, and the cotangent of the
// result. Out: the result, or the cotangents of queries, keys and values.
//
// The scores of a block of rows (AttentionLayout::blockRows) with all of
// their keys are computed by one product, become probabilities where they are,
// and go into the next product, all in a core's cache; no other scores exist at
// that time. The gradient computes them anew instead of reading them. A causal
// block ends with its last row's key.
//
// A task is a block, or in the gradient a head, whose blocks add to the same
// gradients one after the other. Tasks are shared out to threads; each product
// is computed by one thread, so that all sums have one order.
//
// A matrix of one head is used where it is if it is f32 and its columns are
// neighbours, else it is copied to dense f32 scratch, and back.
//
// The cost is that of the products (2 forward, 5 backward), of one exponential
// for each score, and of copies of what is not f32 with neighbouring features.
//
//===----------------------------------------------------------------------===//

#include "library/AttentionLayout.h"
#include "library/RowMath.h"

#include "Numeric.h"
#include "device/cpu/Gemm.h"
#include "device/cpu/Parallel.h"
#include "whale/Runtime/Types.h"

#include <cmath>
#include <map>
#include <oneapi/dnnl/dnnl.h>

namespace whale::runtime {

namespace {

/// A matrix of floats with neighbouring columns.
template <typename T>
struct Matrix {
  T *data = nullptr;
  int64_t stride = 0;
};

/// c = factor * a * b + (adds ? c : 0), with a or b transposed where it says
/// so; c is m x n.
struct Gemm {
  bool transposesA = false, transposesB = false, adds = false;

  void operator()(int64_t m, int64_t n, int64_t k, float factor,
                  Matrix<const float> a, Matrix<const float> b,
                  Matrix<float> c) const {
    if (dnnl_sgemm(transposesA ? 'T' : 'N', transposesB ? 'T' : 'N', m, n, k,
                   factor, a.data, a.stride, b.data, b.stride, adds ? 1.f : 0.f,
                   c.data, c.stride) != dnnl_success)
      throw Error("oneDNN could not compute a matrix product");
  }
};

Matrix<const float> toConst(Matrix<float> matrix) {
  return {matrix.data, matrix.stride};
}

/// Rows of a head, at most a block.
struct Block {
  int64_t head, begin, rows;
};

} // namespace

/// The columns of a matrix that begins `offset` elements into a tensor: there
/// if they are neighbouring floats, else copied to `copy`.
static Matrix<const float> readMatrix(const AttentionTensor &tensor,
                                      const void *data, int64_t offset,
                                      int64_t rows, int64_t rowStride,
                                      int64_t columns, int64_t columnStride,
                                      float *copy) {
  const char *from =
      static_cast<const char *>(data) + offset * byteSize(tensor.dtype);
  if (tensor.dtype == DType::F32 && (columnStride == 1 || columns == 1) &&
      rowStride >= columns)
    return {reinterpret_cast<const float *>(from), rowStride};
  if (tensor.dtype == DType::BF16 && columnStride == 1)
    for (int64_t i = 0; i < rows; ++i)
      convertRow(reinterpret_cast<const BFloat16 *>(from) + i * rowStride,
                 copy + i * columns, columns);
  else
    packMatrix<float>(tensor.dtype, from, rows, rowStride, columns,
                      columnStride, copy, /*threads=*/1);
  return {copy, columns};
}

/// Where such a matrix can be computed: there or, if that isn't possible, at
/// `copy`, from where `storeMatrix` takes it.
static Matrix<float> writeMatrix(const AttentionTensor &tensor, void *data,
                                 int64_t offset, int64_t rowStride,
                                 int64_t columns, int64_t columnStride,
                                 float *copy) {
  if (tensor.dtype == DType::F32 && (columnStride == 1 || columns == 1) &&
      rowStride >= columns)
    return {static_cast<float *>(data) + offset, rowStride};
  return {copy, columns};
}

static void storeMatrix(const AttentionTensor &tensor, void *data,
                        int64_t offset, int64_t rows, int64_t rowStride,
                        int64_t columns, int64_t columnStride,
                        Matrix<float> from) {
  char *to = static_cast<char *>(data) + offset * byteSize(tensor.dtype);
  if (static_cast<void *>(from.data) == static_cast<void *>(to))
    return;
  if (tensor.dtype == DType::BF16 && columnStride == 1)
    for (int64_t i = 0; i < rows; ++i)
      convertRow(from.data + i * from.stride,
                 reinterpret_cast<BFloat16 *>(to) + i * rowStride, columns);
  else
    unpackMatrix<float>(tensor.dtype, to, rows, rowStride, columns,
                        columnStride, from.data, /*threads=*/1);
}

namespace {

/// What all tasks of a call share.
struct AttentionCall {
  const AttentionLayout &layout;
  std::span<void *const> inputs, outputs;
  const format::AttentionSizes &sizes = layout.sizes;

  const void *maskData() const { return inputs[3]; }
  const void *biasData() const { return inputs[3 + layout.mask.has_value()]; }
};

/// The memory of a thread.
struct Memory {
  float *next;
  float *take(int64_t floats) {
    float *result = next;
    next += floats;
    return result;
  }
};

/// What a thread knows of the head whose block it computes.
class HeadMatrices {
public:
  HeadMatrices(const AttentionCall &call, Memory &memory)
      : call(call), keyCopy(memory.take(call.sizes.keys * call.sizes.depth)),
        valueCopy(memory.take(call.sizes.keys * call.sizes.features)),
        queryCopy(memory.take(call.layout.blockRows() * call.sizes.depth)) {}

  void enter(int64_t next);
  Matrix<const float> query(const Block &block);
  Matrix<const float> key, value;

private:
  const AttentionCall &call;
  float *keyCopy, *valueCopy, *queryCopy;
  int64_t head = -1;
};

} // namespace

void HeadMatrices::enter(int64_t next) {
  if (next == head)
    return;
  head = next;
  const AttentionLayout &layout = call.layout;
  key = readMatrix(layout.key, call.inputs[1],
                   layout.key.offset(layout.heads, head), call.sizes.keys,
                   layout.key.key, call.sizes.depth, layout.key.depth, keyCopy);
  value = readMatrix(layout.value, call.inputs[2],
                     layout.value.offset(layout.heads, head), call.sizes.keys,
                     layout.value.key, call.sizes.features,
                     layout.value.feature, valueCopy);
}

Matrix<const float> HeadMatrices::query(const Block &block) {
  const AttentionTensor &tensor = call.layout.query;
  int64_t offset =
      tensor.offset(call.layout.heads, block.head) + block.begin * tensor.row;
  return readMatrix(tensor, call.inputs[0], offset, block.rows, tensor.row,
                    call.sizes.depth, tensor.depth, queryCopy);
}

/// The keys that a row reads of those that a causal mask keeps.
static int64_t countKeys(const AttentionLayout &layout, int64_t row) {
  int64_t keys = layout.sizes.keys;
  return layout.causal ? std::clamp<int64_t>(row + *layout.causal + 1, 0, keys)
                       : keys;
}

static void addBias(const AttentionCall &call, const Block &block, int64_t row,
                    float *scores, int64_t count) {
  const AttentionTensor &bias = *call.layout.bias;
  int64_t offset = bias.offset(call.layout.heads, block.head) + row * bias.row;
  dispatch(bias.dtype, [&]<typename T>() {
    if constexpr (!isOpaque<T>) {
      const T *from = static_cast<const T *>(call.biasData()) + offset;
      using Compute = typename Element<T>::Compute;
      if constexpr (std::is_same_v<Compute, float>)
        for (int64_t key = 0; key < count; ++key)
          scores[key] += Element<T>::load(from[key * bias.key]);
    }
  });
}

/// The mask of a row from its first key on.
static const uint8_t *maskOf(const AttentionCall &call, const Block &block,
                             int64_t row) {
  const AttentionTensor &mask = *call.layout.mask;
  return static_cast<const uint8_t *>(call.maskData()) +
         mask.offset(call.layout.heads, block.head) + row * mask.row;
}

/// Makes scores of a block's rows exponentials, and 1 / their sum the row's
/// `inverse`. Returns the keys that have any: those after are 0 in all rows.
static int64_t makeExponentials(const AttentionCall &call, const Block &block,
                                Matrix<float> scores, float *inverse) {
  // exp is 0 below.
  constexpr float negligible = -104;
  const AttentionLayout &layout = call.layout;
  int64_t width = countKeys(layout, block.begin + block.rows - 1);
  for (int64_t i = 0; i < block.rows; ++i) {
    int64_t row = block.begin + i;
    float *line = scores.data + i * scores.stride;
    int64_t count = countKeys(layout, row);
    if (layout.bias)
      addBias(call, block, row, line, count);
    if (layout.mask) {
      const uint8_t *mask = maskOf(call, block, row);
      for (int64_t key = 0; key < count; ++key)
        line[key] = mask[key * layout.mask->key] ? line[key] : layout.fill;
    }
    float largest = maximumOf(line, count);
    if (count < call.sizes.keys && !(layout.fill - largest < negligible)) {
      // What is masked counts, too, as where all is.
      std::fill(line + count, line + call.sizes.keys, layout.fill);
      count = call.sizes.keys;
      largest = std::max(largest, layout.fill);
    }
    float sum = exponentials(line, count, largest);
    inverse[i] = 1.0f / sum;
    if (layout.statistics)
      static_cast<float *>(
          call.outputs[1])[layout.statistics->offset(layout.heads, block.head) +
                           row * layout.statistics->row] =
          largest + std::log(sum);
    if (count > width) {
      for (int64_t before = 0; before < i; ++before) {
        float *above = scores.data + before * scores.stride;
        std::fill(above + width, above + count, 0.0f);
      }
      width = count;
    }
    std::fill(line + count, line + width, 0.0f);
  }
  return width;
}

static void computeScores(const AttentionCall &call, const Block &block,
                          Matrix<const float> query, Matrix<const float> key,
                          Matrix<float> scores) {
  int64_t width = countKeys(call.layout, block.begin + block.rows - 1);
  if (width > 0)
    Gemm{.transposesB = true}(block.rows, width, call.sizes.depth,
                              call.layout.scale, query, key, scores);
}

/// Runs `body(memory, begin, end)` for ranges of tasks, each with the scratch
/// memory of a thread.
template <typename Body>
static void runTasks(const AttentionCall &call, int64_t tasks, int64_t floats,
                     Body body) {
  int64_t threads = std::min(call.layout.threads, getThreadCount());
  auto *scratch = static_cast<float *>(call.outputs.back());
  int64_t parts = std::min(threads, tasks);
  parallelFor(parts, parts, [&](int64_t begin, int64_t end) {
    ThreadCount single(1);
    for (int64_t part = begin; part < end; ++part)
      body(Memory{scratch + part * floats}, tasks * part / parts,
           tasks * (part + 1) / parts);
  });
}

static void runForward(const AttentionCall &call) {
  const format::AttentionSizes &sizes = call.sizes;
  int64_t blockRows = call.layout.blockRows();
  int64_t blocks = (sizes.rows + blockRows - 1) / blockRows;
  const AttentionTensor &result = call.layout.results[0];
  auto run = [&](Memory memory, int64_t begin, int64_t end) {
    HeadMatrices head(call, memory);
    Matrix<float> scores{memory.take(blockRows * sizes.keys), sizes.keys};
    float *copy = memory.take(blockRows * sizes.features);
    std::vector<float> inverse(static_cast<size_t>(blockRows));
    for (int64_t task = begin; task < end; ++task) {
      int64_t row = task % blocks * blockRows;
      Block block{task / blocks, row, std::min(blockRows, sizes.rows - row)};
      head.enter(block.head);
      computeScores(call, block, head.query(block), head.key, scores);
      int64_t width = makeExponentials(call, block, scores, inverse.data());
      int64_t offset = result.offset(call.layout.heads, block.head) +
                       block.begin * result.row;
      Matrix<float> out =
          writeMatrix(result, call.outputs[0], offset, result.row,
                      sizes.features, result.feature, copy);
      Gemm{}(block.rows, sizes.features, width, 1, toConst(scores), head.value,
             out);
      for (int64_t i = 0; i < block.rows; ++i)
        scaleRow(out.data + i * out.stride, sizes.features,
                 inverse[static_cast<size_t>(i)]);
      storeMatrix(result, call.outputs[0], offset, block.rows, result.row,
                  sizes.features, result.feature, out);
    }
  };
  runTasks(call, sizes.heads * blocks, sizes.scratch(), run);
}

namespace {

/// Computes the gradients of one head after the other.
class GradientTask {
public:
  GradientTask(const AttentionCall &call, Memory memory)
      : call(call), sizes(call.sizes), head(call, memory),
        scores{memory.take(call.layout.blockRows() * sizes.keys), sizes.keys},
        gradient{memory.take(call.layout.blockRows() * sizes.keys), sizes.keys},
        cotangentCopy(memory.take(call.layout.blockRows() * sizes.features)),
        queryCopy(memory.take(call.layout.blockRows() * sizes.depth)),
        keyCopy(memory.take(sizes.keys * sizes.depth)),
        valueCopy(memory.take(sizes.keys * sizes.features)),
        inverse(static_cast<size_t>(call.layout.blockRows())) {}

  /// Of heads that have cotangents of keys and values in common.
  void run(const std::vector<int64_t> &heads);

private:
  void addBlock(const Block &block, Matrix<float> keys, Matrix<float> values);
  /// Probabilities and their cotangents become those of the products of queries
  /// and keys.
  void makeGradient(const Block &block, int64_t width);

  const AttentionCall &call;
  const format::AttentionSizes &sizes;
  HeadMatrices head;
  Matrix<float> scores, gradient;
  float *cotangentCopy, *queryCopy, *keyCopy, *valueCopy;
  std::vector<float> inverse;
};

} // namespace

void GradientTask::makeGradient(const Block &block, int64_t width) {
  const AttentionLayout &layout = call.layout;
  for (int64_t i = 0; i < block.rows; ++i) {
    int64_t row = block.begin + i;
    const float *p = scores.data + i * scores.stride;
    float *line = gradient.data + i * gradient.stride;
    float shift = dotRows(p, line, width);
    softmaxGradient(p, line, width, shift, layout.scale);
    // What is masked depends on no query, even where it counts.
    int64_t count = std::min(countKeys(layout, row), width);
    std::fill(line + count, line + width, 0.0f);
    if (layout.mask) {
      const uint8_t *mask = maskOf(call, block, row);
      for (int64_t key = 0; key < count; ++key)
        line[key] = mask[key * layout.mask->key] ? line[key] : 0.0f;
    }
  }
}

void GradientTask::addBlock(const Block &block, Matrix<float> keys,
                            Matrix<float> values) {
  const AttentionLayout &layout = call.layout;
  Matrix<const float> query = head.query(block);
  computeScores(call, block, query, head.key, scores);
  int64_t width = makeExponentials(call, block, scores, inverse.data());
  for (int64_t i = 0; i < block.rows; ++i)
    scaleRow(scores.data + i * scores.stride, width,
             inverse[static_cast<size_t>(i)]);
  const AttentionTensor &cotangent = *layout.cotangent;
  Matrix<const float> from = readMatrix(
      cotangent, call.inputs[layout.cotangentNumber],
      cotangent.offset(layout.heads, block.head) + block.begin * cotangent.row,
      block.rows, cotangent.row, sizes.features, cotangent.feature,
      cotangentCopy);
  Gemm{.transposesB = true}(block.rows, width, sizes.features, 1, from,
                            head.value, gradient);
  Gemm{.transposesA = true, .adds = true}(width, sizes.features, block.rows, 1,
                                          toConst(scores), from, values);
  makeGradient(block, width);
  Gemm{.transposesA = true, .adds = true}(width, sizes.depth, block.rows, 1,
                                          toConst(gradient), query, keys);
  const AttentionTensor &result = layout.results[0];
  int64_t offset =
      result.offset(layout.heads, block.head) + block.begin * result.row;
  Matrix<float> queries =
      writeMatrix(result, call.outputs[0], offset, result.row, sizes.depth,
                  result.depth, queryCopy);
  Gemm{}(block.rows, sizes.depth, width, 1, toConst(gradient), head.key,
         queries);
  storeMatrix(result, call.outputs[0], offset, block.rows, result.row,
              sizes.depth, result.depth, queries);
}

void GradientTask::run(const std::vector<int64_t> &heads) {
  const AttentionLayout &layout = call.layout;
  int64_t number = heads.front();
  const AttentionTensor &keyResult = layout.results[1];
  const AttentionTensor &valueResult = layout.results[2];
  int64_t keyOffset = keyResult.offset(layout.heads, number);
  int64_t valueOffset = valueResult.offset(layout.heads, number);
  Matrix<float> keys =
      writeMatrix(keyResult, call.outputs[1], keyOffset, keyResult.key,
                  sizes.depth, keyResult.depth, keyCopy);
  Matrix<float> values =
      writeMatrix(valueResult, call.outputs[2], valueOffset, valueResult.key,
                  sizes.features, valueResult.feature, valueCopy);
  for (int64_t key = 0; key < sizes.keys; ++key) {
    std::fill_n(keys.data + key * keys.stride, sizes.depth, 0.0f);
    std::fill_n(values.data + key * values.stride, sizes.features, 0.0f);
  }
  int64_t blockRows = call.layout.blockRows();
  for (int64_t each : heads) {
    head.enter(each);
    for (int64_t row = 0; row < sizes.rows; row += blockRows)
      addBlock({each, row, std::min(blockRows, sizes.rows - row)}, keys,
               values);
  }
  storeMatrix(keyResult, call.outputs[1], keyOffset, sizes.keys, keyResult.key,
              sizes.depth, keyResult.depth, keys);
  storeMatrix(valueResult, call.outputs[2], valueOffset, sizes.keys,
              valueResult.key, sizes.features, valueResult.feature, values);
}

static void runGradient(const AttentionCall &call) {
  // By where their cotangents of keys are.
  std::map<int64_t, std::vector<int64_t>> tasks;
  for (int64_t head = 0; head < call.sizes.heads; ++head)
    tasks[call.layout.results[1].offset(call.layout.heads, head)].push_back(
        head);
  std::vector<std::vector<int64_t>> list;
  for (auto &[offset, heads] : tasks)
    list.push_back(std::move(heads));
  runTasks(call, static_cast<int64_t>(list.size()),
           call.sizes.gradientScratch(),
           [&](Memory memory, int64_t begin, int64_t end) {
             GradientTask task(call, memory);
             for (int64_t number = begin; number < end; ++number)
               task.run(list[static_cast<size_t>(number)]);
           });
}

static LibraryFunction prepare(const LibraryRequest &request, bool isGradient) {
  AttentionLayout layout(request, isGradient);
  return [layout = std::move(layout), isGradient](
             std::span<void *const> inputs, std::span<void *const> outputs) {
    AttentionCall call{layout, inputs, outputs};
    if (layout.sizes.heads == 0)
      return;
    if (isGradient)
      runGradient(call);
    else
      runForward(call);
  };
}

LibraryFunction prepareAttention(const LibraryRequest &request) {
  return prepare(request, false);
}

LibraryFunction prepareAttentionGradient(const LibraryRequest &request) {
  return prepare(request, true);
}

} // namespace whale::runtime
