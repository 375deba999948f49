# Changes to the build of llama.cpp. `.cargo/config.toml` names this file to CMake, which reads it in
# each `project`, before that project's own lines.

function(hone_change_llama)
    # llama.cpp's `common` library (chat templates, argument parsing) takes longer to compile than
    # all the rest, and nothing here calls it: llama-cpp-2 is used without its feature `common`.
    # llama-cpp-sys-2 still links the library, so this file takes its place.
    set_property(TARGET llama-common PROPERTY
        SOURCES "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/no_common.cpp")
    if(TARGET cpp-httplib)
        set_property(TARGET cpp-httplib PROPERTY
            SOURCES "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/no_http.cpp")
    endif()

    # Each of the 160 architectures is a file of its own that reads the same headers. Read once,
    # they take a third of the time.
    target_precompile_headers(llama PRIVATE
        "$<$<COMPILE_LANGUAGE:CXX>:${CMAKE_CURRENT_SOURCE_DIR}/src/models/models.h>")

    # On some NVIDIA GPUs cuBLAS multiplies the long pieces of prompts (prompt_products.cu). The file
    # asks the function of llama.cpp that chooses, which gets another name for it.
    if(TARGET ggml-cuda)
        set(cuda "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cuda")
        target_sources(ggml-cuda PRIVATE
            "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/prompt_products.cu")
        target_include_directories(ggml-cuda PRIVATE "${cuda}")
        set_property(SOURCE "${cuda}/mmq.cu" DIRECTORY "${cuda}"
            APPEND PROPERTY COMPILE_DEFINITIONS ggml_cuda_should_use_mmq=ggml_cuda_can_use_mmq)
    endif()

    # With MinGW, ggml gives its libraries names that the linker does not look for.
    if(MINGW)
        foreach(target IN ITEMS ggml ggml-base ggml-cpu)
            set_property(TARGET ${target} PROPERTY PREFIX "lib")
        endforeach()
    endif()

    # The AMX header of GCC before 14 says of `ldtilecfg` that it reads eight bytes, where it reads
    # 64. The compiler leaves out the stores of the others, and the program ends with a general
    # protection fault on a CPU with AMX.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14
            AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
        foreach(target IN ITEMS ggml-cpu ggml-cpu-sapphirerapids)
            if(TARGET ${target})
                target_compile_options(${target} PRIVATE
                    -mno-amx-tile -mno-amx-int8 -mno-amx-bf16)
            endif()
        endforeach()
    endif()

    # Zig's Clang takes gigabytes of memory for the AVX-512 kernels of this file, and comes to no
    # end. They multiply the repacked weights of Q4_0, Q4_K, Q2_K, IQ4_NL and MXFP4; a CPU with
    # AVX-512 reads prompts by those for AVX2 instead, and what that costs was not measured. A file
    # has the same options in every library, and those for CPUs without AVX-512 lose nothing by it.
    if(CMAKE_CXX_COMPILER MATCHES "zig" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
        set_property(SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu/arch/x86/repack.cpp"
            DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src"
            APPEND PROPERTY COMPILE_OPTIONS -mno-avx512f)
    endif()
endfunction()

if(PROJECT_NAME STREQUAL "llama.cpp")
    # cargo-zigbuild asks for debug information, with which the libraries are seven times as large.
    if(CMAKE_CXX_COMPILER MATCHES "zig")
        add_link_options(-s)
    endif()
    # The targets exist when the whole folder has been read.
    cmake_language(DEFER DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" CALL hone_change_llama)
endif()
