//===- Ptx.cpp - Runs a kernel from its text ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the text of a kernel of PTX. Out: what it does to memory, one thread
// after the other. Each instruction becomes a function of the thread's
// registers when the text is read; registers hold bits, those of narrow values
// with zeros above. What the text may have is listed in `Reader::add`; all else
// is refused. An instruction of a thread costs some nanoseconds.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/Ptx.h"

#include "whale/ProgramFormat/Numeric.h"
#include "whale/Runtime/Types.h"

#include <cmath>
#include <cstring>
#include <sstream>

namespace whale::runtime::cuda::test {

struct PtxKernel::Thread {
  std::vector<uint64_t> registers;
  std::span<const char> parameter;
  /// Where not null, memory is not used, but noted here: by the number of the
  /// access in its thread, the runs of bytes.
  std::vector<std::vector<Access>> *noted = nullptr;
  size_t accesses = 0;

  void note(Address address, int64_t size, bool writes) {
    if (noted->size() == accesses)
      noted->emplace_back();
    std::vector<Access> &runs = (*noted)[accesses++];
    if (!runs.empty() &&
        runs.back().address + static_cast<Address>(runs.back().bytes) ==
            address)
      runs.back().bytes += size;
    else
      runs.push_back({address, size, writes});
  }
};

template <typename T>
T PtxKernel::get(const Thread &thread, const Operand &operand) {
  uint64_t bits =
      operand.isRegister ? thread.registers[operand.value] : operand.value;
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
void PtxKernel::set(Thread &thread, const Operand &operand, T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  thread.registers[operand.value] = bits;
}

namespace {
/// Calls `function` with a value of the type of a suffix, such as "u32".
template <typename Function>
auto withType(const std::string &suffix, Function function) {
  if (suffix == "f32")
    return function(float());
  if (suffix == "f64")
    return function(double());
  if (suffix == "s8")
    return function(int8_t());
  if (suffix == "s16")
    return function(int16_t());
  if (suffix == "s32")
    return function(int32_t());
  if (suffix == "s64")
    return function(int64_t());
  if (suffix == "u8" || suffix == "b8")
    return function(uint8_t());
  if (suffix == "u16" || suffix == "b16")
    return function(uint16_t());
  if (suffix == "u32" || suffix == "b32")
    return function(uint32_t());
  if (suffix == "u64" || suffix == "b64")
    return function(uint64_t());
  throw Error("PTX: an unknown type '" + suffix + "'");
}

/// As the processor of a GPU has it: what is no NaN wins, -0 is below 0.
template <typename T>
T least(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b)
      return a != a ? b : a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  } else {
    return std::min(a, b);
  }
}
template <typename T>
T most(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b)
      return a != a ? b : a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  } else {
    return std::max(a, b);
  }
}

/// In unsigned integers, where overflow wraps.
template <typename T, typename Function>
T compute(T a, T b, Function function) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(
        function(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  else
    return function(a, b);
}

std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);)
    parts.push_back(part);
  return parts;
}
} // namespace

/// Reads the lines of a text, each with a directive, a label or an instruction.
class PtxKernel::Reader {
public:
  explicit Reader(PtxKernel &kernel) : kernel(kernel) {
    for (const char *name : {"%ctaid.x", "%tid.x"})
      known[name] = {true, kernel.registers++};
  }

  void read(const std::string &text);

private:
  void add(const std::string &line);
  Function functionOf(const std::vector<std::string> &opcode,
                      const std::vector<Operand> &operands);
  template <typename T>
  static Function arithmetic(const std::string &name, const Operand &d,
                             const Operand &a, const Operand &b);
  template <typename T>
  static Function comparison(const std::string &name, const Operand &d,
                             const Operand &a, const Operand &b);
  Operand operand(const std::string &text);

  PtxKernel &kernel;
  std::map<std::string, Operand> known;
  std::map<std::string, size_t> labels;
  /// By instruction.
  std::map<size_t, std::string> branches;
};

