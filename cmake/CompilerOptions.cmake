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

# Small sums spend their time in calls from file to file. A library that is rm_optimised_as_a_whole is compiled once more while a program is linked,
# if that one has the property RINGMASTER_LINKS_OPTIMISED; others take what was compiled ahead, and are linked as fast as ever.
function(rm_optimised_as_a_whole library)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT RINGMASTER_SANITIZE)
    target_compile_options(${library} PRIVATE -flto -ffat-lto-objects)
    target_link_options(${library} INTERFACE "$<IF:$<BOOL:$<TARGET_PROPERTY:RINGMASTER_LINKS_OPTIMISED>>,-flto=auto,-fno-lto>")
  endif()
endfunction()

if(RINGMASTER_SANITIZE)
  add_compile_options(-fsanitize=${RINGMASTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${RINGMASTER_SANITIZE})
endif()

# Some two hundred test programs are linked for each preset. What ships is linked as the distribution does.
add_library(ringmaster_links_fast INTERFACE)
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold RINGMASTER_HAS_MOLD)
if(RINGMASTER_HAS_MOLD)
  target_link_options(ringmaster_links_fast INTERFACE -fuse-ld=mold)
  if(RINGMASTER_SANITIZE)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the tree, so that two checkouts share one cache. What a file depends on is what the compiler itself says: to preprocess it first,
  # only to look whether no more than comments changed, takes a twentieth of a build with nothing cached.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
