//===- BoundProgram.cpp - A program, ready to be executed -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program as it was read. Out: for each rank class its instructions with
// the kernels and library functions that they call, found by name, and the
// labels, lines and costs that traces show. A function is bound once for each
// class that runs it, since its local buffers lie elsewhere in each. Errors
// name the path of the field. Cost: linear in the instructions of the classes
// and of the functions that they run.
//
//===----------------------------------------------------------------------===//

#include "program/BoundProgram.h"

#include "program/Kernels.h"
#include "whale/ProgramFormat/Limits.h"
#include "whale/ProgramFormat/Processor.h"
#include "whale/System/Json.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace whale::runtime {

namespace {
class Binder {
public:
  Binder(BoundProgram &bound, const std::string &file,
         const KernelLibrary *kernels, const PythonFunction &python)
      : bound(bound), program(bound.program), file(file), kernels(kernels),
        python(python) {}

  void checkConstants(int64_t size);
  void bindClasses();

private:
  void checkConstants(const format::Body &body, const std::string &path,
                      int64_t size) const;
  void bindClass(size_t number);
  void addBuffers(BoundFunction &function,
                  const std::vector<std::vector<int64_t>> &layouts,
                  size_t count);
  /// With the path of the field that is being bound, or of a member of it.
  [[noreturn]] void fail(const std::string &what,
                         const std::string &member = "") const {
    throw Error(file + ": " + path + member + ": " + what);
  }
  /// Calls a function with the path of an element or member of the field.
  template <typename Function>
  auto inside(const std::string &step, Function function) {
    size_t length = path.size();
    path += step;
    auto result = function();
    path.resize(length);
    return result;
  }

  std::vector<Instruction>
  bindList(const std::vector<format::Instruction> &list);
  Instruction bind(const format::Instruction &given);
  const format::Origin &originOf(const format::Instruction &instruction) const;

  void bind(const format::Kernel &kernel, Instruction &instruction);
  void bind(const format::Copy &copy, Instruction &instruction);
  void bind(const Matmul &matmul, Instruction &instruction);
  void bind(const Convolution &convolution, Instruction &instruction);
  void bind(const format::Call &call, Instruction &instruction);
  void bind(const Start &start, Instruction &instruction);
  void bind(const format::Wait &wait, Instruction &instruction);
  void bind(const format::Run &run, Instruction &instruction);
  void bind(const format::While &loop, Instruction &instruction);
  void bind(const format::Case &choice, Instruction &instruction);

  const BufferInfo &info(BufferIndex index) const {
    return body->buffers[index];
  }
  double bytesOf(const std::vector<BufferIndex> &buffers) const {
    double bytes = 0;
    for (BufferIndex buffer : buffers)
      bytes += static_cast<double>(info(buffer).bytes);
    return bytes;
  }

  BoundProgram &bound;
  const format::Program &program;
  const std::string &file;
  const KernelLibrary *kernels;
  const PythonFunction &python;
  BoundClass *boundClass = nullptr;
  bool isForProcessor = false;
  std::string arch;
  /// The class or function at hand.
  const format::Body *body = nullptr;
  /// The instructions of the class and its functions so far.
  size_t count = 0;
  /// The instructions that start the class's transfers.
  std::map<int64_t, const format::Instruction *> starts;
  std::string path;
};
} // namespace

static std::string at(size_t index) {
  return "[" + std::to_string(index) + "]";
}

void Binder::checkConstants(const format::Body &body, const std::string &path,
                            int64_t size) const {
  for (size_t i = 0; i < body.buffers.size(); ++i) {
    const BufferInfo &buffer = body.buffers[i];
    if (buffer.space == Space::Constant &&
        (buffer.offset > size || buffer.bytes > size - buffer.offset))
      fail("the buffer's " + std::to_string(buffer.bytes) +
               " bytes reach out of the constants of " + std::to_string(size),
           path + ".buffers" + at(i) + ".constant");
  }
}

