//===- EpilogueKernels.cpp - Epilogues of products on a GPU ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a product, as it was rounded and stored. Out: launches that do to it what
// its epilogue says: a thread for each element, and for the gradient of a bias
// then one for each column, which adds up its rows in order. As those of boxes,
// the kernels are texts of PTX, for a runtime without a compiler.
//
// Cost: the product is read and written once more than by the library's own
// epilogues; the gradient of a bias reads it again, by no more threads than it
// has columns. With a bias a thread divides 64-bit numbers to find its column.
// A kernel is compiled by the driver when it is first prepared.
//
//===----------------------------------------------------------------------===//

#include "cuda/EpilogueKernels.h"

#include "cuda/BoxKernels.h"

#include <bit>
#include <cstddef>

namespace whale::runtime::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr DType kTypes[] = {DType::F16, DType::BF16, DType::F32};

/// The parameter of all kernels: one structure. `count` is that of the threads.
struct Parameter {
  Address out, bias, aux;
  uint64_t count, columns, rows;
};

std::string parameter(const char *reg, size_t offset) {
  return std::string("  ld.param.u64 ") + reg + ", [box+" +
         std::to_string(offset) + "];\n";
}

std::string number(float value) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string text = "0f";
  for (int shift = 28; shift >= 0; shift -= 4)
    text += digits[(std::bit_cast<uint32_t>(value) >> shift) & 15];
  return text;
}

/// Lines such as "  mul.rn.f32 %a, %b, 0f3F000000;".
std::string line(const std::string &op, const std::string &to,
                 const std::string &a, const std::string &b) {
  return "  " + op + ".f32 " + to + ", " + a + ", " + b + ";\n";
}

/// %gelu = GELU of %x, or its derivative. tanh(u) is 1 - 2 / (exp(2 u) + 1).
std::string gelu(bool isDerivative) {
  constexpr float scale = 0.7978845608f, cubic = 0.044715f;
  constexpr float log2e = 1.4426950409f;
  std::string one = number(1), half = number(0.5f);
  std::string text =
      line("mul.rn", "%square", "%x", "%x") +
      line("mul.rn", "%cubic", "%square", number(cubic)) +
      line("add.rn", "%e", "%cubic", one) + line("mul.rn", "%e", "%e", "%x") +
      line("mul.rn", "%e", "%e", number(2 * log2e * scale)) +
      "  ex2.approx.f32 %e, %e;\n" + line("add.rn", "%e", "%e", one) +
      line("div.rn", "%e", number(2), "%e") +
      line("sub.rn", "%tanh", one, "%e") +
      line("add.rn", "%gelu", "%tanh", one) +
      line("mul.rn", "%gelu", "%gelu", half);
  if (!isDerivative)
    return text + line("mul.rn", "%gelu", "%gelu", "%x");
  return text + line("mul.rn", "%e", "%tanh", "%tanh") +
         line("sub.rn", "%e", one, "%e") + line("mul.rn", "%e", "%e", "%x") +
         line("mul.rn", "%e", "%e", number(scale / 2)) +
         line("mul.rn", "%cubic", "%cubic", number(3)) +
         line("add.rn", "%cubic", "%cubic", one) +
         line("mul.rn", "%e", "%e", "%cubic") +
         line("add.rn", "%gelu", "%gelu", "%e");
}

/// All but what a thread does.
std::string kernel(const std::string &name, const std::string &body) {
  return ".version 6.3\n"
         ".target sm_60\n"
         ".address_size 64\n"
         ".visible .entry " +
         name + "(.param .align 8 .b8 box[" +
         std::to_string(sizeof(Parameter)) +
         "])\n"
         ".maxntid 256, 1, 1\n"
         "{\n"
         "  .reg .pred %is, %nan;\n"
         "  .reg .b16 %h;\n"
         "  .reg .b32 %b, %t0, %w, %v, %u;\n"
         "  .reg .b64 %index, %thread, %count, %columns, %column, %rows;\n"
         "  .reg .b64 %src, %dst, %step;\n"
         "  .reg .f32 %x, %acc, %product, %square, %cubic, %e, %tanh, %gelu;\n"
         "  mov.u32 %b, %ctaid.x;\n"
         "  mov.u32 %t0, %tid.x;\n"
         "  mul.wide.u32 %index, %b, 256;\n"
         "  cvt.u64.u32 %thread, %t0;\n"
         "  add.u64 %index, %index, %thread;\n" +
         parameter("%count", offsetof(Parameter, count)) +
         "  setp.ge.u64 %is, %index, %count;\n"
         "  @%is bra DONE;\n" +
         parameter("%columns", offsetof(Parameter, columns)) + body +
         "DONE:\n"
         "  ret;\n"
         "}\n";
}

/// `address` = element `index` of a buffer.
std::string element(const char *address, const char *index, size_t buffer,
                    int64_t bytes) {
  return parameter(address, buffer) + "  mad.lo.u64 " + address + ", " + index +
         ", " + std::to_string(bytes) + ", " + address + ";\n";
}

