# cascade_embed(target file...): compiles files into a target. Its code reads them by file name, through
# cascade::report::embedded (src/report/page/assets.h); a name that was not embedded is an empty text.
# `.incbin` from a C++ file: no generator to run, no array of a million numbers to compile, the same for GCC and Clang.
function(cascade_embed target)
    set(index 0)
    set(blobs "")
    set(symbols "")
    set(cases "")
    foreach(file IN LISTS ARGN)
        cmake_path(ABSOLUTE_PATH file NORMALIZE)
        cmake_path(GET file FILENAME name)
        set(symbol cascade_embedded_${index})
        string(APPEND blobs "asm(\".pushsection .rodata\\n\"\n"
            "    \".hidden ${symbol}, ${symbol}_end\\n\"\n"
            "    \".globl ${symbol}, ${symbol}_end\\n\"\n"
            "    \"${symbol}: .incbin \\\"${file}\\\"\\n\"\n"
            "    \"${symbol}_end: .byte 0\\n\"\n"
            "    \".popsection\\n\");\n")
        string(APPEND symbols "extern const char ${symbol}[], ${symbol}_end[];\n")
        string(APPEND cases "    if (name == \"${name}\") {\n"
            "        return { ${symbol}, static_cast<size_t>(${symbol}_end - ${symbol}) };\n    }\n")
        list(APPEND files ${file})
        math(EXPR index "${index} + 1")
    endforeach()
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_assets.cpp)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[// Written by cmake/Embed.cmake.
#include "report/page/assets.h"

@blobs@
extern "C" {
@symbols@}

namespace cascade::report {

std::string_view embedded(std::string_view name) {
@cases@    return {};
}

} // namespace cascade::report
]])
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