void Binder::checkConstants(int64_t size) {
  for (size_t i = 0; i < program.functions.size(); ++i)
    checkConstants(program.functions[i], "functions" + at(i), size);
  for (size_t i = 0; i < program.classes.size(); ++i)
    checkConstants(program.classes[i], "classes" + at(i), size);
}

void Binder::bindClasses() {
  bound.classes.resize(program.classes.size());
  for (size_t i = 0; i < program.classes.size(); ++i)
    bindClass(i);
}

/// `count`: the buffers of the class. `layouts`: the offsets of the function's
/// locals in the arena.
void Binder::addBuffers(BoundFunction &function,
                        const std::vector<std::vector<int64_t>> &layouts,
                        size_t count) {
  std::vector<FunctionBuffer> &added = boundClass->functionBuffers;
  auto next = [&] { return static_cast<BufferIndex>(count + added.size()); };
  for (const BufferInfo &buffer : function.format->buffers) {
    function.indices.push_back(next());
    if (buffer.space == Space::Constant)
      added.push_back({Space::Constant, buffer.offset});
  }
  for (const std::vector<int64_t> &locals : layouts) {
    function.firstLocal.push_back(next());
    for (int64_t offset : locals)
      added.push_back({Space::Arena, offset});
  }
}

void Binder::bindClass(size_t number) {
  const format::RankClass &rankClass = program.classes[number];
  boundClass = &bound.classes[number];
  isForProcessor = rankClass.isForProcessor;
  arch = rankClass.arch;
  count = 0;
  starts.clear();
  // What runs refer to is there before them.
  for (const auto &[function, layouts] : rankClass.locals) {
    BoundFunction &its = boundClass->functions[function];
    its.format = &program.functions[function];
    addBuffers(its, layouts, rankClass.buffers.size());
  }
  auto bindBody = [&](const format::Body &given, const std::string &name) {
    body = &given;
    return inside(name + ".instructions",
                  [&] { return bindList(given.instructions); });
  };
  boundClass->instructions = bindBody(rankClass, "classes" + at(number));
  for (auto &[function, its] : boundClass->functions)
    its.instructions = bindBody(*its.format, "functions" + at(function));
  boundClass->instructionCount = count;
}

void Binder::bind(const format::Kernel &kernel, Instruction &instruction) {
  bool isOnGpu = !program.gpu.empty() && !isForProcessor;
  if (!program.gpu.empty() &&
      program.kernelSignatures->at(kernel.symbol).gpu.has_value() != isOnGpu)
    fail("a class for " + std::string(isOnGpu ? "GPUs" : "the processor") +
             " runs the kernel '" + kernel.symbol + "', which is not",
         ".kernel");
  if (isOnGpu && !arch.empty()) {
    const auto &code =
        program.gpu[findModule(
                        program.gpu,
                        program.kernelSignatures->at(kernel.symbol).gpu->module)
                        .first];
    if (code.arch != arch)
      fail("a class for " + arch + " runs the kernel '" + kernel.symbol +
               "', which is for " + code.arch,
           ".kernel");
  }
  if (!kernels && !isOnGpu)
    fail("the program has no kernels");
  KernelFunction function = kernels ? kernels->find(kernel.symbol) : nullptr;
  if (!function && !isOnGpu)
    fail("there is no kernel '" + kernel.symbol + "' in " +
             program.kernels->name,
         ".kernel");
  instruction.detail = kernel.symbol;
  double touched =
      instruction.bytes > 0 ? instruction.bytes : bytesOf(kernel.buffers);
  instruction.operation =
      KernelLaunch{function, kernel.buffers, kernel.extent,
                   std::max(instruction.flops, touched), &kernel.symbol};
}

void Binder::bind(const format::Copy &copy, Instruction &instruction) {
  instruction.detail = "copy";
  instruction.bytes = bytesOf({copy.src, copy.dst});
  instruction.operation = Copy{copy.src, copy.dst, info(copy.dst).bytes};
}

