#pragma once
// Where the tests' files are.

#include <string>

namespace rbee::test {

// tests/ in the source tree. A function, so that one object alone holds a path of this machine and
// the others are the same in every clone.
std::string data_folder();

}  // namespace rbee::test
