//===- CudaDeviceTest.cpp - The CUDA device on a test machine -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CUDA device without a GPU: its calls go to the test machine
// (runtime/cuda/test/Machine.h), which computes them on the host and reports
// what a real GPU would refuse, or leave undefined, as a fault.
//
// The conformance tests of all devices run with three seeds, which decide the
// order in which streams run; afterwards nothing may be left allocated. The
// other tests say what is CUDA's own: code for an architecture, graphs, and
// ranks that run ahead of their GPU; CudaMemoryTest.cpp has those of memory.
// Some make a mistake on purpose, since the machine must find it. Whether a
// real GPU agrees is tested in unittests/Gpu.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaDevice.h"
#include "OnMachine.h"
#include "device/cuda/Staging.h"

#include <atomic>
#include <thread>

namespace whale::runtime::test {
namespace {

/// Devices that are gone have given back all.
void expectNothingIsLeft() {
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
  EXPECT_TRUE(machine->memory.empty());
  EXPECT_TRUE(machine->streams.empty());
  EXPECT_TRUE(machine->events.empty());
  EXPECT_TRUE(machine->modules.empty());
  EXPECT_TRUE(machine->graphs.empty());
  EXPECT_TRUE(machine->executables.empty());
}

DeviceMaker seeded(uint64_t seed) {
  DeviceConformance::afterwards = [] {
    if (machine)
      expectNothingIsLeft();
  };
  return onMachine({.seed = seed});
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         testing::Values(seeded(0), seeded(1), seeded(2)));

//===----------------------------------------------------------------------===//
// What the machine tells
//===----------------------------------------------------------------------===//

/// The error of a run of one rank with four buffers of four integers, and all
/// faults after it.
std::string errorOf(const MachineOptions &options,
                    const std::function<void(Device &, BufferTable &)> &job) {
  Devices all(onMachine(options), 1);
  std::string text;
  {
    Integers memory(*all.devices[0], 4);
    all.run([&](int64_t, Device &device) {
      try {
        job(device, memory.table);
        device.finish();
      } catch (const Error &error) {
        text = error.what();
        machine->takeFaults();
      }
    });
  }
  for (const std::string &fault : machine->takeFaults())
    text += "; " + fault;
  return text;
}

#define EXPECT_SAYS(text, part)                                                \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

constexpr Queue compute = Queue::Compute;
constexpr Queue communication = Queue::Communication;

TEST(CudaDevice, AMissingEventIsAFault) {
  Copy first = {0, 1, 16}, second = {1, 2, 16};
  auto run = [&](bool hasEvent) {
    return errorOf({}, [&](Device &device, BufferTable &table) {
      device.copy(compute, first, table);
      if (hasEvent)
        device.wait(communication, device.record(compute));
      device.copy(communication, second, table);
    });
  };
  EXPECT_EQ(run(true), "");
  EXPECT_SAYS(run(false), "use the same memory, and no event is between them");
}

TEST(CudaDevice, TooLittleMemoryIsSaidInNumbers) {
  std::string text =
      errorOf({.memoryBytes = 64 << 20}, [](Device &device, BufferTable &) {
        device.allocate(MemorySpace::Device, 65 << 20);
      });
  EXPECT_SAYS(text, "GPU 0 (Test GPU) has too little free memory: 65 MiB more "
                    "are needed, ");
  EXPECT_SAYS(text, "MiB of its 64 MiB are free");
}

TEST(CudaDevice, AKernelThatFaultsIsAnError) {
  KernelLaunch launch = {addOne, {0, 1}, 4, 1};
  std::string text =
      errorOf({.faultingKernel = 1}, [&](Device &device, BufferTable &table) {
        device.launch(compute, launch, table);
        device.launch(compute, launch, table);
      });
  EXPECT_SAYS(text, "kernel test: an injected fault");
  EXPECT_SAYS(text, "WHALE_CUDA_SYNCHRONOUS=1");
}

void sleep(void **, int64_t, int64_t) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(CudaDevice, MarksHaveTheTimesOfTheGpu) {
  KernelLaunch launch = {sleep, {0, 1}, 4, 1};
  auto run = [&](Device &device, BufferTable &table) {
    // Marks begin anew when they are cleared.
    for (int round = 0; round < 2; ++round) {
      device.clearMarks();
      EXPECT_EQ(device.mark(compute), 0u);
      device.launch(compute, launch, table);
      EXPECT_EQ(device.mark(compute), 1u);
      EXPECT_EQ(device.mark(communication), 2u);
      auto put = Device::Clock::now();
      std::span<const Device::Clock::time_point> times = device.timesOfMarks();
      ASSERT_EQ(times.size(), 3u);
      EXPECT_GE(times[1] - times[0], std::chrono::microseconds(4900));
      // The kernel runs when the host waits for its mark.
      EXPECT_GT(times[1], put);
    }
  };
  EXPECT_EQ(errorOf({}, run), "");
}

/// The remarks of the program that was loaded last.
std::vector<std::string> remarks;

/// What is said of a program with one module, or, without a text, of one
/// without kernels.
std::string
loadErrorOf(const MachineOptions &options, const std::string &text,
            const std::map<std::string, cuda::test::TestKernel> &kernels,
            const std::string &cubin = "") {
  machine.reset();
  machine = std::make_unique<Machine>(options);
  machine->addModule(".target sm_90", {});
  machine->addModule(".target sm_90 .entry k( .param )", kernels,
                     "\177ELF of sm_90", 90);
  format::Program program = programOf(1, {});
  if (!text.empty())
    program.gpu = {{"sm_90", {{"kernels.0.ptx", ""}}}};
  if (!cubin.empty())
    program.gpu[0].cubins = {{"kernels.0.cubin", ""}};
  program.kernelSignatures = {{"k", {0, {4}, 1, format::GpuLaunch{0, 1, 128}}}};
  BoundProgram bound(std::move(program));
  bound.gpu = {{{text}, {}}};
  if (!cubin.empty())
    bound.gpu[0].cubins = {cubin};
  std::unique_ptr<Transport> transport = localTransportOf(bound.program);
  remarks.clear();
  try {
    createCudaDevice(std::make_shared<cuda::Gpu>(machine->libraries(), 0),
                     bound, transport.get(), 0,
                     {.remark = [](const LoadNote &note) {
                       EXPECT_FALSE(note.isWarning);
                       remarks.push_back(note.text);
                     }});
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(CudaDevice, ProgramsThatAGpuCannotRun) {
  const std::string good = ".target sm_90 .entry k( .param )";
  std::map<std::string, cuda::test::TestKernel> kernels = {
      {"k", {addOne, 1, 0, {4}, 0, "k"}}};
  EXPECT_EQ(loadErrorOf({}, good, kernels), "");
  EXPECT_SAYS(loadErrorOf({.capabilities = {80}}, good, kernels),
              "GPU 0 (Test GPU) is of sm_80, the kernels are compiled for "
              "sm_90 and later: compile with --gpu-arch=sm_80");
  EXPECT_SAYS(loadErrorOf({.capabilities = {52}}, good, kernels),
              "is of sm_52: 'cuda' programs need a GPU of sm_60 (Pascal)");
  EXPECT_EQ(loadErrorOf({}, "", {}), "");
  EXPECT_EQ(loadErrorOf({.capabilities = {60}}, "", {}), "");
  EXPECT_SAYS(loadErrorOf({.capabilities = {52}}, "", {}), "need a GPU of");
  EXPECT_SAYS(loadErrorOf({}, "no text", kernels),
              "kernels.0.ptx: the driver, for CUDA 13.0, refuses the PTX");
  EXPECT_SAYS(loadErrorOf({}, ".target sm_100", kernels),
              "cannot run code for sm_90 on GPU 0");
  EXPECT_SAYS(loadErrorOf({}, ".target sm_90", kernels),
              "kernels.0.ptx has no kernel 'k'");
}

TEST(CudaDevice, CubinsAreForTheirArchitectureAlone) {
  const std::string text = ".target sm_90 .entry k( .param )";
  const std::string cubin = "\177ELF of sm_90";
  std::map<std::string, cuda::test::TestKernel> kernels = {
      {"k", {addOne, 1, 0, {4}, 0, "k"}}};
  EXPECT_EQ(loadErrorOf({}, text, kernels, cubin), "");
  EXPECT_EQ(machine->loadedCubins, 1);
  EXPECT_EQ(machine->loadedTexts, 0);
  // A later chip, and a program without cubins.
  EXPECT_EQ(loadErrorOf({.capabilities = {100}}, text, kernels, cubin), "");
  EXPECT_EQ(machine->loadedCubins, 0);
  EXPECT_EQ(machine->loadedTexts, 1);
  EXPECT_EQ(loadErrorOf({}, text, kernels), "");
  EXPECT_EQ(machine->loadedTexts, 1);
  EXPECT_EQ(remarks, std::vector<std::string>());
  // One that the driver refuses.
  EXPECT_EQ(loadErrorOf({}, text, kernels, "\177ELF"), "");
  EXPECT_EQ(machine->loadedCubins, 0);
  EXPECT_EQ(machine->loadedTexts, 1);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_SAYS(remarks[0], "GPU 0 (Test GPU): the driver, for CUDA 13.0, cannot "
                          "load kernels.0.cubin: ");
  EXPECT_SAYS(remarks[0], "it compiles the PTX beside it instead");
  EXPECT_SAYS(loadErrorOf({}, "no text", kernels, "\177ELF"),
              "kernels.0.ptx: the driver, for CUDA 13.0, refuses the PTX");
}

TEST(CudaDevice, AClassRunsTheKernelsThatItWasCompiledWith) {
  std::map<std::string, cuda::test::TestKernel> kernels = {
      {"k80", {addOne, 1, 0, {4}, 0, "k80"}},
      {"k90", {addOne, 1, 0, {4}, 0, "k90"}}};
  Machine own({.gpus = 4, .capabilities = {75, 80, 86, 100}});
  auto load = [&](int number, const std::string &arch) {
    format::Program program = programOf(1, {});
    program.classes.resize(1);
    program.classes[0].arch = arch;
    // Each has a module of its own, counted through.
    program.kernelSignatures = {
        {"k80", {0, {4}, 1, format::GpuLaunch{0, 1, 128}}},
        {"k90", {0, {4}, 1, format::GpuLaunch{1, 1, 128}}}};
    for (const char *each : {"sm_80", "sm_90"})
      program.gpu.push_back({each, {{"ptx", ""}}, {{"cubin", ""}}});
    BoundProgram bound(std::move(program));
    bound.classes.resize(1);
    for (int each : {80, 90}) {
      std::string text = std::to_string(each), name = "k" + text;
      std::string ptx = ".target sm_" + text + " .entry " + name + "( .param )",
                  cubin = "\177ELF of sm_" + text;
      own.addModule(ptx, {{name, kernels.at(name)}}, cubin, each);
      bound.gpu.push_back({{ptx}, {cubin}});
    }
    std::unique_ptr<Transport> transport = localTransportOf(bound.program);
    auto gpu = std::make_shared<cuda::Gpu>(own.libraries(), number);
    createCudaDevice(gpu, bound, transport.get(), 0, {});
    return std::pair(std::exchange(own.loadedCubins, 0),
                     std::exchange(own.loadedTexts, 0));
  };
  using Loaded = std::pair<int64_t, int64_t>;
  EXPECT_THROW(load(0, "sm_80"), Error);
  EXPECT_EQ(load(1, "sm_80"), Loaded(1, 0));
  EXPECT_EQ(load(2, "sm_80"), Loaded(0, 1));
  EXPECT_THROW(load(2, "sm_90"), Error);
  EXPECT_EQ(load(3, "sm_90"), Loaded(0, 1));
  // One that no kernel is for.
  EXPECT_EQ(load(3, "sm_100"), Loaded(0, 0));
  // Where a class does not say, the latest that the GPU runs.
  EXPECT_THROW(load(0, ""), Error);
  EXPECT_EQ(load(1, ""), Loaded(1, 0));
  EXPECT_EQ(load(3, ""), Loaded(0, 1));
  EXPECT_EQ(own.takeFaults(), std::vector<std::string>());
}

TEST(CudaDevice, FreedMemoryIsAFault) {
  std::string text = errorOf({}, [](Device &device, BufferTable &) {
    auto memory = device.allocate(MemorySpace::Device, 16);
    BufferTable table;
    Region regions[2] = {{memory.get(), 0}, {memory.get(), 8}};
    device.bind(table, regions);
    memory.reset();
    Copy copy = {0, 1, 8};
    device.copy(compute, copy, table);
  });
  EXPECT_SAYS(text, "was freed");
}

TEST(CudaDevice, PinnedMemoryComesBackAfterErrors) {
  Machine own;
  cuda::Gpu gpu(own.libraries(), 0);
  cuda::PinnedPool pool(gpu);
  char host[16] = {};
  // Neither address is memory of the GPU.
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_THROW(upload(gpu, pool, host, host, 16, gpu.copies), Error);
    own.takeFaults();
    EXPECT_THROW(download(gpu, pool, host, host, 16, gpu.copies), Error);
    own.takeFaults();
  }
  EXPECT_EQ(own.memory.size(), 1u);
}

TEST(CudaDevice, PeaksAreMeasuredOnceForEachTypeOfProducts) {
  Devices all(onMachine({}), 1);
  std::vector<int64_t> measured;
  all.run([&](int64_t, Device &device) {
    for (std::optional<DType> type :
         {std::optional<DType>(), std::optional(DType::F32),
          std::optional(DType::F16), std::optional(DType::BF16),
          std::optional(DType::F64), std::optional(DType::F16)}) {
      int64_t before = machine->countOf(Mutation::SwapStream);
      EXPECT_GT(device.leastSeconds(1e9, 1, type), 0);
      measured.push_back(machine->countOf(Mutation::SwapStream) - before);
    }
  });
  // The first one measures copies, too.
  EXPECT_EQ(measured, (std::vector<int64_t>{8, 0, 4, 4, 4, 0}));
}

TEST(CudaDevice, MemoryOfAnotherGpuIsAFault) {
  Machine own({.gpus = 2});
  cuda::Gpu first(own.libraries(), 0), second(own.libraries(), 1);
  auto *there = reinterpret_cast<void *>(second.allocate(16));
  void *pinned = second.allocatePinned(16);
  second.copy(there, pinned, 16, second.compute);
  second.synchronize(second.compute);
  first.attach();
  auto *here = reinterpret_cast<void *>(first.allocate(16));
  first.copy(here, pinned, 16, first.compute);
  EXPECT_EQ(own.takeFaults(), std::vector<std::string>());
  EXPECT_THROW(first.copy(here, there, 16, first.compute), Error);
  EXPECT_EQ(own.takeFaults().size(), 1u);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

TEST(CudaDevice, RunsThatAreAlikeBecomeAGraph) {
  {
    Devices all(onMachine({.seed = 3}), 1);
    Integers memory(*all.devices[0], 3);
    KernelLaunch add = {addOne, {0, 1}, 4, 1}, next = {addOne, {1, 2}, 4, 1};
    int repeated = 0;
    for (int run = 0; run < 5; ++run) {
      memory.fill(0, 10 * run);
      all.run([&](int64_t, Device &device) {
        if (device.repeat(memory.table, 0)) {
          ++repeated;
          return;
        }
        device.beginRecording(memory.table, 0);
        device.launch(compute, add, memory.table);
        device.launch(compute, next, memory.table);
        device.endRecording();
      });
      EXPECT_EQ(memory.at(2)[0], 10 * run + 2);
    }
    EXPECT_EQ(repeated, 3);
  }
  expectNothingIsLeft();
}

TEST(CudaDevice, AGraphIsOfItsAddressesAlone) {
  Devices all(onMachine({}), 1);
  Integers memory(*all.devices[0], 4);
  memory.fill(0, 1);
  Copy copy = memory.copy(0, 1);
  // The source is the first buffer, then the third.
  BufferTable tables[2];
  all.devices[0]->select(tables[0], memory.table,
                         std::vector<BufferIndex>{0, 1});
  all.devices[0]->select(tables[1], memory.table,
                         std::vector<BufferIndex>{2, 1});
  for (int run = 0; run < 8; ++run) {
    const BufferTable &table = tables[run / 4];
    memory.fill(2, 10 * run);
    all.run([&](int64_t, Device &device) {
      if (device.repeat(table, 0))
        return;
      device.beginRecording(table, 0);
      device.copy(compute, copy, table);
      device.endRecording();
    });
    EXPECT_EQ(memory.at(1)[0], run < 4 ? 1 : 10 * run);
  }
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

/// Of more sets of addresses than are kept the oldest graph goes, and new ones
/// are recorded all the same.
TEST(CudaDevice, RecordingGoesOnWhereAddressesChange) {
  constexpr int sets = 40, kept = 32;
  Devices all(onMachine({}), 1);
  Integers memory(*all.devices[0], sets + 1);
  memory.fill(0, 1);
  Copy copy = memory.copy(0, 1);
  std::vector<BufferTable> tables(sets);
  for (int set = 0; set < sets; ++set)
    all.devices[0]->select(tables[set], memory.table,
                           std::vector<BufferIndex>{0, BufferIndex(set + 1)});
  auto run = [&](int set) {
    bool isRepeated = false;
    all.run([&](int64_t, Device &device) {
      isRepeated = device.repeat(tables[set], 0);
      if (isRepeated)
        return;
      device.beginRecording(tables[set], 0);
      device.copy(compute, copy, tables[set]);
      device.endRecording();
    });
    return isRepeated;
  };
  for (int set = 0; set < sets; ++set)
    for (int time = 0; time < 3; ++time)
      EXPECT_EQ(run(set), time == 2) << set;
  EXPECT_EQ(machine->executables.size(), size_t(kept));
  // The last ones are there, the first are recorded anew.
  EXPECT_TRUE(run(sets - kept));
  EXPECT_FALSE(run(0));
  EXPECT_FALSE(run(0));
  EXPECT_TRUE(run(0));
  EXPECT_EQ(machine->executables.size(), size_t(kept));
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

TEST(CudaDevice, WhatTheProcessorDoesIsInNoGraph) {
  Devices all(onMachine({}), 1);
  Integers memory(*all.devices[0], 2);
  int calls = 0;
  Call call = {{0}, {1}, [&](auto, auto) { ++calls; }, {16, 16}};
  for (int run = 0; run < 3; ++run)
    all.run([&](int64_t, Device &device) {
      EXPECT_FALSE(device.repeat(memory.table, 0));
      device.beginRecording(memory.table, 0);
      device.call(compute, call, memory.table);
      device.endRecording();
    });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

TEST(CudaDevice, ForbiddenCallsDuringACaptureAreFaults) {
  auto run = [&](const std::function<void(Device &, BufferTable &)> &job) {
    return errorOf({}, [&](Device &device, BufferTable &table) {
      for (int i = 0; i < 2; ++i) {
        device.beginRecording(table, 0);
        if (i == 1)
          job(device, table);
        device.endRecording();
        device.finish();
      }
    });
  };
  EXPECT_EQ(run([](Device &, BufferTable &) {}), "");
  EXPECT_SAYS(run([](Device &device, BufferTable &) {
                device.allocate(MemorySpace::Device, 16);
              }),
              "cuMemAlloc during a capture");
  EXPECT_SAYS(run([](Device &device, BufferTable &table) {
                device.readInteger(compute, table, 0, DType::I32);
              }),
              "during a capture");
}

//===----------------------------------------------------------------------===//
// Several ranks
//===----------------------------------------------------------------------===//

/// While rank 1 comes late, rank 0 puts ever more behind a transfer.
TEST(CudaDevice, ARankStaysNearItsGpu) {
  constexpr int launches = 3000;
  std::unique_ptr<NcclTransport> nccl;
  Devices all(onMachine({}, &nccl), 2, {makeSend(1, 0)});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 2, 1);
  *memories[1].at(0) = 7;
  all.onError = [&] { nccl->abort(); };
  KernelLaunch launch = {addOne, {0, 1}, 1, 1};
  std::atomic<int> launched = 0;
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    const BufferTable &table = memories[rank].table;
    if (rank == 1) {
      while (launched == 0)
        std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_LT(launched, 1024);
    }
    Start start = {0, 0};
    (rank == 1 ? start.parts[0].src : start.parts[0].dst) = 0;
    device.start(communication, start, table);
    device.waitFor(compute, 0);
    for (int i = 0; rank == 0 && i < launches; ++i, ++launched)
      device.launch(compute, launch, table);
  });
  EXPECT_EQ(outcome, Outcome());
  EXPECT_EQ(*memories[0].at(1), 8);
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

/// Rank 0 waits for its GPU, which waits for what rank 1 sends by NCCL when it
/// has what rank 0 sends it through the host.
TEST(CudaDevice, WhoWaitsForItsGpuHasSentWhatOthersWaitFor) {
  Collective staged = makeCollective("all_reduce", {1, 0});
  staged.parts[0].dtype = DType::F8E4M3FN;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::unique_ptr<NcclTransport> nccl;
    Devices all(onMachine({.seed = seed}, &nccl), 2, {staged, makeSend(1, 0)});
    ASSERT_FALSE(nccl->carries(0));
    std::vector<Integers> memories;
    for (const auto &device : all.devices)
      memories.emplace_back(*device, 3, 1);
    *memories[1].at(2) = 7;
    Outcome outcome = all.run([&](int64_t rank, Device &device) {
      const BufferTable &table = memories[rank].table;
      Start first = {0, 0, {{0, 1}}}, second = {1, 1};
      (rank == 1 ? second.parts[0].src : second.parts[0].dst) = 2;
      device.start(communication, first, table);
      if (rank == 1)
        device.waitFor(compute, 0);
      device.start(communication, second, table);
      device.waitFor(compute, 1);
      if (rank == 0) {
        EXPECT_EQ(device.readInteger(compute, table, 2, DType::I32), 7);
        device.waitFor(compute, 0);
      }
    });
    EXPECT_EQ(outcome, Outcome());
    EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
  }
}

} // namespace
} // namespace whale::runtime::test
