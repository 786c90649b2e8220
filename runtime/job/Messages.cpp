//===- Messages.cpp - What processes say in frames ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Messages.h"

namespace whale::runtime::job {

std::string Hello::write() const {
  return FieldWriter()
      .text(version)
      .number(process)
      .number(processes)
      .text(nonce)
      .text(host)
      .number(processId)
      .text(program)
      .number(attempt)
      .text(failure)
      .take();
}

std::optional<Hello> Hello::read(std::string_view bytes) {
  FieldReader fields(bytes);
  Hello hello;
  hello.version = fields.text();
  hello.process = fields.number();
  hello.processes = fields.number();
  hello.nonce = fields.text();
  hello.host = fields.text();
  hello.processId = fields.number();
  hello.program = fields.text();
  hello.attempt = fields.number();
  hello.failure = fields.text();
  return fields.isComplete() ? std::optional(hello) : std::nullopt;
}

std::string writeProgress(const Progress &progress) {
  FieldWriter fields;
  fields.number(progress.isInStep)
      .number(progress.isInRelayout)
      .number(progress.count)
      .number(progress.steps)
      .number(static_cast<uint64_t>(progress.slowestStep * 1e6))
      .text(progress.ranks)
      .text(progress.busy)
      .text(progress.waiting)
      .number(progress.awaited.size());
  for (int64_t process : progress.awaited)
    fields.number(process);
  fields.number(progress.running.size());
  for (const std::string &step : progress.running)
    fields.text(step);
  return fields.take();
}

std::optional<Progress> readProgress(std::string_view bytes) {
  FieldReader fields(bytes);
  Progress progress;
  progress.isInStep = fields.number() != 0;
  progress.isInRelayout = fields.number() != 0;
  progress.count = fields.number();
  progress.steps = fields.number();
  progress.slowestStep = static_cast<double>(fields.number()) * 1e-6;
  progress.ranks = fields.text();
  progress.busy = fields.text();
  progress.waiting = fields.text();
  for (uint64_t count = fields.number(); count > 0 && !fields.isWrong();
       --count)
    progress.awaited.push_back(static_cast<int64_t>(fields.number()));
  for (uint64_t count = fields.number(); count > 0 && !fields.isWrong();
       --count)
    progress.running.push_back(fields.text());
  return fields.isComplete() ? std::optional(progress) : std::nullopt;
}

} // namespace whale::runtime::job
