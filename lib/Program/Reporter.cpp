//===- Reporter.cpp - Errors and remarks for the caller -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reporter.h"

#include "whale/System/Printable.h"
#include "whale/Transforms/SourceLines.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/Twine.h"

#include <map>

using namespace mlir;

namespace whale {

static std::string describe(FileLineColLoc position) {
  if (position.getLine() == 0)
    return position.getFilename().str();
  return (Twine(position.getFilename().getValue()) + ":" +
          Twine(position.getLine()) + ":" + Twine(position.getColumn()))
      .str();
}

static std::string describe(Location loc) {
  if (std::optional<FileLineColLoc> position = findPosition(loc))
    return describe(*position);
  std::string name;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part))
      name = named.getName().str();
    return name.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return name;
}

void Reporter::report(Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  if (StringRef(text).contains("unregistered dialect"))
    text = explainUnknown(diagnostic.getLocation());
  std::string location = describe(diagnostic.getLocation());
  if (std::optional<FileLineColLoc> caller =
          findCaller(diagnostic.getLocation()))
    text += "; called from " + describe(*caller);
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string place = describe(note.getLocation());
    text += "; ";
    if (!place.empty() && place != location)
      text += place + ": ";
    text += note.str();
  }
  std::lock_guard<std::mutex> lock(mutex);
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    error(location, text);
    break;
  case DiagnosticSeverity::Remark:
    if (remarks)
      hold(CompileMessage::Remark, location, text);
    break;
  default:
    hold(CompileMessage::Warning, location, text);
  }
}

void Reporter::error(const std::string &location, const std::string &text) {
  passOn();
  if (!failed)
    handler({CompileMessage::Error, system::diagnosticLine(location),
             system::diagnosticLine(text), errorTable});
  failed = true;
}

/// What is said of several places alike, as of the layers of a model, is said
/// once, of the first.
void Reporter::passOn() {
  std::vector<CompileMessage> said;
  std::map<std::pair<CompileMessage::Severity, std::string>, size_t> numbers;
  for (CompileMessage &message : held) {
    auto [it, isNew] =
        numbers.try_emplace({message.severity, message.text}, said.size());
    if (isNew)
      said.push_back(std::move(message));
    else
      ++said[it->second].count;
  }
  held.clear();
  for (const CompileMessage &message : said)
    handler(message);
}

void Reporter::hold(CompileMessage::Severity severity, StringRef location,
                    StringRef text) {
  held.push_back(
      {severity, system::escaped(location), system::escaped(text), ""});
}

// MLIR's message names neither the operation nor an option of ours.
std::string Reporter::explainUnknown(Location loc) {
  StringRef rest = source;
  std::optional<FileLineColLoc> position = findPosition(loc);
  for (unsigned line = 1; position && line < position->getLine(); ++line)
    rest = rest.split('\n').second;
  rest = rest.split('\n').first;
  if (position)
    rest = rest.substr(0, position->getColumn());
  StringRef name = rest.rsplit('"').first.rsplit('"').second;
  return ("operation '" + name + "' is of an unknown dialect").str();
}

} // namespace whale
