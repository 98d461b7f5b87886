# libbacktrace, which names functions and source lines in dumps: from the directory of the compiler, which built it for itself.
#
# It becomes one object of Weft's library, with its functions renamed. Nobody who uses Weft has to find it then, in a directory
# that carries the version of the compiler, and a program may link a libbacktrace of its own. Without it there are names from
# the dynamic symbol table, and no lines. WEFT_BACKTRACE_OBJECT is the object, or empty.
#
# Its licence is BSD's with three clauses: who passes on a binary passes on the notice, too.
option(WEFT_BACKTRACE "Name source lines in dumps with the libbacktrace of the compiler, if it has one" ON)
set(WEFT_BACKTRACE_OBJECT "")

function(weft_find_backtrace)
  foreach(compiler IN ITEMS ${CMAKE_CXX_COMPILER} g++)  # clang looks into the directory of g++, if it finds one
    execute_process(COMMAND ${compiler} -print-file-name=libbacktrace.a
      OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND IS_ABSOLUTE "${archive}" AND EXISTS "${archive}")
      break()
    endif()
    set(archive "")
  endforeach()
  if(NOT archive OR NOT CMAKE_LINKER OR NOT CMAKE_OBJCOPY)
    return()
  endif()

  set(directory ${CMAKE_CURRENT_BINARY_DIR}/backtrace)
  set(object ${directory}/weft_backtrace.o)
  file(MAKE_DIRECTORY ${directory})
  if(NOT EXISTS ${object} OR "${archive}" IS_NEWER_THAN ${object})
    set(renamed "")
    set(kept "")
    foreach(name IN ITEMS create_state pcinfo syminfo)
      list(APPEND renamed --redefine-sym backtrace_${name}=weft_v1_backtrace_${name})
      list(APPEND kept --keep-global-symbol=weft_v1_backtrace_${name})
    endforeach()
    execute_process(COMMAND ${CMAKE_LINKER} -r --whole-archive ${archive} -o ${directory}/all.o RESULT_VARIABLE failed)
    if(NOT failed)
      execute_process(COMMAND ${CMAKE_OBJCOPY} ${renamed} ${directory}/all.o ${directory}/renamed.o RESULT_VARIABLE failed)
    endif()
    if(NOT failed)
      execute_process(COMMAND ${CMAKE_OBJCOPY} ${kept} ${directory}/renamed.o ${object} RESULT_VARIABLE failed)
    endif()
    if(failed)
      file(REMOVE ${object})
      return()
    endif()
  endif()

  # Whether it is for this processor, and needs nothing else.
  file(WRITE ${directory}/links.cpp "extern \"C\" void* weft_v1_backtrace_create_state(const char*, int, void*, void*);
int main() { return weft_v1_backtrace_create_state(nullptr, 1, nullptr, nullptr) == nullptr; }\n")
  try_compile(WEFT_BACKTRACE_LINKS ${directory}/check SOURCES ${directory}/links.cpp LINK_LIBRARIES ${object})
  if(WEFT_BACKTRACE_LINKS)
    set(WEFT_BACKTRACE_OBJECT ${object} PARENT_SCOPE)
  endif()
endfunction()

if(WEFT_BACKTRACE AND NOT WEFT_MODEL)
  weft_find_backtrace()
  if(NOT WEFT_BACKTRACE_OBJECT)
    message(STATUS "No libbacktrace: dumps will name exported functions only, and no source lines")
  endif()
endif()
