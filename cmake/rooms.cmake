# One static library a room. hindsight_room(jit/wasm SOURCES a.cc b.cc DEPENDS other_rooms_or_libs)
# makes target hindsight_jit_wasm. Rooms are position independent: they end up in libhindsight.so.
add_library(hindsight_options INTERFACE)
target_include_directories(hindsight_options INTERFACE ${PROJECT_SOURCE_DIR})
# Frame pointers are part of the design: backtraces of traps and searches for handlers walk from the library's function that the
# guest called, through frames of the library that called the guest.
target_compile_options(hindsight_options INTERFACE -fno-omit-frame-pointer
  $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra> $<$<COMPILE_LANGUAGE:CXX>:-Wno-unused-parameter>
  $<$<COMPILE_LANGUAGE:CXX>:-Wunused-const-variable>
  # False positives of g++ 12 in std::string and in LLVM headers (GCC bugs 105329, 105562).
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>
  $<$<AND:$<BOOL:${HINDSIGHT_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
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

# For rooms whose functions never call the guest, directly or not, so that no walk meets them: one register more, and functions of
# the room may be inlined into each other, although the code is position-independent.
set(HINDSIGHT_LEAF_ROOM_OPTIONS -fno-semantic-interposition)
if(NOT HINDSIGHT_SANITIZE)
  list(APPEND HINDSIGHT_LEAF_ROOM_OPTIONS -fomit-frame-pointer)
endif()

function(hindsight_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS" ${ARGN})
  string(REPLACE "/" "_" target "hindsight_${name}")
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_link_libraries(${target} PUBLIC hindsight_options ${ROOM_DEPENDS})
endfunction()
