// expect: Weft needs C\+\+20: -std=c\+\+20
// flags: -std=c++17
#include <weft/weft.hpp>

int main() {}
