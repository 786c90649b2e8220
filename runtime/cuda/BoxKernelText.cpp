//===- BoxKernelText.cpp - The PTX of the kernels of boxes ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the name of a kernel. Out: its text. A thread makes one element: it finds
// where the element is in the destination and in sources that are not dense,
// dimension by dimension from the last one, reads it in each source in their
// order, combines it with the one before, and writes it. Half precision is
// combined in f32 and rounded once, to nearest even. Each kernel costs the
// driver a compilation of some fifty instructions when it is loaded.
//
// They are texts of PTX, which is all that a runtime without a compiler can
// load. The test machine interprets them (runtime/cuda/test/Ptx.cpp).
//
//===----------------------------------------------------------------------===//

#include "cuda/BoxKernels.h"

#include <cstddef>

namespace whale::runtime::cuda {
namespace {

/// How an element type is loaded, combined and stored. Registers: %x is a term,
/// %acc the result so far, both of the type `reg`.
struct Type {
  const char *name;
  /// Its suffix in memory and its bytes.
  const char *memory;
  int bytes;
  /// Of registers, of arithmetic, and of *and* and *or*.
  const char *reg, *arithmetic, *bits;
  const char *least, *most;
};

constexpr Type types[] = {
    {"i1", "u8", 1, "b32", nullptr, "b32", nullptr, nullptr},
    {"s8", "s8", 1, "b32", "s32", "b32", "-128", "127"},
    {"s16", "s16", 2, "b32", "s32", "b32", "-32768", "32767"},
    {"s32", "s32", 4, "b32", "s32", "b32", "-2147483648", "2147483647"},
    {"s64", "s64", 8, "b64", "s64", "b64", "0x8000000000000000",
     "0x7FFFFFFFFFFFFFFF"},
    {"u8", "u8", 1, "b32", "u32", "b32", "0", "255"},
    {"u16", "u16", 2, "b32", "u32", "b32", "0", "65535"},
    {"u32", "u32", 4, "b32", "u32", "b32", "0", "0xFFFFFFFF"},
    {"u64", "u64", 8, "b64", "u64", "b64", "0", "0xFFFFFFFFFFFFFFFF"},
    {"bf16", "u16", 2, "f32", "f32", nullptr, "0fFF800000", "0f7F800000"},
    {"f16", "u16", 2, "f32", "f32", nullptr, "0fFF800000", "0f7F800000"},
    {"f32", "f32", 4, "f32", "f32", nullptr, "0fFF800000", "0f7F800000"},
    {"f64", "f64", 8, "f64", "f64", nullptr, "0dFFF0000000000000",
     "0d7FF0000000000000"},
};
constexpr const char *operations[] = {"sum", "product", "min",
                                      "max", "and",     "or"};

bool isFloat(const Type &type) { return !type.bits; }
bool has(const Type &type, std::string_view operation) {
  bool isBits = operation == "and" || operation == "or";
  return isBits ? type.bits != nullptr : type.arithmetic != nullptr;
}

std::string identity(const Type &type, std::string_view operation) {
  bool isDouble = type.reg == std::string_view("f64");
  if (operation == "sum")
    return !isFloat(type) ? "0"
           : isDouble     ? "0d8000000000000000"
                          : "0f80000000";
  if (operation == "product")
    return !isFloat(type) ? "1"
           : isDouble     ? "0d3FF0000000000000"
                          : "0f3F800000";
  if (operation == "min")
    return type.most;
  if (operation == "max")
    return type.least;
  if (operation == "or")
    return "0";
  return type.name == std::string_view("i1") ? "1" : "-1";
}

/// %acc = %acc op %x.
std::string combine(const Type &type, std::string_view operation) {
  auto line = [&](std::string what, const char *suffix) {
    return "  " + what + "." + suffix + " %acc, %acc, %x;\n";
  };
  if (operation == "and" || operation == "or")
    return line(std::string(operation), type.bits);
  std::string_view arithmetic = type.arithmetic;
  if (operation == "sum")
    return line(isFloat(type) ? "add.rn" : "add", type.arithmetic);
  if (operation == "product")
    return line(isFloat(type) ? "mul.rn" : "mul.lo", type.arithmetic);
  if (!isFloat(type))
    return line(std::string(operation), type.arithmetic);
  // A NaN wins, which min and max drop. Of two zeros the signs decide.
  std::string f(arithmetic);
  return "  setp.nan." + f + " %nan, %acc, %x;\n" + "  add.rn." + f +
         " %t, %acc, %x;\n" + line(std::string(operation), type.arithmetic) +
         "  selp." + f + " %acc, %t, %acc, %nan;\n";
}

/// %x = what is at %src.
std::string load(const Type &type) {
  std::string_view name = type.name;
  if (name == "bf16")
    return "  ld.global.u16 %w, [%src];\n"
           "  shl.b32 %w, %w, 16;\n"
           "  mov.b32 %x, %w;\n";
  if (name == "f16")
    return "  ld.global.b16 %h, [%src];\n"
           "  cvt.f32.f16 %x, %h;\n";
  return std::string("  ld.global.") + type.memory + " %x, [%src];\n";
}

std::string store(const Type &type) {
  std::string_view name = type.name;
  if (name == "bf16")
    // As Element<BFloat16>::store.
    return "  mov.b32 %w, %acc;\n"
           "  shr.u32 %v, %w, 16;\n"
           "  or.b32 %u, %v, 64;\n"
           "  and.b32 %v, %v, 1;\n"
           "  add.u32 %w, %w, %v;\n"
           "  add.u32 %w, %w, 32767;\n"
           "  shr.u32 %w, %w, 16;\n"
           "  setp.nan.f32 %nan, %acc, %acc;\n"
           "  selp.b32 %w, %u, %w, %nan;\n"
           "  st.global.u16 [%dst], %w;\n";
  if (name == "f16")
    return "  cvt.rn.f16.f32 %h, %acc;\n"
           "  st.global.b16 [%dst], %h;\n";
  return std::string("  st.global.") + type.memory + " [%dst], %acc;\n";
}

std::string offset(size_t of) { return "+" + std::to_string(of) + "];\n"; }

/// All but what the terms are: `body` reads them, and has the result at %dst.
std::string kernel(const std::string &name, const char *reg, int bytes,
                   const std::string &start, const std::string &term,
                   const std::string &end) {
  std::string size = std::to_string(sizeof(BoxParameter));
  return ".version 6.3\n"
         ".target sm_60\n"
         ".address_size 64\n"
         ".visible .entry " +
         name + "(.param .align 8 .b8 box[" + size +
         "])\n"
         ".maxntid 256, 1, 1\n"
         "{\n"
         "  .reg .pred %is, %nan;\n"
         "  .reg .b16 %h;\n"
         "  .reg .b32 %b, %t0, %dims, %n, %w, %v, %u;\n"
         "  .reg .b64 %index, %thread, %count, %at, %rest, %dense, %to, "
         "%from;\n"
         "  .reg .b64 %extent, %i, %toStride, %fromStride, %src, %off, %dst;\n"
         "  .reg ." +
         reg +
         " %x, %acc, %t;\n"
         "  mov.u32 %b, %ctaid.x;\n"
         "  mov.u32 %t0, %tid.x;\n"
         "  mul.wide.u32 %index, %b, 256;\n"
         "  cvt.u64.u32 %thread, %t0;\n"
         "  add.u64 %index, %index, %thread;\n"
         "  ld.param.u64 %count, [box" +
         offset(offsetof(BoxParameter, count)) +
         "  setp.ge.u64 %is, %index, %count;\n"
         "  @%is bra DONE;\n"
         "  mul.lo.u64 %dense, %index, " +
         std::to_string(bytes) +
         ";\n"
         "  mov.u64 %to, 0;\n"
         "  mov.u64 %from, 0;\n"
         "  mov.u64 %rest, %index;\n"
         "  ld.param.u32 %dims, [box" +
         offset(offsetof(BoxParameter, dims)) +
         "DIM:\n"
         "  sub.u32 %dims, %dims, 1;\n"
         "  mul.wide.u32 %at, %dims, 8;\n"
         "  mov.u64 %off, box;\n"
         "  add.u64 %at, %at, %off;\n"
         "  ld.param.u64 %toStride, [%at" +
         offset(offsetof(BoxParameter, toStrides)) +
         "  ld.param.u64 %fromStride, [%at" +
         offset(offsetof(BoxParameter, fromStrides)) +
         "  setp.eq.u32 %is, %dims, 0;\n"
         "  @%is bra LAST;\n"
         "  ld.param.u64 %extent, [%at" +
         offset(offsetof(BoxParameter, extents)) +
         "  rem.u64 %i, %rest, %extent;\n"
         "  div.u64 %rest, %rest, %extent;\n"
         "  mad.lo.u64 %to, %i, %toStride, %to;\n"
         "  mad.lo.u64 %from, %i, %fromStride, %from;\n"
         "  bra DIM;\n"
         "LAST:\n"
         "  mad.lo.u64 %to, %rest, %toStride, %to;\n"
         "  mad.lo.u64 %from, %rest, %fromStride, %from;\n" +
         start +
         "  mov.u64 %at, box;\n"
         "  ld.param.u32 %n, [box" +
         offset(offsetof(BoxParameter, sources)) +
         "TERM:\n"
         "  setp.eq.u32 %is, %n, 0;\n"
         "  @%is bra STORE;\n"
         "  ld.param.u64 %src, [%at" +
         offset(offsetof(BoxParameter, from)) +
         "  setp.lt.s64 %is, %src, 0;\n"
         "  and.b64 %src, %src, 0x7FFFFFFFFFFFFFFF;\n"
         "  selp.b64 %off, %from, %dense, %is;\n"
         "  add.u64 %src, %src, %off;\n" +
         term +
         "  add.u64 %at, %at, 8;\n"
         "  sub.u32 %n, %n, 1;\n"
         "  bra TERM;\n"
         "STORE:\n"
         "  ld.param.u64 %dst, [box" +
         offset(offsetof(BoxParameter, to)) + "  add.u64 %dst, %dst, %to;\n" +
         end +
         "DONE:\n"
         "  ret;\n"
         "}\n";
}

const Type &typeOf(DType dtype) {
  std::string_view wanted = name(dtype);
  for (const Type &type : types)
    if (type.name == wanted)
      return type;
  throw Error("kernels of boxes have no " + std::string(wanted));
}

} // namespace

std::string floatLoadText(DType dtype) { return load(typeOf(dtype)); }
std::string floatStoreText(DType dtype) { return store(typeOf(dtype)); }

std::string boxKernelText(const std::string &name) {
  for (int bytes : {1, 2, 4, 8})
    if (name == "box_copy_" + std::to_string(bytes)) {
      std::string type = "b" + std::to_string(8 * bytes);
      return kernel(name, bytes == 8 ? "b64" : "b32", bytes, "",
                    "  ld.global." + type + " %acc, [%src];\n",
                    "  st.global." + type + " [%dst], %acc;\n");
    }
  for (const Type &type : types)
    for (const char *operation : operations)
      if (has(type, operation) &&
          name == std::string("box_") + operation + "_" + type.name)
        return kernel(name, type.reg, type.bytes,
                      "  mov." + std::string(type.reg) + " %acc, " +
                          identity(type, operation) + ";\n",
                      load(type) + combine(type, operation), store(type));
  throw Error("there is no kernel '" + name + "'");
}

std::vector<std::string> boxKernelNames() {
  std::vector<std::string> names;
  for (int bytes : {1, 2, 4, 8})
    names.push_back("box_copy_" + std::to_string(bytes));
  for (const Type &type : types)
    for (const char *operation : operations)
      if (has(type, operation))
        names.push_back(std::string("box_") + operation + "_" + type.name);
  return names;
}

} // namespace whale::runtime::cuda
