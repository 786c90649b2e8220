//===- Module.h - The parts of the Python module ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function for each group of bindings.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PYTHON_MODULE_H
#define WHALE_PYTHON_MODULE_H

#include <nanobind/nanobind.h>

namespace whale::python {

void bindArray(nanobind::module_ &module);
void bindArrayClass(nanobind::module_ &module);
void bindJob(nanobind::module_ &module);
void bindCheckpoint(nanobind::module_ &module);
void bindFiles(nanobind::module_ &module);
void bindProgram(nanobind::module_ &module);
void bindReport(nanobind::module_ &module);

} // namespace whale::python

#endif // WHALE_PYTHON_MODULE_H
