#!/usr/bin/env bash
# Makes the part of ICU's data that rbee uses (normal forms, properties, names, bounds of characters): 5 MB of 31, without
# languages, countries, currencies, sort orders and code pages. Usage: build_icu_data.sh FOLDER; makes FOLDER/icudata.o.
set -euo pipefail
mkdir -p "${1:?the folder}"
cd "$1"
# The name is a part of the data.
name=icudt$(sed -n 's/^#define U_ICU_VERSION_MAJOR_NUM //p' /usr/include/unicode/uvernum.h)
ar x "$(${CXX:-c++} -print-file-name=libicudata.a)"
objcopy -O binary --only-section=.rodata "${name}l_dat.o" "${name}l.dat"
roots='root|pool|res_index|supplementalData|keyTypeData|likelySubtags|metadata|numberingSystems|timezoneTypes'
icupkg -l "${name}l.dat" | grep -vE "^(brkitr/.*|[^/]*\.(icu|nrm)|($roots)\.res)\$" >dropped.txt
mkdir -p cut
icupkg -r dropped.txt "${name}l.dat" "cut/${name}l.dat"
${CXX:-c++} -c -x assembler -o icudata.o - <<END
.section .note.GNU-stack
.section .rodata
.globl ${name}_dat
.balign 16
${name}_dat:
.incbin "cut/${name}l.dat"
END
rm -rf "${name}l.dat" dropped.txt cut "${name}l_dat.o"
