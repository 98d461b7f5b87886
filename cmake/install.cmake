# Install rules: find_package(weft [COMPONENTS asio]), pkg-config weft.
include(CMakePackageConfigHelpers)

install(TARGETS weft EXPORT weftTargets)
install(TARGETS weft_asio EXPORT weftAsioTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${package_dir})
install(EXPORT weftAsioTargets NAMESPACE weft:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in weftConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake
  DESTINATION ${package_dir})

set(WEFT_PC_CFLAGS "-fstack-clash-protection -pthread")
foreach(definition IN ITEMS WEFT_CHECKED WEFT_FORCE_MIGRATION)
  if(${definition})
    string(APPEND WEFT_PC_CFLAGS " -D${definition}=1")
  endif()
endforeach()
set(WEFT_PC_LIBS "-pthread")
set(WEFT_PC_LIBS_PRIVATE "")
if(WEFT_NEEDS_BOOST)
  set(WEFT_PC_LIBS_PRIVATE "-lboost_context")
endif()
if(NOT BUILD_SHARED_LIBS AND WEFT_NEEDS_BOOST)  # an archive needs it at every link, not only with --static
  set(WEFT_PC_LIBS "${WEFT_PC_LIBS_PRIVATE} ${WEFT_PC_LIBS}")
  set(WEFT_PC_LIBS_PRIVATE "")
endif()
# weft.pc lives in <prefix>/<libdir>/pkgconfig; relative, so that `cmake --install --prefix` is honoured.
file(RELATIVE_PATH WEFT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/weft.pc.in weft.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
