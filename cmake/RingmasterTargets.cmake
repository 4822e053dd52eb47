# One way to declare a library, a program and a test.
#
#   rm_library(NAME SRCS a.cc ... [ALONE b.cc ...] DEPS public_dep ... PRIVATE_DEPS private_dep ...)
#   rm_binary(NAME SRCS main.cc ... DEPS ...)
#   rm_test(NAME [NARROW_TOO] [OPTIMISED] [SANITIZED_AS_ONE] SRCS foo_test.cc ... [ALONE bar_test.cc ...] DEPS ...
#           LABELS unit|multiproc|conformance|e2e [threads] [cluster] [alone] [TIMEOUT seconds])
#   rm_python_tests(FILES foo_test.py ... LABELS ... [TIMEOUT seconds] [LAUNCHER command ...])   one CTest per method of unittest files that
#       know --list; LAUNCHER runs what follows it
#
# A vendor's library (grpc, dnnl, yaml-cpp ...) is always a PRIVATE_DEPS of the adapter that wraps it.
# The label `threads` says that the test also runs under ThreadSanitizer; such a test must not link
# libraries that Debian builds without instrumentation and that synchronise (gRPC, OpenMP).
# The label `node` says that the test needs a cluster with real nodes (`make e2e`); one such test runs at a time.
# The label `cluster` says that the test needs tests/cluster: RINGMASTER_TEST_KUBECONFIG then names the kubeconfig of its administrator.
# With the label `gangs` besides it is a cluster of its own, whose scheduler starts pods together or not at all, for one test at a time.
# The label `alone` says that the test holds what it measures to a bound in time: no other test runs beside it.
# NARROW_TOO says that the tests run once more (Narrow/...) with kernels for processors without AVX-512.
# OPTIMISED says that the tests compute so much themselves that they are to be compiled as what they test is. The others are not: a third of what
# compiling them takes would go into making them fast.
# SANITIZED_AS_ONE says that the program has hundreds of tests most of which take less than starting it does under a sanitizer: CTest has it as one
# test there. Its output names what fails, and --gtest_filter runs one by hand.
# Where RINGMASTER_BATCH says so, SRCS are compiled several at once; ALONE holds what has options of its own, or names that clash with theirs.
include(GoogleTest)

# Most of a compiler's time goes into the headers that files have in common. Not in the preset `dev`, for people who change the code: there one file is one step.
set(RINGMASTER_BATCH 1 CACHE STRING "How many source files of a target are compiled as one")

# Our own file that includes a few of the target's, by paths within the tree, so that it is the same in every checkout.
function(rm_batches result name)
  set(batches "")
  set(text "")
  set(count 0)
  foreach(source ${ARGN})
    if(RINGMASTER_BATCH LESS 2 OR IS_ABSOLUTE ${source})  # what is generated has no path within the tree
      list(APPEND batches ${source})
      continue()
    endif()
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    string(APPEND text "#include \"${path}\"\n")
    math(EXPR count "${count} + 1")
    math(EXPR left "${count} % ${RINGMASTER_BATCH}")
    if(left EQUAL 0)
      rm_write_batch(batches ${name} "${text}")
      set(text "")
    endif()
  endforeach()
  if(text)
    rm_write_batch(batches ${name} "${text}")
  endif()
  set(${result} ${batches} PARENT_SCOPE)
endfunction()

function(rm_write_batch files name text)
  list(LENGTH ${files} number)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/batches/${name}_${number}.cc)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  # A class with a member of an unnamed namespace is no trap here: the included file is a source, not a header.
  set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
  set(${files} ${${files}} ${file} PARENT_SCOPE)
endfunction()

# Sanitized programs are made fast only where they compute: elsewhere that is two fifths of what compiling them takes.
function(rm_compile_quickly_if_sanitized name)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(RINGMASTER_SANITIZE AND NOT folder MATCHES "^(common|runtime)")
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

