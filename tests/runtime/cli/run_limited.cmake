# cmake -DLIMITED=<launcher> -DLIMITS=<a,b> -DHINDSIGHT=<command> -DFOLDER=<here> -DREASON=<regular expression>
#       -DWARNINGS=<n> -P run_limited.cmake
# The guest's answer is right, the reason, if one is expected, is there exactly once, and warnings only where nothing watches.
string(REPLACE "," ";" LIMITS "${LIMITS}")
execute_process(
  COMMAND ${LIMITED} ${LIMITS} -- ${HINDSIGHT} run -v --no-code-cache --no-profile --invoke sum ${FOLDER}/sum.wat 200000000
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "ended with ${status}\n-- printed:\n${output}\n-- on stderr:\n${errors}")
endif()
if(NOT output MATCHES "623201024")
  message(FATAL_ERROR "wrong answer\n-- printed:\n${output}\n-- on stderr:\n${errors}")
endif()
if(NOT REASON STREQUAL "")
  string(REGEX MATCHALL "${REASON}" told "${errors}")
  list(LENGTH told times)
  if(NOT times EQUAL 1)
    message(FATAL_ERROR "the reason '${REASON}' was told ${times} times\n${errors}")
  endif()
endif()
string(REGEX MATCHALL "warning: lwp" warned "${errors}")
list(LENGTH warned times)
if(NOT times EQUAL ${WARNINGS})
  message(FATAL_ERROR "${times} warnings instead of ${WARNINGS}\n${errors}")
endif()
