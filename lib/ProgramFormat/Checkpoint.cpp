//===- Checkpoint.cpp - Read and write a checkpoint's manifest --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost: linear in the text, but that the pieces of a leaf are compared with one
// another along each dimension.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Checkpoint.h"

#include "JsonText.h"
#include "Reader.h"
#include "whale/System/Json.h"

#include <set>

namespace whale::format {

static Json toJson(const CheckpointLeaf &leaf) {
  Json pieces = Json::array();
  for (const CheckpointPiece &piece : leaf.pieces)
    pieces.push_back({{"file", piece.file},
                      {"offset", piece.offset},
                      {"box", {piece.box.start, piece.box.size}},
                      {"checksums", piece.checksums}});
  return {{"name", leaf.name},
          {"dtype", name(leaf.dtype)},
          {"shape", leaf.shape},
          {"key", leaf.key.empty() ? Json() : Json(leaf.key)},
          {"view", leaf.view},
          {"pieces", std::move(pieces)}};
}

std::string writeCheckpoint(const CheckpointManifest &manifest) {
  Json files = Json::array(), leaves = Json::array();
  for (const CheckpointFile &file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  for (const CheckpointLeaf &leaf : manifest.leaves)
    leaves.push_back(toJson(leaf));
  std::string text;
  printJson(text,
            {{"format", "whale-checkpoint"},
             {"version", checkpointVersion},
             {"step", manifest.step},
             {"chunk_bytes", checkpointChunk},
             {"files", std::move(files)},
             {"leaves", std::move(leaves)},
             {"extra", system::parseJson<Json>(manifest.extra)},
             {"tree", system::parseJson<Json>(manifest.tree)},
             {"plan", system::parseJson<Json>(manifest.plan)}},
            /*depth=*/2);
  return text + "\n";
}

static Box readBox(const Field &field, const Shape &view) {
  if (field.size() != 2)
    field.fail("must be [start, size]");
  Box box{field[0].integers(), field[1].integers()};
  if (box.start.size() != view.size() || box.size.size() != view.size())
    field.fail("must have the dimensions of the view");
  for (size_t d = 0; d < view.size(); ++d)
    if (box.size[d] > view[d] || box.start[d] > view[d] - box.size[d])
      field.fail("reaches out of the view");
  return box;
}

static CheckpointPiece readPiece(const Field &field, const CheckpointLeaf &leaf,
                                 const std::vector<CheckpointFile> &files) {
  CheckpointPiece piece;
  piece.file =
      field.at("file").integer(0, static_cast<int64_t>(files.size()) - 1);
  piece.offset = field.at("offset").integer();
  piece.box = readBox(field.at("box"), leaf.view);
  const CheckpointFile &file = files[static_cast<size_t>(piece.file)];
  int64_t bytes = piece.box.elements() * byteSize(leaf.dtype);
  if (bytes > file.bytes || piece.offset > file.bytes - bytes)
    field.fail("reaches out of " + file.name);
  Field checksums = field.at("checksums");
  if (static_cast<int64_t>(checksums.size()) !=
      (bytes + checkpointChunk - 1) / checkpointChunk)
    checksums.fail("must have one for each " + std::to_string(checkpointChunk) +
                   " of " + std::to_string(bytes) + " bytes");
  for (size_t i = 0; i < checksums.size(); ++i)
    piece.checksums.push_back(checksums[i].text());
  return piece;
}

static CheckpointLeaf readLeaf(const Field &field,
                               const std::vector<CheckpointFile> &files) {
  CheckpointLeaf leaf;
  leaf.name = field.at("name").text();
  leaf.dtype = field.at("dtype").dtype();
  leaf.shape = field.at("shape").shape();
  if (auto key = field.find("key"))
    leaf.key = key->text();
  leaf.view = field.at("view").shape();
  if (elementCount(leaf.view) != elementCount(leaf.shape))
    field.at("view").fail("must have as many elements as the shape");
  Field pieces = field.at("pieces");
  std::vector<std::optional<Box>> boxes;
  int64_t elements = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    leaf.pieces.push_back(readPiece(pieces[i], leaf, files));
    boxes.push_back(leaf.pieces.back().box);
    elements += boxes.back()->elements();
  }
  // Boxes that cover all and have no more elements don't overlap.
  if (elements != elementCount(leaf.view) || !covers(leaf.view, boxes))
    pieces.fail("are not '" + leaf.name + "', each element once");
  return leaf;
}

CheckpointManifest readCheckpoint(std::string_view text,
                                  const std::string &file) {
  Document document = parseDocument(text, file);
  Field root(document);
  if (root.at("format").text() != "whale-checkpoint")
    root.at("format").fail("must be 'whale-checkpoint'");
  if (int64_t version = root.at("version").integer();
      version != checkpointVersion)
    root.at("version").fail(
        "the checkpoint has version " + std::to_string(version) +
        ", this Whale reads version " + std::to_string(checkpointVersion));
  if (root.at("chunk_bytes").integer() != checkpointChunk)
    root.at("chunk_bytes").fail("must be " + std::to_string(checkpointChunk));
  CheckpointManifest manifest;
  manifest.step = root.at("step").integer();
  manifest.extra = system::printJson(root.at("extra").json());
  manifest.tree = system::printJson(root.at("tree").json());
  manifest.plan = system::printJson(root.at("plan").json());
  Field files = root.at("files"), leaves = root.at("leaves");
  for (size_t i = 0; i < files.size(); ++i) {
    manifest.files.push_back(
        {readFileName(files[i].at("name")), files[i].at("bytes").integer()});
  }
  std::set<std::string> names;
  for (size_t i = 0; i < leaves.size(); ++i) {
    manifest.leaves.push_back(readLeaf(leaves[i], manifest.files));
    if (!names.insert(manifest.leaves.back().name).second)
      leaves[i].at("name").fail("is the name of an earlier leaf, too");
  }
  return manifest;
}

} // namespace whale::format
