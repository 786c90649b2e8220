//===- Inputs.cpp - The arguments of a program, from files ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a file of tensors that are arguments, and one of batch arguments with a
// leading dimension of batches. Out: the arguments of each step, which takes
// the next batch, and the first again after the last. All is checked at the
// start: names, types, shapes, and for types narrower than their bytes every
// element. The files are mapped; several ranks copy their shards out of them, a
// single one gets a copy.
//
// Cost: at the start each tensor is looked up among the arguments, by name.
// Elements are read for the check of narrow types alone. A step of a single
// rank copies its batch, and arguments that the step before has donated; with
// several ranks a pointer is passed.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "whale/System/Io.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace whale::runtime {

/// An empty file holds no tensors.
static SafetensorsFile openFile(const std::string &path) {
  if (system::MappedFile(path).size() == 0)
    return SafetensorsFile();
  return SafetensorsFile::open(path);
}

Inputs::Inputs(const Program &program, const std::string &inputsPath,
               const std::string &dataPath)
    : program(program) {
  inputs = openFile(inputsPath);
  checkNames(inputs, inputsPath, /*data=*/false);
  if (!dataPath.empty()) {
    data = openFile(dataPath);
    checkNames(data, dataPath, /*data=*/true);
  }
  for (const Parameter &parameter : program.arguments()) {
    bool inData = data.tensors().count(parameter.name) != 0;
    bool inInputs = inputs.tensors().count(parameter.name) != 0;
    if (inData && inInputs)
      throw Error(dataPath + ": tensor '" + parameter.name + "' is in " +
                  inputsPath + " too");
    if (!inData && !inInputs && !parameter.initial.empty()) {
      sources.push_back({nullptr, false});
      continue;
    }
    if (!inData && !inInputs)
      throw Error(inputsPath + ": there is no tensor '" + parameter.name +
                  "', which the program takes" +
                  (parameter.label.empty() ? "" : " as " + parameter.label));
    sources.push_back(
        {&check(inData ? data : inputs, inData ? dataPath : inputsPath,
                parameter, inData),
         inData});
  }
}

void Inputs::checkNames(const File &file, const std::string &path,
                        bool data) const {
  std::unordered_map<std::string_view, const Parameter *> byName;
  for (const Parameter &parameter : program.arguments())
    byName.emplace(parameter.name, &parameter);
  for (const auto &[name, tensor] : file.tensors()) {
    auto it = byName.find(name);
    if (it == byName.end())
      throw Error(path + ": tensor '" + name +
                  "' is no argument of the program, which takes " +
                  std::to_string(program.arguments().size()));
    if (data && it->second->role != Role::Batch)
      throw Error(path + ": tensor '" + name +
                  "' is no batch argument of the program");
  }
}

const SafetensorsFile::Tensor &Inputs::check(const File &file,
                                             const std::string &path,
                                             const Parameter &parameter,
                                             bool data) const {
  const File::Tensor &tensor = file.tensors().at(parameter.name);
  std::string where = path + ": tensor '" + parameter.name + "'";
  std::string_view dtype = safetensorsName(parameter.dtype);
  if (tensor.dtype != dtype)
    throw Error(where + " is " + tensor.dtype + ", the program takes " +
                std::string(dtype));
  Shape shape = tensor.shape;
  if (data) {
    if (shape.empty() || shape[0] == 0)
      throw Error(where + " must have a leading dimension of at least one "
                          "batch");
    shape.erase(shape.begin());
  }
  Shape wanted = safetensorsShape(parameter.dtype, parameter.shape);
  if (shape != wanted)
    throw Error(where + " has shape " + toString(tensor.shape) +
                ", the program takes " + (data ? "batches of " : "") +
                toString(wanted));

  // Elements that their dtype doesn't have would be undefined to the kernels.
  auto checkBytes = [&](auto allowed) {
    if (!std::all_of(tensor.data, tensor.data + tensor.bytes, allowed))
      throw Error(where + " has elements out of the range of " +
                  std::string(name(parameter.dtype)));
  };
  auto inRange = [](int low, int high) {
    return [=](uint8_t byte) {
      int value = low < 0 ? static_cast<int8_t>(byte) : byte;
      return value >= low && value <= high;
    };
  };
  switch (parameter.dtype) {
  case DType::I1:
    checkBytes(inRange(0, 1));
    break;
  case DType::I2:
    checkBytes(inRange(-2, 1));
    break;
  case DType::I4:
    checkBytes(inRange(-8, 7));
    break;
  case DType::UI2:
    checkBytes(inRange(0, 3));
    break;
  case DType::UI4:
  case DType::F4E2M1FN:
    checkBytes(inRange(0, 15));
    break;
  case DType::F6E2M3FN:
  case DType::F6E3M2FN:
    checkBytes(inRange(0, 63));
    break;
  default:
    break;
  }
  return tensor;
}

Array Inputs::read(const File &file, const Parameter &parameter,
                   const File::Tensor &tensor, int64_t row) const {
  int64_t bytes = elementCount(parameter.shape) * byteSize(parameter.dtype);
  const uint8_t *bytesOfRow = tensor.data + row * bytes;
  // Several ranks cut their shards out of the mapped file. A single one would
  // compute on it in place, where it may not be aligned.
  if (program.rankCount() == 1)
    return Array::fromHost(parameter.dtype, parameter.shape, bytesOfRow);
  return Array::adopt(parameter.dtype, parameter.shape,
                      std::shared_ptr<const void>(file.owner(), bytesOfRow));
}

/// What an argument of the program's own is in the first step.
static Array initialValue(const Parameter &parameter) {
  std::vector<float> elements(parameter.initial.begin(),
                              parameter.initial.end());
  return Array::fromHost(parameter.dtype, parameter.shape, elements.data());
}

void Inputs::fill(std::vector<Array> &arguments, int64_t step) const {
  for (size_t i = 0; i < sources.size(); ++i) {
    const Parameter &parameter = program.arguments()[i];
    const auto &[tensor, fromData] = sources[i];
    if (fromData)
      arguments[i] = read(data, parameter, *tensor, step % tensor->shape[0]);
    else if (arguments[i] && !arguments[i].isDonated())
      continue;
    else if (tensor)
      arguments[i] = read(inputs, parameter, *tensor, 0);
    else
      arguments[i] = initialValue(parameter);
  }
}

} // namespace whale::runtime
