//===- Safetensors.cpp - Files of tensors -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the bytes of a file of safetensors, or tensors to write to one. Reading
// checks the whole header first, and copies nothing: tensors are pointers into
// the mapped file. Byte ranges are sorted and must follow one another, from the
// first byte of data to the last.
//
// Cost: reading is linear in the header, and sorts the tensors by name and by
// position; it does not touch the data. Writing needs memory for one tensor at
// a time, and copies each once before it is written.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Safetensors.h"

#include "whale/Runtime/Array.h"
#include "whale/Runtime/Types.h"
#include "whale/System/Io.h"
#include "whale/System/ReadJson.h"

#include <algorithm>

using nlohmann::json;

namespace whale::runtime {

using system::JsonValue;

std::string_view safetensorsName(DType dtype) {
  switch (dtype) {
  case DType::I1:
    return "BOOL";
  case DType::I2:
  case DType::I4:
  case DType::I8:
    return "I8";
  case DType::I16:
    return "I16";
  case DType::I32:
    return "I32";
  case DType::I64:
    return "I64";
  case DType::UI2:
  case DType::UI4:
  case DType::UI8:
  case DType::F4E2M1FN:
  case DType::F6E2M3FN:
  case DType::F6E3M2FN:
  case DType::F8E3M4:
  case DType::F8E4M3:
  case DType::F8E4M3B11FNUZ:
    return "U8";
  case DType::UI16:
    return "U16";
  case DType::UI32:
    return "U32";
  case DType::UI64:
    return "U64";
  case DType::F8E4M3FN:
    return "F8_E4M3";
  case DType::F8E4M3FNUZ:
    return "F8_E4M3FNUZ";
  case DType::F8E5M2:
    return "F8_E5M2";
  case DType::F8E5M2FNUZ:
    return "F8_E5M2FNUZ";
  case DType::F8E8M0FNU:
    return "F8_E8M0";
  case DType::BF16:
    return "BF16";
  case DType::F16:
    return "F16";
  case DType::F32:
    return "F32";
  case DType::F64:
  case DType::C128:
    return "F64";
  case DType::C64:
    return "C64";
  }
  return "";
}

Shape safetensorsShape(DType dtype, Shape shape) {
  if (dtype == DType::C128)
    shape.push_back(2);
  return shape;
}

/// Bits of an element of the file's dtype, 0 for an unknown one.
static int64_t bitsOf(const std::string &dtype) {
  static const std::map<std::string, int64_t> bits = {
      {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"BOOL", 8},
      {"U8", 8},      {"I8", 8},          {"F8_E4M3", 8},     {"F8_E5M2", 8},
      {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
      {"U32", 32},    {"F32", 32},        {"I64", 64},        {"U64", 64},
      {"F64", 64},    {"C64", 64}};
  auto it = bits.find(dtype);
  return it == bits.end() ? 0 : it->second;
}

namespace {
/// Parses one file's header; its methods throw Error with the file's name.
class HeaderReader {
public:
  HeaderReader(const std::string &name, const uint8_t *bytes, size_t size)
      : name(name), bytes(bytes), size(size) {}

  void read(std::map<std::string, SafetensorsFile::Tensor> &tensors,
            std::map<std::string, std::string> &metadata);

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(name + ": " + what);
  }
  JsonValue parseHeader();
  SafetensorsFile::Tensor readTensor(const JsonValue &entry);
  void checkRanges(
      const std::map<std::string, SafetensorsFile::Tensor> &tensors) const;

  const std::string &name;
  const uint8_t *bytes;
  size_t size;
  const uint8_t *data = nullptr;
  uint64_t dataSize = 0;
};
} // namespace

JsonValue HeaderReader::parseHeader() {
  if (size < 8)
    fail("too short to be a safetensors file");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | bytes[i];
  if (length > size - 8)
    fail("the header of " + std::to_string(length) +
         " bytes does not fit in the file of " + std::to_string(size));
  data = bytes + 8 + length;
  dataSize = size - 8 - length;
  try {
    JsonValue header =
        system::readJson({reinterpret_cast<const char *>(bytes + 8), length});
    if (!header.scalar.is_object())
      fail("the header is not a JSON object");
    return header;
  } catch (const system::JsonError &error) {
    fail("the header is not valid JSON: " + std::string(error.what()) +
         ", at byte " + std::to_string(8 + error.getOffset()));
  }
}

SafetensorsFile::Tensor HeaderReader::readTensor(const JsonValue &entry) {
  auto failTensor = [&](const std::string &what) {
    fail("tensor '" + entry.name + "': " + what);
  };
  auto unsignedList = [&](const char *key) {
    const JsonValue *member = entry.find(key);
    if (!member || !member->scalar.is_array())
      failTensor(std::string(key) + " must be a list");
    std::vector<uint64_t> list;
    for (const JsonValue &number : member->children) {
      if (!number.scalar.is_number_unsigned())
        failTensor(std::string(key) + " must hold non-negative integers");
      list.push_back(number.scalar.get<uint64_t>());
    }
    return list;
  };
  if (!entry.scalar.is_object())
    failTensor("not a JSON object");
  const JsonValue *dtype = entry.find("dtype");
  if (!dtype || !dtype->scalar.is_string())
    failTensor("dtype must be a string");

  SafetensorsFile::Tensor result;
  result.dtype = dtype->scalar.get<std::string>();
  int64_t bits = bitsOf(result.dtype);
  if (!bits)
    failTensor("unknown dtype '" + result.dtype + "'");
  // An empty tensor may have huge extents beside its 0, so these are bounded
  // too: later products of any of them must not overflow.
  uint64_t elements = 1, bound = 1;
  for (uint64_t extent : unsignedList("shape")) {
    if (__builtin_mul_overflow(elements, extent, &elements) ||
        __builtin_mul_overflow(bound, std::max<uint64_t>(extent, 1), &bound) ||
        bound > (uint64_t(1) << 56))
      failTensor("the shape is too large");
    result.shape.push_back(static_cast<int64_t>(extent));
  }
  std::vector<uint64_t> offsets = unsignedList("data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > dataSize)
    failTensor("data_offsets must be a range inside the file's " +
               std::to_string(dataSize) + " bytes of data");
  uint64_t expected = elements * bits;
  if (expected % 8 || expected / 8 != offsets[1] - offsets[0])
    failTensor("data_offsets hold " + std::to_string(offsets[1] - offsets[0]) +
               " bytes, dtype and shape need " +
               std::to_string((expected + 7) / 8));
  result.data = data + offsets[0];
  result.bytes = static_cast<int64_t>(offsets[1] - offsets[0]);
  return result;
}

void HeaderReader::checkRanges(
    const std::map<std::string, SafetensorsFile::Tensor> &tensors) const {
  std::vector<std::pair<const uint8_t *, int64_t>> ranges;
  for (const auto &[tensor, entry] : tensors)
    ranges.emplace_back(entry.data, entry.bytes);
  std::sort(ranges.begin(), ranges.end());
  const uint8_t *end = data;
  for (const auto &[begin, bytes] : ranges) {
    if (begin != end)
      fail("the tensors' byte ranges overlap or leave a gap");
    end = begin + bytes;
  }
  if (end != data + dataSize)
    fail("bytes that belong to no tensor at the end of the file");
}

void HeaderReader::read(std::map<std::string, SafetensorsFile::Tensor> &tensors,
                        std::map<std::string, std::string> &metadata) {
  JsonValue header = parseHeader();
  for (const JsonValue &entry : header.children) {
    if (entry.name != "__metadata__") {
      tensors[entry.name] = readTensor(entry);
      continue;
    }
    if (!entry.scalar.is_object())
      fail("__metadata__ must be an object of strings");
    for (const JsonValue &value : entry.children) {
      if (!value.scalar.is_string())
        fail("__metadata__ must be an object of strings");
      metadata[value.name] = value.scalar.get<std::string>();
    }
  }
  checkRanges(tensors);
}

SafetensorsFile SafetensorsFile::parse(const std::string &name,
                                       const uint8_t *bytes, size_t size) {
  SafetensorsFile file;
  HeaderReader(name, bytes, size).read(file.byName, file.meta);
  return file;
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path &path) {
  auto mapped = std::make_shared<system::MappedFile>(path);
  SafetensorsFile file =
      parse(path.string(), reinterpret_cast<const uint8_t *>(mapped->data()),
            mapped->size());
  file.memory = std::move(mapped);
  return file;
}

void writeSafetensors(const std::filesystem::path &path,
                      const std::vector<TensorToWrite> &tensors) {
  system::FileWriter file(path);
  writeSafetensors(file, tensors);
  file.commit();
}

static int64_t bytesOf(const TensorToWrite &tensor) {
  return elementCount(tensor.shape) * byteSize(tensor.dtype);
}

static std::vector<const TensorToWrite *>
inOrder(const std::vector<TensorToWrite> &tensors) {
  std::vector<const TensorToWrite *> order;
  for (const TensorToWrite &tensor : tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    int64_t aBytes = byteSize(a->dtype), bBytes = byteSize(b->dtype);
    return aBytes != bBytes ? aBytes > bBytes : a < b;
  });
  return order;
}

SafetensorsHeader makeHeader(const std::vector<TensorToWrite> &tensors) {
  SafetensorsHeader header{{}, std::vector<int64_t>(tensors.size()), 0};
  std::string text;
  int64_t offset = 0;
  for (const TensorToWrite *tensor : inOrder(tensors)) {
    int64_t end = offset + bytesOf(*tensor);
    header.offsets[static_cast<size_t>(tensor - tensors.data())] = offset;
    json entry = {{"dtype", safetensorsName(tensor->dtype)},
                  {"shape", safetensorsShape(tensor->dtype, tensor->shape)},
                  {"data_offsets", {offset, end}}};
    text += (text.empty() ? "{" : ",") + json(tensor->name).dump() + ":" +
            entry.dump();
    offset = end;
  }
  text += text.empty() ? "{}" : "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string prefix(8, '\0');
  for (int i = 0; i < 8; ++i)
    prefix[i] = static_cast<char>(text.size() >> (8 * i));

  header.text = prefix + text;
  auto begin = static_cast<int64_t>(header.text.size());
  for (int64_t &place : header.offsets)
    place += begin;
  header.bytes = begin + offset;
  return header;
}

void writeSafetensors(system::FileWriter &file,
                      const std::vector<TensorToWrite> &tensors) {
  file.write(makeHeader(tensors).text);
  for (const TensorToWrite *tensor : inOrder(tensors)) {
    int64_t bytes = bytesOf(*tensor);
    auto buffer = Buffer::allocate(bytes);
    tensor->read(buffer->data.get());
    file.write(buffer->data.get(), bytes);
  }
}

} // namespace whale::runtime
