//===- Import.cpp - Files of whole tensors as a checkpoint ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cost: copies all tensors into memory, as any save does.
//
//===----------------------------------------------------------------------===//

#include "WholeFiles.h"

#include "whale/Runtime/Safetensors.h"
#include "whale/System/Io.h"
#include "whale/System/Json.h"

#include <map>

using namespace whale;
using namespace whale::runtime;
using nlohmann::json;
namespace fs = std::filesystem;

std::optional<DType> runtime::wholeType(std::string_view name) {
  for (DType dtype :
       {DType::I1, DType::I8, DType::I16, DType::I32, DType::I64, DType::UI8,
        DType::UI16, DType::UI32, DType::UI64, DType::F8E4M3FN,
        DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0FNU,
        DType::BF16, DType::F16, DType::F32, DType::F64, DType::C64})
    if (safetensorsName(dtype) == name)
      return dtype;
  return std::nullopt;
}

/// A tensor as an array; of the type that `dtypes` has for it, if any.
static Array arrayOf(const SafetensorsFile &file, const std::string &where,
                     const std::string &name,
                     const SafetensorsFile::Tensor &tensor,
                     const json &dtypes) {
  std::optional<DType> dtype = wholeType(tensor.dtype);
  Shape shape = tensor.shape;
  if (dtypes.contains(name)) {
    const json &given = dtypes[name];
    dtype =
        given.is_string() ? parseDType(given.get<std::string>()) : std::nullopt;
    if (dtype == DType::C128 && !shape.empty())
      shape.pop_back();
    if (!dtype || safetensorsName(*dtype) != tensor.dtype ||
        safetensorsShape(*dtype, shape) != tensor.shape)
      throw Error(where + ": tensor '" + name +
                  "' is none of the type that the index says");
  }
  if (!dtype)
    throw Error(where + ": tensor '" + name + "': elements of " + tensor.dtype +
                " are not supported");
  return Array::adopt(*dtype, std::move(shape),
                      std::shared_ptr<const void>(file.owner(), tensor.data));
}

static json readIndex(const fs::path &path) {
  system::MappedFile file(path);
  try {
    json index = system::parseJson<json>(file.text());
    if (index.is_object() && index.contains("weight_map") &&
        index["weight_map"].is_object())
      return index;
  } catch (const json::exception &) {
  }
  throw Error(path.string() + ": is no index of safetensors: an object with "
                              "'weight_map'");
}

/// Adds the tensors of a file; only those with `name` as their place, unless it
/// is empty.
static void addTensors(const fs::path &path, const json &places,
                       const std::string &name, const json &dtypes,
                       std::map<std::string, Array> &arrays) {
  SafetensorsFile file = SafetensorsFile::open(path);
  for (const auto &[tensorName, tensor] : file.tensors())
    if (name.empty() ||
        (places.contains(tensorName) && places[tensorName] == name))
      arrays.insert_or_assign(
          tensorName, arrayOf(file, path.string(), tensorName, tensor, dtypes));
}

void runtime::importWhole(const fs::path &from, Checkpointer &checkpointer,
                          std::optional<int64_t> step) {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> keys;
  CheckpointNotes notes;
  if (fs::is_directory(from)) {
    fs::path path = from / "model.safetensors.index.json";
    std::error_code error;
    if (fs::path single = from / "model.safetensors";
        !fs::exists(path, error) && fs::exists(single, error)) {
      addTensors(single, {}, "", {}, arrays);
    } else {
      json index = readIndex(path);
      const json &places = index["weight_map"];
      std::map<std::string, bool> files;
      for (const auto &[name, file] : places.items())
        if (file.is_string() &&
            file.get<std::string>().find('/') == std::string::npos)
          files[file.get<std::string>()] = true;
        else
          throw Error(path.string() + ": weight_map: '" + name +
                      "' must have the name of a file, without folders");
      json metadata = index.value("metadata", json::object());
      json dtypes = metadata.value("dtypes", json::object());
      for (const auto &[file, isThere] : files)
        addTensors(from / file, places, file, dtypes, arrays);
      for (const auto &[name, file] : places.items())
        if (!arrays.contains(name))
          throw Error((from / file.get<std::string>()).string() +
                      ": has no tensor '" + name + "'");
      if (!step && metadata.contains("step") &&
          metadata["step"].is_number_unsigned())
        step = metadata["step"].get<int64_t>();
      if (metadata.contains("extra"))
        notes.extra = system::printJson(metadata["extra"]);
      if (metadata.contains("keys") && metadata["keys"].is_object())
        for (const auto &[name, key] : metadata["keys"].items())
          if (key.is_string())
            keys[name] = key.get<std::string>();
    }
  } else {
    addTensors(from, {}, "", {}, arrays);
  }
  std::vector<StateLeaf> leaves;
  for (const auto &[name, array] : arrays)
    leaves.push_back({name, array, keys[name]});
  checkpointer.save(step.value_or(0), leaves, notes);
  checkpointer.wait();
}
