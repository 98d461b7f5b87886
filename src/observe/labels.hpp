// The names that programs have given to objects: weft::label.
#pragma once

#include <string>

namespace weft::inline v1::observe {

// Empty if the object has none. Anybody may ask, at any time.
[[nodiscard]] std::string label_of_object(const void* object);

}  // namespace weft::inline v1::observe
