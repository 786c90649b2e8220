//===- Machine.h - GPUs that are not there ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: GPUs in this process, which fill the tables of the driver and of
// NVIDIA's libraries. What goes in are the calls of device/cuda, what comes
// out are the results of the program, and a fault for each call that a real GPU
// would refuse or leave undefined:
//
//  - Memory is the host's, known by its ranges: an access outside of them, to
//    that of another GPU, or to what was freed is a fault; so is an unknown
//    handle, and a copy from or to memory of the host that is not pinned.
//  - Streams do nothing until the host waits. Then the next operation of a
//    stream runs, and another one, drawn from a seed, until what is waited for
//    has come.
//  - Each stream has a vector clock, and each byte the clocks of those who have
//    used it: two operations that use a byte, of which one writes, with no
//    event between them are a fault, in whatever order they happen to run.
//  - While a stream is captured, what CUDA forbids then is a fault.
//  - Where GPUs exchange data, more operations of a stream than the driver has
//    room for are a fault: it would wait, perhaps for a rank that is lost.
//  - Kernels are functions of the host, or interpreted; what libraries do is
//    computed by those of the processor; their parameters are checked as the
//    libraries document them.
//
// A fault is kept (takeFaults), and all later calls fail with it, as after an
// error of a real GPU. One lock guards it all: ranks compute in turn.
//
// Cost: the work of all GPUs is done on the processor, one operation at a time.
// The clocks of bytes are kept by ranges, which are cut where uses differ.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_TEST_MACHINE_H
#define WHALE_RUNTIME_CUDA_TEST_MACHINE_H

#include "cuda/Libraries.h"
#include "cuda/test/Ptx.h"
#include "program/BoundProgram.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <utility>

namespace whale::runtime::cuda::test {

/// What is left out or changed, to see that it is noticed.
enum class Mutation : uint8_t {
  None,
  DropRecord,
  DropWait,
  SwapStream,
  ShiftAddress,
  /// A group of sends and receives goes by another communicator of its rank.
  SwapCommunicator
};
inline constexpr size_t mutations = 6;

struct MachineOptions {
  uint64_t seed = 0;
  int gpus = 1;
  int64_t memoryBytes = int64_t(8) << 30;
  /// What each module and each graph that can be launched takes of it, and each
  /// handle of cuBLASLt and cuDNN, and each of these for its kernels.
  int64_t objectBytes = 0;
  int driverVersion = 13000;
  /// Of the GPUs in their order; more GPUs are like the last one.
  std::vector<int> capabilities = {90};
  /// Of these, in the same way; `memoryBytes` where there are none.
  std::vector<int64_t> memories = {};
  int ncclVersion = 22809;
  /// The call, counted from 0 among those that can be changed so, that is.
  Mutation mutation = Mutation::None;
  int64_t mutated = 0;
  /// The kernel, counted from 0 as they run, that faults; none if negative.
  int64_t faultingKernel = -1;
  /// The group of sends and receives, counted from 0 as they begin, in which
  /// the communicator fails; none if negative.
  int64_t failingGroup = -1;
  /// The communicator, counted from 0 as ranks begin them, that none is begun
  /// of; none if negative.
  int64_t failingCommunicator = -1;
  /// Whether cuBLASLt has no algorithm with an epilogue.
  bool refusesEpilogues = false;
  /// Whether it has none for 8-bit elements.
  bool refusesBytes = false;
  /// Whether cuDNN finds no engine.
  bool hasNoEngines = false;
  /// If not empty, where NCCL's ranks of several processes meet.
  std::string sharedDirectory = {};
};

/// A kernel, as a function of the host, or as its text.
struct TestKernel {
  KernelFunction function = nullptr;
  int64_t extent = 0;
  size_t inputs = 0;
  std::vector<int64_t> bytes;
  int64_t threads = 0;
  std::string name;
  std::shared_ptr<const PtxKernel> text = nullptr;
  /// In whose context its module was loaded; -1 where it has none.
  int gpu = -1;
};

/// An operation of a stream.
struct Operation {
  std::string what;
  std::vector<Access> accesses;
  std::function<void()> run;
  /// A wait for so many operations of a stream.
  const struct StreamState *awaited = nullptr;
  int64_t position = 0;
  /// Asked when it is the first of its stream: what it needs of other GPUs is
  /// there. True if empty.
  std::function<bool()> meets = {};
  /// Whether the one before it was put there by the same call.
  bool isOfSameCall = false;
};

struct StreamState {
  int gpu = 0;
  size_t number = 0;
  std::deque<Operation> operations;
  int64_t put = 0, done = 0;
  /// When each of those that are done was.
  std::vector<std::chrono::steady_clock::time_point> ends;
  Clock clock;
  /// Set while it is captured.
  std::unique_ptr<std::vector<Operation>> captured;
};

struct EventState {
  const StreamState *stream = nullptr;
  int64_t position = 0;
  Clock clock;
  bool hasTime = false;
  std::chrono::steady_clock::time_point recorded = {};
};

struct GpuState {
  int64_t usedBytes = 0;
  /// What the host knows to be done.
  Clock host;
  Status error = 0;
  /// Whether cuBLASLt and cuDNN have loaded their kernels.
  bool hasProducts = false, hasPlans = false;
  /// How often its thread has asked, in vain, since the machine's last change.
  int64_t asked = 0, change = 0;
  bool hasLeft = false;
};

class Machine {
public:
  explicit Machine(const MachineOptions &options = {});
  ~Machine();
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  /// Tables of this machine. What uses those of another one rests until this
  /// one is gone.
  const Libraries &libraries() const { return tables; }
  const Nccl &nccl() const { return ncclTable; }

