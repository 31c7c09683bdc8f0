# Compiles GPU kernels ahead and embeds them: one image for each family (a .cu file) or, for AMD,
# for each family and architecture. The images are data: no GPU language is enabled in CMake.

# rbee_embed(target namespace function IMAGES "family|architecture|file|base"…): adds to `target` the
# function std::span<const gpu::KernelImage> rbee::<namespace>::<function>(). base: the architecture
# of the image of this family, further up, that this one is to be opened with; empty: none.
function(rbee_embed target namespace function)
  cmake_parse_arguments(ARG "" "" "IMAGES" ${ARGN})
  set(assembly "${RBEE_DATA_BEGIN}")
  set(declarations "")
  set(table "")
  set(files "")
  set(count 0)
  foreach(image IN LISTS ARG_IMAGES)
    string(REPLACE "|" ";" parts "${image}")
    list(GET parts 0 family)
    list(GET parts 1 architecture)
    list(GET parts 2 file)
    list(GET parts 3 base)
    set(base_image "")
    set(alignment 4096)
    if(base)
      set(alignment 16)  # a few hundred bytes, which nothing maps
      set(base_image ", &images[${index_of_${family}_${base}}]")
    endif()
    set(index_of_${family}_${architecture} ${count})
    math(EXPR count "${count} + 1")
    string(MAKE_C_IDENTIFIER "rbee_image_${namespace}_${family}_${architecture}" symbol)
    rbee_data(data "${symbol}" "${file}")
    string(APPEND assembly ".balign ${alignment}
${data}")
    string(APPEND declarations "extern const std::byte ${symbol}[], ${symbol}_end[];\n")
    string(APPEND table "      {\"${family}\", \"${architecture}\", {${symbol}, ${symbol}_end}${base_image}},\n")
    list(APPEND files "${file}")
  endforeach()
  string(APPEND assembly "${RBEE_DATA_END}")
  set(stem "${CMAKE_CURRENT_BINARY_DIR}/${function}")
  file(CONFIGURE OUTPUT "${stem}.s" CONTENT "${assembly}" @ONLY)
  file(CONFIGURE OUTPUT "${stem}.cc" CONTENT
"#include <cstddef>
#include <span>

#include \"backends/gpu/kernel_image.h\"

extern \"C\" {
${declarations}}

namespace rbee::${namespace} {

std::span<const gpu::KernelImage> ${function}() {
  static const gpu::KernelImage images[] = {
${table}  };
  return images;
}

}  // namespace rbee::${namespace}
" @ONLY)
  add_custom_command(OUTPUT "${stem}.o" COMMAND "${CMAKE_C_COMPILER}" -c "${stem}.s" -o "${stem}.o"
                     DEPENDS "${stem}.s" ${files} COMMENT "Embedding ${function}" VERBATIM)
  target_sources(${target} PRIVATE "${stem}.cc" "${stem}.o")
endfunction()

# rbee_cuda_images(target FAMILIES a.cu…): fat binaries for RBEE_CUDA_ARCHS, embedded as
# rbee::cuda::cuda_images(). An entry is a compute capability ("90a": machine code) or one with
# "-ptx" behind it (code that newer drivers translate) or another one ("80-on-90": that code,
# translated already; so a Hopper tests what other cards run). ccache asks for -c, which changes no
# byte.
function(rbee_cuda_images target)
  cmake_parse_arguments(ARG "" "" "FAMILIES" ${ARGN})
  find_program(RBEE_NVCC nvcc HINTS /usr/local/cuda/bin REQUIRED)
  set(code "")
  foreach(arch IN LISTS RBEE_CUDA_ARCHS)
    if(arch MATCHES "^([0-9]+[a-z]?)-ptx$")
      list(APPEND code -gencode "arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1}")
    elseif(arch MATCHES "^([0-9]+[a-z]?)-on-([0-9]+[a-z]?)$")
      list(APPEND code -gencode "arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_2}")
    else()
      list(APPEND code -gencode "arch=compute_${arch},code=sm_${arch}")
    endif()
  endforeach()
  set(images "")
  foreach(source IN LISTS ARG_FAMILIES)
    get_filename_component(family "${source}" NAME_WE)
    set(out "${CMAKE_CURRENT_BINARY_DIR}/${family}.fatbin")
    add_custom_command(
      OUTPUT "${out}"
      COMMAND ${RBEE_CCACHE_COMMAND} "${RBEE_NVCC}" -std=c++20 -O3 -c --fatbin
              --compress-mode=size ${code} -I "${PROJECT_SOURCE_DIR}" -MD -MF "${out}.d" -o "${out}" "${source}"
      DEPENDS "${source}" DEPFILE "${out}.d" COMMENT "CUDA kernels: ${family}" VERBATIM)
    list(APPEND images "${family}||${out}|")
  endforeach()
  rbee_embed(${target} cuda cuda_images IMAGES ${images})
endfunction()

# The AMD targets of cards and processors that people have (LLVM, "User Guide for AMDGPU Backend");
# RBEE_ROCM_ARCHS is `all` of them or a list.
set(RBEE_AMD_TARGETS
    gfx908 gfx90a gfx942 gfx950
    gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036
    gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153
    gfx1200 gfx1201)

# How AMD's kernels are compiled; the target's name is appended. -c links each code object too; ccache
# asks for it. Without -fuse-cuid=none a symbol is named after the paths of the command line.
set(RBEE_HIP_FLAGS -x hip -c --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc
    -fuse-cuid=none -mcode-object-version=5 -std=c++20 -O3 -Wall)

# Sets `answer` to the version of a clang that makes and links AMD code, or to 0: it is older than
# 19, or the linker that it calls is not there or is older.
function(rbee_hip_clang_version answer clang)
  set(${answer} 0 PARENT_SCOPE)
  execute_process(COMMAND "${clang}" --version OUTPUT_VARIABLE text ERROR_QUIET)
  execute_process(COMMAND "${clang}" -print-prog-name=ld.lld OUTPUT_VARIABLE linker ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND "${linker}" --version OUTPUT_VARIABLE linker_text ERROR_QUIET)
  string(REGEX MATCH "clang version ([0-9.]+)" found "${text}")
  set(version "${CMAKE_MATCH_1}")
  string(REGEX MATCH "LLD ([0-9.]+)" linker_found "${linker_text}")
  set(linker_version "${CMAKE_MATCH_1}")
  if(found AND linker_found AND version VERSION_GREATER_EQUAL 19 AND
     linker_version VERSION_GREATER_EQUAL 19)
    set(${answer} "${version}" PARENT_SCOPE)
  endif()
endfunction()

# Sets RBEE_HIP_CLANG to the newest clang there is.
function(rbee_find_hip_clang)
  if(RBEE_HIP_CLANG)
    rbee_hip_clang_version(version "${RBEE_HIP_CLANG}")
    if(version EQUAL 0)
      message(FATAL_ERROR "RBEE_HIP_CLANG (${RBEE_HIP_CLANG}) is no clang of 19 or later with its lld")
    endif()
    return()
  endif()
  set(best "")
  set(best_version 0)
  set(names clang++)
  foreach(number RANGE 40 19 -1)
    list(APPEND names "clang++-${number}")
  endforeach()
  foreach(name IN LISTS names)
    find_program(clang "${name}" NO_CACHE)
    if(clang)
      rbee_hip_clang_version(version "${clang}")
      if(version VERSION_GREATER best_version)
        set(best "${clang}")
        set(best_version "${version}")
      endif()
    endif()
    unset(clang)
  endforeach()
  if(NOT best)
    message(FATAL_ERROR "AMD's kernels need clang 19 or later and its lld: "
                        "tools/install_deps.sh rocm installs Debian's; RBEE_HIP_CLANG names another")
  endif()
  message(STATUS "AMD kernels: ${best} ${best_version}")
  set(RBEE_HIP_CLANG "${best}" CACHE FILEPATH "The clang++ that compiles AMD's kernels")
endfunction()

# Sets `answer` to the targets of RBEE_ROCM_ARCHS. One that the compiler does not know is left out
# with a line where all are wanted, and an error where it was asked for by its name.
function(rbee_hip_targets answer)
  set(wanted "${RBEE_ROCM_ARCHS}")
  if(wanted STREQUAL "all")
    set(wanted "${RBEE_AMD_TARGETS}")
  endif()
  set(known "")
  set(unknown "")
  foreach(arch IN LISTS wanted)
    if(NOT arch IN_LIST RBEE_AMD_TARGETS)
      list(JOIN RBEE_AMD_TARGETS ", " text)
      message(FATAL_ERROR "RBEE_ROCM_ARCHS: the kernels do not know ${arch}; they know ${text}")
    endif()
    execute_process(COMMAND "${RBEE_HIP_CLANG}" ${RBEE_HIP_FLAGS} "--offload-arch=${arch}"
                            -o "${PROJECT_BINARY_DIR}/CMakeFiles/hip_probe" /dev/null
                    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      list(APPEND known "${arch}")
    else()
      list(APPEND unknown "${arch}")
    endif()
  endforeach()
  if(unknown)
    list(JOIN unknown ", " text)
    if(NOT RBEE_ROCM_ARCHS STREQUAL "all")
      message(FATAL_ERROR "RBEE_ROCM_ARCHS: ${RBEE_HIP_CLANG} does not know ${text}; "
                          "gfx950 and gfx1153 need clang 20 or later; -DRBEE_HIP_CLANG names one")
    endif()
    message(STATUS "AMD kernels: this clang does not know ${text}: left out")
  endif()
  set(${answer} "${known}" PARENT_SCOPE)
endfunction()

# Makes the code object <family>.<arch>.co of a .cu file in the current folder of the build and sets
# `answer` to it; after rbee_find_hip_clang().
function(rbee_rocm_code_object answer source arch)
  get_filename_component(family "${source}" NAME_WE)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${family}.${arch}.co")
  # clang 22's driver drops -MF where it compiles for a device; ccache reads it. What stands
  # behind -Xclang is no path to ccache: a relative one is the same in every build folder.
  set(dependencies -MD -MF "${out}.d" -Xclang -dependency-file -Xclang "${family}.${arch}.co.d"
                   -Xclang -MT -Xclang "${family}.${arch}.co" -Wno-unused-command-line-argument)
  add_custom_command(
    OUTPUT "${out}"
    COMMAND ${RBEE_CCACHE_COMMAND} "${RBEE_HIP_CLANG}" ${RBEE_HIP_FLAGS}
            "--offload-arch=${arch}" -I "${PROJECT_SOURCE_DIR}" ${dependencies} -o "${out}"
            "${source}"
    DEPENDS "${source}" DEPFILE "${out}.d" COMMENT "AMD kernels: ${family} ${arch}" VERBATIM)
  set(${answer} "${out}" PARENT_SCOPE)
endfunction()

# Sets `answer` to the first of the targets whose name differs from arch's in its last digit alone,
# if that is another one, else to nothing. Code for the two differs in a few bytes.
function(rbee_hip_base answer arch)
  string(REGEX REPLACE ".$" "" relatives "${arch}")
  set(${answer} "" PARENT_SCOPE)
  foreach(other IN LISTS ARGN)
    if(other STREQUAL arch)
      return()
    elseif(other MATCHES "^${relatives}.$")
      set(${answer} "${other}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# rbee_rocm_images(target FAMILIES a.cu…): code objects for RBEE_ROCM_ARCHS, compressed and embedded as
# rbee::rocm::rocm_images().
function(rbee_rocm_images target)
  cmake_parse_arguments(ARG "" "" "FAMILIES" ${ARGN})
  rbee_find_hip_clang()
  rbee_hip_targets(targets)
  find_program(RBEE_ZSTD_PROGRAM zstd REQUIRED)
  set(images "")
  foreach(arch IN LISTS targets)
    rbee_hip_base(base "${arch}" ${targets})
    foreach(source IN LISTS ARG_FAMILIES)
      get_filename_component(family "${source}" NAME_WE)
      rbee_rocm_code_object(out "${source}" "${arch}")
      # A target takes 15 to 20 MB as it is, 3 to 4 MB so; gpu::open_image() reads it.
      set(how "")
      set(other "")
      if(base)
        set(other "${CMAKE_CURRENT_BINARY_DIR}/${family}.${base}.co")
        set(how -q --single-thread "--patch-from=${other}")  # it gives advice after one -q
      endif()
      add_custom_command(OUTPUT "${out}.zst"
                         COMMAND "${RBEE_ZSTD_PROGRAM}" -q -f -19 ${how} "${out}" -o "${out}.zst"
                         DEPENDS "${out}" ${other} COMMENT "Compressing ${family} ${arch}" VERBATIM)
      list(APPEND images "${family}|${arch}|${out}.zst|${base}")
    endforeach()
  endforeach()
  rbee_embed(${target} rocm rocm_images IMAGES ${images})
endfunction()

# How a kernel becomes LLVM IR that tools/metal prints: for a target whose waves have 32 lanes, as
# Apple's, with few vectors and no loops unrolled but those that ask for it. -O2 stands in front of
# what switches vectors off: clang takes no heed of it otherwise.
set(RBEE_METAL_FLAGS -x hip -c -emit-llvm --cuda-device-only --no-gpu-bundle-output -nogpulib
    -nogpuinc -fuse-cuid=none --offload-arch=gfx1100 -DRBEE_METAL -std=c++20 -O2
    -fno-slp-vectorize -fno-vectorize -fno-unroll-loops -mllvm
    -disable-promote-alloca-to-vector -Wall)
# What makes every branch fall through, continue a loop or leave it.
set(RBEE_METAL_PASSES lower-switch mergereturn fix-irreducible loop-simplify unify-loop-exits
    structurizecfg dce)

# Sets RBEE_METAL_CLANG and RBEE_METAL_OPT to a clang++ of 19 or later that has its opt: the oldest,
# since each version has forms of its own, and 19's are those that tests know.
function(rbee_find_metal_tools)
  if(RBEE_METAL_CLANG AND RBEE_METAL_OPT)
    return()
  endif()
  foreach(number RANGE 19 40)
    find_program(clang "clang++-${number}" NO_CACHE)
    find_program(opt "opt-${number}" NO_CACHE)
    if(clang AND opt)
      message(STATUS "Metal's text: ${clang}, ${opt}")
      set(RBEE_METAL_CLANG "${clang}" CACHE FILEPATH "The clang++ that makes IR of kernels for Metal")
      set(RBEE_METAL_OPT "${opt}" CACHE FILEPATH "The opt of the same LLVM")
      return()
    endif()
    unset(clang)
    unset(opt)
  endforeach()
  message(FATAL_ERROR "Metal's text needs clang and opt of one LLVM, 19 or later: Debian's clang-19 "
                      "and llvm-19; RBEE_METAL_CLANG and RBEE_METAL_OPT name others")
endfunction()

# Prints <family>.metal from a .cu file into the current folder of the build, with the IR that it is
# made of beside it, and sets `answer` to it; after rbee_find_metal_tools().
function(rbee_metal_text answer source)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_filename_component(family "${source}" NAME_WE)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${family}")
  set(preamble "${PROJECT_SOURCE_DIR}/backends/metal/preamble.metal")
  set(printer "${PROJECT_SOURCE_DIR}/tools/metal")
  file(GLOB printer_sources CONFIGURE_DEPENDS "${printer}/*.py")
  list(JOIN RBEE_METAL_PASSES "," passes)
  add_custom_command(
    OUTPUT "${out}.bc"
    COMMAND ${RBEE_CCACHE_COMMAND} "${RBEE_METAL_CLANG}" ${RBEE_METAL_FLAGS}
            -I "${PROJECT_SOURCE_DIR}" -MD -MF "${out}.bc.d" -Xclang -dependency-file
            -Xclang "${family}.bc.d" -Xclang -MT -Xclang "${family}.bc"
            -Wno-unused-command-line-argument -o "${out}.bc" "${source}"
    DEPENDS "${source}" DEPFILE "${out}.bc.d" COMMENT "Metal kernels: ${family}" VERBATIM)
  add_custom_command(
    OUTPUT "${out}.metal" "${out}.ll"
    COMMAND "${RBEE_METAL_OPT}" -S "-passes=function(${passes})" "${out}.bc" -o "${out}.ll"
    COMMAND "${Python3_EXECUTABLE}" "${printer}/print.py" "${out}.ll" --preamble "${preamble}"
            -o "${out}.metal"
    DEPENDS "${out}.bc" "${preamble}" ${printer_sources}
    COMMENT "Printing ${family} for Metal" VERBATIM)
  set(${answer} "${out}.metal" PARENT_SCOPE)
endfunction()

# rbee_metal_images(target FAMILIES a.cu…): the kernels' text, compressed and embedded as
# rbee::metal::metal_images().
function(rbee_metal_images target)
  cmake_parse_arguments(ARG "" "" "FAMILIES" ${ARGN})
  rbee_find_metal_tools()
  find_program(RBEE_ZSTD_PROGRAM zstd REQUIRED)
  set(images "")
  foreach(source IN LISTS ARG_FAMILIES)
    get_filename_component(family "${source}" NAME_WE)
    rbee_metal_text(out "${source}")
    add_custom_command(OUTPUT "${out}.zst"
                       COMMAND "${RBEE_ZSTD_PROGRAM}" -q -f -19 "${out}" -o "${out}.zst"
                       DEPENDS "${out}" COMMENT "Compressing ${family} for Metal" VERBATIM)
    list(APPEND images "${family}||${out}.zst|")
  endforeach()
  rbee_embed(${target} metal metal_images IMAGES ${images})
endfunction()
