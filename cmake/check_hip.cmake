# Fails with a message if no compiler or linker here makes AMD's kernels; tools/first_card.sh asks before it builds.
#   cmake -DRBEE_ROCM_ARCHS=gfx1100 -DPROJECT_BINARY_DIR=FOLDER -P cmake/check_hip.cmake
# FOLDER: for one object file. RBEE_HIP_CLANG may name the compiler, as in a build.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/rbee_kernels.cmake")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/CMakeFiles")
rbee_find_hip_clang()
rbee_hip_targets(targets)
