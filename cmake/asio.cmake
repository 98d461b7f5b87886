# The optional component weft::asio: headers only, for programs that bring Boost and OpenSSL. Weft itself needs neither, so
# that they are not found is no error; WEFT_HAS_ASIO says whether tests and examples of it can be built.
find_package(Boost 1.81 QUIET GLOBAL)
find_package(OpenSSL 3.0 QUIET GLOBAL)
if(TARGET Boost::headers AND TARGET OpenSSL::SSL)
  set(WEFT_HAS_ASIO ON)
else()
  set(WEFT_HAS_ASIO OFF)
endif()

add_library(weft_asio INTERFACE)
add_library(weft::asio ALIAS weft_asio)
set_target_properties(weft_asio PROPERTIES EXPORT_NAME asio)
target_link_libraries(weft_asio INTERFACE weft Boost::headers OpenSSL::SSL OpenSSL::Crypto)
