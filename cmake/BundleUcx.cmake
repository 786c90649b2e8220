# In: Debian's UCX. Out: in what pip installs, whale/lib/ with UCX, what it is
# linked with, and the licences of both, so that processes exchange data where no
# UCX is installed. It has shared memory, sockets, and the memory of other
# processes; a site with another network installs its own, which is preferred.

find_program(PATCHELF patchelf REQUIRED)

# Installs a library by the name that it is opened by.
function(install_library name folder rpath)
  find_library(found_${name} NAMES ${name} PATH_SUFFIXES ucx REQUIRED)
  file(REAL_PATH ${found_${name}} real)
  install(PROGRAMS ${real} DESTINATION ${folder} RENAME ${name}
          COMPONENT python)
  set(place \${CMAKE_INSTALL_PREFIX}/${folder}/${name})
  install(CODE "execute_process(
    COMMAND ${PATCHELF} --set-rpath [[${rpath}]] \"${place}\"
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
endfunction()

foreach(name libucp.so.0 libucs.so.0 libuct.so.0 libucm.so.0 libnuma.so.1)
  install_library(${name} whale/lib $ORIGIN)
endforeach()
# UCX looks for its modules in a folder of this name.
install_library(libuct_cma.so.0 whale/lib/ucx $ORIGIN/..)
