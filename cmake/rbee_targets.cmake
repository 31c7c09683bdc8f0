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
                          CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
                          CCACHE_SLOPPINESS=pch_defines,time_macros "${RBEE_CCACHE}")
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
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Relative, for ccache: Ninja compiles in the top build folder.
    file(RELATIVE_PATH ignored "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}/cmake/sanitizer_ignore.txt")
    target_compile_options(rbee_flags INTERFACE -fsanitize-ignorelist=${ignored})
  endif()
endif()

if(RBEE_FUZZ)
  # Coverage of the libraries leads the fuzzer; its main comes with the programs alone.
  target_compile_options(rbee_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(rbee_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Reading the standard headers is much of a file's compile time: libraries and tests read them
# precompiled (docs/decisions/0035-compile-time.md). Every file names what it needs all the same, as
# -DRBEE_PCH=OFF shows.
option(RBEE_PCH "Compile standard headers once for all files" ON)
set(rbee_pch_headers
    <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream>
    <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <stdexcept> <string>
    <string_view> <thread> <utility> <vector>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # g++ reads the whole file each time, so that rarer headers cost more than they save.
  list(APPEND rbee_pch_headers <nlohmann/json.hpp>)
endif()

# What a test calls must be fast; its own code is not optimised, which takes most of the time that
# it compiles (docs/decisions/0035-compile-time.md). g++'s -O0 saves little more than its -O1.
if(RBEE_SANITIZE)
  set(rbee_test_options -fPIE -O0)
else()
  set(rbee_test_options -fPIE -O1)
endif()

# rbee_pch(name options headers…): what rbee_use_pch(target name) makes libraries or programs read,
# which must be compiled with the same options (a list).
function(rbee_pch name options)
  set(empty "${PROJECT_BINARY_DIR}/${name}.cc")
  file(CONFIGURE OUTPUT "${empty}" CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${empty}")
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${options})
  target_link_libraries(${name} PRIVATE rbee_flags)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # ccache takes this sum for the file, whose bytes hold the paths of one tree.
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
  set(sums "")
  foreach(header IN ITEMS nlohmann/json.hpp gtest/gtest.h gmock/gmock.h)
    find_file(path ${header} NO_CACHE)
    if(path)
      file(SHA256 "${path}" sum)
      string(APPEND sums "${header} ${sum}\n")
    endif()
    unset(path)
  endforeach()
  set(file "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx")
  foreach(suffix IN ITEMS gch pch)
    file(CONFIGURE OUTPUT "${file}.${suffix}.sum"
         CONTENT "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\n${ARGN}\n${sums}")
  endforeach()
endfunction()

if(RBEE_PCH)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # CMake's own form hands paths to the frontend, which ccache does not make relative.
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
  endif()
  rbee_pch(rbee_pch -fPIC ${rbee_pch_headers})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(rbee_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
  if(RBEE_TESTS)
    find_package(GTest REQUIRED)
    rbee_pch(rbee_test_pch "${rbee_test_options}" ${rbee_pch_headers} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(rbee_test_pch PRIVATE GTest::gmock GTest::gtest)
  endif()
endif()

# rbee_use_pch(target name): its sources read what rbee_pch(name) compiled.
function(rbee_use_pch target name)
  if(name STREQUAL "rbee_test_pch")
    target_compile_options(${target} PRIVATE ${rbee_test_options})
  endif()
  if(RBEE_PCH)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# rbee_library(name SRCS a.cc … [DEPS targets…])
function(rbee_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC rbee_flags ${ARG_DEPS})
  rbee_use_pch(${name} rbee_pch)
endfunction()

# rbee_program(name SRCS a.cc … [DEPS targets…])
function(rbee_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE rbee_flags ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()

add_custom_target(release_tests)

# rbee_test(name SRCS a.cc … [DEPS targets…] [LABELS labels…] [TIMEOUT seconds] [SHARDS count])
# Of the Release build CI runs those labelled ops, models or release: release_tests builds them.
# One GoogleTest program; one CTest entry, or `count` that share its tests and may run side by side.
function(rbee_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;SHARDS" "SRCS;DEPS;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE rbee_flags ${ARG_DEPS} rbee_data_folder GTest::gmock
                                        GTest::gtest GTest::gtest_main)
  rbee_use_pch(${name} rbee_test_pch)
  if(ARG_LABELS MATCHES "ops|models|release")
    add_dependencies(release_tests ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
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
    rbee_use_pch(${name} rbee_test_pch)
    add_test(NAME ${name}_seeds COMMAND ${name} "${ARG_CORPUS}")
    set_tests_properties(${name}_seeds PROPERTIES LABELS fuzz TIMEOUT 300)
  endif()
endfunction()
