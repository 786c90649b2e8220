//===- Kernels.cpp - Modules and kernels of a test machine ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: texts of PTX or cubins, and launches. Out: operations of streams. The
// kernels of programs are functions that the machine was given with their
// texts; texts that it was not given are the runtime's own, and interpreted
// (Ptx.h). A launch that differs from what the text says is a fault. The memory
// that a kernel uses is known when it is launched: that of its buffers, or what
// its threads would use.
//
// Cost: loading a module searches its text once for each kernel, and a cubin
// among all that the machine was given. A launch costs what its threads
// compute, one after the other, under the machine's lock.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/DriverCalls.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace whale::runtime::cuda::test {
namespace {

/// The number that follows a word of a text of PTX, from a place on.
int64_t numberAfter(const std::string &text, size_t from, const char *word) {
  size_t at = text.find(word, from);
  return at == text.npos ? 0 : std::atoll(text.c_str() + at + strlen(word));
}

/// The cubin that lies at `image`, of those that the machine was given: its
/// text, and its architecture.
const std::pair<std::string, int> *findCubin(const Machine &machine,
                                             const char *image) {
  for (const auto &[bytes, cubin] : machine.cubins) {
    // Up to the first difference, as the image may be a shorter one.
    size_t same = 0;
    while (same < bytes.size() && bytes[same] == image[same])
      ++same;
    if (same == bytes.size())
      return &cubin;
  }
  return nullptr;
}

/// The kernel of a text that the machine was not given; null if it is none.
std::shared_ptr<const PtxKernel> readKernel(const std::string &text) {
  try {
    return std::make_shared<const PtxKernel>(text);
  } catch (const std::exception &) {
    return nullptr;
  }
}

/// Puts a launch of the runtime's own kernels on a stream.
Status launch(Machine &machine, const TestKernel &kernel, int64_t blocks,
              int64_t threads, StreamState &stream, const void *parameter) {
  const PtxKernel &text = *kernel.text;
  std::string what = "kernel " + text.name();
  if (threads != text.threads())
    return machine.fault(currentGpu(), what + " with blocks of " +
                                           std::to_string(threads) +
                                           " threads");
  const char *bytes = static_cast<const char *>(parameter);
  std::vector<char> copy(bytes, bytes + text.parameterBytes());
  machine.put(stream, {what, text.accesses(blocks, copy),
                       [text = kernel.text, blocks, copy] {
                         text->run(blocks, copy);
                       }});
  return machine.gpus[currentGpu()].error;
}

/// Loads a text, or the cubin of one.
Status load(Machine &machine, Module *module, const char *image) {
  int capability = machine.capabilityOf(currentGpu());
  bool isCubin = std::strncmp(image, "\177ELF", 4) == 0;
  std::string text;
  if (isCubin) {
    const auto *cubin = findCubin(machine, image);
    if (!cubin)
      return kInvalidImage;
    if (cubin->second != capability)
      return kNoBinaryForGpu;
    text = cubin->first;
  } else {
    text = image;
  }
  size_t target = text.find(".target sm_");
  if (target == text.npos)
    return kInvalidPtx;
  if (numberAfter(text, target, ".target sm_") > capability)
    return kNoBinaryForGpu;
  auto given = machine.texts.find(text);
  if (given == machine.texts.end()) {
    TestKernel own;
    own.text = readKernel(text);
    own.gpu = currentGpu();
    if (!own.text)
      return machine.fault(currentGpu(),
                           "a module that the test machine was not given");
    *module = newHandle<Module>();
    machine.modules[*module][own.text->name()] = machine.addKernel(own);
    return 0;
  }
  ++(isCubin ? machine.loadedCubins : machine.loadedTexts);
  *module = newHandle<Module>();
  machine.modules[*module];
  for (const auto &[name, kernel] : given->second) {
    size_t entry = text.find(".entry " + name + "(");
    if (entry == text.npos)
      continue;
    TestKernel loaded = kernel;
    loaded.gpu = currentGpu();
    loaded.threads = numberAfter(text, entry, ".maxntid ");
    size_t parameters = 0, end = text.find(')', entry);
    for (size_t at = text.find(".param", entry); at < end;
         at = text.find(".param", at + 1))
      ++parameters;
    if (parameters != kernel.bytes.size())
      return machine.fault(currentGpu(), name + " has other parameters in PTX");
    machine.modules[*module][name] = machine.addKernel(std::move(loaded));
  }
  return 0;
}

} // namespace

