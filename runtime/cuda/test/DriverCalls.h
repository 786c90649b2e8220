//===- DriverCalls.h - What the driver's functions share --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_TEST_DRIVERCALLS_H
#define WHALE_RUNTIME_CUDA_TEST_DRIVERCALLS_H

#include "cuda/test/Machine.h"

namespace whale::runtime::cuda::test {

using Lock = std::lock_guard<std::recursive_mutex>;

/// The error of the GPU at hand, which every call returns.
Status errorOf(Machine &machine, const char *call);
/// Faults where a call is made during a capture.
Status forbidCapture(Machine &machine, const char *call);
/// Moves an address as a mutation says.
Address shift(Machine &machine, Address address);

template <typename State>
State *pointerTo(State &state) {
  return &state;
}
template <typename State>
State *pointerTo(std::unique_ptr<State> &state) {
  return state.get();
}

/// What a handle stands for; null, and a fault, if it is unknown.
template <typename Handles, typename Handle>
auto *find(Machine &machine, Handles &handles, Handle handle,
           const char *call) {
  auto it = handles.find(handle);
  if (it != handles.end())
    return pointerTo(it->second);
  machine.fault(currentGpu(), std::string(call) + ": an unknown handle",
                kInvalidHandle);
  return static_cast<decltype(pointerTo(it->second))>(nullptr);
}

/// Forgets a handle.
template <typename Handles, typename Handle>
Status destroy(Handles Machine::*handles, Handle handle, const char *call) {
  Machine &machine = Machine::get();
  std::lock_guard lock(machine.mutex);
  if (!find(machine, machine.*handles, handle, call))
    return kInvalidHandle;
  (machine.*handles).erase(handle);
  return 0;
}

/// A handle that no other object has had.
template <typename Handle>
Handle newHandle() {
  static uintptr_t next = 0x100000;
  return reinterpret_cast<Handle>(next += 16);
}

// Kernels.cpp

Status moduleLoadDataEx(Module *module, const void *image, unsigned, int *,
                        void **);
Status moduleUnload(Module module);
Status moduleGetFunction(Function *function, Module module, const char *name);
Status launchKernel(Function function, unsigned blocks, unsigned y, unsigned z,
                    unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                    Stream handle, void **parameters, void **);

} // namespace whale::runtime::cuda::test

#endif // WHALE_RUNTIME_CUDA_TEST_DRIVERCALLS_H
