//===- whale-compile.cpp - Compile a training step --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a text of StableHLO and options. Out: a program directory, and messages;
// see docs/compile.md. Checks the options, and calls the compiler (Compile.h),
// which this file is a command line for. Cost: the compiler's. All memory comes
// from one arena of jemalloc and stays with the process until its end; what was
// made is not freed.
//
//===----------------------------------------------------------------------===//

#include "Linker.h"

#include "whale/Program/Compile.h"
#include "whale/Report/FitTable.h"
#include "whale/Report/PlanPage.h"
#include "whale/Report/PlanText.h"
#include "whale/Runtime/Libraries.h"
#include "whale/Support/LLVMTool.h"
#include "whale/Support/ReadFile.h"
#include "whale/System/Staging.h"
#include "whale/System/Tool.h"
#include "whale/Target/CPU/CompileKernels.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <optional>
#include <sys/prctl.h>
#include <unistd.h>

using namespace llvm;
using whale::CompileMessage;

/// Options of jemalloc. It would make an arena for each new thread: where there
/// is no memory for it, it dies by a signal instead of failing. The one for all
/// threads is there from the beginning. That takes less memory, and as long:
/// few allocations get past the caches of the threads. What is freed stays with
/// the process, which soon takes it again and doesn't live long: to get pages
/// anew took 3% of the time.
extern "C" {
extern const char *malloc_conf;
const char *malloc_conf = "narenas:1,dirty_decay_ms:-1";
}

static cl::OptionCategory category("whale-compile options");

static cl::opt<std::string> input(cl::Positional, cl::desc("FILE.mlir"),
                                  cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("Where to write the program"),
                                   cl::value_desc("OUT.whale"),
                                   cl::cat(category));
static cl::opt<std::string>
    cluster("cluster", cl::desc("Cluster file, or a number of CPU ranks"),
            cl::value_desc("C.json|N"), cl::cat(category));
static cl::opt<std::string> plan(
    "plan",
    cl::desc("The plan to carry out, as --explain=json prints it, edited or "
             "not"),
    cl::value_desc("PLAN.json"), cl::cat(category));
static cl::opt<std::string>
    target("target",
           cl::desc("Where the program runs; none plans and partitions without "
                    "generating code"),
           cl::value_desc("cpu|cuda|cuda-emulated|none"), cl::init("cpu"),
           cl::cat(category));
static cl::opt<std::string>
    cpu("cpu", cl::desc("Which processors the kernels run on"),
        cl::value_desc("native|x86-64-v2|x86-64-v3|x86-64-v4|..."),
        cl::init("native"), cl::cat(category));
static cl::opt<std::string>
    strategy("strategy", cl::desc("Strategy of operations without one"),
             cl::value_desc("replicate|split|none"), cl::cat(category));
static cl::opt<std::string>
    batchArgs("batch-args",
              cl::desc("Arguments with the mini-batch in dimension 0"),
              cl::value_desc("3,4"), cl::cat(category));
static cl::opt<std::string>
    microBatches("micro-batches",
                 cl::desc("Parts that the mini-batch is cut into"),
                 cl::value_desc("M"), cl::cat(category));
static cl::opt<std::string>
    feedback("feedback",
             cl::desc("Which result is the next step's value of an argument"),
             cl::value_desc("arg0:result0,..."), cl::cat(category));
static cl::opt<std::string>
    dumpPhasesTo("dump-phases-to", cl::desc("Write each level of the IR there"),
                 cl::value_desc("DIR"), cl::cat(category));
static cl::opt<std::string>
    explain("explain", cl::ValueOptional,
            cl::desc("Print what was decided and why: ten lines, what is held "
                     "where, of the fullest device and of a step that does not "
                     "fit too, what options would save and cost, everything "
                     "(the default), a page with pictures, or the plan"),
            cl::value_desc("summary|memory|peak|fit|all|html|json"),
            cl::init("off"), cl::cat(category));
static cl::opt<std::string> gpuArch("gpu-arch",
                                    cl::desc("Architecture of a cuda program"),
                                    cl::value_desc("sm_90"), cl::cat(category));
static cl::opt<bool>
    tf32("tf32",
         cl::desc("Let GPUs round f32 operands of default precision to TF32"),
         cl::cat(category));
static cl::opt<std::string>
    messages("messages",
             cl::desc("Form of what is said; json is an object a line on "
                      "standard output, for each message and each pass that "
                      "begins"),
             cl::value_desc("text|json"), cl::init("text"), cl::cat(category));
static cl::opt<bool>
    callbacks("callbacks",
              cl::desc("Python runs the program, and makes the calls that the "
                       "step makes into Python"),
              cl::cat(category));
static cl::opt<int64_t>
    parent("parent",
           cl::desc("End when the process that started this one, PID, ends"),
           cl::value_desc("PID"), cl::cat(category));