std::string elementwise(Epilogue epilogue, DType type) {
  int64_t bytes = byteSize(type);
  std::string load = floatLoadText(type), store = floatStoreText(type);
  std::string text =
      element("%src", "%index", offsetof(Parameter, out), bytes) + load;
  if (readsBias(epilogue))
    text += "  mov.f32 %product, %x;\n"
            "  rem.u64 %column, %index, %columns;\n" +
            element("%src", "%column", offsetof(Parameter, bias), bytes) +
            load + line("add.rn", "%x", "%x", "%product");
  if (writesAux(epilogue))
    text += element("%dst", "%index", offsetof(Parameter, aux), bytes) +
            "  mov.f32 %acc, %x;\n" + store;
  if (readsAux(epilogue))
    text += "  mov.f32 %product, %x;\n" +
            element("%src", "%index", offsetof(Parameter, aux), bytes) + load +
            gelu(true) + line("mul.rn", "%acc", "%product", "%gelu");
  else if (epilogue == Epilogue::Bias)
    text += "  mov.f32 %acc, %x;\n";
  else
    text += gelu(false) + "  mov.f32 %acc, %gelu;\n";
  return text + element("%dst", "%index", offsetof(Parameter, out), bytes) +
         store;
}

/// The sum of column %index of `out`, in `bias`.
std::string sum(DType type) {
  int64_t bytes = byteSize(type);
  return element("%src", "%index", offsetof(Parameter, out), bytes) +
         parameter("%rows", offsetof(Parameter, rows)) +
         "  mul.lo.u64 %step, %columns, " + std::to_string(bytes) +
         ";\n"
         "  mov.f32 %acc, 0f00000000;\n"
         "ROW:\n" +
         floatLoadText(type) + line("add.rn", "%acc", "%acc", "%x") +
         "  add.u64 %src, %src, %step;\n"
         "  sub.u64 %rows, %rows, 1;\n"
         "  setp.eq.u64 %is, %rows, 0;\n"
         "  @%is bra STORE;\n"
         "  bra ROW;\n"
         "STORE:\n" +
         element("%dst", "%index", offsetof(Parameter, bias), bytes) +
         floatStoreText(type);
}

std::string nameOf(Epilogue epilogue, DType type) {
  return std::string("epilogue_") + format::name(epilogue) + "_" +
         std::string(name(type));
}
std::string sumName(DType type) {
  return "epilogue_sum_" + std::string(name(type));
}

/// Calls `function` with the name and the body of each kernel.
template <typename Function>
void forEachKernel(Function function) {
  for (DType type : kTypes) {
    for (int e = 1; e <= int(Epilogue::GeluGradientBias); ++e)
      function(nameOf(Epilogue(e), type),
               [&] { return elementwise(Epilogue(e), type); });
    function(sumName(type), [&] { return sum(type); });
  }
}

} // namespace

std::string epilogueKernelText(const std::string &name) {
  std::string text;
  forEachKernel([&](const std::string &each, auto body) {
    if (each == name)
      text = kernel(name, body());
  });
  if (text.empty())
    throw Error("there is no kernel '" + name + "'");
  return text;
}

std::vector<std::string> epilogueKernelNames() {
  std::vector<std::string> names;
  forEachKernel([&](const std::string &each, auto) { names.push_back(each); });
  return names;
}

EpilogueKernels::~EpilogueKernels() {
  if (!gpu.tryAttach())
    return;
  for (Module module : modules)
    gpu.driver.moduleUnload.function(module);
}

void EpilogueKernels::load(const std::string &name) {
  Function &function = functions[name];
  if (function)
    return;
  function = gpu.load(epilogueKernelText(name), name, modules.emplace_back());
}

void EpilogueKernels::prepare(const Matmul &op) {
  load(nameOf(op.epilogue, op.outType));
  if (writesBias(op.epilogue))
    load(sumName(op.outType));
}

void EpilogueKernels::run(const Matmul &op, void *out, void *bias, void *aux,
                          Stream stream) {
  format::EpilogueShape shape = format::shapeForEpilogue(op).value();
  auto launch = [&](const std::string &name, int64_t count) {
    Parameter given = {addressOf(out),
                       addressOf(bias),
                       addressOf(aux),
                       static_cast<uint64_t>(count),
                       static_cast<uint64_t>(shape.columns),
                       static_cast<uint64_t>(shape.rows)};
    void *parameters[] = {&given};
    int64_t blocks = (count + kThreads - 1) / kThreads;
    if (blocks > INT32_MAX)
      throw Error(gpu.name() + ": a product is too large for its epilogue");
    gpu.call(gpu.driver.launchKernel, functions.at(name),
             static_cast<unsigned>(blocks), 1u, 1u, kThreads, 1u, 1u, 0u,
             stream, static_cast<void **>(parameters),
             static_cast<void **>(nullptr));
  };
  launch(nameOf(op.epilogue, op.outType), shape.rows * shape.columns);
  if (writesBias(op.epilogue))
    launch(sumName(op.outType), shape.columns);
}

} // namespace whale::runtime::cuda
