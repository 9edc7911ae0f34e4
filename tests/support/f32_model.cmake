# Writes MODEL with its weights in F32 to OUT.
if(NOT EXISTS ${MODEL})
    message("skipped: ${MODEL} is missing; scripts/get-models fetches it")
    return()
endif()
execute_process(COMMAND ${QUANTIZE} --allow-requantize ${MODEL} ${OUT} F32 OUTPUT_QUIET ERROR_VARIABLE log RESULT_VARIABLE code)
if(NOT code EQUAL 0)
    message(FATAL_ERROR "${log}")
endif()
