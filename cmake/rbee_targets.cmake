# Compiler settings and the three helpers that every folder uses.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Asserts are tied to the build type through RB_ASSERT, not to NDEBUG in a flag list.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(RBEE_CCACHE ccache)
if(RBEE_CCACHE)
  # Paths relative to the tree: clones share the cache.
  set(RBEE_CCACHE_COMMAND "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
                          CCACHE_NOHASHDIR=1 "${RBEE_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${RBEE_CCACHE_COMMAND}")
  set(CMAKE_C_COMPILER_LAUNCHER "${RBEE_CCACHE_COMMAND}")
endif()

find_package(Threads REQUIRED)

add_library(rbee_flags INTERFACE)
target_include_directories(rbee_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(rbee_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
                                            -fno-math-errno
                                            # d * q + m rounds twice, as in ggml, on every machine
                                            -ffp-contract=off)
target_link_libraries(rbee_flags INTERFACE Threads::Threads)
if(RBEE_SANITIZE)
  target_compile_options(rbee_flags INTERFACE -fsanitize=${RBEE_SANITIZE} -fno-omit-frame-pointer
                                              -fno-sanitize-recover=all)
  target_link_options(rbee_flags INTERFACE -fsanitize=${RBEE_SANITIZE})
endif()

if(RBEE_FUZZ)
  # Coverage of the libraries leads the fuzzer; its main comes with the programs alone.
  target_compile_options(rbee_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(rbee_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# rbee_library(name SRCS a.cc … [DEPS targets…])
function(rbee_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC rbee_flags ${ARG_DEPS})
endfunction()

# rbee_program(name SRCS a.cc … [DEPS targets…])
function(rbee_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE rbee_flags ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()

# rbee_test(name SRCS a.cc … [DEPS targets…] [LABELS labels…] [TIMEOUT seconds] [SHARDS count])
# One GoogleTest program; one CTest entry, or `count` that share its tests and may run side by side.
# RBEE_TEST_DATA is tests/ in the source tree.
function(rbee_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;SHARDS" "SRCS;DEPS;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE rbee_flags ${ARG_DEPS} GTest::gmock GTest::gtest
                                        GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE RBEE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
    return()
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}_${shard} COMMAND ${name})
    set_tests_properties(
      ${name}_${shard} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# rbee_fuzzer(name SRCS fuzz.cc [DEPS targets…] CORPUS dir): a libFuzzer program when RBEE_FUZZ is
# on; otherwise the same entry point linked with a driver that runs every seed once, as a test.
function(rbee_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SRCS;DEPS" ${ARGN})
  if(RBEE_FUZZ)
    rbee_program(${name} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    rbee_program(${name} SRCS ${ARG_SRCS} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc"
                 DEPS ${ARG_DEPS})
    add_test(NAME ${name}_seeds COMMAND ${name} "${ARG_CORPUS}")
    set_tests_properties(${name}_seeds PROPERTIES LABELS fuzz TIMEOUT 300)
  endif()
endfunction()
