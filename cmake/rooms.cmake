# One static library a room. hindsight_room(jit/wasm SOURCES a.cc b.cc DEPENDS other_rooms_or_libs)
# makes target hindsight_jit_wasm. Rooms are position independent: they end up in libhindsight.so.
add_library(hindsight_options INTERFACE)
target_include_directories(hindsight_options INTERFACE ${PROJECT_SOURCE_DIR})
# Frame pointers are part of the design: backtraces of traps and searches for handlers walk from the library's function that the
# guest called, through frames of the library that called the guest.
target_compile_options(hindsight_options INTERFACE -fno-omit-frame-pointer
  $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra> $<$<COMPILE_LANGUAGE:CXX>:-Wno-unused-parameter>
  $<$<COMPILE_LANGUAGE:CXX>:-Wunused-const-variable>
  # False positives of g++ 12 in std::string and in LLVM headers (such as GCC bugs 105329, 105562).
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>
  $<$<AND:$<BOOL:${HINDSIGHT_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
# The compiler collects no garbage below 1 GB. Collecting took up to a sixth of a file's time in jit/optimizing; without it,
# link_code.cc takes 640 MB.
target_compile_options(hindsight_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=100>)
if(HINDSIGHT_SANITIZE)
  target_compile_options(hindsight_options INTERFACE -fsanitize=${HINDSIGHT_SANITIZE} -fno-sanitize-recover=undefined -g)
  target_link_options(hindsight_options INTERFACE -fsanitize=${HINDSIGHT_SANITIZE})
  target_compile_definitions(hindsight_options INTERFACE HINDSIGHT_SANITIZED=1)
  if(HINDSIGHT_SANITIZE MATCHES "thread")
    # g++ warns that fences are not modelled. The one fence (quiescence.cc) orders atomics among each other, which
    # are no races to begin with.
    target_compile_options(hindsight_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()

# What most files of the rooms include took two fifths of the time to compile one of feedback/policy. It is compiled once for
# rooms, and once for LEAF rooms, whose functions never call the guest. Those may be inlined into each other, although the code is
# position-independent. Frame pointers are kept in them too: the linker takes an inline function of any room for all of them.
set(HINDSIGHT_ROOM_HEADERS <fmt/format.h> <algorithm> <array> <atomic> <bit> <chrono> <cstdint> <cstring> <functional> <map> <memory>
  <mutex> <optional> <set> <span> <string> <string_view> <utility> <vector>)
# The targets that compile it, by whether the rooms are leaves.
set(HINDSIGHT_HEADERS_LEAF_FALSE hindsight_room_headers)
set(HINDSIGHT_HEADERS_LEAF_TRUE hindsight_leaf_room_headers)

function(hindsight_room_options target leaf)
  target_link_libraries(${target} PUBLIC hindsight_options fmt::fmt)
  if(leaf)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
endfunction()

foreach(leaf FALSE TRUE)
  set(headers ${HINDSIGHT_HEADERS_LEAF_${leaf}})
  add_library(${headers} OBJECT ${CMAKE_CURRENT_LIST_DIR}/headers.cc)
  hindsight_room_options(${headers} ${leaf})
  target_precompile_headers(${headers} PRIVATE ${HINDSIGHT_ROOM_HEADERS})
endforeach()

function(hindsight_room name)
  cmake_parse_arguments(ROOM "LEAF" "" "SOURCES;DEPENDS" ${ARGN})
  string(REPLACE "/" "_" target "hindsight_${name}")
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_link_libraries(${target} PUBLIC ${ROOM_DEPENDS})
  hindsight_room_options(${target} ${ROOM_LEAF})
  target_precompile_headers(${target} REUSE_FROM ${HINDSIGHT_HEADERS_LEAF_${ROOM_LEAF}})
endfunction()
