//===- ReadManifest.cpp - Decode the top of a manifest ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/Reader.h"

#include "whale/Runtime/Limits.h"

#include <algorithm>

namespace whale::runtime {

static constexpr int64_t newestVersion = 1;

/// A box of `view`; every index below is inside it from here on.
static Box readBox(const Field &field, const Shape &view) {
  if (field.size() != 2)
    field.fail("must be [start, size]");
  Box box = {field[0].integers(), field[1].integers()};
  if (box.start.size() != view.size() || box.size.size() != view.size())
    field.fail("must have the " + std::to_string(view.size()) +
               " dimensions of the view");
  for (size_t i = 0; i < view.size(); ++i)
    if (box.start[i] > view[i] || box.size[i] > view[i] - box.start[i])
      field.fail("reaches out of the view " + toString(view));
  return box;
}

/// The layout of the argument or result that was read before under that name.
static std::shared_ptr<const Layout>
findLayout(const Field &boxes, const Manifest &manifest, const Shape &view) {
  for (const auto *list : {&manifest.arguments, &manifest.results})
    for (const Parameter &parameter : *list)
      if (parameter.name == boxes.text()) {
        if (parameter.layout->view != view)
          boxes.fail("'" + parameter.name + "' has another view");
        return parameter.layout;
      }
  boxes.fail("no earlier argument or result is called '" + boxes.text() + "'");
}

static std::shared_ptr<const Layout>
readLayout(const Field &field, const Shape &shape, const Manifest &manifest) {
  size_t ranks = manifest.classOf.size();
  auto layout = std::make_shared<Layout>();
  Field view = field.at("view");
  layout->view = view.shape();
  if (elementCount(layout->view) != elementCount(shape))
    view.fail("must have as many elements as the shape " + toString(shape));
  Field boxes = field.at("boxes");
  if (boxes.json().is_string())
    return findLayout(boxes, manifest, layout->view);
  if (boxes.size() != ranks)
    boxes.fail("must have one entry for each of the " + std::to_string(ranks) +
               " ranks");
  bool held = false;
  for (size_t rank = 0; rank < ranks; ++rank) {
    Field box = boxes[rank];
    if (box.json().is_null()) {
      layout->boxes.emplace_back();
      continue;
    }
    layout->boxes.push_back(readBox(box, layout->view));
    held = true;
  }
  bool covered = false;
  try {
    covered = covers(layout->view, layout->boxes);
  } catch (const Error &error) {
    boxes.fail(error.what());
  }
  // An argument that nobody reads need not be anywhere.
  if (held && !covered)
    boxes.fail("must cover the whole view " + toString(layout->view));
  return layout;
}

static Parameter readParameter(const Field &field, const std::string &kind,
                               size_t index, const Manifest &manifest) {
  Parameter parameter;
  parameter.name = field.at("name").text();
  if (parameter.name != kind + std::to_string(index))
    field.at("name").fail("must be '" + kind + std::to_string(index) + "'");
  parameter.label = field.at("label").text();
  parameter.dtype = field.at("dtype").dtype();
  parameter.shape = field.at("shape").shape();
  parameter.layout = readLayout(field, parameter.shape, manifest);
  return parameter;
}

static Role readRole(const Field &field) {
  const std::string &role = field.text();
  if (role == "state")
    return Role::State;
  if (role == "batch")
    return Role::Batch;
  if (role != "input")
    field.fail("must be 'state', 'batch' or 'input'");
  return Role::Input;
}

void ManifestReader::readParameters(const Field &root) {
  Field arguments = root.at("arguments"), results = root.at("results");
  size_t resultCount = results.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    Field field = arguments[i];
    Parameter parameter = readParameter(field, "arg", i, manifest);
    parameter.role = readRole(field.at("role"));
    parameter.donated = field.at("donated").boolean();
    if (auto dim = field.find("batch_dim"))
      parameter.batchDim =
          dim->integer(0, static_cast<int64_t>(parameter.shape.size()) - 1);
    if (auto fedBy = field.find("fed_by"))
      parameter.fedBy =
          fedBy->integer(0, static_cast<int64_t>(resultCount) - 1);
    manifest.arguments.push_back(std::move(parameter));
  }

  std::set<int64_t> aliased;
  for (size_t i = 0; i < resultCount; ++i) {
    Field field = results[i];
    Parameter parameter = readParameter(field, "result", i, manifest);
    bool held = std::any_of(parameter.layout->boxes.begin(),
                            parameter.layout->boxes.end(),
                            [](const auto &box) { return box.has_value(); });
    if (!held)
      field.at("boxes").fail("no rank holds the result");
    if (auto alias = field.find("alias")) {
      parameter.alias = alias->integer(
          0, static_cast<int64_t>(manifest.arguments.size()) - 1);
      const Parameter &argument = manifest.arguments[*parameter.alias];
      if (!argument.donated)
        alias->fail(argument.name + " is not donated");
      if (argument.dtype != parameter.dtype ||
          *argument.layout != *parameter.layout)
        alias->fail(argument.name + " has another dtype, view or boxes");
      if (!aliased.insert(*parameter.alias).second)
        alias->fail("another result is an alias of " + argument.name);
    }
    manifest.results.push_back(std::move(parameter));
  }
  for (size_t i = 0; i < manifest.arguments.size(); ++i) {
    const Parameter &argument = manifest.arguments[i];
    if (!argument.fedBy)
      continue;
    const Parameter &result = manifest.results[*argument.fedBy];
    if (result.dtype != argument.dtype || result.shape != argument.shape)
      arguments[i].at("fed_by").fail(result.name +
                                     " has another dtype or shape");
  }
}

