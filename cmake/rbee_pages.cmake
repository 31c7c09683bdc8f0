# rbee_page(target function VERSION variable FILES "name|content type|file"...): adds to `target` the
# function std::span<const server::PageFile> rbee::server::<function>() of server/http/page_file.h,
# and sets `variable` to twelve hex digits that change with any of the files.
function(rbee_page target function)
  cmake_parse_arguments(ARG "" "VERSION" "FILES" ${ARGN})
  set(assembly "${RBEE_DATA_BEGIN}")
  set(declarations "")
  set(table "")
  set(hashes "")
  set(sources "")
  foreach(entry IN LISTS ARG_FILES)
    string(REPLACE "|" ";" parts "${entry}")
    list(GET parts 0 name)
    list(GET parts 1 type)
    list(GET parts 2 source)
    string(MAKE_C_IDENTIFIER "rbee_page_${function}_${name}" symbol)
    rbee_data(data "${symbol}" "${source}")
    string(APPEND assembly "${data}")
    string(APPEND declarations "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND table "      {\"${name}\", \"${type}\", {${symbol}, ${symbol}_end}},\n")
    file(SHA256 "${source}" hash)
    string(APPEND hashes "${hash}")
    list(APPEND sources "${source}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  endforeach()
  string(SHA256 version "${hashes}")
  string(SUBSTRING "${version}" 0 12 version)
  set(${ARG_VERSION} "${version}" PARENT_SCOPE)
  string(APPEND assembly "${RBEE_DATA_END}")
  set(stem "${CMAKE_CURRENT_BINARY_DIR}/${function}")
  file(CONFIGURE OUTPUT "${stem}.s" CONTENT "${assembly}" @ONLY)
  file(CONFIGURE OUTPUT "${stem}.cc" CONTENT
"#include \"server/http/page_file.h\"

extern \"C\" {
${declarations}}

namespace rbee::server {

std::span<const PageFile> ${function}() {
  static const PageFile files[] = {
${table}  };
  return files;
}

}  // namespace rbee::server
" @ONLY)
  add_custom_command(OUTPUT "${stem}.o" COMMAND "${CMAKE_C_COMPILER}" -c "${stem}.s" -o "${stem}.o"
                     DEPENDS "${stem}.s" ${sources} COMMENT "Embedding ${function}" VERBATIM)
  target_sources(${target} PRIVATE "${stem}.cc" "${stem}.o")
endfunction()
