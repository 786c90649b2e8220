//===- Oracle.cpp - Whether a program gives one result --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program directory, or a program without kernels; programs that were
// derived from it. Out: for each seed a hash of the results of a run, or
// nothing if that run did not end.
//
// The programs may be wrong in any way, and nothing checks them before they
// run. So they run in a forked process that has 20 seconds for all seeds; what
// it has not written by then counts as not ended. Arguments are always the same
// small random numbers; with a seed, devices and transfers are as late as
// events and waits allow. Cost: for each seed a new executor and a copy of all
// arguments.
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"

#include "Numeric.h"
#include "whale/ProgramFormat/ReadProgram.h"

#include <cstring>
#include <random>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace whale::transfers {

using namespace runtime;

Oracle::Oracle(const std::filesystem::path &directory)
    : file((directory / "manifest.json").string()) {
  auto read = [](const std::filesystem::path &path) {
    return std::string(system::MappedFile(path).text());
  };
  original =
      format::readProgram(read(file), file, [&](const std::string &name) {
        return read(directory / name);
      });
  if (original.kernels)
    kernels =
        std::make_unique<KernelLibrary>(directory / original.kernels->name);
  if (original.constants)
    constants = std::make_unique<system::MappedFile>(directory /
                                                     original.constants->name);
}

/// Small numbers, whole ones for integers.
static std::vector<uint8_t> makeValues(const Parameter &parameter,
                                       std::mt19937 &random) {
  int64_t count = elementCount(parameter.shape);
  std::vector<uint8_t> bytes(count * byteSize(parameter.dtype));
  dispatch(parameter.dtype, [&]<typename T>() {
    if constexpr (!isOpaque<T>)
      for (int64_t i = 0; i < count; ++i) {
        using Compute = typename Element<T>::Compute;
        double value = isInteger(parameter.dtype)
                           ? static_cast<double>(random() % 2)
                           : static_cast<double>(random() % 1000) / 1000 - 0.4;
        T element = Element<T>::store(static_cast<Compute>(value));
        std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
      }
  });
  return bytes;
}

Bindings Oracle::makeArguments() const {
  std::mt19937 random(1);
  Bindings arguments;
  for (const Parameter &parameter : original.arguments) {
    std::vector<uint8_t> values = makeValues(parameter, random);
    Array array =
        Array::fromHost(parameter.dtype, parameter.shape, values.data())
            .relayout(parameter.layout);
    auto &shards = arguments.emplace_back();
    for (size_t rank = 0; rank < original.ranks.size(); ++rank) {
      std::shared_ptr<Buffer> shard = array.shard(rank), copy;
      // A program may write what is in the place of a result.
      if (shard) {
        copy = Buffer::allocate(shard->bytes);
        std::memcpy(copy->data.get(), shard->data.get(), shard->bytes);
      }
      shards.push_back(std::move(copy));
    }
  }
  return arguments;
}

uint64_t Oracle::runOnce(const BoundProgram &bound, uint64_t seed) const {
  Bindings arguments = makeArguments(), results;
  for (const Parameter &result : original.results) {
    auto &shards = results.emplace_back();
    for (size_t rank = 0; rank < original.ranks.size(); ++rank) {
      const std::optional<Box> &box = result.layout->boxes[rank];
      if (!box) {
        shards.emplace_back();
      } else if (result.alias) {
        shards.push_back(arguments[*result.alias][rank]);
      } else {
        shards.push_back(
            Buffer::allocate(box->elements() * byteSize(result.dtype)));
        std::memset(shards.back()->data.get(), 0, shards.back()->bytes);
      }
    }
  }
  std::span<const char> bytes;
  if (constants)
    bytes = {constants->data(), constants->size()};
  LoadOptions options;
  options.threadsPerRank = 1;
  options.lateSeed = seed;
  Executor executor(std::make_shared<Ranks>(RanksOptions(bound, options)),
                    bound, bytes);
  results = executor.run(std::move(arguments), std::move(results), {});
  // FNV-1a.
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto &shards : results)
    for (const auto &shard : shards)
      for (int64_t i = 0; shard && i < shard->bytes; ++i)
        hash = (hash ^ static_cast<uint8_t *>(shard->data.get())[i]) *
               0x100000001b3;
  return hash;
}

std::vector<Result> Oracle::run(const format::Program &program,
                                uint64_t seeds) const {
  int ends[2];
  if (pipe(ends) != 0)
    throw Error("there are no more pipes");
  pid_t child = fork();
  if (child < 0)
    throw Error("there are no more processes");
  if (child == 0) {
    // A program that was changed may never end.
    constexpr unsigned mostSeconds = 20;
    alarm(mostSeconds);
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    close(ends[0]);
    try {
      auto bound =
          bindProgram(program, file, kernels.get(),
                      constants ? static_cast<int64_t>(constants->size()) : 0);
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        std::pair<uint64_t, uint64_t> record = {0, 0};
        try {
          record = {1, runOnce(*bound, seed)};
        } catch (const Error &) {
        }
        if (write(ends[1], &record, sizeof(record)) != sizeof(record))
          break;
      }
    } catch (const std::exception &) {
    }
    _exit(0);
  }
  close(ends[1]);
  std::vector<Result> results;
  std::pair<uint64_t, uint64_t> record;
  while (read(ends[0], &record, sizeof(record)) == sizeof(record))
    results.push_back(record.first ? Result(record.second) : std::nullopt);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  results.resize(seeds);
  return results;
}

} // namespace whale::transfers
