#pragma once
// The folder of the tests' files.

#include <string>

namespace rbee::test {

// tests/ in the source tree. A function, so that only one object holds a path of this machine and
// the compiler cache works in every clone.
std::string data_folder();

}  // namespace rbee::test