void Binder::bind(const Matmul &matmul, Instruction &instruction) {
  instruction.detail = "matmul";
  instruction.bytes = bytesOf({matmul.lhs, matmul.rhs, matmul.out});
  Epilogue epilogue = matmul.epilogue;
  if (epilogue != Epilogue::None)
    instruction.detail += std::string(" ") + name(epilogue);
  if (usesAux(epilogue))
    instruction.bytes += bytesOf({matmul.aux});
  instruction.product = matmul.lhsType;
  instruction.operation = &matmul;
}

void Binder::bind(const Convolution &convolution, Instruction &instruction) {
  instruction.detail = "convolution";
  instruction.bytes =
      bytesOf({convolution.lhs, convolution.rhs, convolution.out});
  instruction.product = convolution.lhsType;
  instruction.operation = &convolution;
}

void Binder::bind(const format::Call &call, Instruction &instruction) {
  nlohmann::json config = system::parseJson<nlohmann::json>(call.config);
  LibraryRequest request{{},
                         {},
                         config,
                         [&](const std::string &symbol) {
                           return kernels ? kernels->find(symbol) : nullptr;
                         },
                         python};
  for (BufferIndex index : call.inputs)
    request.inputs.push_back({info(index).dtype, info(index).shape});
  for (BufferIndex index : call.outputs)
    request.outputs.push_back({info(index).dtype, info(index).shape});
  const LibraryFactory *factory = findLibraryFunction(call.function);
  if (!factory)
    fail("there is no library function '" + call.function + "'", ".function");
  instruction.detail = call.function;
  instruction.bytes = bytesOf(call.inputs) + bytesOf(call.outputs);
  try {
    Call bound{call.inputs, call.outputs, (*factory)(request)};
    for (const auto *buffers : {&call.inputs, &call.outputs})
      for (BufferIndex index : *buffers) {
        bound.bytes.push_back(info(index).bytes);
        bound.tensors.push_back({info(index).dtype, info(index).shape});
      }
    bound.given = &call;
    instruction.operation = std::move(bound);
  } catch (const Error &error) {
    fail(error.what());
  }
}

static std::string labelOf(const format::Program &program, int64_t channel) {
  return program.channels.at(channel)->kind + " " + std::to_string(channel);
}

void Binder::bind(const Start &start, Instruction &instruction) {
  instruction.detail = "start";
  if (instruction.label.empty())
    instruction.label = labelOf(program, start.channel);
  instruction.operation = start;
}

void Binder::bind(const format::Wait &wait, Instruction &instruction) {
  instruction.detail = "wait";
  const format::Instruction &start = *starts.at(wait.transfer);
  int64_t channel = std::get<Start>(start.operation).channel;
  const format::Origin &origin = originOf(start);
  instruction.label =
      origin.label.empty() ? labelOf(program, channel) : origin.label;
  instruction.lines = &origin.lines;
  instruction.flops += static_cast<double>(start.flops.value_or(0));
  instruction.bytes += static_cast<double>(start.bytes.value_or(0));
  instruction.operation = Wait{wait.transfer, channel};
}

void Binder::bind(const format::Run &run, Instruction &instruction) {
  instruction.detail = "run";
  instruction.operation = Run{&boundClass->functions.at(run.function), &run};
}

void Binder::bind(const format::While &loop, Instruction &instruction) {
  instruction.detail = "while";
  auto cond = inside(".cond", [&] { return bindList(loop.cond); });
  auto body = inside(".body", [&] { return bindList(loop.body); });
  bool exchanges = std::ranges::any_of(cond, [](const Instruction &each) {
    return std::holds_alternative<Start>(each.operation) ||
           std::holds_alternative<Run>(each.operation) ||
           std::holds_alternative<While>(each.operation) ||
           std::holds_alternative<Case>(each.operation);
  });
  instruction.operation =
      While{std::move(cond), loop.predicate, std::move(body),
            exchanges ? std::nullopt : loop.trips};
}