/// Whether is asked what the step needs, also where it does not fit.
static bool isFit() { return explain == "fit" || explain == "peak"; }

static int fail(const Twine &location, const Twine &text) {
  return whale::LLVMTool::fail(location, text);
}

/// Prints one line of --messages=json. It leaves in one piece and at once, so
/// that it arrives whatever becomes of this process.
static void printJson(json::Object object) {
  std::string line;
  raw_string_ostream(line) << json::Value(std::move(object)) << "\n";
  outs() << line;
  outs().flush();
}

/// The text, and how often it was said.
static std::string textOf(const CompileMessage &message) {
  return message.count > 1
             ? message.text + " (\u00d7 " + std::to_string(message.count) + ")"
             : message.text;
}

static void printAsJson(const CompileMessage &message) {
  static constexpr const char *severities[] = {"error", "warning", "remark"};
  printJson(json::Object{{"severity", severities[message.severity]},
                         {"location", message.location},
                         {"text", textOf(message)}});
  if (!message.table.empty())
    printJson(json::Object{{"table", message.table}});
}

/// Has the system end this process when the thread that started it ends; false
/// if that has happened already.
static bool endWith(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  return getppid() == parent;
}

/// What there may be to explain, in the order of its sections.
struct Explanation {
  ArrayRef<CompileMessage> remarks;
  const whale::CompileReport &report;
  ArrayRef<std::string> fit;

  std::string text() const;
  json::Object object() const;

private:
  std::string all() const;
};

/// The text that was asked for; none if it is JSON.
std::string Explanation::text() const {
  if (explain == "summary")
    return whale::makeSummary(report.plan);
  if (explain == "memory")
    return report.memory;
  if (isFit())
    return whale::makeFitTable("[" + join(fit, ",") + "]");
  if (explain == "html")
    return whale::makePlanPage(report.plan);
  return explain == "json" ? "" : all();
}

std::string Explanation::all() const {
  std::string text = "== summary\n" + whale::makeSummary(report.plan);
  if (!report.memory.empty())
    text += "\n== memory\n" + report.memory;
  text += "\n== decisions\n";
  for (const CompileMessage &remark : remarks)
    text += remark.location + (remark.location.empty() ? "" : ": ") +
            "remark: " + textOf(remark) + "\n";
  return text + "\n== task graphs\n" + whale::makePlanTable(report.plan);
}

json::Object Explanation::object() const {
  json::Object object;
  Expected<json::Value> plan = json::parse(report.plan);
  if (plan)
    object["plan"] = std::move(*plan);
  else
    consumeError(plan.takeError());
  // Else each was a message.
  if (messages == "json")
    return object;
  json::Array list;
  for (const CompileMessage &remark : remarks) {
    json::Object object{{"location", remark.location},
                        {"message", remark.text}};
    if (remark.count > 1)
      object["count"] = int64_t(remark.count);
    list.push_back(std::move(object));
  }
  object["remarks"] = std::move(list);
  return object;
}

/// Prints what was asked for on standard output.
static void printExplanation(const Explanation &explanation, bool asJson) {
  if (std::string text = explanation.text(); !text.empty() && asJson)
    printJson(json::Object{{"table", text}});
  else if (!text.empty())
    outs() << text;
  else if (asJson)
    printJson(explanation.object());
  else if (explain == "json")
    outs() << formatv("{0:2}", json::Value(explanation.object())) << "\n";
}

/// Says which option is missing, given twice or has no value that it can have;
/// returns whether there is none.
static bool checkOptions() {
  auto failed = [](const Twine &text) {
    fail("", text);
    return false;
  };
  // cl::Required would print a message of another form.
  if (input.empty())
    return failed("no FILE.mlir is given");
  if (output.empty() && target != "none" && !explain.getNumOccurrences())
    return failed("no output is given: -o OUT.whale");
  if (cluster.empty())
    return failed("no cluster is given: --cluster=C.json or a number of ranks");
  for (const cl::opt<std::string> *option :
       {&output, &cluster, &target, &strategy, &batchArgs, &microBatches,
        &feedback, &dumpPhasesTo, &explain, &gpuArch, &messages, &plan}) {
    std::string name = (option == &output ? "-" : "--") + option->ArgStr.str();
    if (option->getNumOccurrences() > 1)
      return failed(name + " is given twice");
    if (option->getNumOccurrences() && option->empty() && option != &explain)
      return failed(name + " has no value");
  }
  if (explain.getNumOccurrences() && explain.empty())
    explain = "all";
  if (!is_contained(
          {"off", "summary", "memory", "peak", "fit", "all", "html", "json"},
          StringRef(explain)))
    return failed("--explain: '" + explain +
                  "' is none of summary, memory, peak, fit, all, html, json");
  if (isFit() && output.getNumOccurrences())
    return failed("--explain=" + explain +
                  " generates no program; leave -o out");
  if (messages != "json" && messages != "text")
    return failed("--messages: '" + messages + "' is neither text nor json");
  if (parent.getNumOccurrences() && !endWith(parent))
    return failed("--parent: " + Twine(parent) +
                  " is not the process that started this one");
  if (gpuArch.getNumOccurrences() && !StringRef(target).starts_with("cuda"))
    return failed("--gpu-arch: only a cuda program has one, and --target is '" +
                  target + "'");
  if (cpu != "native" && !whale::isProcessor(cpu))
    return failed("--cpu: LLVM knows no processor '" + cpu + "'");
  return true;
}