Status moduleLoadDataEx(Module *module, const void *image, unsigned, int *,
                        void **) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = forbidCapture(machine, "cuModuleLoadDataEx"))
    return status;
  if (!machine.takeObject())
    return kOutOfMemory;
  Status status = load(machine, module, static_cast<const char *>(image));
  if (status)
    machine.giveObject();
  return status;
}
Status moduleUnload(Module module) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  const auto *functions =
      find(machine, machine.modules, module, "cuModuleUnload");
  if (!functions)
    return kInvalidHandle;
  for (const auto &[name, function] : *functions) {
    if (int gpu = machine.kernels[function].gpu; gpu != currentGpu())
      machine.fault(currentGpu(),
                    "cuModuleUnload of a module of GPU " + std::to_string(gpu));
    machine.kernels.erase(function);
  }
  machine.modules.erase(module);
  machine.giveObject();
  return 0;
}
Status moduleGetFunction(Function *function, Module module, const char *name) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  const auto *functions =
      find(machine, machine.modules, module, "cuModuleGetFunction");
  if (!functions)
    return kInvalidHandle;
  auto found = functions->find(name);
  if (found == functions->end())
    return kNotFound;
  *function = found->second;
  return 0;
}

Status launchKernel(Function function, unsigned blocks, unsigned y, unsigned z,
                    unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                    Stream handle, void **parameters, void **) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (Status status = errorOf(machine, "cuLaunchKernel"))
    return status;
  StreamState *stream =
      find(machine, machine.streams, handle, "cuLaunchKernel");
  const TestKernel *found =
      find(machine, machine.kernels, function, "cuLaunchKernel");
  if (!stream || !found)
    return kInvalidHandle;
  const TestKernel &kernel = *found;
  if (kernel.gpu >= 0 && kernel.gpu != stream->gpu)
    return machine.fault(currentGpu(),
                         "a kernel of GPU " + std::to_string(kernel.gpu) +
                             " on a stream of GPU " +
                             std::to_string(stream->gpu),
                         kInvalidHandle);
  if (y * z * ty * tz == 1 && shared == 0 && kernel.text)
    return launch(machine, kernel, blocks, threads, *stream, parameters[0]);
  std::string what = "kernel " + kernel.name;
  int64_t extent = kernel.extent;
  bool isByBlock = blocks == extent;
  bool isByThread =
      int64_t(blocks) * threads >= extent &&
      (int64_t(blocks) - 1) * threads < std::max<int64_t>(extent, 1);
  if (threads != kernel.threads || y * z * ty * tz != 1 || shared != 0 ||
      (!isByBlock && !isByThread))
    return machine.fault(
        currentGpu(), what + " with " + std::to_string(blocks) + " blocks of " +
                          std::to_string(threads) + " threads");
  std::vector<void *> buffers;
  std::vector<Access> accesses;
  for (size_t i = 0; i < kernel.bytes.size(); ++i) {
    Address address = *static_cast<Address *>(parameters[i]);
    if (kernel.bytes[i])
      address = shift(machine, address);
    buffers.push_back(reinterpret_cast<void *>(address));
    if (kernel.bytes[i])
      accesses.push_back({address, kernel.bytes[i], i >= kernel.inputs});
  }
  machine.put(*stream,
              {what, std::move(accesses),
               [&machine, kernel, buffers, extent]() mutable {
                 if (machine.launches++ == machine.options.faultingKernel)
                   throw Error("an injected fault");
                 if (extent > 0)
                   kernel.function(buffers.data(), 0, extent);
               }});
  return machine.gpus[currentGpu()].error;
}

} // namespace whale::runtime::cuda::test
