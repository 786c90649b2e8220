# In: the imported targets of LLVM, MLIR and lld, which a distribution links with
# its shared libLLVM. Out: WhaleLlvm, the archives of what Whale uses of LLVM,
# and every target of MLIR and lld linked with it instead of libLLVM, so that a
# program that is linked with them needs no LLVM where it runs.

find_package(LLD REQUIRED CONFIG HINTS ${LLVM_LIBRARY_DIR}/cmake/lld)
llvm_map_components_to_libnames(archives
  BitReader BitWriter Core DTLTO IRReader Linker LTO MC Object Option Passes Support
  Target TargetParser TransformUtils NVPTXCodeGen NVPTXDesc NVPTXInfo
  nativecodegen X86AsmParser)
add_library(WhaleLlvm INTERFACE)
target_link_libraries(WhaleLlvm INTERFACE ${archives})

foreach(target ${MLIR_EXPORTED_TARGETS} lldCommon lldELF)
  if(NOT TARGET ${target})
    continue()
  endif()
  get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  if(links)
    list(TRANSFORM links REPLACE "^LLVM$" WhaleLlvm)
    list(TRANSFORM links REPLACE "^zstd::libzstd_shared$" zstd)
    set_property(TARGET ${target} PROPERTY INTERFACE_LINK_LIBRARIES ${links})
  endif()
endforeach()
# Polly's passes are not used, and its archives come in a package of their own:
# Linker.cpp has a stand-in.
set_property(TARGET LLVMExtensions PROPERTY
  INTERFACE_LINK_LIBRARIES LLVMSupport)
