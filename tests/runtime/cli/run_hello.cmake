# cmake -DHELLO=<program> -DFOLDER=<samples/embedding/hello> -P run_hello.cmake
execute_process(COMMAND ${HELLO} ${FOLDER}/hello.wat RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
file(READ ${FOLDER}/expected.txt expected)
if(NOT status EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "hello ended with ${status}\n-- printed:\n${output}-- expected:\n${expected}-- on stderr:\n${errors}")
endif()
