# Says in one message which Debian packages a build lacks, where the build is one
# by pip: scripts/setup.sh would have installed them. In: the list in
# scripts/debian-packages.txt. Out: nothing, a warning, or without a compiler or
# MLIR an error. Other systems have other packages: CMake names what it misses.

find_program(DPKG_QUERY dpkg-query)
mark_as_advanced(DPKG_QUERY)
if(NOT SKBUILD OR NOT DPKG_QUERY)
  return()
endif()
# What only tests need, and what pip brings.
set(unneeded cmake libgtest-dev llvm-22-tools ninja-build openmpi-bin
             python3-venv)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../scripts/debian-packages.txt lines
     REGEX "^[a-z]")
if(WHALE_BUNDLE_LLVM)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../scripts/debian-packages-wheel.txt
       more REGEX "^[a-z]")
  list(APPEND lines ${more})
endif()
set(missing "")
foreach(line ${lines})
  string(REGEX REPLACE " .*" "" package ${line})
  execute_process(COMMAND ${DPKG_QUERY} -W -f=\${db:Status-Status} ${package}
                  OUTPUT_VARIABLE state ERROR_QUIET)
  if(NOT state STREQUAL "installed" AND NOT package IN_LIST unneeded)
    string(APPEND missing " ${package}")
  endif()
endforeach()
if(NOT missing)
  return()
endif()
set(text "Whale's build lacks Debian packages. Install them with\n"
         "  apt-get install --no-install-recommends${missing}\n"
         "or install a wheel, which needs none of them.")
string(CONCAT text ${text})
if(missing MATCHES "clang-22|mlir")
  message(FATAL_ERROR "${text}")
endif()
message(WARNING "${text}")
