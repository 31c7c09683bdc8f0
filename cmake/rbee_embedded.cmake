# How files become data of a program, by the assembler: names and sections of ELF and of Mach-O.
if(APPLE)
  set(RBEE_DATA_BEGIN ".section __TEXT,__const\n")
  set(RBEE_DATA_END "")
  set(RBEE_C_PREFIX "_")  # of C's names
else()
  set(RBEE_DATA_BEGIN ".section .rodata\n")
  set(RBEE_DATA_END ".section .note.GNU-stack,\"\",@progbits\n")
  set(RBEE_C_PREFIX "")
endif()

# rbee_data(variable symbol file): the assembler's lines for symbol[] up to symbol_end[]
function(rbee_data variable symbol file)
  set(name "${RBEE_C_PREFIX}${symbol}")
  set(${variable} ".globl ${name}\n.globl ${name}_end\n${name}:\n.incbin \"${file}\"\n${name}_end:\n.byte 0\n"
      PARENT_SCOPE)
endfunction()
