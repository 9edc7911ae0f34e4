# The engine: llama.cpp, pinned, never altered. Gives the imported targets engine::base (ggml-base), engine::ggml (the
# backend registry), engine::llama, and engine_build, on which everything that links them depends.
#
#   CASCADE_ENGINE_DIR     its source tree; default .deps/engine (scripts/get-engine), else the tag is fetched
#   CASCADE_ENGINE_BIN     a folder with a finished GGML_BACKEND_DL build of that same tree: nothing is built then
#   CASCADE_ENGINE_COMMIT  what its ggml_commit() says; default: asked of git, as the engine's own build does
#
# It is built once for all presets but tsan, in .deps/build-*, and its programs are copied to bin/ beside ours.
include(ExternalProject)
include(HostCpu)

set(CASCADE_ENGINE_TAG v0.5.0)
set(CASCADE_ENGINE_DIR "" CACHE PATH "llama.cpp source tree (default: .deps/engine, else fetched)")
set(CASCADE_ENGINE_BIN "" CACHE PATH "folder with a GGML_BACKEND_DL build of that tree (default: build it)")
set(CASCADE_ENGINE_COMMIT "" CACHE STRING "commit that the engine's ggml reports (default: asked of git)")

set(engine_dir "${CASCADE_ENGINE_DIR}")
if(NOT engine_dir AND EXISTS ${PROJECT_SOURCE_DIR}/.deps/engine/ggml/src/ggml-impl.h)
    set(engine_dir ${PROJECT_SOURCE_DIR}/.deps/engine)
endif()
if(NOT engine_dir)
    message(STATUS "No engine in .deps/engine (scripts/get-engine): fetching llama.cpp ${CASCADE_ENGINE_TAG}")
    include(FetchContent)
    FetchContent_Declare(engine GIT_REPOSITORY https://github.com/ggml-org/llama.cpp GIT_TAG ${CASCADE_ENGINE_TAG}
        GIT_SHALLOW ON)
    FetchContent_GetProperties(engine)
    if(NOT engine_POPULATED)
        FetchContent_Populate(engine)
    endif()
    set(engine_dir ${engine_SOURCE_DIR})
endif()
if(NOT EXISTS ${engine_dir}/ggml/src/ggml-impl.h)
    message(FATAL_ERROR "${engine_dir} is no llama.cpp source tree; give one with -DCASCADE_ENGINE_DIR=, "
        "or run scripts/get-engine")
endif()

file(STRINGS ${engine_dir}/ggml/CMakeLists.txt version_lines REGEX "^set\\(GGML_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" version_lines "${version_lines}")
string(REPLACE ";" "." CASCADE_ENGINE_VERSION "${version_lines}")
set(engine_commit "${CASCADE_ENGINE_COMMIT}")
if(NOT engine_commit)
    execute_process(COMMAND git rev-parse --short HEAD WORKING_DIRECTORY ${engine_dir}/ggml
        OUTPUT_VARIABLE engine_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT engine_commit)
    set(engine_commit unknown)
endif()
# The engine's own count, as llama-bench shows it.
execute_process(COMMAND git rev-list --count HEAD WORKING_DIRECTORY ${engine_dir}
    OUTPUT_VARIABLE engine_build_number OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT engine_build_number)
    set(engine_build_number 0)
endif()
message(STATUS "Engine: ggml ${CASCADE_ENGINE_VERSION}, commit ${engine_commit}, in ${engine_dir}")

# ThreadSanitizer must see the engine's own barriers, so there ggml is built with it, without OpenMP, and alone.
set(engine_programs llama-bench llama-perplexity llama-completion llama-quantize llama-server)
set(engine_targets ggml-base ggml ggml-cpu ggml-rpc llama ${engine_programs} ggml-rpc-server)
set(engine_key release)
set(engine_extra "")
if(CASCADE_SANITIZE MATCHES "thread")
    set(engine_key tsan)
    set(engine_targets ggml-base ggml ggml-cpu)
    set(engine_programs "")
    set(engine_extra -DGGML_SANITIZE_THREAD=ON -DLLAMA_SANITIZE_THREAD=ON -DGGML_OPENMP=OFF)
endif()

if(CASCADE_ENGINE_BIN)
    set(engine_bin ${CASCADE_ENGINE_BIN})
    add_custom_target(engine_build)
else()
    string(SHA256 engine_hash "${engine_dir};${engine_extra};${CMAKE_CXX_COMPILER}")
    string(SUBSTRING ${engine_hash} 0 8 engine_hash)
    set(engine_binary_dir ${PROJECT_SOURCE_DIR}/.deps/build-${engine_key}-${engine_hash})
    set(engine_bin ${engine_binary_dir}/bin)
    cascade_host_cpu_flags(engine_cpu_flags)
    ExternalProject_Add(engine_build
        SOURCE_DIR ${engine_dir}
        BINARY_DIR ${engine_binary_dir}
        STAMP_DIR ${engine_binary_dir}/stamps
        TMP_DIR ${engine_binary_dir}/tmp
        CMAKE_GENERATOR Ninja
        CMAKE_ARGS -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
            -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DGGML_BACKEND_DL=ON -DGGML_RPC=ON ${engine_cpu_flags}
            -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF
            -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
            -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH=$ORIGIN ${engine_extra}
        BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target ${engine_targets}
        BUILD_BYPRODUCTS ${engine_bin}/libggml-base.so ${engine_bin}/libggml.so ${engine_bin}/libllama.so
        INSTALL_COMMAND ""
        USES_TERMINAL_BUILD ON)
endif()

foreach(pair base=ggml-base ggml=ggml llama=llama)
    string(REPLACE "=" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 library)
    add_library(engine::${name} SHARED IMPORTED)
    set_target_properties(engine::${name} PROPERTIES IMPORTED_LOCATION ${engine_bin}/lib${library}.so)
    target_include_directories(engine::${name} SYSTEM INTERFACE
        ${engine_dir}/ggml/include ${engine_dir}/ggml/src ${engine_dir}/include)
    add_dependencies(engine::${name} engine_build)
endforeach()

# build/<preset>/bin is complete and relocatable: the engine's libraries find each other by $ORIGIN. A finished build
# of somebody else's stays where it is.
add_custom_target(engine_bin ALL)
add_dependencies(engine_bin engine_build)
if(CASCADE_ENGINE_BIN)
    list(APPEND CMAKE_INSTALL_RPATH ${CASCADE_ENGINE_BIN})
else()
    add_custom_command(TARGET engine_bin POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
        COMMAND cp -au ${engine_bin}/. ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
        VERBATIM)
    if("ggml-rpc-server" IN_LIST engine_targets)
        add_custom_command(TARGET engine_bin POST_BUILD
            COMMAND ${CMAKE_COMMAND} -E create_symlink ggml-rpc-server ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/rpc-server
            VERBATIM)
    endif()
endif()
