# Helpers that keep the CMakeLists of each folder short.

# The headers of MLIR take five seconds to parse, those of our dialects three:
# all compiler libraries share a precompiled header, and what uses the dialects
# another one.
# Written only where it differs, so that configuring anew rebuilds nothing.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/WhalePch.cpp CONTENT "")
if(WHALE_BUILD_COMPILER)
  add_library(WhalePch OBJECT ${CMAKE_BINARY_DIR}/WhalePch.cpp)
  target_precompile_headers(WhalePch PRIVATE
    ${CMAKE_SOURCE_DIR}/cmake/WhalePch.h)
  add_library(WhaleDialectsPch OBJECT ${CMAKE_BINARY_DIR}/WhalePch.cpp)
  target_precompile_headers(WhaleDialectsPch PRIVATE
    ${CMAKE_SOURCE_DIR}/cmake/WhaleDialectsPch.h)
  add_dependencies(WhaleDialectsPch whale-headers)
endif()

# The same for what neither uses MLIR nor LLVM.
add_library(WhaleRuntimePch OBJECT ${CMAKE_BINARY_DIR}/WhalePch.cpp)
target_link_libraries(WhaleRuntimePch PRIVATE nlohmann_json::nlohmann_json)
target_precompile_headers(WhaleRuntimePch PRIVATE
  <algorithm> <chrono> <cmath> <functional> <map> <memory> <mutex> <optional>
  <set> <string> <thread> <unordered_map> <vector> <nlohmann/json.hpp>
  ${CMAKE_SOURCE_DIR}/include/whale/ProgramFormat/Program.h)

# The same for what tests share, compiled as executables are (-fPIE). Their own
# code takes longer to optimize than to run.
if(WHALE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  add_library(WhaleTestPch OBJECT ${CMAKE_BINARY_DIR}/WhalePch.cpp)
  set_target_properties(WhaleTestPch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(WhaleTestPch PRIVATE -fPIE -O0)
  target_link_libraries(WhaleTestPch PRIVATE GTest::gtest
                                             nlohmann_json::nlohmann_json)
  target_precompile_headers(WhaleTestPch PRIVATE
    <gtest/gtest.h> <nlohmann/json.hpp>
    ${CMAKE_SOURCE_DIR}/include/whale/ProgramFormat/Program.h)
endif()

# add_whale_library(NAME [SEPARATE] SOURCES... [DEPENDS TARGETS...]
#                   [LINK LIBRARIES...])
# A static library of the compiler; it registers itself in WHALE_LIBS. Each file
# compiles the templates of MLIR that it uses: eight together take two thirds of
# the time of eight. SEPARATE is for where names of one would hide another's.
function(add_whale_library name)
  cmake_parse_arguments(ARG "SEPARATE" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(WHALE_UNITY_BUILD AND NOT ARG_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  endif()
  if(WhaleDialect IN_LIST ARG_LINK)
    target_precompile_headers(${name} REUSE_FROM WhaleDialectsPch)
  else()
    target_precompile_headers(${name} REUSE_FROM WhalePch)
  endif()
  add_dependencies(${name} whale-headers ${ARG_DEPENDS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} ${WHALE_MLIR} ${WHALE_LLVM})
  set_property(GLOBAL APPEND PROPERTY WHALE_LIBS ${name})
endfunction()

# add_whale_base_library(NAME SOURCES... [LINK LIBRARIES...])
# The same for what uses neither LLVM nor MLIR: compiler, runtime and simulator
# share it.
function(add_whale_base_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(WHALE_UNITY_BUILD)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  endif()
  target_precompile_headers(${name} REUSE_FROM WhaleRuntimePch)
  target_link_libraries(${name} PUBLIC ${ARG_LINK}
                                PRIVATE nlohmann_json::nlohmann_json)
endfunction()

# add_whale_base_tool(NAME SOURCES... LINK LIBRARIES...)
# A program that uses neither LLVM nor MLIR, compiled as libraries are, so that
# it can share their precompiled header.
function(add_whale_base_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM WhaleRuntimePch)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} CLI11::CLI11
                                        nlohmann_json::nlohmann_json)
endfunction()

# add_whale_tool(NAME SOURCES... LINK LIBRARIES...)
# The same for what uses both.
function(add_whale_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM WhaleDialectsPch)
  add_dependencies(${name} whale-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} ${WHALE_MLIR} ${WHALE_LLVM})
endfunction()

# add_whale_unittest(NAME SOURCES... LINK LIBRARIES...)
# A GoogleTest program, registered with ctest under its name.
function(add_whale_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_precompile_headers(${name} REUSE_FROM WhaleTestPch)
  target_compile_options(${name} PRIVATE -O0)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest
                                        GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           ${CMAKE_BINARY_DIR}/unittests)
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# add_whale_tablegen(FILE.td OUTPUT GENERATOR FLAGS...)
# Generates one .inc beside the .td's place in the build tree; the whale-headers
# target collects them all.
function(add_whale_tablegen td output)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${output} ${ARGN})
  file(RELATIVE_PATH name ${CMAKE_BINARY_DIR}/include
       ${CMAKE_CURRENT_BINARY_DIR}/${output})
  string(MAKE_C_IDENTIFIER ${name} target)
  add_custom_target(${target} DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${output})
  set_property(GLOBAL APPEND PROPERTY WHALE_TABLEGEN_TARGETS ${target})
endfunction()
