#pragma once

#define WEFT_VERSION "0.1.0"  // the one place: CMakeLists.txt reads it from here