  /// The kernels of a module, by name, which stay where they are. `cubin`: the
  /// same module for GPUs of `architecture` alone, if there is one.
  void addModule(const std::string &text,
                 std::map<std::string, TestKernel> kernels,
                 const std::string &cubin = "", int architecture = 0);
  /// A kernel that is in no module.
  Function addKernel(TestKernel kernel);

  /// The GPU's thread puts nothing more on it. Once they wait for one another,
  /// those that have not left get a fault; else they wait for ever.
  void leave(int gpu);

  /// While it is held, no operation runs; who asks whether one has is told that
  /// it has not.
  void hold(bool isHeld);

  /// What was wrong since this was asked last.
  std::vector<std::string> takeFaults();
  /// How many calls a mutation could have changed so far.
  int64_t countOf(Mutation kind) const {
    return counts[static_cast<size_t>(kind)];
  }

  /// Until the thread asks again.
  const char *lastFaultText();

  // For the functions of the tables, which hold the lock.

  static Machine &get();
  std::recursive_mutex mutex;
  const MachineOptions options;
  std::vector<GpuState> gpus;

  /// Keeps a fault of a GPU.
  Status fault(int gpu, const std::string &what, Status status = kInvalidValue);
  bool mutates(Mutation kind);
  void put(StreamState &stream, Operation operation);
  /// Lets operations run until `isDone`. Returns the error of the GPU. Where
  /// all wait for what other threads have yet to put on their GPUs it sleeps,
  /// and leaves the lock, which it expects to be held once.
  Status runUntil(int gpu, const std::function<bool()> &isDone);
  void runSome(int gpu);
  /// What a question for something that is not done is answered.
  Status answerNotReady(int gpu);
  /// Whether all bytes are in one live range of the GPU's memory, or of pinned
  /// memory.
  bool isMemory(int gpu, Address address, int64_t bytes) const;
  bool isCapturing(int gpu) const;
  /// What an object of the driver or a library takes of the calling thread's
  /// GPU; false where less is free.
  bool takeObject();
  void giveObject();
  int capabilityOf(int gpu) const {
    return options.capabilities[std::min(options.capabilities.size() - 1,
                                         static_cast<size_t>(gpu))];
  }
  int64_t totalBytesOf(int gpu) const {
    return options.memories.empty()
               ? options.memoryBytes
               : options.memories[std::min(options.memories.size() - 1,
                                           static_cast<size_t>(gpu))];
  }
  StreamState *otherStream(const StreamState &stream);

  struct Range {
    int64_t bytes;
    int gpu;
    bool isPinned;
  };
  /// The live range that all bytes are in, or null.
  const Range *rangeOf(Address address, int64_t bytes) const;
  /// Of something that other threads may wait for.
  void notify() {
    ++changes;
    changed.notify_all();
  }
  uint64_t draw() { return random(); }
  std::map<Address, Range> memory;
  std::map<Stream, std::unique_ptr<StreamState>> streams;
  std::map<EventHandle, std::unique_ptr<EventState>> events;
  std::map<Graph, std::vector<Operation>> graphs;
  std::map<GraphExec, std::vector<Operation>> executables;
  std::map<Module, std::map<std::string, Function>> modules;
  std::map<Function, TestKernel> kernels;
  std::map<std::string, std::map<std::string, TestKernel>> texts;
  /// By their bytes: the text of the same module, and the architecture.
  std::map<std::string, std::pair<std::string, int>> cubins;
  /// How many modules were loaded from either.
  int64_t loadedTexts = 0, loadedCubins = 0;
  /// How many descriptions, layouts and preferences of cuBLASLt there are.
  int64_t blasObjects = 0;
  /// How many plans of cuDNN were made.
  int64_t plans = 0;
  Shadow shadow;
  int64_t launches = 0, groups = 0, graphLaunches = 0;
  /// Communicators of NCCL that were aborted, and those that were destroyed.
  int64_t aborted = 0, destroyed = 0;
  int64_t begunCommunicators = 0;
  /// Also those that are gone: clocks know them by number.
  size_t madeStreams = 0;

private:
  void run(StreamState &stream);
  bool isReady(const StreamState &stream) const;

  Machine *previous = nullptr;
  Libraries tables;
  Nccl ncclTable;
  Blas blasTable;
  Dnn dnnTable;
  Fft fftTable;
  Solver solverTable;
  std::condition_variable_any changed;
  std::mt19937_64 random;
  std::vector<std::string> faults;
  std::string lastFault;
  std::array<int64_t, mutations> counts = {};
  int64_t changes = 0;
  bool isHeld = false;
};

void fillDriver(Driver &driver);
void fillBlasLt(BlasLt &blas);
void fillNccl(Nccl &nccl);
void fillDnn(Dnn &dnn);
void fillFft(Fft &fft);
void fillSolver(Solver &solver, Blas &blas);

/// Which GPU the calling thread has made its own; -1 if none.
int currentGpu();

} // namespace whale::runtime::cuda::test

#endif // WHALE_RUNTIME_CUDA_TEST_MACHINE_H