static void readRanks(const Field &root, Manifest &manifest) {
  Field ranks = root.at("ranks"), classes = root.at("classes");
  if (ranks.size() == 0 || ranks.size() > mostRanks)
    ranks.fail("must have from 1 to " + std::to_string(mostRanks) + " entries");
  for (size_t i = 0; i < ranks.size(); ++i)
    manifest.classOf.push_back(ranks[i].at("class").integer(
        0, static_cast<int64_t>(classes.size()) - 1));
  for (size_t i = 0; i < classes.size(); ++i) {
    Field field = classes[i].at("ranks");
    std::vector<int64_t> expected;
    for (size_t rank = 0; rank < manifest.classOf.size(); ++rank)
      if (manifest.classOf[rank] == static_cast<int64_t>(i))
        expected.push_back(static_cast<int64_t>(rank));
    if (field.integers() != expected)
      field.fail("must list the ranks whose class this is: " +
                 toString(expected));
    manifest.classes.emplace_back();
    manifest.classes.back().ranks = std::move(expected);
  }
}

static std::string readFileName(const Field &root, const std::string &key) {
  std::optional<Field> field = root.find(key);
  if (!field)
    return "";
  const std::string &name = field->text();
  if (name.empty() || name == "." || name == ".." ||
      name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    field->fail("must be the name of a file, without folders");
  return name;
}

/// What "hashes" says of a file; empty where there is no such field.
static std::string readHash(const Field &root, const std::string &file) {
  std::optional<Field> hashes = root.find("hashes");
  return hashes ? hashes->at(file).text() : "";
}

static std::map<std::string, KernelSignature>
readSignatures(const Field &field) {
  std::map<std::string, KernelSignature> result;
  for (const std::string &symbol : field.keys()) {
    Field entry = field.at(symbol);
    std::vector<int64_t> bytes = entry.at("bytes").integers();
    auto inputs = static_cast<size_t>(
        entry.at("inputs").integer(0, static_cast<int64_t>(bytes.size())));
    result[symbol] = {inputs, std::move(bytes), entry.at("extent").integer()};
  }
  return result;
}

/// How deep lists and objects nest in a JSON text.
static size_t nestingDepth(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\';
    else if (c == '[' || c == '{')
      deepest = std::max(deepest, ++depth);
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return deepest;
}

std::unique_ptr<Manifest> readManifest(std::string_view text,
                                       const ManifestContext &context) {
  // Instructions nest 64 deep at most; the plan, which is for readers, is
  // written out again by a recursive function.
  constexpr size_t deepest = 512;
  if (nestingDepth(text) > deepest)
    throw Error(context.file + ": lists nest more than " +
                std::to_string(deepest) + " deep");
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception &error) {
    throw Error(context.file + ": not valid JSON: " + error.what());
  }
  Field root(document, context.file);
  if (root.at("format").text() != "whale")
    root.at("format").fail("must be 'whale'");
  int64_t version = root.at("version").integer(1);
  if (version > newestVersion)
    root.at("version").fail(
        "the program has version " + std::to_string(version) +
        ", this runtime reads up to version " + std::to_string(newestVersion) +
        ": it needs a newer Whale");
  const std::string &target = root.at("target").text();
  if (target == "none")
    root.at("target").fail("the program was compiled for 'none': it has no "
                           "code to run");
  if (target != "cpu")
    root.at("target").fail("this runtime runs 'cpu' programs, not '" + target +
                           "'");

  auto manifest = std::make_unique<Manifest>();
  manifest->name = root.at("name").text();
  if (auto plan = root.find("plan"))
    manifest->plan = plan->json().dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
  else
    manifest->plan = "null";
  readRanks(root, *manifest);

  ManifestReader reader{.context = context, .manifest = *manifest};
  manifest->kernelsFile = readFileName(root, "kernels");
  manifest->constantsFile = readFileName(root, "constants");
  if (!manifest->kernelsFile.empty())
    reader.kernels = context.openKernels(manifest->kernelsFile,
                                         readHash(root, manifest->kernelsFile));
  if (!manifest->constantsFile.empty())
    reader.constantsSize = context.constantsSize(
        manifest->constantsFile, readHash(root, manifest->constantsFile));
  if (auto signatures = root.find("kernel_signatures"))
    reader.signatures = readSignatures(*signatures);

  reader.readParameters(root);
  reader.readChannels(root);
  Field classes = root.at("classes");
  for (size_t i = 0; i < manifest->classes.size(); ++i)
    reader.readClass(classes[i], manifest->classes[i]);
  reader.checkChannels(root);
  return manifest;
}

} // namespace whale::runtime
