# What every target of this project shares.

# Warnings, visibility and frame pointers for a target that is built from this repository.
function(weft_own target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor>
    # g++ 12 gives a false alarm for "x" + std::string (PR 105329).
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${WEFT_WERROR}>>:-Werror>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${WEFT_CHECKED}>>:-fno-omit-frame-pointer>)
endfunction()

# weft_library(name [STATIC]): the library, from WEFT_SOURCES. Also used for variants of it (see test/).
function(weft_library name)
  add_library(${name} ${ARGN})
  target_sources(${name} PRIVATE ${WEFT_SOURCES})
  if(NOT WEFT_SOURCES)
    file(WRITE ${PROJECT_BINARY_DIR}/no_sources.cpp "")
    target_sources(${name} PRIVATE ${PROJECT_BINARY_DIR}/no_sources.cpp)
  endif()
  if(WEFT_BACKTRACE_OBJECT)  # see backtrace.cmake
    get_target_property(kind ${name} TYPE)
    if(kind STREQUAL "OBJECT_LIBRARY")  # an object that it did not compile is none of its objects
      target_link_libraries(${name} INTERFACE ${WEFT_BACKTRACE_OBJECT})
    else()
      target_sources(${name} PRIVATE ${WEFT_BACKTRACE_OBJECT})
    endif()
    target_compile_definitions(${name} PRIVATE WEFT_HAS_BACKTRACE=1)
  endif()
  weft_own(${name})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  if(WEFT_MODEL)  # base includes the twins as "explore/..."
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/test/model)
  endif()
  # Public: a large local array in the caller's code must not jump over a stack's guard either.
  target_compile_options(${name} PUBLIC $<$<COMPILE_LANGUAGE:CXX>:-fstack-clash-protection>)
  # Public: headers look at them, and all parts of a program must agree.
  target_compile_definitions(${name} PUBLIC
    $<$<BOOL:${WEFT_CHECKED}>:WEFT_CHECKED=1>
    $<$<BOOL:${WEFT_FORCE_MIGRATION}>:WEFT_FORCE_MIGRATION=1>
    $<$<BOOL:${WEFT_MODEL}>:WEFT_MODEL=1>
    $<BUILD_INTERFACE:$<$<BOOL:${WEFT_NEEDS_BOOST}>:WEFT_BOOST_SWITCH=1>>)  # not exported: only src/ looks at it
  target_link_libraries(${name} PUBLIC Threads::Threads)
  if(WEFT_NEEDS_BOOST)
    target_link_libraries(${name} PRIVATE Boost::context)
  endif()
endfunction()
