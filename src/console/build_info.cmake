# Writes what a build is made of into a source file, which changes only where that has.
find_program(git git)
set(COMMIT "")
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE COMMIT
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${git} -C ${SOURCE} diff --quiet HEAD -- RESULT_VARIABLE differs
                  OUTPUT_QUIET ERROR_QUIET)
endif()
set(CHANGED false)
if(COMMIT AND NOT differs EQUAL 0)
  set(CHANGED true)
endif()
set(WITH_CUDA false)
if(CUDA)
  set(WITH_CUDA true)
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
