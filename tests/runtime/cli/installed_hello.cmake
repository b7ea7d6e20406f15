# cmake -DBUILD=<build tree> -DFOLDER=<samples/embedding/hello> -DWORK=<scratch> -DCOMPILER=.. -DGENERATOR=.. -P ...
# Installs the build into a prefix of its own, builds hello there as a stranger would, and runs what came out.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run("configure" ${CMAKE_COMMAND} -S ${FOLDER} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run("build" ${CMAKE_COMMAND} --build ${WORK}/build)
set(HELLO ${WORK}/build/hello)
include(${CMAKE_CURRENT_LIST_DIR}/run_hello.cmake)

# The installed command finds its library and its workloads.
execute_process(COMMAND ${WORK}/prefix/bin/hindsight bench --list RESULT_VARIABLE status OUTPUT_VARIABLE output
  ERROR_VARIABLE errors)
if(NOT status EQUAL 0 OR NOT output MATCHES "memory")
  message(FATAL_ERROR "the installed command finds no workloads (${status}): ${output}${errors}")
endif()
file(REMOVE_RECURSE ${WORK})