void PtxKernel::Reader::read(const std::string &text) {
  for (std::string line : split(text, '\n')) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.starts_with(".visible .entry ")) {
      size_t name = strlen(".visible .entry "), end = line.find('(');
      kernel.entry = line.substr(name, end - name);
      size_t box = line.find(" box[");
      if (box == line.npos)
        throw Error("PTX: a kernel of other parameters");
      kernel.bytes = std::stoull(line.substr(box + strlen(" box[")));
    } else if (line.starts_with(".maxntid ")) {
      kernel.threadsOfBlock = std::stoll(line.substr(strlen(".maxntid ")));
    } else if (line.ends_with(':')) {
      labels[line.substr(0, line.size() - 1)] = kernel.instructions.size();
    } else if (line.ends_with(';') && !line.starts_with('.')) {
      add(line.substr(0, line.size() - 1));
    }
  }
  for (const auto &[number, label] : branches)
    kernel.instructions[number].target = labels.at(label);
  if (kernel.entry.empty() || kernel.instructions.empty())
    throw Error("PTX: no kernel");
}

/// A register, a number, or the parameter, whose address is 0.
PtxKernel::Operand PtxKernel::Reader::operand(const std::string &text) {
  if (text == "box")
    return {};
  if (text.starts_with('%')) {
    auto [it, isNew] = known.try_emplace(text);
    if (isNew)
      it->second = {true, kernel.registers++};
    return it->second;
  }
  Operand number;
  if (text.starts_with("0f") || text.starts_with("0d"))
    number.value = std::stoull(text.substr(2), nullptr, 16);
  else if (text.starts_with('-'))
    number.value = static_cast<uint64_t>(std::stoll(text));
  else
    number.value = std::stoull(text, nullptr, 0);
  return number;
}

void PtxKernel::Reader::add(const std::string &line) {
  Instruction &instruction = kernel.instructions.emplace_back();
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (word.starts_with('@')) {
    instruction.guard = operand(word.substr(1));
    words >> word;
  }
  std::vector<std::string> opcode = split(word, '.');
  std::vector<Operand> operands;
  if (word == "ret") {
    instruction.function = [](Thread &) {};
    return;
  }
  while (words >> word) {
    std::erase_if(word, [](char c) { return strchr("[],", c); });
    if (opcode[0] == "bra") {
      branches[kernel.instructions.size() - 1] = word;
      return;
    }
    // An address and what is added to it.
    for (const std::string &part : split(word, '+'))
      operands.push_back(operand(part));
  }
  instruction.function = functionOf(opcode, operands);
}

template <typename T>
PtxKernel::Function
PtxKernel::Reader::arithmetic(const std::string &name, const Operand &d,
                              const Operand &a, const Operand &b) {
  auto make = [=](auto function) -> Function {
    return [=](Thread &thread) {
      set(thread, d, T(function(get<T>(thread, a), get<T>(thread, b))));
    };
  };
  auto wrapping = [&](auto function) {
    return make([=](T x, T y) { return compute(x, y, function); });
  };
  if (name == "add")
    return wrapping([](auto x, auto y) { return x + y; });
  if (name == "sub")
    return wrapping([](auto x, auto y) { return x - y; });
  if (name == "mul")
    return wrapping([](auto x, auto y) { return x * y; });
  if (name == "min")
    return make(least<T>);
  if (name == "max")
    return make(most<T>);
  if constexpr (std::is_floating_point_v<T>)
    if (name == "div")
      return make([](T x, T y) { return x / y; });
  if constexpr (std::is_unsigned_v<T>) {
    if (name == "div")
      return make([](T x, T y) { return x / y; });
    if (name == "rem")
      return make([](T x, T y) { return x % y; });
    if (name == "and")
      return make([](T x, T y) { return x & y; });
    if (name == "or")
      return make([](T x, T y) { return x | y; });
    if (name == "shl")
      return make([](T x, T y) { return x << y; });
    if (name == "shr")
      return make([](T x, T y) { return x >> y; });
  }
  throw Error("PTX: an unknown instruction '" + name + "'");
}

template <typename T>
PtxKernel::Function
PtxKernel::Reader::comparison(const std::string &name, const Operand &d,
                              const Operand &a, const Operand &b) {
  auto make = [=](auto function) -> Function {
    return [=](Thread &thread) {
      set(thread, d, uint64_t(function(get<T>(thread, a), get<T>(thread, b))));
    };
  };
  if (name == "eq")
    return make([](T x, T y) { return x == y; });
  if (name == "ge")
    return make([](T x, T y) { return x >= y; });
  if (name == "lt")
    return make([](T x, T y) { return x < y; });
  if (name == "nan")
    return make([](T x, T y) { return x != x || y != y; });
  throw Error("PTX: an unknown comparison '" + name + "'");
}

