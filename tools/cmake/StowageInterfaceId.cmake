# SPDX-License-Identifier: Apache-2.0
#
# A script: writes a header with an id of the headers that programs and the CUDA library share, so
# that a library of another build is refused instead of called.
#   cmake -DROOT=<source folder> -DVERSION=<ours> -DTORCH=<version> -DOUT=<header> -P StowageInterfaceId.cmake

file(GLOB_RECURSE headers "${ROOT}/ir/*.h" "${ROOT}/runtime/*.h")
list(FILTER headers EXCLUDE REGEX "/runtime/(capture|cuda)/")
set(all "torch ${TORCH} ")
foreach(header IN LISTS headers)
  file(SHA256 "${header}" hash)
  string(APPEND all "${hash} ")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING "${id}" 0 16 id)
file(WRITE "${OUT}" "#define STOWAGE_INTERFACE \"stowage ${VERSION}, interface ${id}\"\n")
