//===- Libraries.cpp - The libraries of a GPU -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opens the driver, the libraries of the CUDA toolkit, cuDNN and NCCL, and
// fills their tables of functions. A library is opened when it is first asked
// for, by its file's name, in the loader's path, then in the directories of
// LateLibrary.h. The version of the driver, and the oldest GPU of this process,
// decide which major versions of the toolkit's libraries are tried, the latest
// first: those of CUDA 13 compute on nothing before sm_75. What is missing, too
// old, too new or lacks a function is an Error that says what to install.
//
// Cost: once for each library of a process, an attempt to open each of its
// names in each directory until one is found, and a look-up for each function.
// Later a pointer is returned.
//
//===----------------------------------------------------------------------===//

#include "cuda/Libraries.h"

#include "whale/ProgramFormat/GpuArchitecture.h"
#include "whale/Runtime/Types.h"
#include "whale/System/LateLibrary.h"

namespace fs = std::filesystem;

namespace whale::runtime::cuda {

/// The driver API of CUDA 12.0 came with driver 525.
static constexpr int leastDriver = 12000;
/// cuDNN 9.11 has dropped Pascal and Volta.
static constexpr size_t lastDnnOfOldGpus = 91099;
/// Communicators that are made without blocking came with NCCL 2.14.
static constexpr int leastNccl = 21400;

static constexpr const char *driverFile = "libcuda.so.1";
static constexpr const char *ncclFile = "libnccl.so.2";
static constexpr const char *dnnFile = "libcudnn.so.9";

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

/// Opens the driver, and starts it.
static void openDriver(const std::string &name, Driver &driver) {
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    throw Error("a 'cuda' program needs NVIDIA's driver, and libcuda.so.1 "
                "cannot be opened (" +
                std::string(why ? why : "no reason given") +
                "): install driver 525 or later (package nvidia-driver; in a "
                "container, run it with the GPUs passed in)");
  }
  int version = 0;
  const char *missing = system::fill(driver, library);
  if (driver.driverGetVersion.function)
    driver.driverGetVersion.function(&version);
  if (version < leastDriver)
    throw Error("NVIDIA's driver is for CUDA " + versionText(version) +
                ", a 'cuda' program needs one for CUDA " +
                versionText(leastDriver) +
                " or later: install driver 525 or later");
  if (missing)
    throw Error("NVIDIA's driver, for CUDA " + versionText(version) +
                ", lacks the function " + missing + ": install a later one");
  Status status = driver.init.function(0);
  int count = 0;
  if (!status)
    status = driver.deviceGetCount.function(&count);
  if (status && status != kNoDevice) {
    const char *text = nullptr;
    driver.getErrorString.function(status, &text);
    throw Error("NVIDIA's driver does not start: " +
                std::string(text ? text : "unknown error") + " (" +
                std::to_string(status) + ")");
  }
  if (status == kNoDevice || count == 0)
    throw Error("a 'cuda' program needs a GPU: NVIDIA's driver, for CUDA " +
                versionText(version) +
                ", finds none (CUDA_VISIBLE_DEVICES may hide them)");
}

namespace {
/// The libraries that are tried.
struct Toolkit {
  /// The latest major version of those that driver and GPUs run: 13 or 12.
  int major;
  /// Of the GPU that runs no later ones; 0 where the driver alone decides.
  int oldGpu = 0;
};
} // namespace

static Toolkit findToolkit(const Driver &driver) {
  int version = 0, count = 0, least = 0;
  driver.driverGetVersion.function(&version);
  driver.deviceGetCount.function(&count);
  for (int number = 0; number < count; ++number) {
    int device = 0, major = 0, minor = 0;
    driver.deviceGet.function(&device, number);
    driver.deviceGetAttribute.function(&major, kCapabilityMajor, device);
    driver.deviceGetAttribute.function(&minor, kCapabilityMinor, device);
    if (int own = major * 10 + minor; own && (!least || own < least))
      least = own;
  }
  int last = least ? format::findGpuArchitecture(least).lastToolkit : 0;
  int newest = version >= 13000 ? 13 : 12;
  if (last && last < newest)
    return {last, least};
  return {newest};
}

/// What an error says of a toolkit that was chosen for an old GPU.
static std::string reasonOf(const Toolkit &toolkit) {
  return toolkit.oldGpu ? " (a GPU is of " + format::archOf(toolkit.oldGpu) +
                              ", on which later ones do not compute)"
                        : "";
}

/// Where a library was found, and its handle; null if nowhere. Then `why`
/// begins with "which".
struct Found {
  std::string place = {};
  void *library = nullptr;
  std::string why = {};
};