PtxKernel::Function
PtxKernel::Reader::functionOf(const std::vector<std::string> &opcode,
                              const std::vector<Operand> &operands) {
  const std::string &name = opcode.front();
  Operand d = operands.at(0), a = operands.at(1),
          b = operands.size() > 2 ? operands[2] : Operand(),
          c = operands.size() > 3 ? operands[3] : Operand();
  if (name == "cvt" && opcode[1] == "rn")
    return [=](Thread &thread) {
      set(thread, d, static_cast<format::Float16>(get<float>(thread, a)));
    };
  if (name == "cvt" && opcode[2] == "f16")
    return [=](Thread &thread) {
      set(thread, d, static_cast<float>(get<format::Float16>(thread, a)));
    };
  if (name == "mul" && opcode[1] == "wide")
    return [=](Thread &thread) {
      set(thread, d,
          uint64_t(get<uint32_t>(thread, a)) * get<uint32_t>(thread, b));
    };
  return withType(opcode.back(), [&](auto sample) -> Function {
    using T = decltype(sample);
    // Narrow integers are loaded into registers of 32 bits.
    using Wide = std::conditional_t<
        std::is_integral_v<T> && sizeof(T) < 4,
        std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>, T>;
    if (name == "mov" || name == "cvt")
      return [=](Thread &thread) { set(thread, d, get<T>(thread, a)); };
    if (name == "ex2")
      return [=](Thread &thread) {
        set(thread, d, std::exp2(get<float>(thread, a)));
      };
    if (name == "ld" && opcode[1] == "param")
      return [=](Thread &thread) {
        T value;
        std::memcpy(&value,
                    &thread.parameter[get<uint64_t>(thread, a) + b.value],
                    sizeof(T));
        set(thread, d, value);
      };
    if (name == "ld")
      return [=](Thread &thread) {
        auto address = get<Address>(thread, a);
        if (thread.noted)
          return thread.note(address, sizeof(T), false);
        T value;
        std::memcpy(&value, reinterpret_cast<const void *>(address), sizeof(T));
        set(thread, d, Wide(value));
      };
    if (name == "st")
      return [=](Thread &thread) {
        auto address = get<Address>(thread, d);
        if (thread.noted)
          return thread.note(address, sizeof(T), true);
        T value = get<T>(thread, a);
        std::memcpy(reinterpret_cast<void *>(address), &value, sizeof(T));
      };
    if (name == "mad")
      return [=](Thread &thread) {
        set(thread, d,
            get<T>(thread, a) * get<T>(thread, b) + get<T>(thread, c));
      };
    if (name == "selp")
      return [=](Thread &thread) {
        set(thread, d,
            get<bool>(thread, c) ? get<T>(thread, a) : get<T>(thread, b));
      };
    if (name == "setp")
      return comparison<T>(opcode.at(1), d, a, b);
    return arithmetic<T>(name, d, a, b);
  });
}

PtxKernel::PtxKernel(const std::string &text) { Reader(*this).read(text); }

void PtxKernel::run(Thread &thread, int64_t blocks) const {
  thread.registers.resize(registers);
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t number = 0; number < threadsOfBlock; ++number) {
      thread.registers[0] = static_cast<uint64_t>(block);
      thread.registers[1] = static_cast<uint64_t>(number);
      thread.accesses = 0;
      for (size_t next = 0; next < instructions.size();) {
        const Instruction &instruction = instructions[next++];
        if (instruction.guard && !get<bool>(thread, *instruction.guard))
          continue;
        if (instruction.function)
          instruction.function(thread);
        else
          next = instruction.target;
      }
    }
}

void PtxKernel::run(int64_t blocks, std::span<const char> parameter) const {
  Thread thread;
  thread.parameter = parameter;
  run(thread, blocks);
}

std::vector<Access> PtxKernel::accesses(int64_t blocks,
                                        std::span<const char> parameter) const {
  std::vector<std::vector<Access>> noted;
  Thread thread;
  thread.parameter = parameter;
  thread.noted = &noted;
  run(thread, blocks);
  std::vector<Access> all;
  for (const std::vector<Access> &runs : noted)
    all.insert(all.end(), runs.begin(), runs.end());
  return all;
}

} // namespace whale::runtime::cuda::test
