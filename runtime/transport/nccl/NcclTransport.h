//===- NcclTransport.h - Ranks on GPUs, by NCCL -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_NCCL_NCCLTRANSPORT_H
#define WHALE_RUNTIME_TRANSPORT_NCCL_NCCLTRANSPORT_H

#include "cuda/Libraries.h"
#include "transport/Transport.h"

namespace whale::runtime {

/// A transport between ranks that are threads of this process, each on the GPU
/// of its number. Buffers are in the host's memory. `program` and the tables
/// outlive the transport. Throws Error.
std::unique_ptr<Transport> createNcclTransport(const format::Program &program,
                                               const cuda::Libraries &libraries,
                                               const cuda::Nccl &nccl);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_NCCL_NCCLTRANSPORT_H