/// The first of the libraries, of which earlier names are better.
static Found findLibrary(const std::vector<std::string> &names, bool usesLoader,
                         const std::vector<fs::path> &directories) {
  std::string where = usesLoader ? "the loader's path" : "", refused;
  for (const fs::path &directory : directories)
    where += (where.empty() ? "" : ", ") + directory.string();
  for (const std::string &name : names) {
    std::vector<std::string> places;
    if (usesLoader)
      places.push_back(name);
    for (const fs::path &directory : directories)
      places.push_back(directory / name);
    for (const std::string &place : places) {
      if (void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
        return {place, library};
      const char *text = dlerror();
      std::error_code error;
      if (refused.empty() && text && fs::exists(place, error))
        refused = text;
    }
  }
  if (!refused.empty())
    return {.why = "which cannot be opened (" + refused + ")"};
  return {.why =
              "which is not in " + (where.empty() ? "any directory" : where)};
}

/// A library of the CUDA toolkit: its files for CUDA 13 and CUDA 12, and the
/// packages that have it, without what says the version.
struct ToolkitLibrary {
  const char *name, *file13, *file12, *debian, *python;
};
static constexpr ToolkitLibrary blasLtLibrary = {
    "cuBLASLt", "libcublasLt.so.13", "libcublasLt.so.12", "libcublas",
    "nvidia-cublas"};
static constexpr ToolkitLibrary blasLibrary = {"cuBLAS", "libcublas.so.13",
                                               "libcublas.so.12", "libcublas",
                                               "nvidia-cublas"};
static constexpr ToolkitLibrary fftLibrary = {
    "cuFFT", "libcufft.so.12", "libcufft.so.11", "libcufft", "nvidia-cufft"};
static constexpr ToolkitLibrary solverLibrary = {
    "cuSOLVER", "libcusolver.so.12", "libcusolver.so.11", "libcusolver",
    "nvidia-cusolver"};

/// Opens what `who` needs.
template <typename Table>
static std::unique_ptr<Table>
openToolkit(const char *who, const ToolkitLibrary &wanted,
            const Toolkit &toolkit, bool usesLoader,
            const std::vector<fs::path> &directories) {
  // Each major version of the libraries needs a driver of its own or a later.
  bool has13 = toolkit.major >= 13;
  std::vector<std::string> files;
  if (has13)
    files.emplace_back(wanted.file13);
  files.emplace_back(wanted.file12);
  auto [place, library, why] = findLibrary(files, usesLoader, directories);
  if (library) {
    auto table = std::make_unique<Table>();
    if (const char *missing = system::fill(*table, library))
      throw Error(place + " lacks the function " + missing +
                  ": install another version of " + wanted.name);
    return table;
  }
  throw Error(std::string(who) + " needs " + files.front() +
              (has13 ? " (or " + files.back() + ")" : "") + reasonOf(toolkit) +
              ", " + why + ": it comes with CUDA toolkit " +
              (has13 ? "13" : "12") + " (package " + wanted.debian +
              (has13 ? "-13-x" : "-12-x") + ") and with the Python package " +
              wanted.python + (has13 ? "" : "-cu12"));
}

/// The one table of a kind in this process, which `open` makes when it is first
/// asked for, unless a test has `given` it.
template <typename Table, typename Open>
static const Table &openOnce(const Table *given, Open open) {
  if (given)
    return *given;
  static const std::unique_ptr<Table> table = open();
  return *table;
}

template <typename Table>
static const Table &openLate(const char *who, const ToolkitLibrary &wanted,
                             const Libraries &libraries, const Table *given) {
  return openOnce(given, [&] {
    return openToolkit<Table>(who, wanted, findToolkit(libraries.driver),
                              /*usesLoader=*/true,
                              system::libraryDirectories());
  });
}

/// "2.14.3" for 21403.
static std::string ncclVersionText(int version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

static std::unique_ptr<Nccl>
findNccl(bool usesLoader, const std::vector<fs::path> &directories) {
  auto [place, library, why] = findLibrary({ncclFile}, usesLoader, directories);
  if (!library)
    throw Error("ranks on several GPUs need libnccl.so.2, " + why +
                ": install NCCL 2.14 or later (package libnccl2, or the "
                "Python package nvidia-nccl-cu13 or nvidia-nccl-cu12), or "
                "choose a transport through the host");
  auto nccl = std::make_unique<Nccl>();
  const char *missing = system::fill(*nccl, library);
  int version = 0;
  if (nccl->getVersion.function)
    nccl->getVersion.function(&version);
  if (version < leastNccl)
    throw Error(place + " is NCCL " + ncclVersionText(version) +
                ", ranks on several GPUs need " + ncclVersionText(leastNccl) +
                " or later");
  if (missing)
    throw Error(place + ", NCCL " + ncclVersionText(version) +
                ", lacks the function " + missing + ": install a later one");
  return nccl;
}

static std::unique_ptr<Dnn> findDnn(const Toolkit &toolkit, bool usesLoader,
                                    const std::vector<fs::path> &directories) {
  auto [place, library, why] = findLibrary({dnnFile}, usesLoader, directories);
  if (!library)
    throw Error("convolutions and attention need libcudnn.so.9, " + why +
                ": install cuDNN 9 (package libcudnn9-cuda-13 or "
                "libcudnn9-cuda-12, or the Python package nvidia-cudnn-cu13 or "
                "nvidia-cudnn-cu12)");
  // It opens these by their names alone when it compiles kernels.
  for (int major : {13, 12})
    if (major <= toolkit.major)
      findLibrary({"libnvrtc.so." + std::to_string(major)}, usesLoader,
                  directories);
  auto dnn = std::make_unique<Dnn>();
  if (const char *missing = system::fill(*dnn, library))
    throw Error(place + " lacks the function " + missing +
                ": install a later cuDNN 9");
  if (size_t version = dnn->getVersion.function();
      toolkit.oldGpu && version > lastDnnOfOldGpus)
    throw Error(place + " is cuDNN " + std::to_string(version / 10000) + "." +
                std::to_string(version / 100 % 100) +
                ", which does not compute on GPUs of " +
                format::archOf(toolkit.oldGpu) +
                ": install cuDNN 9.10 for CUDA 12 (package "
                "libcudnn9-cuda-12, or the Python package nvidia-cudnn-cu12)");
  return dnn;
}

static std::unique_ptr<Libraries>
open(const std::string &driver, bool usesLoader,
     const std::vector<fs::path> &directories) {
  auto libraries = std::make_unique<Libraries>();
  openDriver(driver, libraries->driver);
  libraries->blas = *openToolkit<BlasLt>("a 'cuda' program", blasLtLibrary,
                                         findToolkit(libraries->driver),
                                         usesLoader, directories);
  return libraries;
}

const Libraries &openLibraries() {
  static const std::unique_ptr<Libraries> libraries =
      open(driverFile, /*usesLoader=*/true, system::libraryDirectories());
  return *libraries;
}

std::unique_ptr<Libraries>
openLibrariesFrom(const std::string &driver,
                  const std::vector<fs::path> &directories) {
  return open(driver, /*usesLoader=*/false, directories);
}

static std::vector<LateLibrary>
findLibraries(bool usesLoader, const std::vector<fs::path> &directories) {
  std::vector<LateLibrary> found;
  auto add = [&](const char *name, const char *use,
                 const std::vector<std::string> &files) {
    found.push_back(
        {name, use, findLibrary(files, usesLoader, directories).place});
  };
  auto addOfToolkit = [&](const ToolkitLibrary &one, const char *use) {
    add(one.name, use, {one.file13, one.file12});
  };
  addOfToolkit(blasLtLibrary, "products");
  addOfToolkit(blasLibrary, "triangular systems");
  addOfToolkit(fftLibrary, "Fourier transforms");
  addOfToolkit(solverLibrary, "factorizations");
  add("cuDNN", "convolutions and attention", {dnnFile});
  add("NCCL", "data between GPUs", {ncclFile});
  return found;
}

std::vector<LateLibrary> findLibraries() {
  std::vector<LateLibrary> found =
      findLibraries(/*usesLoader=*/true, system::libraryDirectories());
  // It comes with the system.
  found.insert(found.begin(),
               {"CUDA driver", "GPUs",
                findLibrary({driverFile}, /*usesLoader=*/true, {}).place});
  return found;
}

std::vector<LateLibrary>
findLibrariesFrom(const std::vector<fs::path> &directories) {
  return findLibraries(/*usesLoader=*/false, directories);
}

const Nccl &openNccl(const Libraries &libraries) {
  return openOnce(libraries.nccl, [] {
    return findNccl(/*usesLoader=*/true, system::libraryDirectories());
  });
}

std::unique_ptr<Nccl> openNcclFrom(const std::vector<fs::path> &directories) {
  return findNccl(/*usesLoader=*/false, directories);
}

const Blas &openBlas(const Libraries &libraries) {
  return openLate("a triangular system", blasLibrary, libraries,
                  libraries.triangles);
}

const Dnn &openDnn(const Libraries &libraries) {
  return openOnce(libraries.dnn, [&] {
    return findDnn(findToolkit(libraries.driver), /*usesLoader=*/true,
                   system::libraryDirectories());
  });
}

std::unique_ptr<Dnn> openDnnFrom(const std::vector<fs::path> &directories,
                                 int oldGpu) {
  return findDnn({oldGpu ? 12 : 13, oldGpu}, /*usesLoader=*/false, directories);
}

static constexpr const char *transform = "a Fourier transform";

const Fft &openFft(const Libraries &libraries) {
  return openLate(transform, fftLibrary, libraries, libraries.fft);
}

const Solver &openSolver(const Libraries &libraries) {
  return openLate("a factorization", solverLibrary, libraries,
                  libraries.solver);
}

std::unique_ptr<Fft> openFftFrom(int driverVersion,
                                 const std::vector<fs::path> &directories) {
  return openToolkit<Fft>(transform, fftLibrary, {driverVersion / 1000},
                          /*usesLoader=*/false, directories);
}

} // namespace whale::runtime::cuda