# Whether what links these is compiled with OpenMP: libraries of ours remember it, so that those that they need come first in the tree.
function(rm_compiles_with_openmp result)
  set(${result} FALSE PARENT_SCOPE)
  foreach(library ${ARGN})
    if(library STREQUAL "OpenMP::OpenMP_CXX")
      set(${result} TRUE PARENT_SCOPE)
    elseif(TARGET ${library})
      get_target_property(remembered ${library} RINGMASTER_OPENMP)
      if(remembered)
        set(${result} TRUE PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

function(rm_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;ALONE;DEPS;PRIVATE_DEPS" ${ARGN})
  rm_batches(sources ${name} ${ARG_SRCS})
  add_library(${name} STATIC ${sources} ${ARG_ALONE})
  rm_compile_quickly_if_sanitized(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ringmaster_flags ${ARG_PRIVATE_DEPS})
  rm_compiles_with_openmp(with_openmp ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RINGMASTER_OPENMP ${with_openmp})
endfunction()

function(rm_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  rm_batches(sources ${name} ${ARG_SRCS})
  add_executable(${name} ${sources})
  rm_compile_quickly_if_sanitized(${name})
  target_link_libraries(${name} PRIVATE ringmaster_flags ${ARG_DEPS})
endfunction()

add_custom_target(tests)          # every test program
add_custom_target(threads_tests)  # those that run under ThreadSanitizer

set(RINGMASTER_TEST_CLUSTER ${CMAKE_BINARY_DIR}/test-cluster)
set(RINGMASTER_TEST_GANGS ${CMAKE_BINARY_DIR}/test-gangs)
set(RINGMASTER_TEST_NODES ${CMAKE_BINARY_DIR}/test-nodes)

# The CTest properties that every test with these labels has.
function(rm_test_properties result labels timeout)
  set(environment "RINGMASTER_BIN_DIR=${CMAKE_BINARY_DIR}/bin;PYTHONDONTWRITEBYTECODE=1")
  if(RINGMASTER_SANITIZE)
    string(APPEND environment ";RINGMASTER_TEST_SANITIZER=${RINGMASTER_SANITIZE}")
  endif()
  set(fixture "")
  if("gangs" IN_LIST labels)
    string(APPEND environment ";RINGMASTER_TEST_KUBECONFIG=${RINGMASTER_TEST_GANGS}/kubeconfig")
    set(fixture "FIXTURES_REQUIRED test_gangs RESOURCE_LOCK test_gangs")
  elseif("cluster" IN_LIST labels)
    string(APPEND environment ";RINGMASTER_TEST_KUBECONFIG=${RINGMASTER_TEST_CLUSTER}/kubeconfig")
    set(fixture "FIXTURES_REQUIRED test_cluster")
  elseif("node" IN_LIST labels)
    string(APPEND environment ";RINGMASTER_TEST_KUBECONFIG=${RINGMASTER_TEST_NODES}/kubeconfig")
    set(fixture "FIXTURES_REQUIRED test_nodes RESOURCE_LOCK test_nodes")
  endif()
  if("alone" IN_LIST labels)
    string(APPEND fixture " RUN_SERIAL TRUE")
  endif()
  set(${result} "LABELS \"${labels}\" TIMEOUT ${timeout} ${fixture} ENVIRONMENT \"${environment}\"" PARENT_SCOPE)
endfunction()

function(rm_python_tests)
  cmake_parse_arguments(ARG "" "TIMEOUT" "FILES;LABELS;LAUNCHER" ${ARGN})
  rm_test_properties(properties "${ARG_LABELS}" ${ARG_TIMEOUT})
  foreach(file ${ARG_FILES})
    execute_process(COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/${file} --list
      OUTPUT_VARIABLE tests OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" tests "${tests}")
    foreach(test ${tests})
      add_test(NAME ${test} COMMAND ${ARG_LAUNCHER} ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${test})
      cmake_language(EVAL CODE "set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77 ${properties})")
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
endfunction()

# As gRPC's tests are: threads or not changes the standard library's headers.
set(RINGMASTER_TEST_OPTIONS -O0 -pthread)

# What nearly every test includes is compiled once for all that are compiled alike; not in the preset `dev`, where a file says itself what it needs.
function(rm_precompiled_headers name)
  set(file ${CMAKE_BINARY_DIR}/generated/${name}.cc)
  file(CONFIGURE OUTPUT ${file} CONTENT "int main() {}\n" @ONLY)
  add_executable(${name} EXCLUDE_FROM_ALL ${file})  # never run: as a program it is compiled as tests are
  target_compile_options(${name} PRIVATE ${RINGMASTER_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE ringmaster_flags ringmaster_links_fast ${ARGN} GTest::gmock)
  target_precompile_headers(${name} PRIVATE <algorithm> <chrono> <cmath> <filesystem> <fstream> <functional> <map> <memory> <optional> <random> <set> <span>
    <string> <string_view> <thread> <utility> <vector> <absl/status/statusor.h> <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
endfunction()

if(RINGMASTER_BATCH GREATER 1)
  rm_precompiled_headers(rm_test_headers)
  rm_precompiled_headers(rm_test_headers_openmp OpenMP::OpenMP_CXX)
endif()

# Tells CTest of each of a program's tests, under a name that begins with the prefix.
function(rm_list_tests name prefix properties)
  string(MAKE_C_IDENTIFIER "${name}_${prefix}TESTS" tests)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} TEST_PREFIX "${prefix}" TEST_LIST ${tests})
  # Discovery flattens a property that is a list, so the properties are set by a script of ours that CTest runs after it.
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${tests}.cmake)
  file(WRITE ${script} "if(${tests})
  set_tests_properties(\${${tests}} PROPERTIES ${properties})
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

# Tells CTest of a program as one test.
function(rm_list_program name prefix properties)
  add_test(NAME ${prefix}${name} COMMAND ${name} --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  cmake_language(EVAL CODE "set_tests_properties(${prefix}${name} PROPERTIES ${properties})")
endfunction()

function(rm_test name)
  cmake_parse_arguments(ARG "NARROW_TOO;OPTIMISED;SANITIZED_AS_ONE" "TIMEOUT" "SRCS;ALONE;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  rm_batches(sources ${name} ${ARG_SRCS})
  add_executable(${name} EXCLUDE_FROM_ALL ${sources} ${ARG_ALONE})
  target_link_libraries(${name} PRIVATE ringmaster_flags ringmaster_links_fast ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_OPTIMISED)
    target_compile_options(${name} PRIVATE ${RINGMASTER_TEST_OPTIONS})
    if(RINGMASTER_BATCH GREATER 1)
      rm_compiles_with_openmp(with_openmp ${ARG_DEPS})
      if(with_openmp)
        target_precompile_headers(${name} REUSE_FROM rm_test_headers_openmp)
      else()
        target_precompile_headers(${name} REUSE_FROM rm_test_headers)
      endif()
    endif()
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(tests ${name})
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(threads_tests ${name})
  endif()
  set(list_tests rm_list_tests)
  if(RINGMASTER_SANITIZE AND ARG_SANITIZED_AS_ONE)
    set(list_tests rm_list_program)
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")  # hundreds have it together
  endif()
  rm_test_properties(properties "${ARG_LABELS}" ${ARG_TIMEOUT})
  cmake_language(CALL ${list_tests} ${name} "" "${properties}")
  if(ARG_NARROW_TOO)
    string(REPLACE "ENVIRONMENT \"" "ENVIRONMENT \"RINGMASTER_MAX_VECTORS=avx2;" properties "${properties}")
    cmake_language(CALL ${list_tests} ${name} Narrow/ "${properties}")
  endif()
endfunction()