void Binder::bind(const format::Case &choice, Instruction &instruction) {
  instruction.detail = "case";
  Case result{choice.index, info(choice.index).dtype, {}};
  for (size_t i = 0; i < choice.branches.size(); ++i)
    result.branches.push_back(inside(
        ".branches" + at(i), [&] { return bindList(choice.branches[i]); }));
  instruction.operation = std::move(result);
}

const format::Origin &
Binder::originOf(const format::Instruction &instruction) const {
  static const format::Origin none;
  return instruction.origin ? program.origins[*instruction.origin] : none;
}

Instruction Binder::bind(const format::Instruction &given) {
  Instruction instruction;
  instruction.number = count++;
  const format::Origin &origin = originOf(given);
  instruction.label = origin.label;
  instruction.lines = &origin.lines;
  if (const auto *start = std::get_if<Start>(&given.operation))
    starts[start->transfer] = &given;
  instruction.flops = static_cast<double>(given.flops.value_or(0));
  instruction.bytes = static_cast<double>(given.bytes.value_or(0));
  std::visit([&](const auto &operation) { bind(operation, instruction); },
             given.operation);
  if (given.bytes)
    instruction.bytes = static_cast<double>(*given.bytes);
  if (instruction.label.empty())
    instruction.label = instruction.detail;
  return instruction;
}

std::vector<Instruction>
Binder::bindList(const std::vector<format::Instruction> &list) {
  std::vector<Instruction> result;
  result.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i)
    result.push_back(inside(at(i), [&] { return bind(list[i]); }));
  return result;
}

/// The first field that has to do with the memory of hosts, and what it says of
/// it.
static std::pair<const char *, std::string>
findHostUse(const format::Program &program) {
  auto inHost = [](const Parameter &each) { return each.isInHost; };
  auto argument = std::ranges::find_if(program.arguments, inHost);
  if (argument != program.arguments.end())
    return {"arguments", argument->name + " is in the memory of the host"};
  auto result = std::ranges::find_if(program.results, inHost);
  if (result != program.results.end())
    return {"results", result->name + " is in the memory of the host"};
  for (const auto &[number, channel] : program.channels)
    if (channel->isHostCopy())
      return {"channels", "channel " + std::to_string(number) + ", " +
                              channel->kind +
                              ", is between the memories of host and device"};
  return {};
}

void checkTarget(const format::Program &program, const std::string &file) {
  auto fail = [&](const char *field, const std::string &what) {
    throw Error(file + ": " + field + ": " + what);
  };
  if (program.target == "none")
    fail("target", "the program was compiled for 'none': it has no code to "
                   "run");
  if (program.target != "cpu" && program.target != "cuda" &&
      program.target != "cuda-emulated")
    fail("target", "this runtime runs 'cpu' and 'cuda' programs, not '" +
                       program.target + "'");
  if (program.target == "cuda")
    if (auto [field, what] = findHostUse(program); !what.empty())
      fail(field, what + ", which this runtime copies from and to on "
                         "processors alone");
  for (const std::string &feature : program.kernelFeatures)
    if (!format::hasProcessorFeature(feature))
      fail("kernel_features",
           "the kernels need a processor with " + feature +
               ", which this one has not: compile with --cpu=x86-64-v3, or "
               "another one that all machines have");
  if (program.ranks.size() > format::mostRanks)
    fail("ranks", "must have from 1 to " + std::to_string(format::mostRanks) +
                      " entries");
}

std::unique_ptr<BoundProgram> bindProgram(format::Program program,
                                          const std::string &file,
                                          const KernelLibrary *kernels,
                                          int64_t constantsSize,
                                          const PythonFunction &python) {
  auto bound = std::make_unique<BoundProgram>(std::move(program));
  Binder binder(*bound, file, kernels, python);
  binder.checkConstants(constantsSize);
  binder.bindClasses();
  return bound;
}

} // namespace whale::runtime
