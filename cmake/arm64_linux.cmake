# Toolchain of the preset arm64-cross: Debian's cross compiler, libraries from the folder that tools/arm64_root.sh
# makes, tests run by qemu. RBEE_ARM64_ROOT names another folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# try_compile() reads this file again, without the cache.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RBEE_ARM64_ROOT)
set(RBEE_ARM64_ROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arm64-root" CACHE PATH
    "The folder that tools/arm64_root.sh made")
get_filename_component(root "${RBEE_ARM64_ROOT}" ABSOLUTE)
if(NOT EXISTS "${root}/packages")
  message(FATAL_ERROR "no arm64 libraries in ${root}: bash tools/arm64_root.sh fetches them")
endif()
set(CMAKE_FIND_ROOT_PATH "${root}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(include "${root}/usr/include")
set(libraries "${root}/usr/lib/aarch64-linux-gnu")
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-idirafter ${include} -idirafter ${include}/aarch64-linux-gnu")
endforeach()
foreach(kind IN ITEMS EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}")
endforeach()
# QEMU_CPU in the environment names the processor that tests see, of `qemu-aarch64 -cpu help`.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${root}")
