//===- Export.cpp - A checkpoint as files of whole tensors ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost: reads and checks each byte once, with memory for one tensor at a time.
//
//===----------------------------------------------------------------------===//

#include "WholeFiles.h"

#include "whale/Runtime/Safetensors.h"
#include "whale/System/Io.h"
#include "whale/System/Json.h"

#include <cstdio>

using namespace whale;
using namespace whale::runtime;
using Json = nlohmann::ordered_json;

static std::string fileName(size_t number, size_t count) {
  char text[64];
  std::snprintf(text, sizeof(text), "model-%05zu-of-%05zu.safetensors",
                number + 1, count);
  return text;
}

void runtime::exportWhole(const Checkpoint &checkpoint,
                          const std::filesystem::path &directory,
                          int64_t mostBytes) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::filesystem::path index = directory / "model.safetensors.index.json";
  if (error)
    throw Error(directory.string() + ": cannot be made: " + error.message());
  if (std::filesystem::exists(index, error))
    throw Error(index.string() + ": is there already");
  const format::CheckpointManifest &manifest = checkpoint.manifest();
  std::vector<std::vector<TensorToWrite>> files(1);
  int64_t bytes = 0, total = 0;
  Json keys = Json::object(), dtypes = Json::object();
  for (size_t i = 0; i < manifest.leaves.size(); ++i) {
    const format::CheckpointLeaf &leaf = manifest.leaves[i];
    if (leaf.name == "__metadata__")
      throw Error("'__metadata__' cannot be exported: safetensors files have "
                  "their notes under this name");
    if (bytes > 0 && bytes + leaf.bytes() > mostBytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += leaf.bytes();
    total += leaf.bytes();
    files.back().push_back(
        {leaf.name, leaf.dtype, leaf.shape,
         [&checkpoint, i](void *out) { checkpoint.array(i).toHost(out); }});
    if (!leaf.key.empty())
      keys[leaf.name] = leaf.key;
    if (wholeType(safetensorsName(leaf.dtype)) != leaf.dtype)
      dtypes[leaf.name] = name(leaf.dtype);
  }
  Json places = Json::object();
  for (size_t i = 0; i < files.size(); ++i) {
    std::string name = fileName(i, files.size());
    writeSafetensors(directory / name, files[i]);
    for (const TensorToWrite &tensor : files[i])
      places[tensor.name] = name;
  }
  Json text = {{"metadata",
                {{"total_size", total},
                 {"step", manifest.step},
                 {"keys", std::move(keys)},
                 {"dtypes", std::move(dtypes)},
                 {"extra", system::parseJson<Json>(manifest.extra)}}},
               {"weight_map", std::move(places)}};
  // Last: without it the directory is incomplete to whoever reads it.
  system::FileWriter file(index);
  file.write(system::printJson(text, 1) + "\n");
  file.commit();
}
