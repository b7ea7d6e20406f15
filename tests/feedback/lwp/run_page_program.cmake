# cmake -DPROGRAM=<program> -DEXPECTED=<file with what it should print> -P run_page_program.cmake
execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
file(READ ${EXPECTED} expected)
if(NOT status EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "ended with ${status}\n-- printed:\n${output}-- expected:\n${expected}-- on stderr:\n${errors}")
endif()
