# Flags that every target of ours shares. Bit-for-bit results depend on -ffp-contract=off: a compiler
# free to fuse a multiply and an add would make the sum depend on the instruction set.
option(RINGMASTER_WERROR "Treat warnings as errors" ON)
set(RINGMASTER_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, 'address,undefined' or 'thread'")

add_library(ringmaster_flags INTERFACE)
target_compile_options(ringmaster_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off)
target_include_directories(ringmaster_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
if(RINGMASTER_WERROR)
  target_compile_options(ringmaster_flags INTERFACE -Werror)
endif()

if(RINGMASTER_SANITIZE)
  add_compile_options(-fsanitize=${RINGMASTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${RINGMASTER_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the tree, so that two checkouts share one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
