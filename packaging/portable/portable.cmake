# Included after project() with -DCMAKE_PROJECT_rbee_INCLUDE=packaging/portable/portable.cmake: programs that
# run on every Linux with glibc 2.28 or later (docs/decisions/0046-packages.md).
# g++ compiles as in every other build. zig links: it knows which functions glibc 2.28 has, so that a
# later one is an error here and not on a user's machine.
set(RBEE_ZIG "" CACHE FILEPATH "zig, of PyPI's ziglang")
set(RBEE_ICU_DATA "" CACHE FILEPATH "what build_icu_data.sh makes")
set(RBEE_PORTABLE_TARGET x86_64-linux-gnu.2.28)

set(CMAKE_FIND_LIBRARY_SUFFIXES .a)

function(rbee_gcc_file name out)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=${name}
                  OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${path}" PARENT_SCOPE)
endfunction()
rbee_gcc_file(libstdc++.a standard_library)
rbee_gcc_file(libgcc.a arithmetic)
# Shared: one unwinder for the program and the drivers that it opens. Every distribution has it; Debian 12's own
# needs a later glibc, and is here for its names alone.
rbee_gcc_file(libgcc_s.so.1 unwinder)

# Debian has spdlog and fmt as shared libraries alone, and one file logs: it takes their headers whole. The
# linker then drops the libraries, of which nothing is needed.
cmake_language(DEFER CALL set_source_files_properties workers/common/logging.cc
               DIRECTORY workers/common PROPERTIES
               COMPILE_OPTIONS "-USPDLOG_SHARED_LIB;-USPDLOG_COMPILED_LIB;-DFMT_HEADER_ONLY")

set(zig_cache "${PROJECT_BINARY_DIR}/zig")
# -fno-sanitize: without it zig checks old_glibc.c at run time.
string(JOIN " " CMAKE_CXX_LINK_EXECUTABLE
       "\"${CMAKE_COMMAND}\" -E env ZIG_GLOBAL_CACHE_DIR=${zig_cache} ZIG_LOCAL_CACHE_DIR=${zig_cache}"
       "\"${RBEE_ZIG}\" cc -target ${RBEE_PORTABLE_TARGET} -O2 -g0 -fno-sanitize=all -s"
       "-Wl,--as-needed,--allow-shlib-undefined <OBJECTS> -o <TARGET> <LINK_LIBRARIES>"
       "\"${CMAKE_CURRENT_LIST_DIR}/old_glibc.c\" \"${RBEE_ICU_DATA}\""
       "${standard_library} ${arithmetic} ${unwinder}")
