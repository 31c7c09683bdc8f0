# Compiles GPU kernels ahead and embeds them: one image for each family (a .cu file) or, for AMD,
# for each family and architecture. The images are data: no GPU language is enabled in CMake.

# rbee_embed(target namespace function IMAGES "family|architecture|file"…): adds to `target` the
# function std::span<const gpu::KernelImage> rbee::<namespace>::<function>().
function(rbee_embed target namespace function)
  cmake_parse_arguments(ARG "" "" "IMAGES" ${ARGN})
  set(assembly ".section .rodata\n")
  set(declarations "")
  set(table "")
  set(files "")
  foreach(image IN LISTS ARG_IMAGES)
    string(REPLACE "|" ";" parts "${image}")
    list(GET parts 0 family)
    list(GET parts 1 architecture)
    list(GET parts 2 file)
    string(MAKE_C_IDENTIFIER "rbee_image_${namespace}_${family}_${architecture}" symbol)
    string(APPEND assembly ".balign 4096\n.global ${symbol}\n.global ${symbol}_end\n"
                           "${symbol}:\n.incbin \"${file}\"\n${symbol}_end:\n.byte 0\n")
    string(APPEND declarations "extern const std::byte ${symbol}[], ${symbol}_end[];\n")
    string(APPEND table "      {\"${family}\", \"${architecture}\", {${symbol}, ${symbol}_end}},\n")
    list(APPEND files "${file}")
  endforeach()
  string(APPEND assembly ".section .note.GNU-stack,\"\",@progbits\n")
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
# "-ptx" behind it (code that newer drivers translate).
function(rbee_cuda_images target)
  cmake_parse_arguments(ARG "" "" "FAMILIES" ${ARGN})
  find_program(RBEE_NVCC nvcc HINTS /usr/local/cuda/bin REQUIRED)
  set(code "")
  foreach(arch IN LISTS RBEE_CUDA_ARCHS)
    if(arch MATCHES "^([0-9]+[a-z]?)-ptx$")
      list(APPEND code -gencode "arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1}")
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
      COMMAND ${RBEE_CCACHE_COMMAND} "${RBEE_NVCC}" -std=c++20 -O3 --fatbin --compress-mode=size
              ${code} -I "${PROJECT_SOURCE_DIR}" -MD -MF "${out}.d" -o "${out}" "${source}"
      DEPENDS "${source}" DEPFILE "${out}.d" COMMENT "CUDA kernels: ${family}" VERBATIM)
    list(APPEND images "${family}||${out}")
  endforeach()
  rbee_embed(${target} cuda cuda_images IMAGES ${images})
endfunction()

# find_program's validator: clang 19 or later, with the linker that it calls.
function(rbee_clang_serves answer clang)
  execute_process(COMMAND "${clang}" --version OUTPUT_VARIABLE version ERROR_QUIET)
  execute_process(COMMAND "${clang}" -print-prog-name=ld.lld OUTPUT_VARIABLE linker ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX MATCH "clang version ([0-9]+)" version "${version}")
  find_program(found NAMES "${linker}" NO_CACHE)
  if(NOT version OR CMAKE_MATCH_1 LESS 19 OR NOT found)
    set(${answer} FALSE PARENT_SCOPE)
  endif()
endfunction()

# rbee_rocm_images(target FAMILIES a.cu…): code objects for RBEE_ROCM_ARCHS, embedded as
# rbee::rocm::rocm_images(). Architectures that the compiler does not know are left out with a line.
function(rbee_rocm_images target)
  cmake_parse_arguments(ARG "" "" "FAMILIES" ${ARGN})
  find_program(RBEE_HIP_CLANG NAMES clang++-21 clang++-20 clang++-19 clang++
               VALIDATOR rbee_clang_serves)
  if(NOT RBEE_HIP_CLANG)
    message(FATAL_ERROR "AMD's kernels need clang 19 or later and its lld: "
                        "tools/install_deps.sh rocm installs Debian's; RBEE_HIP_CLANG names another")
  endif()
  set(images "")
  foreach(arch IN LISTS RBEE_ROCM_ARCHS)
    execute_process(COMMAND "${RBEE_HIP_CLANG}" --target=amdgcn-amd-amdhsa "-mcpu=${arch}" -nogpulib
                            -x c -c /dev/null -o /dev/null
                    RESULT_VARIABLE unknown OUTPUT_QUIET ERROR_QUIET)
    if(unknown)
      message(STATUS "${RBEE_HIP_CLANG} does not know ${arch}: left out")
      continue()
    endif()
    foreach(source IN LISTS ARG_FAMILIES)
      get_filename_component(family "${source}" NAME_WE)
      set(out "${CMAKE_CURRENT_BINARY_DIR}/${family}.${arch}.co")
      add_custom_command(
        OUTPUT "${out}"
        COMMAND "${RBEE_HIP_CLANG}" -x hip --cuda-device-only --no-gpu-bundle-output -nogpulib
                -nogpuinc "--offload-arch=${arch}" -mcode-object-version=5 -std=c++20 -O3 -Wall
                -I "${PROJECT_SOURCE_DIR}" -MD -MF "${out}.d" -o "${out}" "${source}"
        DEPENDS "${source}" DEPFILE "${out}.d" COMMENT "AMD kernels: ${family} ${arch}" VERBATIM)
      list(APPEND images "${family}|${arch}|${out}")
    endforeach()
  endforeach()
  rbee_embed(${target} rocm rocm_images IMAGES ${images})
endfunction()
