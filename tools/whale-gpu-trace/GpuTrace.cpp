//===- GpuTrace.cpp - Times of what a GPU does ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library that the driver loads into any process with CUDA_INJECTION64_PATH.
// At the end of the process the file WHALE_GPU_TRACE has a line for each
// kernel, copy and fill, as the GPU did them, by CUPTI:
//
//   begin end stream registers threads blocks name
//
// times in ns, columns separated by tabs. So has it one for each call of the
// driver that takes 20 us or more, without stream, named "host" and the
// function. What CUPTI keeps of a kernel, some 200 bytes, stays in memory until
// then.
//
//===----------------------------------------------------------------------===//

#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

constexpr size_t kBufferBytes = 8 << 20;
constexpr uint64_t kLongCall = 20'000;

std::FILE *file = nullptr;
std::mutex fileMutex;

void CUPTIAPI giveBuffer(uint8_t **buffer, size_t *size, size_t *maxRecords) {
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *maxRecords = 0;
}

template <typename RecordT>
void printTimes(const RecordT &record) {
  std::fprintf(file, "%llu\t%llu\t%u\t",
               static_cast<unsigned long long>(record.start),
               static_cast<unsigned long long>(record.end), record.streamId);
}

void print(const CUpti_Activity &record) {
  switch (record.kind) {
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
    auto &kernel = reinterpret_cast<const CUpti_ActivityKernel9 &>(record);
    printTimes(kernel);
    std::fprintf(file, "%u\t%d\t%lld\t%s\n", kernel.registersPerThread,
                 kernel.blockX * kernel.blockY * kernel.blockZ,
                 static_cast<long long>(kernel.gridX) * kernel.gridY *
                     kernel.gridZ,
                 kernel.name ? kernel.name : "?");
    break;
  }
  case CUPTI_ACTIVITY_KIND_MEMCPY: {
    auto &copy = reinterpret_cast<const CUpti_ActivityMemcpy5 &>(record);
    printTimes(copy);
    const char *kind =
        copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "copy to GPU"
        : copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "copy to host"
                                                           : "copy";
    std::fprintf(file, "0\t0\t%llu\t%s\n",
                 static_cast<unsigned long long>(copy.bytes), kind);
    break;
  }
  case CUPTI_ACTIVITY_KIND_MEMSET: {
    auto &fill = reinterpret_cast<const CUpti_ActivityMemset4 &>(record);
    printTimes(fill);
    std::fprintf(file, "0\t0\t%llu\tfill\n",
                 static_cast<unsigned long long>(fill.bytes));
    break;
  }
  case CUPTI_ACTIVITY_KIND_DRIVER: {
    auto &call = reinterpret_cast<const CUpti_ActivityAPI &>(record);
    if (call.end - call.start < kLongCall)
      break;
    const char *name = nullptr;
    cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, call.cbid, &name);
    std::fprintf(file, "%llu\t%llu\t0\t0\t0\t0\thost %s\n",
                 static_cast<unsigned long long>(call.start),
                 static_cast<unsigned long long>(call.end), name ? name : "?");
    break;
  }
  default:
    break;
  }
}

void CUPTIAPI takeBuffer(CUcontext, uint32_t, uint8_t *buffer, size_t,
                         size_t validSize) {
  std::lock_guard<std::mutex> lock(fileMutex);
  CUpti_Activity *record = nullptr;
  while (validSize && cuptiActivityGetNextRecord(buffer, validSize, &record) ==
                          CUPTI_SUCCESS)
    print(*record);
  std::free(buffer);
}

void finish() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::lock_guard<std::mutex> lock(fileMutex);
  std::fclose(file);
}

} // namespace

/// What the driver calls when it is initialized; whether all went well.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char *path = std::getenv("WHALE_GPU_TRACE");
  file = path ? std::fopen(path, "w") : nullptr;
  if (!file)
    return 0;
  if (cuptiActivityRegisterCallbacks(giveBuffer, takeBuffer) != CUPTI_SUCCESS)
    return 0;
  for (CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_DRIVER})
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS)
      return 0;
  std::atexit(finish);
  return 1;
}