/// Returns what the options ask of the compiler, or nullopt after an error.
static std::optional<whale::CompileOptions> readOptions() {
  whale::CompileOptions options(whale::runtime::getLibraries());
  options.cluster = cluster;
  options.target = target;
  if (cpu != "native")
    options.cpu = cpu;
  if (gpuArch.getNumOccurrences())
    options.gpuArch = gpuArch;
  options.strategy = strategy;
  if (batchArgs.getNumOccurrences())
    for (StringRef argument : split(batchArgs, ','))
      if (argument.getAsInteger(10, options.batchArgs.emplace_back())) {
        fail("", "--batch-args: '" + argument + "' is no number");
        return std::nullopt;
      }
  if (microBatches.getNumOccurrences() &&
      (StringRef(microBatches).getAsInteger(10, options.microBatches) ||
       options.microBatches < 1)) {
    fail("",
         "--micro-batches: '" + microBatches + "' is no number of at least 1");
    return std::nullopt;
  }
  options.tf32 = tf32;
  options.callsPython = callbacks;
  options.feedback = feedback;
  options.dumpPhasesTo = dumpPhasesTo;
  options.explainMemory = explain == "memory" || isFit() || explain == "all";
  options.pricesOptions = explain == "fit";
  options.explain = explain == "all" || explain == "json";
  options.leavesMemory = true;
  if (messages == "json")
    options.onPass = [](StringRef pass) {
      printJson(json::Object{{"pass", pass}});
    };
  return options;
}

int main(int argc, char **argv) {
  if (whale::isLinker(argv[0]))
    return whale::runLinker(argc, argv);
  setBugReportMsg("This is a defect of Whale: please report it, with the "
                  "input.\n");
  // LLVM's threads are there then.
  constexpr size_t leastAddressSpace = 360;
  whale::system::requireAddressSpace(leastAddressSpace);
  whale::LLVMTool tool(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (!whale::LLVMTool::parse(argc, argv, "Compiles a training step\n") ||
      !checkOptions())
    return 1;
  auto buffer = whale::readTextFile(input, whale::kMostSourceBytes);
  if (!buffer)
    return fail(input, "cannot read the file: " + toString(buffer.takeError()));
  std::optional<whale::CompileOptions> options = readOptions();
  if (!options)
    return 1;
  if (plan.getNumOccurrences()) {
    auto text = whale::readTextFile(plan, whale::kMostSourceBytes);
    if (!text)
      return fail(plan, "cannot read the file: " + toString(text.takeError()));
    options->plan = (*text)->getBuffer().str();
    options->planFile = plan;
    if (options->plan.empty())
      return fail(plan, "is empty");
  }

  bool asJson = messages == "json";
  std::vector<CompileMessage> remarks;
  whale::CompileReport report;
  auto handler = [&](const CompileMessage &message) {
    bool isRemark = message.severity == CompileMessage::Remark;
    // What is one text in the end has them in it.
    if (isRemark && (!asJson || explain != "json"))
      remarks.push_back(message);
    else if (asJson)
      printAsJson(message);
    else if (message.severity == CompileMessage::Error)
      fail(message.location, message.text);
    else
      errs() << message.location << (message.location.empty() ? "" : ": ")
             << "warning: " << textOf(message) << "\n";
    if (!asJson)
      errs() << message.table;
  };
  std::vector<std::string> fit;
  if (isFit())
    options->onFit = [&](const std::string &said) {
      if (asJson) {
        // Each part as soon as it is there, behind the plan of the step.
        if (fit.empty() && !report.plan.empty())
          printJson(Explanation{remarks, report, {}}.object());
        outs() << "{\"fit\":" << said << "}\n";
        outs().flush();
      }
      fit.push_back(said);
    };
  if (failed(whale::compileProgram((*buffer)->getBuffer(), input, *options,
                                   output, handler, &report)))
    return 1;
  if (explain != "off" && !(isFit() && asJson))
    printExplanation({remarks, report, fit}, asJson);
  return whale::LLVMTool::flushOutput() ? 0 : 1;
}
