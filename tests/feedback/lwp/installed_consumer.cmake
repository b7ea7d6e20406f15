# cmake -DBUILD=<build tree> -DFOLDER=<samples/embedding/lwp_consumer> -DWORK=<scratch> -DCOMPILER=.. -DGENERATOR=.. -P ...
# Installs the LWP library alone into a prefix of its own, builds the consumer there as a stranger would, runs it, and
# looks that nothing of a compiler came along.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component lwp)
run("configure" ${CMAKE_COMMAND} -S ${FOLDER} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_C_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run("build" ${CMAKE_COMMAND} --build ${WORK}/build)
run("the consumer" ${WORK}/build/lwp_consumer)

file(GLOB_RECURSE installed RELATIVE ${WORK}/prefix ${WORK}/prefix/*)
if(NOT EXISTS ${WORK}/prefix/include/hindsight/hindsight_lwp.h)
  message(FATAL_ERROR "the header is not there: ${installed}")
endif()
if("${installed}" MATCHES "libhindsight\\.so|LLVM|hindsight_optimizing")
  message(FATAL_ERROR "more than the LWP library was installed: ${installed}")
endif()
file(GLOB library ${WORK}/prefix/lib*/libhindsight_lwp.so ${WORK}/prefix/lib*/*/libhindsight_lwp.so)
execute_process(COMMAND ldd ${library} OUTPUT_VARIABLE needed RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR needed MATCHES "LLVM|asmjit|libhindsight\\.so")
  message(FATAL_ERROR "the LWP library needs a compiler:\n${needed}")
endif()
file(REMOVE_RECURSE ${WORK})
