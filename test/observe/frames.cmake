# Variants of the fixture frames/frames.cpp, linked into observe_unwind_oracle_test: at several levels of optimization, with and
# without frame pointers, position-independent, after link-time optimization; by the compiler of the build and by the other one.
set(source ${CMAKE_CURRENT_SOURCE_DIR}/observe/frames/frames.cpp)
set(frames_objects "")

function(weft_frames compiler name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/frames/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${compiler} -std=c++20 -DVARIANT=${name} ${ARGN} ${source} -o ${object}
    DEPENDS ${source} ${CMAKE_CURRENT_SOURCE_DIR}/observe/frames/frames.hpp
    COMMENT "Compiling the frames of ${name}" VERBATIM)
  set(frames_objects ${frames_objects} ${object} PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/frames)
find_program(WEFT_FRAMES_CLANG NAMES clang++-19 clang++)
set(compilers ${CMAKE_CXX_COMPILER})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND WEFT_FRAMES_CLANG)
  list(APPEND compilers ${WEFT_FRAMES_CLANG})
endif()
foreach(compiler IN LISTS compilers)
  cmake_path(GET compiler STEM name)
  string(MAKE_C_IDENTIFIER ${name} name)
  weft_frames(${compiler} ${name}_O0 -c -g1 -O0)
  weft_frames(${compiler} ${name}_O1 -c -g1 -O1 -fomit-frame-pointer)
  weft_frames(${compiler} ${name}_O2 -c -g1 -O2 -fomit-frame-pointer)
  weft_frames(${compiler} ${name}_O2_frame_pointer -c -g1 -O2 -fno-omit-frame-pointer)
  weft_frames(${compiler} ${name}_O2_pic -c -g1 -O2 -fPIC -fno-plt)
  weft_frames(${compiler} ${name}_O3 -c -g1 -O3 -fstack-clash-protection)
  weft_frames(${compiler} ${name}_Os -c -g1 -Os)
endforeach()
# A relocatable link gives an object that went through link-time optimization. (clang's needs a linker of its own for that.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(bytecode ${CMAKE_CURRENT_BINARY_DIR}/frames/lto.bytecode.o)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/frames/lto.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -DVARIANT=lto -c -g1 -O2 -flto ${source} -o ${bytecode}
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -g1 -O2 -flto -flinker-output=nolto-rel ${bytecode} -o ${object}
    DEPENDS ${source} ${CMAKE_CURRENT_SOURCE_DIR}/observe/frames/frames.hpp
    COMMENT "Compiling the frames of lto" VERBATIM)
  list(APPEND frames_objects ${object})
endif()

target_sources(observe_unwind_oracle_test PRIVATE ${frames_objects})
